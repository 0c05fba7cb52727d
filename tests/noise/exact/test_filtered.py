"""The float filter against balls on the same bits, and with margins so wide that balls decide."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA
from snugdp.noise import DiscreteGaussian, DiscreteLaplace
from snugdp.noise.exact import discrete
from snugdp.noise.exact.coins import COIN_BITS, Margins, coins, exp_neg
from snugdp.noise.exact.deviate import Deviate
from snugdp.noise.exact.filtered import DrawBatch, _whole_parts, draw, floors
from snugdp.noise.exact.refine import Bits, below, precision
from snugdp.noise.exact.shapes import EXPONENTIAL, HALF_NORMAL, Shape, thresholds, whole_part
from snugdp_studies.audit.laws import inside
from snugdp_studies.audit.laws.inside import WIDE, again
from snugdp_studies.audit.laws.samples import LIGHT, whole_p
from tests.effort import sampled

shapes = pytest.mark.parametrize("shape", [HALF_NORMAL, EXPONENTIAL], ids=["half-normal", "exponential"])
rng = np.random.default_rng(20)


def test_exp_neg_is_better_than_proved() -> None:
    halves = (np.arange(86) + 0.5) * np.log(2.0)  # where the reduction changes its mind
    e = np.concatenate([rng.random(8000) * 60, rng.random(8000), halves, halves - 1e-13, halves + 1e-13, [0, 60.0]])
    with precision(140):
        errors = [
            abs(arb(value) / (-arb(at)).exp() - 1) for at, value in zip(e.tolist(), exp_neg(e).tolist(), strict=True)
        ]
        assert all(error < arb((1, -51)) for error in errors)


def test_margins_cannot_be_narrowed() -> None:
    for bad in ({"table": -1}, {"accept": 2.0**-41}, {"window": 0.5}):
        with pytest.raises(ValueError, match="never narrower"):
            Margins(**bad)


def test_float_coins_agree_with_balls_on_the_same_bits() -> None:
    """Coins placed right at the probability: floats either say what balls say or say nothing."""
    e = np.concatenate([rng.random(1500) * 12, rng.random(200) * 1000, [0.0, 60.0, 60.1, 1e300]])
    edge = np.floor(np.exp(-e) * 2.0**COIN_BITS)
    silent = 0
    for offset in (-2, -1, 0, 1, 2):
        coin = np.clip(edge + offset, 0, 2.0**COIN_BITS - 1).astype(np.uint32)
        heads, unsure = coins(e, coin, 2.0**-40)
        silent += int(unsure.sum())
        for at, face, head in zip(e[~unsure].tolist(), coin[~unsure].tolist(), heads[~unsure].tolist(), strict=True):
            assert below(Bits(face, COIN_BITS), lambda _, at=at: (-arb(at)).exp()) == head  # type: ignore[misc]
    assert 1000 < silent < 5000


@shapes
def test_table_entries_and_their_neighbours(shape: Shape) -> None:
    table = thresholds(shape)
    weights = [np.exp(-j * j / 2 if shape is HALF_NORMAL else -j) for j in range(60)]
    for j, entry in enumerate(table):
        assert abs(entry - 2.0**32 * sum(weights[: j + 1]) / sum(weights)) < 1.01
    near = sorted({min(max(entry + d, 0), 2**32 - 1) for entry in table for d in (-2, -1, 0, 1, 2)} | {0})
    k, unsure = _whole_parts(shape, np.array(near, dtype=np.uint32), 0)
    assert set(table) <= {u for u, open_ in zip(near, unsure.tolist(), strict=True) if open_}
    for u, lane, open_ in zip(near, k.tolist(), unsure.tolist(), strict=True):
        if not open_:
            assert {whole_part(shape, Bits(u, 32)) for _ in range(4)} == {lane}


def test_a_tie_at_the_table_is_settled_by_the_next_bits() -> None:
    entry = thresholds(EXPONENTIAL)[0]
    share = float(2.0**32 * (1 - np.exp(-1.0)) - entry)
    zeros = sum(whole_part(EXPONENTIAL, Bits(entry, 32)) == 0 for _ in range(3000))
    assert abs(zeros / 3000 - share) < 0.06


def lanes(whole: list[int], fraction: list[int]) -> DrawBatch:
    return DrawBatch(
        np.zeros(len(whole), dtype=np.bool_), np.array(whole, dtype=np.int64), np.array(fraction, dtype=np.uint64)
    )


@pytest.mark.parametrize("shift", [Fraction(0), Fraction(1, 2)])
@pytest.mark.parametrize("scale", ["1", "1/3", "1e-9", "1000003/7", "1048576", "1e13", "1e15"])
def test_floors_at_and_around_every_boundary(scale: str, shift: Fraction) -> None:
    factor = Fraction(scale)
    whole, fraction = [], []
    for cell in range(1, 6):
        place = (cell - shift) / factor
        for delta in (-(1 << 13), -1, 0, 1, 1 << 13):
            at = int(place * 2**64) + delta
            if 0 <= at >> 64 < 1 << 40:
                whole.append(at >> 64)
                fraction.append(at & (1 << 64) - 1)
    random = rng.integers(0, 2**63, 300, dtype=np.uint64) * np.uint64(2)
    batch = lanes(whole + [int(k) for k in rng.integers(0, 9, 300)], fraction + random.tolist())
    got = floors(batch, factor, shift)
    for lane in range(len(batch)):
        low = factor * (int(batch.whole[lane]) + Fraction(int(batch.fraction[lane]), 2**64)) + shift
        assert got[lane] in {low.__floor__(), (low + factor / 2**64).__floor__()}
    assert (floors(batch, factor, shift, WIDE) == got).all()


def test_floor_reads_on_until_it_is_sure() -> None:
    zeros = [Deviate(False, 0, Bits((1 << 63) - 1, 64)).floor(Fraction(2), Fraction(0)) for _ in range(50)]
    assert set(zeros) == {0}
    tie = Deviate(False, 0, Bits(2863311530, 32))  # two thirds, to 32 bits: 3/2 of it is about to be one
    assert tie.floor(Fraction(3, 2), Fraction(0)) in {0, 1}
    assert tie.fraction.count > 32


@sampled(2)
@shapes
@pytest.mark.parametrize("margins", [WIDE, Margins(accept=0.5), Margins(table=1 << 31)], ids=["all", "coin", "table"])
def test_the_same_bits_give_the_same_draws_whatever_the_margins(shape: Shape, margins: Margins) -> None:
    seen: dict[int, NDArray[np.uint64]] = {}
    with again(seen):
        by_floats = draw(shape, 3000)
    with again(seen):
        by_balls = draw(shape, 3000, margins)
    assert len(by_balls.further) > 500
    assert (by_floats.whole == by_balls.whole).all()
    assert (by_floats.fraction == by_balls.fraction).all()
    assert (by_floats.negative == by_balls.negative).all()
    for lane in range(3000):
        bits = by_balls[lane].fraction
        assert bits.value >> (bits.count - 64) == by_balls.fraction[lane]


@pytest.mark.parametrize("variance", ["1/4", "7/3", "10000"])
def test_the_same_bits_give_the_same_integers_whatever_the_margins(variance: str) -> None:
    seen: dict[int, NDArray[np.uint64]] = {}
    with again(seen):
        by_floats = discrete.gaussians(Fraction(variance), 2000)
    with again(seen):
        by_balls = discrete.gaussians(Fraction(variance), 2000, WIDE)
    assert (by_floats == by_balls).all()


NARROW = pytest.param("narrow_laws", marks=pytest.mark.slow)


@pytest.mark.slow
@sampled(6)
@pytest.mark.parametrize("part", [*(part for part in inside.PARTS if part != "narrow_laws"), NARROW])
def test_every_part_has_its_law(part: str) -> None:
    """As an audit sees it: single coins, margins so wide that balls decide, decisions that begin with three bits."""
    assert [str(finding) for finding in inside.PARTS[part](LIGHT) if not finding.passed] == []


@pytest.mark.parametrize("margins", [Margins(), Margins(table=1 << 24, accept=2.0**-5, window=2.0**30)])
def test_wide_discrete_laws_by_either_route(margins: Margins) -> None:
    for law in (DiscreteGaussian(400), DiscreteGaussian("1000000/7")):
        assert min(whole_p(discrete.gaussians(law.variance, 8000, margins), law).values()) > ALPHA
    assert min(whole_p(discrete.laplaces(Fraction(50), 8000, margins), DiscreteLaplace(50)).values()) > ALPHA
