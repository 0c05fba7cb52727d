"""Seeded noise for experiments: fast, repeatable, and no protection at all."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, isqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting.selection import Law as Stopping
from snugdp.noise.checks import (
    check_count,
    check_grid,
    check_scatter,
    check_scores,
    check_whole,
    integers,
    known,
    opened,
    spread,
    whole,
)
from snugdp.noise.exact.minimiser import Problem, check_minimiser
from snugdp.noise.exact.posterior import check_posterior
from snugdp.noise.exact.refine import exactly
from snugdp.noise.exact.stopping import check_stopping, stopping
from snugdp.noise.exact.vectorised import behind, parts
from snugdp.noise.laws import Continuous, DiscreteGaussian, DiscreteLaplace, Gaussian, Gumbel, Law
from snugdp.noise.number import finite, number
from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.secret import Secret

_WIDE = 1 << 40  # whole noise beyond that has random bits at its end which are drawn apart
_FAR = Fraction(-(10**300))  # a gap that no simulated noise closes, and that a float can hold

T = TypeVar("T")


class Simulation:
    """The interface of ``Exact`` with a seed: the same laws up to floating point, and NOT PRIVATE.

    >>> from snugdp.noise import Laplace, Simulation
    >>> Simulation(1)
    <simulated noise, NOT PRIVATE>
    >>> Simulation(1).add(Secret(5), Laplace(1)) == Simulation(1).add(Secret(5), Laplace(1))
    True
    """

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def __repr__(self) -> str:
        return "<simulated noise, NOT PRIVATE>"

    def at(self, step: str) -> Simulation:
        """The source itself: a step changes nothing about a draw."""
        return self

    def add(
        self,
        value: Secret[int | Fraction],
        law: Law,
        *,
        grid: int = 0,
        stretch: Secret[int | Fraction] | None = None,
    ) -> Fraction:
        """The value plus noise (times a private stretch), rounded to the nearest multiple of ``2**grid``."""
        known(law)
        check_grid(law, grid, stretch is not None)
        discrete = isinstance(law, DiscreteLaplace | DiscreteGaussian)
        inside = whole(opened(value)) if discrete else finite(opened(value))
        step, drawn = Fraction(2) ** grid, Fraction(self._one(law))
        if isinstance(law, DiscreteLaplace) and law.scale > _WIDE:  # floats lack the last bits
            lacking = min(int(law.scale / _WIDE).bit_length(), 62)
            drawn = Fraction((floor(drawn) >> lacking << lacking) + self._last_bits(lacking))
        factor = spread(opened(stretch)) if stretch is not None else 1
        return step * floor((inside + factor * drawn) / step + Fraction(1, 2))

    def add_integers(self, values: Secret[NDArray[np.int64]] | Secret[list[int]], law: Law) -> list[int]:
        """Every value plus noise of its own, rounded to whole numbers."""
        known(law)
        inside = integers(opened(values))
        noise = np.floor(self._many(law, len(inside)) + 0.5).tolist()
        return [value + int(drawn) for value, drawn in zip(inside, noise, strict=True)]

    def at_least(self, value: Secret[int | Fraction | float], law: Law, threshold: Real) -> bool:
        """Whether the value plus noise reaches the threshold. The value may be infinite."""
        known(law)
        at = rational(threshold, "threshold")
        inside, drawn = number(opened(value)), Fraction(self._one(law))
        return inside + drawn >= at if isinstance(inside, Fraction) else inside > 0

    def argmax(self, scores: Secret[Sequence[int | Fraction]], law: Continuous) -> int:
        """The position of the largest score after every score has got noise of its own."""
        known(law, Continuous)
        values = check_scores(opened(scores))
        top = max(values)
        gaps = np.array([float(max(value - top, _FAR)) for value in values])
        return int(np.argmax(gaps + self._many(law, len(values))))

    def argmaxes(self, scores: Secret[NDArray[np.int64]], law: Continuous) -> NDArray[np.int64]:
        """In every row of a table the position of the largest score, after every cell has got noise of its own."""
        known(law, Continuous)
        inside = check_whole(opened(scores), 2)
        winners = np.empty(len(inside), dtype=np.int64)
        for part in parts(*inside.shape):
            gaps = behind(inside[part])
            noise = self._many(law, gaps.size).reshape(gaps.shape)
            winners[part] = np.argmax(noise - gaps.astype(np.float64), axis=1)
        return winners

    def reach(self, values: Secret[NDArray[np.int64]], law: Continuous, threshold: Real) -> NDArray[np.bool_]:
        """For every value whether it reaches the threshold after it has got noise of its own."""
        known(law, Continuous)
        at = max(_FAR, min(-_FAR, rational(threshold, "threshold")))
        inside = check_whole(opened(values), 1)
        reached: NDArray[np.bool_] = inside.astype(np.float64) - float(at) + self._many(law, len(inside)) >= 0
        return reached

    def minimiser(self, problem: Secret[Problem], law: Gaussian, *, grid: int) -> list[Fraction]:
        """The minimiser of F(theta) + b . theta, with b of this law, as floats find it; rounded to the grid."""
        check_minimiser(law, grid)
        step = Fraction(2) ** grid

        def found(inside: Problem) -> list[Fraction]:
            theta: list[float] = inside.solve(self._many(law, inside.dimension)).tolist()
            return [step * floor(Fraction(value) / step + Fraction(1, 2)) for value in theta]

        return opened(problem.map(found))  # type: ignore[no-any-return]

    def reveal(self, value: Secret[T]) -> T:
        """The value as it is."""
        return opened(value)  # type: ignore[no-any-return]

    def posterior(
        self,
        gram: Secret[list[list[int]]],
        cross: Secret[list[int]],
        *,
        unit: Fraction,
        ridge: Fraction,
        precision: Fraction,
        grid: int,
    ) -> list[Fraction]:
        """N(A^-1 c, (precision A)^-1) on multiples of ``2**grid``; A = unit gram + ridge I, c = unit cross."""
        check_posterior(unit, ridge, precision, grid)
        inside = np.array([[float(unit * value) for value in row] for row in opened(gram)])
        values, vectors = np.linalg.eigh(inside)
        curvature = np.maximum(values, 0.0) + float(ridge)
        right = vectors.T @ np.array([float(unit * value) for value in opened(cross)])
        spread = self._generator.normal(size=len(right)) / np.sqrt(float(precision) * curvature)
        step = Fraction(2) ** grid
        theta: list[float] = (vectors @ (right / curvature + spread)).tolist()
        return [step * floor(Fraction(value) / step + Fraction(1, 2)) for value in theta]

    def choice(self, n: int) -> int:
        """A uniform position among ``n``."""
        check_count(n)
        return int(self._generator.integers(n))

    def scatter(self, n: int, parts: int) -> NDArray[np.int64]:
        """``n`` independent uniform positions among ``parts``."""
        check_scatter(n, parts)
        return self._generator.integers(parts, size=n)

    def chance(self, probability: Secret[Fraction]) -> bool:
        """One coin of a private probability."""
        return bool(Fraction(self._generator.uniform()) < finite(opened(probability)))

    def stopping(self, law: Stopping, most: int) -> int:
        """A number of runs of this law, or 0 where it is above ``most``."""
        check_stopping(law, most)
        drawn = exactly(Fraction(self._generator.uniform()))
        return stopping(law, most, lambda _: drawn)

    def _last_bits(self, count: int) -> int:
        return int(self._generator.integers(1 << count))

    def _one(self, law: Law) -> float:
        return float(self._many(law, 1)[0])

    def _many(self, law: Law, n: int) -> NDArray[np.float64]:
        generator = self._generator
        if isinstance(law, Gaussian):
            return generator.normal(0.0, float(law.sigma), n)
        if isinstance(law, DiscreteLaplace):
            return self._discrete_laplace(float(law.scale), n)
        if isinstance(law, DiscreteGaussian):
            return self._discrete_gaussian(float(law.variance), n)
        if isinstance(law, Gumbel):
            return generator.gumbel(0.0, float(law.scale), n)
        return generator.laplace(0.0, float(law.scale), n)

    def _discrete_laplace(self, scale: float, n: int) -> NDArray[np.float64]:
        """The difference of two geometric draws."""
        one, other = np.floor(scale * self._generator.exponential(size=(2, n)))
        difference: NDArray[np.float64] = one - other
        return difference

    def _discrete_gaussian(self, variance: float, n: int) -> NDArray[np.float64]:
        scale = isqrt(floor(variance)) + 1
        kept: list[NDArray[np.float64]] = []
        while sum(map(len, kept)) < n or not kept:
            candidates = self._discrete_laplace(scale, 2 * n)
            gap = np.abs(candidates) - variance / scale
            kept.append(candidates[self._generator.exponential(size=2 * n) > gap * gap / (2 * variance)])
        return np.concatenate(kept)[:n]


def shuffled(key: int, n: int) -> NDArray[np.int64]:
    """The first ``n`` whole numbers in an order that depends on ``key`` alone: numpy's, for splits of public rows.

    >>> shuffled(1000, 5).tolist() == shuffled(1000, 5).tolist()
    True
    """
    order: NDArray[np.int64] = np.random.default_rng(key).permutation(n)
    return order
