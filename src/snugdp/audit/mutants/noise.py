"""Wrong noise: its scale, its law, its fallbacks, its last bits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from snugdp.audit.mutants.base import Changes, Topic, seen
from snugdp.audit.mutants.checks import Apart, Bits, Inside, Seeds, SiteLaw, Walks
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Laplace
from snugdp.noise.checks import integers, opened
from snugdp.noise.exact import discrete, entropy, filtered, posterior, refine, shapes, source, sums, vectorised
from snugdp.noise.exact.coins import PROVED
from snugdp.noise.exact.deviate import Deviate
from snugdp.numerics.matrices import backward, cholesky, forward
from snugdp.secrecy.secret import Secret

mutant = Topic("noise")
_COINS = Inside("coins", 3, 0.08)
_INVISIBLE = (
    "the floats decide alike but for a chance of about 2**-45 in a comparison, by which delta may grow: no sample of "
    "draws shows that. vectorised.proof.md has the lines that would be missing, and its hash must be renewed by hand"
)
_RATES = Inside("filter_rates")
_POSTERIOR = SiteLaw("posterior")


def _scaled(by: Fraction, kind: type) -> Any:
    def shape_of(law: Any) -> Any:
        shape, scale = sums.shape_of(law)
        return shape, scale * by if isinstance(law, kind) else scale

    return shape_of


@mutant("Gaussian x 0.97", "S", SiteLaw("add_integers", Gaussian(4)), quick=True)
def _() -> Changes:
    """Gaussian noise on many numbers is three per cent too narrow."""
    return [(source, "shape_of", _scaled(Fraction(97, 100), Gaussian))]


@mutant("Gaussian x 0.5 in decisions", "S", SiteLaw("reach", Gaussian(4)))
def _() -> Changes:
    """Gaussian noise of many decisions is half as wide as declared."""
    return [(vectorised, "shape_of", _scaled(Fraction(1, 2), Gaussian))]


@mutant("Laplace x 0.97", "S", SiteLaw("add_integers", Laplace(4)))
def _() -> Changes:
    """Laplace noise on many numbers is three per cent too narrow."""
    return [(source, "shape_of", _scaled(Fraction(97, 100), Laplace))]


@mutant("variance for deviation", "S", SiteLaw("add_integers", Gaussian(4)))
def _() -> Changes:
    """The root of the deviation is taken, as if it were a variance."""

    def shape_of(law: Any) -> Any:
        shape, scale = sums.shape_of(law)
        return shape, Fraction(math.isqrt(math.floor(scale))) if isinstance(law, Gaussian) else scale

    return [(source, "shape_of", shape_of)]


def _enclosure(how: str) -> Any:
    """The enclosure of the posterior with a mistake in what multiplies the noise."""

    def enclose(
        gram: Sequence[Sequence[int]],
        cross: Sequence[int],
        noise: list[Deviate],
        count: int,
        *,
        ridge: Fraction,
        precision: Fraction,
        grid: int,
    ) -> list[arb] | None:
        rows = [[arb(value) for value in row[: i + 1]] for i, row in enumerate(gram)]
        for i, row in enumerate(rows):
            row[i] += refine.exactly(ridge)
        factor = cholesky(rows)
        if factor is None:
            return None
        spread = refine.exactly(1 / precision).sqrt()
        drawn = [spread * one.ball(count) for one in noise]
        if how == "covariance":
            drawn = forward(factor, [value * spread for value in drawn])
        moved = forward(factor, drawn) if how == "forward" else backward(factor, drawn)
        mean = backward(factor, forward(factor, [arb(value) for value in cross]))
        half = refine.exactly(Fraction(1, 2))
        return [arb((1, -grid)) * (a + b) + half for a, b in zip(mean, moved, strict=True)]

    return enclose


@mutant("covariance for its root", "S", _POSTERIOR)
def _() -> Changes:
    """The noise of a posterior sample is multiplied by its covariance, and not by a root of it."""
    return [(posterior, "_enclosure", _enclosure("covariance"))]


@mutant("transposed factor", "S", _POSTERIOR, quick=True)
def _() -> Changes:
    """The noise of a posterior sample is multiplied by L^-1 where L^-T is meant: right lengths, wrong directions."""
    return [(posterior, "_enclosure", _enclosure("forward"))]


@mutant("precision off by 2", "S", _POSTERIOR)
def _() -> Changes:
    """A posterior sample has twice the precision that was asked for."""
    enclosure = posterior._enclosure

    def twice(*given: Any, precision: Fraction, **named: Any) -> Any:
        return enclosure(*given, precision=2 * precision, **named)

    return [(posterior, "_enclosure", twice)]


@mutant("fresh bits after a tie", "S", Inside("coins", 1, 0.05))
def _() -> Changes:
    """A comparison that is not decided yet is repeated with new bits instead of more bits of the same number."""

    def extend(self: refine.Bits, count: int) -> None:
        if count > self.count:
            self.value, self.count = entropy.bits(count), count

    return [(refine.Bits, "extend", extend)]


@mutant("radius dropped", "S", _COINS)
def _() -> Changes:
    """The unread bits of a number are left out of its ball: the middle decides."""

    def ball(self: refine.Bits, count: int) -> arb:
        self.extend(count)
        return arb((2 * self.value + 1, -self.count - 1))

    return [(refine.Bits, "ball", ball)]


@mutant("ties as less", "S", _COINS)
def _() -> Changes:
    """What cannot be decided yet counts as below."""
    return [(refine, "negative", lambda ball: not ball > 0)]


@mutant("fallback accepts", "S", _RATES)
def _() -> Changes:
    """Where floats cannot tell whether a draw is accepted, it is."""
    return [(filtered, "accepts", lambda *_: True)]


@mutant("fallback of the discrete Gaussian keeps", "S", _RATES)
def _() -> Changes:
    """Where floats cannot tell whether a candidate of a discrete Gaussian is kept, it is."""
    return [(discrete, "_keeps", lambda *_: True)]


@mutant("extension forgotten", "S", Inside("fallbacks", 2))
def _() -> Changes:
    """Bits that were read beyond 64 to accept a draw are forgotten, and drawn anew when it is rounded."""
    attempt = filtered._attempt

    def forgetful(*given: Any) -> filtered.Batch:
        batch = attempt(*given)
        return filtered.Batch(batch.negative, batch.whole, batch.fraction)

    return [(filtered, "_attempt", forgetful)]


@mutant("sign from the size", "S", Inside("last_bits"))
def _() -> Changes:
    """The sign of a draw is the top bit of its fraction."""
    attempt = filtered._attempt

    def signed(*given: Any) -> filtered.Batch:
        batch = attempt(*given)
        return filtered.Batch(batch.fraction >> np.uint64(63) == 1, batch.whole, batch.fraction, batch.further)

    return [(filtered, "_attempt", signed)]


@mutant("zero twice", "S", SiteLaw("add_integers", DiscreteLaplace("9/2")))
def _() -> Changes:
    """Discrete Laplace noise keeps the negative zeros, so that zero comes twice as often."""

    def laplaces(scale: Fraction, n: int, margins: Any = PROVED) -> Any:
        batch = filtered.draw(shapes.EXPONENTIAL, n, margins)
        return filtered.signed(batch, filtered.floors(batch, scale, Fraction(0), margins))

    return [(discrete, "laplaces", laplaces)]


@mutant("other envelope", "S", SiteLaw("add_integers", DiscreteGaussian("49/3")))
def _() -> Changes:
    """Candidates of a discrete Gaussian are kept as if they came from a wider Laplace law than they do."""
    kept = discrete._kept
    return [(discrete, "_kept", lambda c, scale, *given: kept(c, scale + 1, *given))]


@mutant("one draw for all candidates", "S", SiteLaw("argmax", Laplace(4)))
def _() -> Changes:
    """All scores of an argmax get the same noise."""
    draw = filtered.draw

    def one(shape: Any, n: int, *given: Any) -> Any:
        batch = draw(shape, 1, *given)
        return [batch[0]] * n

    return [(source, "draw", one)]


@mutant("decision without noise", "S", SiteLaw("at_least", Laplace(4)))
def _() -> Changes:
    """A noisy comparison compares the value itself."""

    def at_least(self: Exact, value: Secret[Any], law: Any, threshold: Any) -> bool:
        return bool(opened(value) >= threshold)

    return [(Exact, "at_least", at_least)]


@mutant("a tie fails", "S", SiteLaw("at_least", DiscreteLaplace("9/2")))
def _() -> Changes:
    """A noisy whole number that is exactly the threshold does not reach it."""
    at_least = Exact.at_least
    return [
        (Exact, "at_least", lambda self, value, law, threshold: at_least(self, value, law, threshold + Fraction(1, 2)))
    ]


@mutant("rest of a division", "S", SiteLaw("scatter"))
def _() -> Changes:
    """Positions are the rest of a random word, which prefers the first ones."""

    def scatter(n: int, among: int) -> Any:
        return (entropy.words(n) % np.uint64(among)).astype(np.int64)

    return [(vectorised, "scatter", scatter)]


@mutant("float argmax", "SL", Inside("comparisons", 2), known=_INVISIBLE)
def _() -> Changes:
    """The largest of many noisy scores is taken from floats alone, without balls where two are close."""

    def winners(scores: Any, law: Any, margins: Any) -> Any:
        drawn = filtered.draw(sums.shape_of(law)[0], scores.size, margins)
        noise, _ = vectorised._enclosed(law, drawn, margins)
        return (noise.reshape(scores.shape) - vectorised.behind(scores).astype(np.float64)).argmax(axis=1)

    return [(vectorised, "_winners", winners)]


@mutant("noise used twice", "I", Walks("linear: adassp", 60))
def _() -> Changes:
    """The second vector of a fit gets the noise of the first, in its own scale."""
    wide, add_integers = Fraction(1 << 60), Exact.add_integers
    kept: list[list[int]] = []
    turns = itertools.count()

    def again(self: Exact, values: Secret[Any], law: Any) -> list[int]:
        turn, inside = next(turns) % 3, integers(opened(values))
        if turn == 0:
            kept[:] = [filtered.rounded(shapes.HALF_NORMAL, wide, len(inside)).tolist()]
        if turn == 2 or len(kept[0]) != len(inside):
            return add_integers(self, values, law)
        return [value + round(law.sigma * z / wide) for value, z in zip(inside, kept[0], strict=True)]

    return [(Exact, "add_integers", again)]


@mutant("generator before the fork", "I", Apart("equal_draws"))
def _() -> Changes:
    """Random bits come from a generator that was seeded once: forked processes have the same."""
    generator = np.random.default_rng()

    def bits(n: int) -> int:
        return int.from_bytes(generator.bytes((n + 7) // 8), "big") >> (-n % 8)

    def words(n: int) -> Any:
        return np.frombuffer(generator.bytes(8 * n), dtype=np.uint64)

    return [(entropy, "bits", bits), (entropy, "words", words)]


@mutant("obeys the global generator", "I", Seeds(), quick=True)
def _() -> Changes:
    """Random bits come from numpy's global generator: whoever sets it knows the noise."""
    state = np.random.mtrand._rand

    def bits(n: int) -> int:
        return int.from_bytes(state.bytes((n + 7) // 8), "big") >> (-n % 8)

    def words(n: int) -> Any:
        return np.frombuffer(state.bytes(8 * n), dtype=np.uint64)

    return [(entropy, "bits", bits), (entropy, "words", words)]


@mutant("a sample that is kept", "I", Apart("equal_draws"))
def _() -> Changes:
    """A posterior sample is remembered, and shown again for the same table."""
    kept: dict[str, Any] = {}
    drawn = posterior.rounded_posterior

    def remembered(gram: Any, cross: Any, **named: Any) -> Any:
        key = repr((gram, cross, named))
        if key not in kept:
            kept[key] = drawn(gram, cross, **named)
        return kept[key]

    return [(source, "rounded_posterior", remembered)]


@mutant("the same lanes again", "I", Apart("lanes"))
def _() -> Changes:
    """The second half of many draws repeats the first."""
    rounded = filtered.rounded

    def halves(shape: Any, scale: Fraction, n: int, *given: Any) -> Any:
        first = rounded(shape, scale, n, *given)
        first[n // 2 : 2 * (n // 2)] = first[: n // 2]
        return first

    return [(source, "rounded", halves)]


@mutant("a float plus a float", "L", Bits("framework: statistics, mu"), quick=True)
def _() -> Changes:
    """A number gets its noise in floats, and keeps the last bits that floats leave."""
    add = Exact.add

    def floats(self: Exact, value: Secret[Any], law: Any, **named: Any) -> Fraction:
        noise = float(add(self, Secret(0), law, **{**named, "grid": named.get("grid", 0) - 30}))
        return Fraction(float(seen(value)) + noise)

    return [(Exact, "add", floats)]


@mutant("theta + L z in floats", "L", Bits("linear: posterior", 4))
def _() -> Changes:
    """A posterior sample is computed in floats, and not rounded."""

    def in_floats(
        gram: Any, cross: Any, *, unit: Fraction, ridge: Fraction, precision: Fraction, grid: int
    ) -> list[Fraction]:
        system = float(unit) * np.array(gram, dtype=np.float64) + float(ridge) * np.eye(len(cross))
        mean = np.linalg.solve(system, float(unit) * np.array(cross, dtype=np.float64))
        wide = Fraction(1 << 40)
        z = filtered.rounded(shapes.HALF_NORMAL, wide, len(cross)).astype(np.float64) / float(wide)
        theta = mean + np.linalg.solve(np.linalg.cholesky(float(precision) * system).T, z)
        return [Fraction(value) for value in theta.tolist()]

    return [(source, "rounded_posterior", in_floats)]
