"""What additive models have in common: every number becomes a spline, between bounds that are given or found."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from snugdp.estimators.additive.curves import EffectCurve, curves_of
from snugdp.estimators.base import refused
from snugdp.estimators.inputs import eager, rows_of
from snugdp.estimators.model import LinearModel
from snugdp.estimators.open.tables import matrix_blocks
from snugdp.estimators.targets import Response
from snugdp.numerics.rationals import Real
from snugdp.tables.found import Flag, FoundBounds, FoundNumber
from snugdp.tables.schema.kinds import Number, Spline
from snugdp.tables.schema.missing import Policies, restricted
from snugdp.tables.schema.schema import Layout, Schema

_MOST_ENTRIES = 6 << 10  # of all curves: with levels beside them the grid of a row, and every cost, stays the same
_REACH = 3.0  # scales from the centre of a number to the first and the last knot, at most


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveModel(LinearModel):
    """A linear model of splines. Where bounds are found privately, so are the knots, from the same numbers.

    Guarantee: that of the linear model. A row of splines is no longer than one of numbers (``hats.proof.md``), and
    knots are public or functions of what was released before.
    """

    x_norm: Real | None = field(default=None, init=False)
    cells: int = 16
    linear: Sequence[str] = ()

    _standardises = False

    def curves(self, label: Any = None) -> dict[str, EffectCurve]:
        """The effect of every number that has a curve. It costs nothing. ``label``: of more than two classes, which."""
        check_is_fitted(self)
        if not self.released_:
            refused(type(self).__name__, self._without_test, looked=self._looks)
        columns = self._layout.columns
        return curves_of(columns, self.coefficients(reference=False, label=label))

    def _policy(self, schema: Schema | None) -> Policies | None:
        """A missing cell has an effect of its own, unless something else was said."""
        if self.missing is None and (schema is None or schema.missing == "centre"):
            return "indicator"
        return self.missing

    @property
    def _declared(self) -> Schema | None:
        declared = super()._declared
        if self._is_open or not isinstance(declared, Schema):
            return declared
        straight = {declared.target, *self._straight(declared.columns)}
        columns = {
            name: column if name in straight or type(column) is not Number else self._curve(column)
            for name, column in declared.columns.items()
        }
        return replace(declared, columns=columns)

    def _layout_of(self, found: FoundBounds, response: Response) -> Layout:
        """The columns as they were found, with splines."""
        declared = found.declared
        straight = {declared.target, *self._straight(declared.columns)}
        self._check_knots(sum(isinstance(kind, Number) for kind in declared.columns.values()))
        columns = {
            name: kind if name in straight or type(kind) is not Number else self._between(found.get(name), kind)
            for name, kind in found.kinds.items()
        }
        intercept = bool(self.fit_intercept and declared.intercept)
        return replace(declared, columns=columns, missing=restricted(declared.missing, columns), intercept=intercept)

    def _check_knots(self, curves: int) -> None:
        knots = len(self._curve(Number(0, 1)).knots)
        if curves * (knots + 1) > _MOST_ENTRIES:
            raise ValueError(f"the curves would have more than {_MOST_ENTRIES:,} knots: use fewer cells or columns")

    def _between(self, found: Any, column: Number) -> Number:
        """A curve where nearly all rows are; a line where they hold one value, or no number lies between the ends."""
        if not isinstance(found, FoundNumber) or found.flag is Flag.CONSTANT:
            return column
        reach = math.inf if found.flag is Flag.PUBLIC else _REACH * found.scale
        first, last = found.hull or (found.lower, found.upper)
        low, high = max(first, found.centre - reach), min(last, found.centre + reach)
        try:
            ends = Number(low, high)
        except ValueError:  # public by now: it depends on what was released
            return column
        return self._curve(ends)

    def _curve(self, column: Number) -> Spline:
        return Spline(*column.bounds, cells=self.cells)

    def _straight(self, columns: Collection[str]) -> Collection[str]:
        if isinstance(self.linear, str) or not isinstance(self.linear, Sequence):
            raise TypeError('linear must be a list of names of columns, such as ["age"]')
        unknown = [name for name in self.linear if name not in columns]
        if unknown:
            raise ValueError(f'linear names "{unknown[0]}", which is not one of the columns')
        return self.linear

    def _vectors(self, X: Any, layout: Layout) -> Iterator[NDArray[np.float64]]:
        """Rows without names have the columns that were fitted, in their order."""
        found = getattr(self, "bounds_", None)
        if found is None or eager(X) is not None:
            return rows_of(X, layout)
        schema: Any = layout
        blocks = (schema.for_prediction.blocks(part) for part in matrix_blocks(X, found.declared))
        return (block for some in blocks for block, _ in some)
