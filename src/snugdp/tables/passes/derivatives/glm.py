"""The gradient of a generalised linear model at a public point: exact sums of row-wise integers.

The line numbers in the comments are those of ``tables/passes/vectors/moments.proof.md``, Theorem 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.blas import require_exact_products
from snugdp.tables.losses.losses import Loss, counts, labels, shares
from snugdp.tables.passes.base import RowPass
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rowmap import Floats, RowLimits
from snugdp.tables.schema.schema import Layout

SLOPE_BITS = 20  # first derivatives are kept to a millionth of their bound
_POINT_BITS, _LIMB_BITS = 50, 25  # of the largest coefficient; in two limbs, so that x . theta is exact in floats
_MAX_COEFFICIENT = 2.0**100


@dataclass(frozen=True)
class FixedGradient(RowPass[Moments]):
    """The gradient of the summed loss at a public point ``theta``, one coefficient per entry of ``schema.features``.

    The state is ``Moments``: ``cross()`` is the gradient in units of ``gradient_unit``; ``gradient`` converts it.
    ``point`` is theta as it is used, to 50 bits of its largest entry.

    Guarantee: whole numbers, equal for every order and partition of the rows and on every machine; one row moves them
    by at most ``limits.sensitivity(...)`` (``tables/passes/vectors/moments.proof.md``, Theorem 5).
    """

    schema: Layout
    theta: Sequence[float]
    loss: Loss
    bits: int | None = None

    def __post_init__(self) -> None:
        if self.schema.target is None:
            raise ValueError("a loss needs a target: name one in the schema")
        theta = tuple(float(value) for value in self.theta)
        if len(theta) != len(self.schema.features):
            raise ValueError(f"theta must have {len(self.schema.features)} entries, one for each of the features")
        if not all(abs(value) <= _MAX_COEFFICIENT for value in theta):
            raise ValueError("theta must be finite, and its entries at most 2**100")
        object.__setattr__(self, "theta", theta)
        if any(self.limits.norm_squared * sum(n * n for n in limb) > 1 << 106 for limb in self._limbs):
            raise ValueError("the grid is too fine for x . theta to be exact: give fewer bits")

    @cached_property
    def limits(self) -> RowLimits:
        """What the integers of every row obey: those of the row map, with the slope in place of the target."""
        return RowLimits(self.row_map.entries, self.row_map.limits.norm_squared, 1 << SLOPE_BITS)

    @cached_property
    def _point_bits(self) -> int:
        largest = max(abs(value) for value in self.theta)
        return _POINT_BITS - math.frexp(largest)[1] if largest else 0

    @cached_property
    def _limbs(self) -> tuple[list[int], list[int]]:
        """The point is (high * 2**25 + low) * 2**-_point_bits, with 0 <= low < 2**25."""
        whole = [round(Fraction(value) * Fraction(2) ** self._point_bits) for value in self.theta]
        return [n >> _LIMB_BITS for n in whole], [n & ((1 << _LIMB_BITS) - 1) for n in whole]

    @property
    def point(self) -> tuple[float, ...]:
        """Where the gradient is taken: theta, rounded to 50 bits of its largest entry."""
        unit = Fraction(2) ** -self._point_bits
        return tuple(float((high * 2**_LIMB_BITS + low) * unit) for high, low in zip(*self._limbs, strict=True))

    @property
    def gradient_unit(self) -> Fraction:
        """The size of one cell of the gradient."""
        return self.loss.slope * self.row_map.unit * Fraction(1, 2**SLOPE_BITS)

    @property
    def block(self) -> int:
        """Rows of a block: sums over it are exact, and it fits a cache."""
        return self.limits.block

    def empty(self) -> Moments:
        """The sums over no rows."""
        require_exact_products((self.limits.block, self.limits.entries, 2))
        return Moments(self.limits)

    def add_block(self, state: Moments, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        state.add(None, V, self.slopes(V, w))  # line 14

    def slopes(self, V: Floats, w: Floats) -> Floats:
        """The first derivative of the loss of every row, in whole parts of 2**-20 of its bound."""
        return self.derivatives(V, w)[0]

    def derivatives(self, V: Floats, w: Floats) -> tuple[Floats, Floats]:
        """The same, and the root of the second derivative over its bound."""
        high, low = np.dot(V, np.array(self._limbs, dtype=np.float64).T).T  # line 11
        with np.errstate(all="ignore"):  # a warning would depend on private values
            u = (high * 2.0**_LIMB_BITS + low) * math.ldexp(1.0, -self._point_bits - self.row_map.bits)
            label = labels(self.loss, w, self.row_map.target_limit) if self.loss.classifies else np.ones_like(w)
            apart = 0.0 if self.loss.classifies or counts(self.loss) else w * float(self.row_map.unit)
            slope, root = self.loss.parts(u * label - apart)  # line 12
            slope = slope * label - shares(self.loss, w, self.row_map.target_limit)
            slope = np.trunc(slope * 2.0**SLOPE_BITS)  # line 13
        limit = 2.0**SLOPE_BITS
        return np.minimum(np.maximum(slope, -limit), limit), root

    def gradient(self, state: Moments) -> NDArray[np.float64]:
        """The gradient as floats, each the nearest to its exact value. As private as the state."""
        return np.array([float(n * self.gradient_unit) for n in state.cross()])
