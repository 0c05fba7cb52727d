"""Means, variances, covariances and correlations from one joint release of polynomials of the rows.

A row is one number or two, in cells 0 .. width of their grids. What is released are sums over rows of polynomials:
those of Bernstein, which are never negative and add up to 1, or those of Chebyshev, which stay between -1 and 1. All
powers that a statistic needs follow from them. Proof: ``moments.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.statistics.joint import JointNoise
from snugdp.noise import Noise
from snugdp.propose.plan import Step
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret

Floats: TypeAlias = NDArray[np.float64]
Exponents: TypeAlias = tuple[int, ...]
Moves: TypeAlias = Mapping[Exponents, Fraction]


def _moves(**by_degrees: str) -> Moves:
    """From words such as x01="8/5": the move of the polynomial of degrees 0 and 1, in units of its largest value."""
    return {tuple(int(digit) for digit in name[1:]): Fraction(move) for name, move in by_degrees.items()}


# By the number of columns and the degree. Gaussian moves are squares.
_ADDED: Mapping[tuple[int, int], Moves] = {  # Gaussian, one row more or less: Lemma 2
    (1, 1): _moves(x0="4", x1="4/3"),
    (1, 2): _moves(x0="5", x1="8/3", x2="40/17"),
    (2, 1): _moves(x00="5", x01="5", x10="5", x11="5/2"),
    (2, 2): _moves(x00="20/3", x01="10", x10="10", x02="10", x20="10", x11="20/9"),
}
_REPLACED_PURE: Mapping[tuple[int, int], Moves] = {  # Lemma 3
    (1, 1): _moves(x0="2", x1="2"),
    (1, 2): _moves(x0="20/7", x1="5/2", x2="4"),
    (2, 1): _moves(x00="4", x01="4", x10="4", x11="4"),
}
_REPLACED: Mapping[tuple[int, int], Moves] = {  # Gaussian: Lemma 4
    (1, 1): _moves(x0="4/3", x1="4"),
    (1, 2): _moves(x0="12/7", x1="4", x2="6"),
    (2, 1): _moves(x00="8/5", x01="8", x10="8", x11="8"),
    (2, 2): _moves(x00="16/9", x01="8", x10="8", x02="32", x20="32", x11="8"),
}


@dataclass(frozen=True)
class JointMoments:
    """Moments of rows of one number or two, released together.

    ``widths``: of the grids, in cells. ``degree``: 1 for means and covariances, 2 for variances and correlations.
    ``draw`` takes the sums of powers of ``PowerSums``, in its order.

    Guarantee: the cost of the share (``moments.proof.md``, Theorem 1).
    """

    share: Share
    widths: tuple[int, ...]
    degree: int = 1

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.widths), self.degree

    @property
    def positive(self) -> bool:
        """Whether the polynomials are Bernstein's."""
        if not self.share.is_pure:
            return False
        return self.share.neighbours is Neighbours.ADD_REMOVE or self._shape not in _REPLACED_PURE

    @cached_property
    def _unit_moves(self) -> Moves:
        """How far a row moves each polynomial, in units of its largest value."""
        replaced = self.share.neighbours is Neighbours.REPLACE
        if self.positive:
            degrees = product(range(self.degree + 1), repeat=len(self.widths))
            return dict.fromkeys(degrees, Fraction(2 if replaced else 1))
        return (_ADDED if not replaced else _REPLACED_PURE if self.share.is_pure else _REPLACED)[self._shape]

    @cached_property
    def noise(self) -> JointNoise:
        """The noise of the polynomials."""
        power = 1 if self.share.is_pure else 2
        moves = tuple(move * self._largest(which) ** power for which, move in self._unit_moves.items())
        return JointNoise(self.share, moves, "moments")

    def _largest(self, which: Exponents) -> int:
        """The largest value of a polynomial, in cells."""
        powers = (self.degree,) * len(which) if self.positive else which
        return math.prod(width**power for width, power in zip(self.widths, powers, strict=True))

    def features(self, powers: list[int]) -> list[int]:
        """The sums of the polynomials, from those of the powers."""
        tables = [(bernstein if self.positive else chebyshev)(width, self.degree) for width in self.widths]
        sums = np.array(powers, dtype=object).reshape((self.degree + 1,) * len(tables))
        for table in tables:  # one column after the other; each comes last once
            sums = np.moveaxis(np.tensordot(np.array(table, dtype=object), sums, axes=(1, 0)), 0, -1)  # 1
        return [int(sums[which]) for which in self._unit_moves]

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        return self.noise.steps()

    def draw(self, data: Secret[list[int]], noise: Noise) -> list[int]:
        """The sums of the polynomials with their noise; ``moments`` reads them."""
        return self.noise.draw(data.map(self.features), noise)  # 2

    def moments(self, drawn: list[int]) -> NoisyMoments:
        """The moments that belong to sums of polynomials."""
        pairs = zip(drawn, self._unit_moves, strict=True)
        inverse, wanted = self._inverse
        values = inverse @ np.array([float(Fraction(value, self._largest(which))) for value, which in pairs])
        return NoisyMoments(dict(zip(wanted, values.tolist(), strict=True)), wanted, self._spread, self.noise.tail)

    @cached_property
    def _spread(self) -> Floats:
        """How the noise of each polynomial enters the moments."""
        pairs = zip(self.noise.deviations, self._unit_moves, strict=True)
        spread: Floats = self._inverse[0] * np.array([deviation / self._largest(which) for deviation, which in pairs])
        return spread

    @cached_property
    def _inverse(self) -> tuple[Floats, tuple[Exponents, ...]]:
        """Powers of x / width as combinations of the polynomials; those of total degree 2 at most."""
        one = np.array(_BERNSTEIN_POWERS[self.degree] if self.positive else _CHEBYSHEV_POWERS[self.degree])
        each = product(range(self.degree + 1), repeat=len(self.widths))
        wanted = tuple(which for which in each if sum(which) <= 2)
        rows = [[math.prod(one[i, k] for i, k in zip(w, f, strict=True)) for f in self._unit_moves] for w in wanted]
        return np.array(rows), wanted

    def even(self, rows: float) -> NoisyMoments:
        """The moments of so many rows that fill their bounds evenly: for forecasts."""
        wanted = self._inverse[1]
        values = {which: rows * math.prod(1 / (power + 1) for power in which) for which in wanted}
        return NoisyMoments(values, wanted, self._spread, self.noise.tail)


def bernstein(width: int, degree: int) -> list[list[int]]:
    """Bernstein's polynomials of x in 0 .. width, as combinations of the powers of x. They add up to width**degree."""
    if degree == 1:
        return [[width, -1], [0, 1]]
    return [[width**2, -2 * width, 1], [0, 2 * width, -2], [0, 0, 1]]


def chebyshev(width: int, degree: int) -> list[list[int]]:
    """width**k T_k(2 x / width - 1), as combinations of the powers of x: between -width**k and width**k."""
    if degree == 1:
        return [[1, 0], [-width, 2]]
    return [[1, 0, 0], [-width, 2, 0], [width**2, -8 * width, 8]]


_BERNSTEIN_POWERS: dict[int, Any] = {1: [[1, 1], [0, 1]], 2: [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]]}
_CHEBYSHEV_POWERS: dict[int, Any] = {1: [[1, 0], [0.5, 0.5]], 2: [[1, 0, 0], [0.5, 0.5, 0], [0.375, 0.5, 0.125]]}


@dataclass(frozen=True)
class Found:
    """A statistic of noisy moments, in units of the widths; what its noise stays below in 19 of 20 cases; its rows."""

    value: float
    error: float
    count: float


@dataclass(frozen=True)
class NoisyMoments:
    """Released sums of powers of x / width, and how the noise of the polynomials enters each of them. Public."""

    values: Mapping[Exponents, float]
    order: tuple[Exponents, ...]
    spread: Floats
    tail: float

    @property
    def count(self) -> float:
        """The noisy number of rows; at least 1."""
        return max(self.values[(0,) * len(self.order[0])], 1.0)

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the noise of that number."""
        alone = np.array([float(not any(which)) for which in self.order])
        return float(np.linalg.norm(alone @ self.spread))

    @property
    def least_rows(self) -> float:
        """A number of rows that is too large in 1 of 40 cases; at least 1."""
        return max(self.count - self.tail * self.count_deviation, 1.0)

    def mean(self) -> Found:
        """Of the only column."""
        value = self._mean((1,))
        return self._found(value, {(1,): 1.0, (0,): -value}, 1.0)

    def variance(self) -> Found:
        """Of the only column: the mean square of the distance from the mean."""
        value, slopes = self._variance((1,), (2,))
        return self._found(value, slopes, 0.25)

    def covariance(self) -> Found:
        """Of the two columns."""
        value, slopes = self._covariance()
        return self._found(value, slopes, 0.5)

    def correlation(self) -> Found:
        """Of the two columns; 0 with an error of 1 where a variance drowns in noise."""
        value, slopes = self._covariance()
        spreads = [self._variance((1, 0), (2, 0)), self._variance((0, 1), (0, 2))]
        if any(each <= self._found(each, its, 0.25).error for each, its in spreads):
            return Found(0.0, 1.0, self.count)
        scale = math.sqrt(spreads[0][0] * spreads[1][0])
        inside = min(max(value / scale, -1.0), 1.0)
        parts = [(1 / scale, slopes), *((-inside / (2 * each), its) for each, its in spreads)]
        total = {which: sum(factor * its.get(which, 0.0) for factor, its in parts) for which in self.order}
        return self._found(inside, total, 1.0)

    def _mean(self, which: Exponents) -> float:
        return min(max(self.values[which] / self.count, 0.0), 1.0)

    def _variance(self, first: Exponents, second: Exponents) -> tuple[float, dict[Exponents, float]]:
        """The variance, and n times its derivatives by the sums of powers."""
        m = self._mean(first)
        value = min(max(self.values[second] / self.count - m * m, 0.0), 0.25)
        return value, {second: 1.0, first: -2 * m, (0,) * len(first): m * m - value}

    def _covariance(self) -> tuple[float, dict[Exponents, float]]:
        """The covariance, and n times its derivatives by the sums of powers."""
        a, b = self._mean((1, 0)), self._mean((0, 1))
        value = min(max(self.values[1, 1] / self.count - a * b, -0.25), 0.25)
        return value, {(1, 1): 1.0, (1, 0): -b, (0, 1): -a, (0, 0): a * b - value}

    def _found(self, value: float, slopes: Mapping[Exponents, float], most: float) -> Found:
        """With an error of first order, widened by the doubt about the number of rows, and at most ``most``."""
        rows = np.array([slopes.get(which, 0.0) for which in self.order])
        deviation = float(np.linalg.norm(rows @ self.spread))
        left = self.count - self.tail * self.count_deviation
        return Found(value, min(self.tail * deviation / left, most) if left > 0 else most, self.count)
