"""The two matrices of a robust covariance: the Hessian of a summed loss, and the sum of squares of its gradients.

Where the second derivative is small the first is large, so both matrices together move by little more than one alone,
and are released for the price of one. The line numbers in the comments are those of ``sandwich.proof.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from snugdp.numerics.blas import require_exact_products
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, Loss, TamedPoisson
from snugdp.tables.passes.base import RowPass, Sums
from snugdp.tables.passes.derivatives.glm import SLOPE_BITS, FixedGradient
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout

Matrix: TypeAlias = list[list[int]]

_WEIGHT_BITS = 12  # weights are whole numbers of 2**-12
_ENTRY_BITS = 14  # of the norm of a row: the entries of its square are as fine as that
_EXACT = 1 << 53
_LOGISTIC = Fraction(385, 100)  # how many times the Hessian of a logistic loss counts


class Sandwich(Sums):
    """Sums of squares of rows with their two weights. Private."""

    __slots__ = ()


@dataclass(frozen=True)
class SandwichPass(RowPass[Sandwich]):
    """Both matrices at the point and for the loss of ``at``: log-cosh, logistic or tamed Poisson.

    Of Huber's loss, which counts as clipped squares, the first matrix is what the second leaves of the Gram matrix.

    Guarantee: whole numbers, equal for every order and partition of the rows; one row moves both together by at most
    the root of ``limit_squared`` in the Frobenius norm (``sandwich.proof.md``, Theorem 1).
    """

    at: FixedGradient
    schema: Layout = field(init=False)
    bits: int | None = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.at.loss, Huber | LogCosh | Logistic | TamedPoisson):
            raise TypeError(
                "there are two matrices for the price of one of Huber, log-cosh, logistic and Poisson losses"
            )
        object.__setattr__(self, "schema", self.at.schema)
        object.__setattr__(self, "bits", self.at.bits)

    @cached_property
    def _shift(self) -> int:
        """So many bits of an entry are cut off."""
        return max(0, (self.row_map.limits.norm_squared.bit_length() + 1) // 2 - _ENTRY_BITS)

    @cached_property
    def _norm_squared(self) -> int:
        """The bound on the sum of squares of a row of coarser cells."""
        return max(1, self.row_map.limits.norm_squared >> 2 * self._shift)

    @property
    def limit_squared(self) -> Fraction:
        """How far one row moves both matrices together, in cells, squared."""
        return Fraction(self._norm_squared << _WEIGHT_BITS) ** 2

    @property
    def units(self) -> tuple[Fraction, Fraction]:
        """The size of one cell, of each matrix."""
        cell, loss = (self.row_map.unit * 2**self._shift) ** 2 / 2**_WEIGHT_BITS, self.at.loss
        return cell * _curvature_unit(loss), cell * loss.slope**2

    @property
    def block(self) -> int:
        """Rows of a block: sums over it are exact, and it fits a cache."""
        return min(self.row_map.limits.block, _EXACT // (self._norm_squared << _WEIGHT_BITS))

    def empty(self) -> Sandwich:
        """The sums over no rows."""
        entries = self.row_map.entries
        self.at.empty()
        require_exact_products((entries, self.block, entries))
        return Sandwich(2 * entries**2, self._norm_squared, self._shift)

    def add_block(self, state: Sandwich, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        cells = np.trunc(V * 2.0**-self._shift)  # 3
        sums = state.reserve(_EXACT).reshape(2, -1)
        for place, weight in enumerate(self._weights(V, w)):  # 4
            sums[place] += np.dot((cells * weight[:, None]).T, cells).astype(np.int64).reshape(-1)

    def _weights(self, V: Floats, w: Floats) -> tuple[Floats, Floats]:
        """Those of the Hessian and of the gradients, whole numbers."""
        slopes, roots = self.at.derivatives(V, w)  # 1
        sizes, whole = np.abs(slopes), 2.0**SLOPE_BITS
        scores = np.floor(slopes * slopes * 2.0 ** (_WEIGHT_BITS - 2 * SLOPE_BITS))  # 2
        loss = self.at.loss
        if isinstance(loss, Huber | LogCosh):
            return 2.0**_WEIGHT_BITS - scores, scores
        if isinstance(loss, Logistic):
            product = sizes * (whole - sizes) * 2.0 ** (_WEIGHT_BITS - 2 * SLOPE_BITS)
            return np.floor(product * float(_LOGISTIC)), scores
        share = float(loss.curvature / loss.slope)
        left = np.floor((whole - sizes) * 2.0 ** (_WEIGHT_BITS - SLOPE_BITS))  # l'' <= slope - |l'|
        return np.minimum(np.floor(roots * roots * (share * 2.0**_WEIGHT_BITS)), left), scores

    def matrices(self, state: Sandwich) -> tuple[Matrix, Matrix]:
        """Both sums in cells, symmetric. As private as the state."""
        values, d = state.values(), self.row_map.entries
        first, second = ([values[place + d * i : place + d * (i + 1)] for i in range(d)] for place in (0, d * d))
        return first, second


def _curvature_unit(loss: Loss) -> Fraction:
    """The second derivative of a row that has the weight 1."""
    if isinstance(loss, Logistic):
        return 1 / _LOGISTIC
    return loss.slope if isinstance(loss, TamedPoisson) else Fraction(1)
