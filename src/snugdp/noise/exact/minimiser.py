"""The rounded minimiser of a convex function tilted by Gaussian noise, exactly: what cannot be decided yet is refined.

Nothing is charged for rounding errors or for a solver that stops early: a proved bound on the gradient encloses the
true minimiser, and more bits are read until the enclosure lies in one cell. The line numbers in the comments are those
of ``minimiser.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.checks import check_grid
from snugdp.noise.exact.deviate import Deviate
from snugdp.noise.laws import Gaussian, Law

Point: TypeAlias = list[Fraction]

_FIRST_BITS = 64  # of a draw, at level 0
_HALVINGS = 8
_HALF = Fraction(1, 2)


class Problem(Protocol):
    """A private function F of ``dimension`` numbers: strongly convex, with a gradient known to a proved error."""

    @property
    def dimension(self) -> int:
        """The number of coefficients: public."""
        ...

    @property
    def modulus(self) -> Fraction:
        """Positive, and proved: F is at least so strongly convex."""
        ...

    @property
    def smoothness(self) -> Fraction:
        """The gradient of F is Lipschitz with this constant. Private: it may depend on the number of rows."""
        ...

    def solve(self, b: NDArray[np.float64]) -> NDArray[np.float64]:
        """About the minimiser of F(theta) + b . theta. Anything is allowed: it costs time, never correctness."""
        ...

    def gradient(self, theta: Sequence[Fraction], level: int) -> tuple[list[Fraction], Fraction]:
        """The gradient of F at exactly this dyadic point, and a bound on its Euclidean error.

        From level 1 on the bound is the same for all theta, and it goes to 0 as the level grows.
        """
        ...

    def correct(self, theta: Sequence[Fraction], residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """About how to change theta so that the gradient changes by -residual; linear in the residual."""
        ...


@dataclass(frozen=True)
class _At:
    """The gradient of the tilted function at a point: within ``error`` of ``gradient``; ``size`` is its norm."""

    theta: Point
    gradient: Point
    size: Fraction
    error: Fraction


@dataclass(frozen=True)
class Tilted:
    """F(theta) + sigma Z . theta, for one draw Z of which more bits can be read.

    Guarantee: ``cells`` is the minimiser, rounded to the nearest multiple of ``2**grid``, halves upwards: exactly, for
    every F as ``Problem`` promises (``minimiser.proof.md``, Theorem 1). It ends with probability one.
    """

    problem: Problem
    draw: Sequence[Deviate]
    sigma: Fraction
    grid: int

    def cells(self) -> list[int]:
        """The whole numbers of ``2**grid`` nearest to the minimiser."""
        level, at = 0, self._at(self._start(), 0)  # line 1
        while (cells := self._decided(at)) is None:  # line 3
            moved = self._moved(at, level) if at.size > 4 * at.error else None  # lines 4 and 5
            if moved is None:
                level += 1  # line 6: finer, at the same point, with more bits of the same draw
                moved = self._at(at.theta, level)
            at = moved
        return cells

    def _start(self) -> Point:
        tilt, _ = self._tilt(0)
        with np.errstate(all="ignore"):  # a warning would depend on private values
            found = np.asarray(self.problem.solve(np.array([_float(value) for value in tilt])), dtype=np.float64)
        usable = found.shape == (self.problem.dimension,) and bool(np.isfinite(found).all())
        return [Fraction(value) for value in found.tolist()] if usable else [Fraction(0)] * self.problem.dimension

    def _tilt(self, level: int) -> tuple[Point, Fraction]:
        """The tilt sigma Z from its first bits, and how far off it is at most."""
        count = _FIRST_BITS << level
        values, widest = [], Fraction(0)
        for one in self.draw:
            one.fraction.extend(count)
            read = one.fraction.count
            size = one.whole + Fraction(2 * one.fraction.value + 1, 2 << read)
            values.append(self.sigma * (-size if one.negative else size))
            widest = max(widest, Fraction(1, 2 << read))
        return values, self.sigma * widest * (math.isqrt(len(self.draw)) + 1)

    def _at(self, theta: Point, level: int) -> _At:
        """Line 2. Arb's precision must not be held here: a pass over the rows has threads that wait for it."""
        gradient, error = self.problem.gradient(theta, level)
        tilt, unread = self._tilt(level)
        total = [a + b for a, b in zip(gradient, tilt, strict=True)]
        return _At(theta, total, norm_above(total), error + unread)

    def _decided(self, at: _At) -> list[int] | None:
        radius, step = (at.size + at.error) / self.problem.modulus, Fraction(2) ** self.grid
        low = [math.floor((value - radius) / step + _HALF) for value in at.theta]
        high = [math.floor((value + radius) / step + _HALF) for value in at.theta]
        return low if low == high else None

    def _moved(self, at: _At, level: int) -> _At | None:
        """A point with a clearly smaller gradient; none if that needs a finer level."""
        change = self._newton(at)
        for halving in range(_HALVINGS if change is not None else 0):
            part = Fraction(1, 1 << halving)
            new = self._at([value + part * c for value, c in zip(at.theta, change or (), strict=True)], level)
            if new.size <= (1 - part / 4) * at.size or self._decided(new) is not None:
                return new
        return self._descended(at, level)

    def _newton(self, at: _At) -> Point | None:
        """What the problem proposes, from a residual scaled to about 1 so that floats can hold it."""
        scale = Fraction(2) ** (at.size.numerator.bit_length() - at.size.denominator.bit_length())
        with np.errstate(all="ignore"):
            residual = np.array([_float(value / scale) for value in at.gradient])
            change = np.asarray(self.problem.correct(at.theta, residual), dtype=np.float64)
        if change.shape != residual.shape or not bool(np.isfinite(change).all()):
            return None
        return [scale * Fraction(value) for value in change.tolist()]

    def _descended(self, at: _At, level: int) -> _At | None:
        """One step of plain descent, which makes the true gradient smaller on all problems alike."""
        size = self.problem.smoothness.numerator.bit_length() - self.problem.smoothness.denominator.bit_length() + 1
        steepest, fine = Fraction(2) ** size, 2 ** ((_FIRST_BITS << level) + max(0, size))
        target = [value - g / steepest for value, g in zip(at.theta, at.gradient, strict=True)]
        new = self._at([Fraction(round(value * fine), fine) for value in target], level)
        factor = 1 - self.problem.modulus / (2 * steepest)
        return new if _square(new.gradient) <= factor**2 * _square(at.gradient) else None


def check_minimiser(law: Law, grid: int) -> None:
    """Refuse what is not public and well-formed, before anything is drawn."""
    if not isinstance(law, Gaussian):
        raise TypeError("the law must be Gaussian: the minimiser is tilted by one draw for every coefficient")
    check_grid(law, grid, False)


def norm_above(values: Sequence[Fraction]) -> Fraction:
    """Not below the Euclidean norm, and above it by a 2**-40 part of it at most.

    >>> norm_above([Fraction(3), Fraction(4)]) - 5 < Fraction(1, 2**37)
    True
    """
    square = _square(values)
    if not square:
        return square
    shift = max(0, 44 + (square.denominator.bit_length() - square.numerator.bit_length()) // 2)
    return Fraction(math.isqrt(math.ceil(square * 4**shift)) + 1, 2**shift)


def _square(values: Sequence[Fraction]) -> Fraction:
    return sum((value * value for value in values), Fraction(0))


def _float(value: Fraction) -> float:
    """The nearest float; very large numbers count as the largest."""
    limit = Fraction(2) ** 1000
    return float(min(max(value, -limit), limit))
