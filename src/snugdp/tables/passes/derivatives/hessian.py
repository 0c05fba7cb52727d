"""The Hessian of a summed loss at an exactly given point, as whole numbers with a proved error.

A weighted Gram matrix: every row adds its square, times the second derivative of its loss to 51 bits or more. The line
numbers in the comments are those of ``hessian.proof.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from snugdp.numerics.blas import require_exact_products
from snugdp.tables.losses.enclosures import curvature_ball, curvature_error
from snugdp.tables.passes.base import RowPass, Sums
from snugdp.tables.passes.derivatives.gradient import (
    DIGIT_BITS,
    LIMB_BITS,
    ROWS_BITS,
    GradientEnclosure,
    digits,
    enclosed,
    limbs,
)
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout

_BALL_ERROR = Fraction(2)
_MAX_BLOCK_SUM = 1 << 53


class Curvatures(Sums):
    """Sums of weighted squares of rows by limb of the weight and halves of the entries, and the number of rows."""

    __slots__ = ()


@dataclass(frozen=True)
class HessianEnclosure(RowPass[Curvatures]):
    """The second derivative of the summed loss at exactly the point of ``at``, to an error that shrinks with its level.

    Guarantee: ``gram`` times ``unit`` is positive semidefinite, within its stated error of the Hessian in the Frobenius
    norm for every table, and the same for every order and partition of the rows
    (``hessian.proof.md``, Theorem 1).
    """

    at: GradientEnclosure
    schema: Layout = field(init=False)
    bits: int | None = field(init=False)

    def __post_init__(self) -> None:
        curvature_error(self.at.loss)  # refuses what has no continuous second derivative
        object.__setattr__(self, "schema", self.at.schema)
        object.__setattr__(self, "bits", self.at.bits)

    @cached_property
    def _coarse(self) -> bool:
        """Whether floats take this point as it is."""
        return self.at.exact_in_floats

    @cached_property
    def _work(self) -> GradientEnclosure:
        """The arguments of the losses, by floats or exactly."""
        level = 0 if self._coarse else max(1, self.at.level)
        return GradientEnclosure(self.schema, self.at.theta, self.at.loss, level=level, bits=self.bits)

    @property
    def weight_bits(self) -> int:
        """Weights are whole numbers of 2**-weight_bits of their bound."""
        return self._work.slope_bits

    @cached_property
    def _half(self) -> int:
        """Entries of rows are cut after so many bits."""
        return -(-self.at.row_norm.bit_length() // 2)

    @property
    def block(self) -> int:
        """Rows of a block: products of limbs add up exactly."""
        return int(max(1, min(self._work.block, 1 << max(0, 53 - LIMB_BITS - 2 * self._half))))

    def empty(self) -> Curvatures:
        """The sums over no rows."""
        entries = self.at.limits.entries
        self._work.require_exact()
        require_exact_products((entries, self.block, entries))
        width = (LIMB_BITS + 2 * self._half + ROWS_BITS + 8) // 8
        return Curvatures(self._work.places * 3 * entries**2 + 1, self.weight_bits, width=width)

    def add_block(self, state: Curvatures, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        weights = self._float_weights(V, w) if self._coarse else self._ball_weights(V, w)
        high = np.floor(V * 2.0**-self._half)  # line 3
        low = V - high * 2.0**self._half
        sums, d = state.reserve(_MAX_BLOCK_SUM), self.at.limits.entries
        parts = sums[:-1].reshape(-1, 3, d, d)
        for place, weight in enumerate(weights):  # line 4
            first, second = high * weight[:, None], low * weight[:, None]
            for part, (one, other) in enumerate(((first, high), (first, low), (second, low))):
                parts[place, part] += np.dot(one.T, other).astype(np.int64)
        sums[-1] += len(V)

    def _float_weights(self, V: Floats, w: Floats) -> Floats:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            root = self.at.loss.parts(self._work.arguments(V, w)[0])[1]  # line 1
            return limbs(np.clip(np.rint(root * root * 2.0**self.weight_bits), 0.0, 2.0**self.weight_bits))  # line 2

    def _ball_weights(self, V: Floats, w: Floats) -> Floats:
        arguments, _ = self._work.whole_arguments(V, w)

        def balls(waiting: Sequence[int], bits: int) -> list[arb]:
            second = curvature_ball(self.at.loss, -self._work.argument_bits)
            return [second(arguments[i]) * arb((1, bits)) for i in waiting]

        whole = enclosed(balls, len(arguments), self.weight_bits)  # line 5
        return digits([max(0, n) for n in whole], self._work.places)

    @property
    def unit(self) -> Fraction:
        """The size of one cell of the Hessian."""
        return self.at.loss.curvature * self.row_map.unit**2 * Fraction(1, 2**self.weight_bits)

    def gram(self, state: Curvatures) -> list[list[int]]:
        """The sum in cells: symmetric, positive semidefinite. As private as the state."""
        d, half, width = self.at.limits.entries, self._half, LIMB_BITS if self._coarse else DIGIT_BITS
        parts = np.array(state.values()[:-1], dtype=object).reshape(-1, 3, d, d)
        total = np.zeros((d, d), dtype=object)
        for squares, mixed, rest in parts[::-1]:
            total = (total << width) + (squares << (2 * half)) + ((mixed + mixed.T) << half) + rest
        return [[int(value) for value in row] for row in total]

    def error(self, state: Curvatures) -> Fraction:
        """How far the Hessian is off at most, in the Frobenius norm. As private as the state."""
        units = curvature_error(self.at.loss) if self._coarse else _BALL_ERROR
        return state.values()[-1] * units * self.unit * self.at.limits.norm_squared
