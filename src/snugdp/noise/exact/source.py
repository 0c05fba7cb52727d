"""Where private values meet noise: what comes out of here is a release, and nothing else is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

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
from snugdp.noise.exact import discrete, entropy, vectorised
from snugdp.noise.exact.deviate import Deviate, deviate
from snugdp.noise.exact.filtered import draw, rounded
from snugdp.noise.exact.minimiser import Problem, Tilted, check_minimiser
from snugdp.noise.exact.posterior import check_posterior, rounded_posterior
from snugdp.noise.exact.refine import START, exactly, floor, negative, refine
from snugdp.noise.exact.shapes import EXPONENTIAL, HALF_NORMAL
from snugdp.noise.exact.stopping import check_stopping, stopping
from snugdp.noise.exact.sums import ball_of, largest, shape_of
from snugdp.noise.laws import Continuous, DiscreteGaussian, DiscreteLaplace, Gaussian, Gumbel, Law
from snugdp.noise.number import finite, number
from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.secret import Secret

T = TypeVar("T")
_HALF = Fraction(1, 2)


class Noise(Protocol):
    """A source of noise. Mechanisms take one as an argument and never make their own."""

    @property
    def private(self) -> bool:
        """Whether what this source releases is protected."""

    def at(self, step: str) -> Noise:
        """The same source for the draws of one step of a plan. Inside a step it stays there."""

    def add(
        self,
        value: Secret[int | Fraction],
        law: Law,
        *,
        grid: int = 0,
        stretch: Secret[int | Fraction] | None = None,
    ) -> Fraction:
        """The value plus noise (times a private stretch), rounded to the nearest multiple of ``2**grid``."""

    def add_integers(self, values: Secret[NDArray[np.int64]] | Secret[list[int]], law: Law) -> list[int]:
        """Every value plus noise of its own, rounded to whole numbers."""

    def at_least(self, value: Secret[int | Fraction | float], law: Law, threshold: Real) -> bool:
        """Whether the value plus noise reaches the threshold. The value may be infinite."""

    def argmax(self, scores: Secret[Sequence[int | Fraction]], law: Continuous) -> int:
        """The position of the largest score after every score has got noise of its own."""

    def argmaxes(self, scores: Secret[NDArray[np.int64]], law: Continuous) -> NDArray[np.int64]:
        """In every row of a table the position of the largest score, after every cell has got noise of its own."""

    def reach(self, values: Secret[NDArray[np.int64]], law: Continuous, threshold: Real) -> NDArray[np.bool_]:
        """For every value whether it reaches the threshold after it has got noise of its own."""

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

    def minimiser(self, problem: Secret[Problem], law: Gaussian, *, grid: int) -> list[Fraction]:
        """The minimiser of F(theta) + b . theta, with b of this law, on multiples of ``2**grid``."""

    def choice(self, n: int) -> int:
        """A uniform position among ``n``."""

    def scatter(self, n: int, parts: int) -> NDArray[np.int64]:
        """``n`` independent uniform positions among ``parts``."""

    def chance(self, probability: Secret[Fraction]) -> bool:
        """One coin of a private probability."""

    def stopping(self, law: Stopping, most: int) -> int:
        """A hidden number of runs of this law, or 0 where it is above ``most``. It must never be shown."""

    def reveal(self, value: Secret[T]) -> T:
        """The value without noise: only for what a test has certified to be the same on all neighbours."""


class Exact:
    """Noise for releases: exact laws from the operating system's random bits.

    Guarantee: every result is distributed exactly as its method says, for every value, if the operating
    system's generator is ideal and Arb's balls are correct. The time it takes is not covered. Nothing that
    depends on a private value raises or warns; errors speak of public parameters and come before any draw. A private
    number may have any type (``noise.number``); what is no number counts as 0, or never reaches a threshold.

    >>> from snugdp.noise import Exact, Gaussian
    >>> released = Exact().add(Secret(1000), Gaussian(3), grid=-4)
    >>> released.denominator <= 16
    True
    """

    private = True

    def __repr__(self) -> str:
        return "Exact()"

    def at(self, step: str) -> Exact:
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
        """Exactly ``round(value + Z)`` to the grid of multiples of ``2**grid``, halves upwards.

        With a private ``stretch`` S it is ``round(value + S Z)``: noise whose spread follows the data.
        A discrete law takes a whole number (or the whole part of another), the grid of whole numbers and no stretch.
        """
        known(law)
        check_grid(law, grid, stretch is not None)
        if isinstance(law, DiscreteLaplace | DiscreteGaussian):
            return Fraction(whole(opened(value)) + _integer(law))
        step = Fraction(2) ** grid
        cells, within = divmod(finite(opened(value)) / step, 1)
        factor = (spread(opened(stretch)) if stretch is not None else 1) / step
        return step * (cells + _rounded_sum(within, factor, law, _standard(law)))

    def add_integers(self, values: Secret[NDArray[np.int64]] | Secret[list[int]], law: Law) -> list[int]:
        """Exactly ``round(value + Z)`` for every value, with independent Z, as Python integers.

        A value is whole, so the noise can be rounded by itself: round(s + z) = s + round(z).
        """
        known(law)
        inside = integers(opened(values))
        return [value + noise for value, noise in zip(inside, _integers(law, len(inside)), strict=True)]

    def at_least(self, value: Secret[int | Fraction | float], law: Law, threshold: Real) -> bool:
        """The exact decision ``value + Z >= threshold``; plus infinity always reaches it, what is no number never.

        The noise is drawn in the same way whether or not the value is finite.
        """
        known(law)
        at = rational(threshold, "threshold")
        inside = number(opened(value))
        gap = (inside if isinstance(inside, Fraction) else Fraction(0)) - at
        if isinstance(law, DiscreteLaplace | DiscreteGaussian):
            reaches = gap + _integer(law) >= 0
        else:
            drawn = _standard(law)
            reaches = not refine(lambda p: exactly(gap) + ball_of(law, drawn, p), negative)
        return reaches if isinstance(inside, Fraction) else inside > 0

    def argmax(self, scores: Secret[Sequence[int | Fraction]], law: Continuous) -> int:
        """The exact position of the largest ``score + Z``, with independent Z from a continuous law."""
        known(law, Continuous)
        values = check_scores(opened(scores))
        shape, _ = shape_of(law)
        drawn = draw(shape, len(values))
        sums = [(value, drawn[lane]) for lane, value in enumerate(values)]
        return largest(sums, law)

    def argmaxes(self, scores: Secret[NDArray[np.int64]], law: Continuous) -> NDArray[np.int64]:
        """In every row the exact position of the largest ``score + Z``, with independent Z in every cell."""
        known(law, Continuous)
        return vectorised.argmaxes(check_whole(opened(scores), 2), law)

    def reach(self, values: Secret[NDArray[np.int64]], law: Continuous, threshold: Real) -> NDArray[np.bool_]:
        """For every value the exact decision ``value + Z >= threshold``, with independent Z."""
        known(law, Continuous)
        at = rational(threshold, "threshold")
        return vectorised.reach(check_whole(opened(values), 1), law, at)

    def minimiser(self, problem: Secret[Problem], law: Gaussian, *, grid: int) -> list[Fraction]:
        """Exactly ``round(argmin F(theta) + b . theta)`` to the grid, with independent entries of b from the law.

        A computation that fails raises ``PrivateComputationError``, which tells nothing.
        """
        check_minimiser(law, grid)

        def cells(inside: Problem) -> list[int]:
            drawn = draw(HALF_NORMAL, inside.dimension)
            return Tilted(inside, [drawn[lane] for lane in range(inside.dimension)], law.sigma, grid).cells()

        return [Fraction(2) ** grid * cell for cell in opened(problem.map(cells))]

    def reveal(self, value: Secret[T]) -> T:
        """The value as it is. It costs nothing only where no neighbour has another one."""
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
        """Exactly the rounded law N(A^-1 c, (precision A)^-1); A = unit gram + ridge I, c = unit cross.

        The gram is a sum of squares of rows: symmetric, positive semidefinite. ``posterior.proof.md``, Theorem 1.
        """
        check_posterior(unit, ridge, precision, grid)
        return rounded_posterior(opened(gram), opened(cross), unit=unit, ridge=ridge, precision=precision, grid=grid)

    def choice(self, n: int) -> int:
        """An exactly uniform position among ``0 .. n - 1``."""
        check_count(n)
        while (position := entropy.bits((n - 1).bit_length())) >= n:
            pass
        return position

    def scatter(self, n: int, parts: int) -> NDArray[np.int64]:
        """Exactly uniform and independent positions among ``0 .. parts - 1``: which row goes to which part."""
        check_scatter(n, parts)
        return vectorised.scatter(n, parts)

    def chance(self, probability: Secret[Fraction]) -> bool:
        """A coin of exactly this probability. What is below 0 counts as 0, and what is above 1 as 1."""
        return vectorised.chance(finite(opened(probability)))

    def stopping(self, law: Stopping, most: int) -> int:
        """Exactly the law of the number of runs, with what is above ``most`` turned into 0. For selections alone.

        Whoever knows the number has not been promised anything. ``stopping.proof.md``, Theorem 1.
        """
        check_stopping(law, most)
        return stopping(law, most)


def _standard(law: Continuous) -> Deviate:
    return deviate(shape_of(law)[0])


def _rounded_sum(shift: Fraction, factor: Fraction, law: Continuous, drawn: Deviate) -> int:
    """The whole part of ``shift + factor * Z + 1/2``, decided exactly; no noise means nothing to decide."""
    if not factor:
        return math.floor(shift + _HALF)
    widest = factor * shape_of(law)[1]
    spare = max(0, widest.numerator.bit_length() - widest.denominator.bit_length())
    return refine(lambda p: exactly(shift + _HALF) + exactly(factor) * ball_of(law, drawn, p), floor, START + spare)


def _integer(law: DiscreteLaplace | DiscreteGaussian) -> int:
    if isinstance(law, DiscreteLaplace):
        return discrete.laplace(law.scale)
    return discrete.gaussian(law.variance)


def _integers(law: Law, n: int) -> list[int]:
    if isinstance(law, DiscreteLaplace):
        values: list[int] = discrete.laplaces(law.scale, n).tolist()
    elif isinstance(law, DiscreteGaussian):
        values = discrete.gaussians(law.variance, n).tolist()
    elif isinstance(law, Gumbel):
        drawn = draw(EXPONENTIAL, n)
        values = [_rounded_sum(Fraction(0), Fraction(1), law, drawn[lane]) for lane in range(n)]
    else:
        values = rounded(*shape_of(law), n).tolist()
    return values
