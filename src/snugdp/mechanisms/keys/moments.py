"""Sums of a column for many keys at once: valid cells, sums and squares, with noise. Proof: ``grouped.proof.md``.

A cell is a whole number t of size at most ``UNIT``, and q = t**2 / UNIT rounded down. What gets noise are the sums of a
few public combinations of 1, t and q: Bernstein's polynomials for pure noise, which are never negative and add up to
one number, and Chebyshev's for Gaussian noise. The sums of 1, t and q follow from them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Neighbours
from snugdp.noise import DiscreteLaplace, Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.groups import BITS, UNIT

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Sums: TypeAlias = tuple[Integers, ...]

_MAX_SAFE_CELLS = 1 << (61 - BITS)  # cells: a combination of fewer, each at most 4 UNIT in size, is below 2**63
_LAPLACE_TAIL, _GAUSSIAN_TAIL = math.log(20), 1.959963984540054  # of a scale, of a deviation: 19 of 20 cases


class Power(enum.IntEnum):
    """Which sums are wanted."""

    COUNT = 0  # of valid cells
    TOTAL = 1  # of t alone
    MEAN = 2  # of 1 and t
    VARIANCE = 3  # of 1, t and q


@dataclass(frozen=True)
class Basis:
    """Combinations of (1, t, q), how far a row moves each, in units of ``unit``, and the way back to (1, t, q)."""

    rows: tuple[tuple[int, int, int], ...]
    moves: tuple[Fraction, ...]
    back: tuple[tuple[float, ...], ...]
    unit: int = UNIT


def _moves(*numbers: str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, numbers))


_U = UNIT
_COUNT = Basis(((1, 0, 0),), _moves("1"), ((1,), (0,), (0,)), unit=1)
_TOTAL = Basis(((0, 1, 0),), _moves("1"), ((0,), (1,), (0,)))
_PURE: Mapping[Power, Basis] = {
    Power.COUNT: _COUNT,
    Power.TOTAL: _TOTAL,
    Power.MEAN: Basis(((_U, -1, 0), (_U, 1, 0)), _moves("2", "2"), ((0.5, 0.5), (-0.5, 0.5), (0, 0))),
    Power.VARIANCE: Basis(
        ((_U, -2, 1), (2 * _U, 0, -2), (_U, 2, 1)),
        _moves("4", "4", "4"),
        ((0.25, 0.25, 0.25), (-0.25, 0, 0.25), (0.25, -0.25, 0.25)),
    ),
}
_GAUSSIAN: Mapping[Power, Basis] = {  # moves are squares
    Power.COUNT: _COUNT,
    Power.TOTAL: _TOTAL,
    Power.MEAN: Basis(((_U, 0, 0), (0, 1, 0)), _moves("4", "4/3"), ((1, 0), (0, 1), (0, 0))),
    Power.VARIANCE: Basis(
        ((_U, 0, 0), (0, 1, 0), (-_U, 0, 2)), _moves("5", "8/3", "40/17"), ((1, 0, 0), (0, 1, 0), (0.5, 0, 0.5))
    ),
}
_CODES = {
    Power.COUNT: "group-count",
    Power.TOTAL: "group-total",
    Power.MEAN: "group-mean",
    Power.VARIANCE: "group-variance",
}
_REPLACED = {Power.COUNT: 2, Power.TOTAL: 4, Power.MEAN: 3, Power.VARIANCE: 3}  # squares


@dataclass(frozen=True)
class GroupMoments:
    """The sums of one column for many keys. ``keys``: a row counts for at most so many of them.

    Guarantee: the cost of the share (``grouped.proof.md``, Theorem 1).
    """

    share: Share
    power: Power
    step: str
    keys: int

    @property
    def basis(self) -> Basis:
        """What gets noise."""
        return (_PURE if self.share.is_pure else _GAUSSIAN)[self.power]

    @cached_property
    def laws(self) -> tuple[DiscreteLaplace | Gaussian, ...]:
        """The noise of each combination, the same for all keys."""
        return tuple(map(self._law, self.basis.moves))

    def _law(self, move: Fraction) -> DiscreteLaplace | Gaussian:
        replaced = self.share.neighbours is Neighbours.REPLACE
        if self.share.is_pure:
            most = self.keys * move * (2 if replaced else 1)
            return DiscreteLaplace(most * self.basis.unit / self.share.epsilon)  # 1
        square = self.keys * move * (_REPLACED[self.power] if replaced else 1)
        return Gaussian(root_above(square / self.share.mu_squared) * self.basis.unit)  # 2

    def draw(self, sums: Secret[Sums], noise: Noise) -> Floats:
        """The noisy sums of 1, t / UNIT and (t / UNIT)**2, a row each and a column for every key.

        ``sums``: the valid cells, the sums of t and those of q of every key; a public number of keys.
        """
        noise = noise.at(self.step)
        drawn = [
            noise.add_integers(sums.map(partial(_combined, row)), law)  # 3
            for row, law in zip(self.basis.rows, self.laws, strict=True)
        ]
        return self.sums_from(np.array(drawn, dtype=np.float64))

    def sums_from(self, combinations: Floats) -> Floats:
        """The sums of 1, t / UNIT and (t / UNIT)**2 that belong to combinations, a row each."""
        values: Floats = np.array(self.basis.back) @ (combinations / self.basis.unit)
        return values

    @property
    def moves(self) -> tuple[Fraction, ...]:
        """How far one row moves each combination of one key, in the sense of ``JointNoise``."""
        power = 1 if self.share.is_pure else 2
        return tuple(move * self.basis.unit**power for move in self.basis.moves)

    @cached_property
    def spread(self) -> Floats:
        """How the noise of each combination, in standard deviations, enters the sums of 1, t and q."""
        found: Floats = np.array(self.basis.back) * np.array([_deviation(law) / self.basis.unit for law in self.laws])
        return found

    @property
    def tail(self) -> float:
        """How many standard deviations the noise stays below in 19 of 20 cases."""
        return _LAPLACE_TAIL / math.sqrt(2) if self.share.is_pure else _GAUSSIAN_TAIL

    def error(self, slopes: Floats) -> Floats:
        """What the noise moves a linear function of the three sums by, at most, in 19 of 20 cases."""
        found: Floats = self.tail * np.linalg.norm(np.atleast_2d(slopes) @ self.spread, axis=1)
        return found

    def steps(self, column: str) -> tuple[Step]:
        """The one step of a plan. The scale is in rows that are at a bound."""
        law = self.laws[-1]
        pure = isinstance(law, DiscreteLaplace)
        scale = float((law.scale if isinstance(law, DiscreteLaplace) else law.sigma) / self.basis.unit)
        how = StepNoise(
            _CODES[self.power],
            "discrete Laplace" if pure else "gaussian",
            scale,
            "rows",
            times=len(self.laws),
            params={"column": column},
        )
        return (Step(self.step, StepKind.RELEASE, how, self.share.cost),)


def _combined(row: tuple[int, int, int], sums: Sums) -> Any:
    """One combination for every key, in 64 bits; in Python integers where a key has too many cells for them."""
    wide = sums[0].max(initial=0) >= _MAX_SAFE_CELLS
    columns = (column.astype(object) if wide else column for column in sums)
    pairs = [(factor, column) for factor, column in zip(row, columns, strict=False) if factor]
    return sum((factor * column for factor, column in pairs[1:]), pairs[0][0] * pairs[0][1])


def _deviation(law: DiscreteLaplace | Gaussian) -> float:
    return float(law.sigma) if isinstance(law, Gaussian) else math.sqrt(2) * float(law.scale)
