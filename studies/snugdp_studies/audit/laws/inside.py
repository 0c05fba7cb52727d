"""Layer S inside our own source: every coin by itself, and every fallback forced to happen thousands of times.

A law that is made by rejection hardly moves when one of its coins is wrong, and a fallback that is taken once in 2**40
draws can be wrong for years. So each coin is counted alone, margins are made so wide that balls decide, and bits are
read three at a time at first. None of that may change a law.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from unittest import mock

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.audit.finding import Finding
from snugdp.audit.laws.goodness import cells_p, rate_p, verdict
from snugdp.noise import Continuous, DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Gumbel, Laplace
from snugdp.noise.exact import discrete, entropy, filtered, posterior, vectorised
from snugdp.noise.exact.coins import Margins
from snugdp.noise.exact.refine import Bits, below, refine
from snugdp.noise.exact.shapes import EXPONENTIAL, HALF_NORMAL, Shape, accepts, whole_part
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws import reference
from snugdp_studies.audit.laws.samples import SHAPES, LawEffort, real_noise, size, told, whole_noise

WIDE = Margins(table=1 << 27, accept=2.0**-4, window=2.0**60)
SLOW = Margins(window=2.0**200)  # balls settle everything
_FEW = 3  # bits read at first
_SHAPES: tuple[tuple[str, Shape, Gaussian | Laplace], ...] = (
    ("half-normal", HALF_NORMAL, Gaussian(4)),
    ("exponential", EXPONENTIAL, Laplace(4)),
)
_CANDIDATES = ((Fraction(49, 3), 9), (Fraction(7, 3), 0), (Fraction(1, 4), 1))  # variances, and what is kept or not


@contextmanager
def narrow(count: int = _FEW) -> Iterator[None]:
    """Let every decision begin with so few bits. It changes the time that draws take, and not their law."""
    with mock.patch.object(refine, "__defaults__", (count,)):
        yield


def coins(effort: LawEffort) -> Iterator[Finding]:
    """The coins that balls decide, from three bits on: each has its own rate."""
    with narrow():
        for e in (Fraction(1, 2), Fraction(3, 10), Fraction(2)):
            yield _coin(f"exp(-{e})", math.exp(-e), _each(_exponential_coin(e)), effort.single)
        for name, shape, law in _SHAPES:
            for k in (0, 1):
                toss = partial(_accepts, shape, k)
                yield _coin(f"acceptance of the {name}, after {k}", _accepted(law, k), _each(toss), effort.single)
            wholes = [whole_part(shape, Bits()) for _ in range(max(size(1, effort.single) // 2, 6000))]
            yield _whole_parts(name, np.bincount(wholes, minlength=3), law)
        for variance, candidate in _CANDIDATES:
            scale = math.isqrt(math.floor(variance)) + 1
            toss = partial(_keeps, candidate, scale, variance)
            what = f"acceptance of {candidate} for variance {variance}"
            yield _coin(what, _keeping(candidate, scale, variance), _each(toss), effort.single)


def filter_rates(effort: LawEffort) -> Iterator[Finding]:
    """How many lanes the filter accepts, with floats and with balls: the law alone would hardly show it."""
    for margins, how, deviation in ((Margins(), "floats", effort.many), (WIDE, "balls", effort.single / 2)):
        for name, shape, law in _SHAPES:
            lanes = partial(_lanes, shape, margins)
            yield _coin(f"lanes of the {name} kept by {how}", _share(law), lanes, deviation)
        for variance, candidate in _CANDIDATES:
            scale = math.isqrt(math.floor(variance)) + 1
            lanes = partial(_candidates, candidate, variance, margins)
            what = f"{candidate} kept by {how} for variance {variance}"
            yield _coin(what, _keeping(candidate, scale, variance), lanes, deviation)


def fallbacks(effort: LawEffort) -> Iterator[Finding]:
    """The laws of many draws at once, with margins so wide that balls decide often."""
    for name, shape, law in _SHAPES:
        n = size(reference.information(law), effort.single)
        yield whole_noise(f"{name} by balls", filtered.rounded(shape, Fraction(4), n, WIDE), law, effort.single)
        kept = len(filtered.draw(shape, 2000, WIDE).further)
        yield Finding(
            "S", f"{name} by balls", "what was read of a fraction is kept", f"{kept} of 2000 kept", kept > 100
        )
    n = size(1, effort.single)
    some = Margins(table=1 << 24, accept=2.0**-5, window=2.0**60)
    wide = DiscreteLaplace("7/3")
    yield whole_noise("discrete Laplace by balls", discrete.laplaces(wide.scale, n, some), wide, effort.single)
    for variance in ("1", "49/3"):
        square = DiscreteGaussian(variance)
        drawn = discrete.gaussians(square.variance, n, some)
        yield whole_noise("discrete Gaussian by balls", drawn, square, effort.single)


def comparisons(effort: LawEffort) -> Iterator[Finding]:
    """Comparisons of many noisy numbers when balls settle every one of them."""
    for law in (Laplace(4), Gaussian(4), Gumbel(4)):
        n = size(0.5, effort.coin) // 2
        scores = [0, 5, 7]
        wins = np.bincount(vectorised.argmaxes(np.tile(scores, (n, 1)), law, SLOW), minlength=3)
        clean = {"cells": cells_p(wins, reference.winning(scores, law))}
        planted = {"no noise": cells_p([0, 0, n], reference.winning(scores, law))}
        yield verdict("S", "argmaxes by balls", f"the largest with {told(law)}", clean, planted)
        reached = partial(_reached, law)
        yield _coin(f"reach by balls, {told(law)}", reference.tail(law, 3.0), reached, effort.single)


def narrow_laws(effort: LawEffort) -> Iterator[Finding]:
    """Single draws that begin with three bits: fresh bits, forgotten ones and dropped radii would show."""
    noise = Exact()
    laws: tuple[Continuous, ...] = (Laplace(1), Gaussian(1), Gumbel(1))
    with narrow():
        for law in laws:
            n = max(size(min(reference.information(law), 1.6), effort.single), SHAPES)
            with mock.patch("snugdp.noise.exact.source.START", _FEW):
                drawn = [noise.add(Secret(0), law, grid=-12) for _ in range(n)]
            yield real_noise("add from three bits", np.array(drawn, dtype=np.float64), law, effort.single)
        n = size(2, effort.single)
        ones = [discrete.gaussian(Fraction(7, 3)) for _ in range(n)]
        yield whole_noise("discrete Gaussian from three bits", np.array(ones), DiscreteGaussian("7/3"), effort.single)
    yield from _narrow_posterior(effort)


def same_bits(effort: LawEffort) -> Iterator[Finding]:
    """With the same random words, floats and balls say the same, lane by lane."""
    n = size(1, effort.single) // 4
    for name, shape, _ in _SHAPES:
        words: dict[int, NDArray[np.uint64]] = {}
        with again(words):
            one = filtered.draw(shape, n)
        with again(words):
            other = filtered.draw(shape, n, WIDE)
        equal = all((getattr(one, part) == getattr(other, part)).all() for part in ("whole", "fraction", "negative"))
        read = [other[lane].fraction for lane in range(n)]
        prefix = all(bits.value >> (bits.count - 64) == int(f) for bits, f in zip(read, one.fraction, strict=True))
        claim = "the same draw from the same bits, whatever the margins"
        passed = bool(equal and prefix)
        yield Finding("S", name, claim, f"{n} lanes {'equal' if passed else 'differ'}", passed)


def last_bits(effort: LawEffort) -> Iterator[Finding]:
    """A wide Gaussian has every last bit, and its sign says nothing about its size."""
    n = size(1, effort.many)
    values = filtered.rounded(HALF_NORMAL, Fraction(1 << 48), n).astype(np.int64)
    sizes = np.abs(values)
    rates = {f"bit {bit}": rate_p(int((sizes >> bit & 1).sum()), n, 0.5) for bit in range(40)}
    planted = {"a bit of 0.52": rate_p(round(0.52 * n), n, 0.5)}
    yield verdict("S", "wide Gaussian", "every low bit is fair", rates, planted)
    batch = filtered.draw(HALF_NORMAL, n)
    top = batch.fraction >> np.uint64(63)
    found, far = {}, {}
    for bit, whole in itertools.product((0, 1), (0, 1)):
        part = batch.negative[(top == bit) & (batch.whole == whole)]
        found[f"sign at {whole}.{bit}"] = rate_p(int(part.sum()), len(part), 0.5)
        far["the sign from the top bit"] = rate_p(len(part), len(part), 0.5)
    yield verdict("S", "half-normal", "a fair sign, whatever the size", found, far)


def _narrow_posterior(effort: LawEffort) -> Iterator[Finding]:
    """One system in one unknown, from eight bits on and on a grid finer than the bits that are drawn at first."""
    n = max(size(2, effort.single), SHAPES)
    drawn = [
        posterior.rounded_posterior(
            [[5]], [3], unit=Fraction(1), ridge=Fraction(1), precision=Fraction(2), grid=-100, start=8
        )[0]
        for _ in range(n)
    ]
    residuals = (np.array(drawn, dtype=np.float64) - 0.5) * math.sqrt(12)
    yield real_noise("posterior from eight bits", residuals, Gaussian(1), effort.single)


@contextmanager
def again(seen: dict[int, NDArray[np.uint64]]) -> Iterator[None]:
    """Let every call for words give what the same call gave the time before."""
    fresh: Callable[[int], NDArray[np.uint64]] = entropy.words
    turns = itertools.count()

    def words(n: int) -> NDArray[np.uint64]:
        turn = next(turns)
        if turn not in seen or len(seen[turn]) != n:
            seen[turn] = fresh(n)
        return seen[turn]

    with mock.patch.object(entropy, "words", words):
        yield


def _coin(what: str, chance: float, toss: Callable[[int], int], deviation: float) -> Finding:
    """The verdict on ``toss(n)``, a number of heads: it must find a rate a little off, and ties that all fall alike."""
    n = max(size(chance / (1 - chance), deviation), 8000)
    heads = toss(n)
    planted = {
        f"x {1 - deviation:.3g}": rate_p(
            heads, n, chance / (1 - deviation) if chance < 0.5 else chance * (1 - deviation)
        ),
        "ties to one side": rate_p(heads, n, chance + 1 / 16 if chance < 0.5 else chance - 1 / 16),
    }
    return verdict("S", "coin", f"{what}: {chance:.6g}", {"rate": rate_p(heads, n, chance)}, planted)


def _each(toss: Callable[[], bool]) -> Callable[[int], int]:
    return lambda n: sum(toss() for _ in range(n))


def _exponential_coin(e: Fraction) -> Callable[[], bool]:
    return lambda: below(Bits(), lambda _: (-arb(e.numerator) / e.denominator).exp())


def _accepts(shape: Shape, k: int) -> bool:
    return accepts(shape, k, Bits(), Bits())


def _keeps(candidate: int, scale: int, variance: Fraction) -> bool:
    return discrete._keeps(candidate, scale, variance, Bits())


def _lanes(shape: Shape, margins: Margins, n: int) -> int:
    return len(filtered._attempt(shape, n, margins))


def _candidates(candidate: int, variance: Fraction, margins: Margins, n: int) -> int:
    scale = discrete._envelope(variance)
    return int(discrete._kept(np.full(n, candidate, dtype=np.int64), scale, variance, margins).sum())


def _reached(law: Continuous, n: int) -> int:
    return int(vectorised.reach(np.full(n, 2), law, Fraction(5), SLOW).sum())


def _whole_parts(name: str, counts: NDArray[np.int64], law: Gaussian | Laplace) -> Finding:
    k = np.arange(60)
    weights = np.exp(-k * k / 2 if isinstance(law, Gaussian) else -k.astype(np.float64))
    chances = (weights / weights.sum())[: max(len(counts), 12)]
    counts = np.append(counts, np.zeros(len(chances) - len(counts), dtype=np.int64))
    chances /= chances.sum()
    tilted = chances * 1.4 ** np.arange(len(chances))
    planted = {"a wrong ratio": cells_p(counts, tilted / tilted.sum())}
    return verdict("S", "coin", f"whole part of the {name}", {"cells": cells_p(counts, chances)}, planted)


def _accepted(law: Gaussian | Laplace, k: int) -> float:
    """The chance that a uniform fraction is accepted after k: the mean of exp(h(k) - h(k + x))."""
    if isinstance(law, Laplace):
        return -math.expm1(-1.0)
    low, high = (math.erf((k + x) / math.sqrt(2)) for x in (0, 1))
    return math.exp(k * k / 2) * math.sqrt(math.pi / 2) * (high - low)


def _share(law: Gaussian | Laplace) -> float:
    """The chance that a lane is accepted at all."""
    if isinstance(law, Laplace):
        return -math.expm1(-1.0)
    return math.sqrt(math.pi / 2) / sum(math.exp(-k * k / 2) for k in range(40))


def _keeping(candidate: int, scale: int, variance: Fraction) -> float:
    return math.exp(-((candidate - float(variance) / scale) ** 2) / (2 * float(variance)))


PARTS: dict[str, Callable[[LawEffort], Iterator[Finding]]] = {
    "coins": coins,
    "filter_rates": filter_rates,
    "fallbacks": fallbacks,
    "comparisons": comparisons,
    "narrow_laws": narrow_laws,
    "same_bits": same_bits,
    "last_bits": last_bits,
}
