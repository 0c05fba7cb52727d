"""Many noisy comparisons at once: both routes on the same bits, and nothing private that raises."""

import itertools
import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA
from snugdp.audit.laws.goodness import cells_p
from snugdp.noise import Continuous, DiscreteGaussian, Exact, Gaussian, Gumbel, Laplace, Noise, Simulation
from snugdp.noise.exact import entropy, vectorised
from snugdp.noise.exact.coins import PROVED, Margins
from snugdp.noise.exact.deviate import Deviate, ball_of
from snugdp.noise.exact.filtered import DrawBatch
from snugdp.noise.exact.refine import Bits, precision
from snugdp.noise.recording import scaled
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws.inside import again
from snugdp_studies.audit.laws.sources import REAL
from tests.effort import sampled

SLOW = Margins(window=2.0**200)  # balls settle everything
SOURCES: list[Noise] = [Exact(), Simulation(7)]
rng = np.random.default_rng(66)
laws = pytest.mark.parametrize("law", REAL, ids=lambda law: type(law).__name__)
sources = pytest.mark.parametrize("noise", SOURCES, ids=lambda noise: type(noise).__name__)


def rescaled(law: Continuous, factor: Fraction) -> Continuous:
    used = scaled(law, factor)
    assert isinstance(used, Continuous)
    return used


@sampled(2)
@laws
@pytest.mark.parametrize("factor", ["1/1000000", "1/5", "1", "10", "1e30"])
def test_floats_and_balls_agree_on_the_same_bits(law: Continuous, factor: str) -> None:
    used, seen = rescaled(law, Fraction(factor)), dict[int, NDArray[np.uint64]]()
    scores = rng.integers(0, 12, (400, 4))
    answers = []
    for margins in (PROVED, SLOW):
        at = Fraction(17, 3)
        with again(seen):
            won = vectorised.argmaxes(scores, used, margins)
            answers.append((won, vectorised.reach(scores[:, 0], used, at, margins)))
    assert (answers[0][0] == answers[1][0]).all()
    assert (answers[0][1] == answers[1][1]).all()


def lanes(rows: list[tuple[bool, int, int]]) -> DrawBatch:
    negative, whole, fraction = zip(*rows, strict=True)
    return DrawBatch(np.array(negative), np.array(whole, dtype=np.int64), np.array(fraction, dtype=np.uint64))


@laws
@pytest.mark.parametrize("scale", ["1/4", "1/12", "1e-60", "1e60", "33333333/7"])
def test_the_window_holds_every_continuation(law: Continuous, scale: str) -> None:
    """Also with six tenths of the window: the proof leaves that much room."""
    used = rescaled(law, Fraction(scale))
    edges = [0, 1, 2**11 - 1, 2**11, 2**24, 2**40, 2**63, 2**64 - 1, *rng.integers(0, 2**63, 150).tolist()]
    drawn = lanes([(bool(i % 2), k, edge) for i, edge in enumerate(edges) for k in (0, 1, 2, 5, 40)])
    noise, window = vectorised._enclosed(used, drawn, PROVED)
    assert np.isfinite(window).mean() > 0.9
    with precision(300):
        for lane in range(len(drawn)):
            for end in (0, 2**200 - 1):  # the smallest and the largest continuation
                bits = Bits(int(drawn.fraction[lane]) << 200 | end, 264)
                exactly = ball_of(used, Deviate(bool(drawn.negative[lane]), int(drawn.whole[lane]), bits), 264)
                if math.isfinite(window[lane]):
                    assert abs(exactly - arb(float(noise[lane]))) <= arb(0.6 * float(window[lane]))


def test_the_logarithm_is_better_than_proved() -> None:
    halves = 2.0 ** np.arange(-39, 40) * math.sqrt(0.5)  # where the reduction changes its mind
    x = np.concatenate([np.exp(rng.uniform(-27, 27, 4000)), 1 + rng.uniform(-1, 1, 4000) * 1e-3, halves])
    x = np.concatenate([x, np.nextafter(halves, 0), np.nextafter(halves, 9e99), [1.0, 2.0**-40, 2.0**62]])
    with precision(140):
        for at, value in zip(x.tolist(), vectorised.logarithm(x).tolist(), strict=True):
            truth = arb(at).log()
            assert abs(arb(value) - truth) < arb((1, -50)) * (1 + abs(truth))


def rigged(monkeypatch: pytest.MonkeyPatch, rows: list[tuple[bool, int, int]]) -> None:
    monkeypatch.setattr(vectorised, "draw", lambda *_: lanes(rows))


@laws
def test_rows_that_look_the_same_are_settled_by_the_next_bits(law: Continuous, monkeypatch: pytest.MonkeyPatch) -> None:
    winners = Counter[int]()
    twin = (False, 1, 1 << 60)
    loser = (False, 1 << 20, 1 << 60) if isinstance(law, Gumbel) else (True, 3, 5)
    for _ in range(60):
        rigged(monkeypatch, [twin, twin, loser, twin])
        winners[int(vectorised.argmaxes(np.array([[4, 4, 4, 4]]), law)[0])] += 1
    assert set(winners) == {0, 1, 3}


@laws
def test_a_lead_beyond_floats_decides(law: Continuous, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two draws that differ in their 62nd bit, which no float of this size can see."""
    for place in (0, 1):
        high, low = (False, 3, (1 << 60) + 4), (False, 3, 1 << 60)
        rigged(monkeypatch, [high, low] if (place == 0) != isinstance(law, Gumbel) else [low, high])
        assert vectorised.argmaxes(np.array([[7, 7]]), law).tolist() == [place]


def test_a_threshold_beyond_floats_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    law, unit = Laplace(1), Fraction(1, 1 << 64)
    for negative, at in itertools.product((False, True), (Fraction(10**15) + Fraction(1, 3), Fraction(1, 7))):
        value = math.floor(at)
        within = at - value if not negative else value + 1 - at
        cell = math.floor(within / unit)
        for shift in (-2, -1, 1, 2):
            rigged(monkeypatch, [(negative, 0, cell + shift)])
            answer = vectorised.reach(np.array([value + negative]), law, at)
            assert bool(answer[0]) == ((shift > 0) != negative)


def test_rows_and_blocks_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also across the borders of blocks, and wherever in a row the winner stands."""
    monkeypatch.setattr(vectorised, "CELLS", 31)
    won = vectorised.argmaxes(np.zeros((12_000, 3), dtype=np.int64), Gaussian(1)).reshape(-1, 3)
    seen = np.bincount(won @ [9, 3, 1], minlength=27)
    assert cells_p(seen, [1 / 27] * 27) > ALPHA


def test_chance_reads_on_only_at_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    def coin(chance: Fraction, *words: int) -> tuple[bool, int]:
        script = iter(words)
        monkeypatch.setattr(entropy, "bits", lambda n: next(script))
        return vectorised.chance(chance), len(list(script))

    third = (1 << 64) // 3  # 0101...01
    assert coin(Fraction(1, 3), third - 1, 9) == (True, 1)
    assert coin(Fraction(1, 3), third + 1, 9) == (False, 1)
    assert coin(Fraction(1, 3), third, third - 1, 9) == (True, 1)
    assert coin(Fraction(1, 3), third, third, third + 1, 9) == (False, 1)
    half = 1 << 63
    assert coin(Fraction(1, 2), half, 9) == (False, 1)
    assert coin(Fraction(1, 2), half - 1, 9) == (True, 1)
    assert coin(Fraction(1), (1 << 64) - 1, 9) == (True, 1)
    assert coin(Fraction(0), 0, 9) == (False, 1)


def test_neighbours_are_scattered_independently() -> None:
    places = Exact().scatter(150_000, 7) % 2
    pairs = np.bincount(places[::2] * 2 + places[1::2], minlength=4)
    assert cells_p(pairs, [p * q for p in (4 / 7, 3 / 7) for q in (4 / 7, 3 / 7)]) > ALPHA
    assert Exact().scatter(0, 9).tolist() == []


def test_scatter_drops_the_words_beyond_the_last_round(monkeypatch: pytest.MonkeyPatch) -> None:
    top = (1 << 64) - 1
    script = [[top, 5, top - 1], [top], [4]]  # 2**64 is 1 modulo 3: only the last word is beyond
    monkeypatch.setattr(entropy, "words", lambda n: np.array(script.pop(0), dtype=np.uint64))
    assert vectorised.scatter(3, 3).tolist() == [2, (top - 1) % 3, 1]
    script = [[top, 1 << 63, 3]]
    assert vectorised.scatter(3, 4).tolist() == [3, 0, 3]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint32", "uint64", "int64", "bool"])
@sources
def test_every_width_at_its_limits(noise: Noise, kind: str) -> None:
    low, high = (0, 1) if kind == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max)
    scores = np.array([[low, high, low], [high, low, low], [low, low, high]], dtype=kind)
    law = Gaussian("1/100")
    for table in (scores, np.asfortranarray(scores), scores[::-1, ::-1][::-1, ::-1]):
        assert noise.argmaxes(Secret(table), law).tolist() == [1, 0, 2]
    middle = (Fraction(int(low)) + int(high)) / 2
    assert noise.reach(Secret(scores[0]), law, middle).tolist() == [False, True, False]
    assert noise.argmaxes(Secret(scores[:0]), law).tolist() == []
    assert noise.argmaxes(Secret(scores[:, :1]), law).tolist() == [0, 0, 0]
    assert noise.reach(Secret(scores[0, :0]), law, 3).tolist() == []


@laws
@pytest.mark.parametrize("exponent", [-400, -250, -20, 20, 250, 400])
def test_scales_far_out(law: Continuous, exponent: int) -> None:
    used, noise = rescaled(law, Fraction(10) ** exponent), Exact()
    ends = np.array([[-(2**63), 2**63 - 1], [0, 0], [5, 4]] * 40)
    won = noise.argmaxes(Secret(ends), used)
    assert 0 < won[1::3].sum() < 40
    if exponent != 20:  # where the noise is about as large as the lead
        assert set(won[::3].tolist()) == ({1} if exponent < 0 else {0, 1})
    assert set(won[2::3].tolist()) == ({0} if exponent < 0 else {0, 1})
    for at in (Fraction(10**400), Fraction(-(10**400)), Fraction(1, 3), Fraction(10**18)):
        reached = noise.reach(Secret(ends[:, 0]), used, at)
        if exponent < 0:
            assert reached.tolist() == [bool(value >= at) for value in ends[:, 0].tolist()]
    assert not noise.reach(Secret(ends[:, 0]), used, Fraction(1, 10**400)).all() or exponent > 0


def test_memory_stays_bounded() -> None:
    scores: NDArray[Any] = np.zeros((200_000, 10), dtype=np.int16)
    tracemalloc.start()
    try:
        Exact().argmaxes(Secret(scores), Gaussian(1))
        assert tracemalloc.get_traced_memory()[1] < 40e6  # all noise at once would be several times that
    finally:
        tracemalloc.stop()


def test_public_mistakes_are_named_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(n: int) -> bytes:
        raise AssertionError("drew before checking")

    monkeypatch.setattr("os.urandom", refuse)
    table = Secret(np.zeros((2, 2), dtype=np.int64))
    for source in (Exact(), Simulation(1)):
        noise: Any = source
        for bad in (Secret([[1, 2]]), Secret(None), Secret(3)):
            with pytest.raises(TypeError, match="whole numbers"):
                noise.argmaxes(bad, Gaussian(1))
            with pytest.raises(TypeError, match="whole numbers"):
                noise.reach(bad, Gaussian(1), 0)
        with pytest.raises(ValueError, match="dimension"):
            noise.argmaxes(Secret(np.zeros(3, dtype=np.int64)), Gaussian(1))
        with pytest.raises(ValueError, match="dimension"):
            noise.reach(table, Gaussian(1), 0)
        with pytest.raises(ValueError, match="at least one score"):
            noise.argmaxes(Secret(np.zeros((3, 0), dtype=np.int64)), Gaussian(1))
        with pytest.raises(TypeError, match="law must be one of Laplace, Gaussian, Gumbel"):
            noise.argmaxes(table, DiscreteGaussian(1))
        with pytest.raises(TypeError, match="law must be one of"):
            noise.reach(table.map(np.ravel), DiscreteGaussian(1), 0)
        with pytest.raises(ValueError, match="threshold"):
            noise.reach(table.map(np.ravel), Gaussian(1), math.inf)
        for n, parts in ((-1, 3), (3, 0), (3, -2), (1 << 62, 3)):
            with pytest.raises(ValueError, match="must be at least"):
                noise.scatter(n, parts)
        for pair in ((2.0, 3), (True, 3), (3, "4")):
            with pytest.raises(TypeError, match="whole number"):
                noise.scatter(*pair)


def test_a_seed_repeats() -> None:
    def drawn(seed: int) -> list[Any]:
        noise = Simulation(seed)
        table = Secret(np.zeros((50, 6), dtype=np.int64))
        coins = [noise.chance(Secret(Fraction(1, 2))) for _ in range(40)]
        reached = noise.reach(table.map(lambda votes: votes[:, 0]), Laplace(3), 0)
        return [*noise.argmaxes(table, Gumbel(2)), *reached, *noise.scatter(30, 9), *coins]

    assert drawn(4) == drawn(4)
    assert drawn(4) != drawn(5)
