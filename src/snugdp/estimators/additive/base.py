"""What additive models have in common: every number becomes a curve, between bounds that are given or found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from snugdp.accounting import gaussian
from snugdp.core.outcome import Outcome
from snugdp.estimators.additive.curves import EffectCurve, curves_of
from snugdp.estimators.additive.shrinkage import settled
from snugdp.estimators.base import refused
from snugdp.estimators.model import LinearModel
from snugdp.estimators.targets import Response
from snugdp.mechanisms.linear.weighing import LineParts
from snugdp.numerics.rationals import Real
from snugdp.propose.plan import Plan
from snugdp.tables.found import FoundBounds
from snugdp.tables.layouts.curved import CurvedLayout, Curves, Effects
from snugdp.tables.schema.kinds import Number, Spline
from snugdp.tables.schema.missing import Policies
from snugdp.tables.schema.schema import Layout, Schema

_MOST_ENTRIES = 6 << 10  # of all curves: with levels beside them the grid of a row, and every cost, stays the same


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveModel(LinearModel):
    """A linear model of lines and bends. Where bounds are found privately, so are the knots, from the same numbers.

    Guarantee: that of the linear model on standardised rows, in a layout that is public or a function of what was
    released before (``base.proof.md``). What is done with released coefficients afterwards costs nothing.
    """

    x_norm: Real | None = field(default=None, init=False)
    cells: int = 16
    linear: Sequence[str] = ()
    effects: str = "auto"

    def curves(self, label: Any = None) -> dict[str, EffectCurve]:
        """The effect of every number that has a curve. It costs nothing. ``label``: of more than two classes, which."""
        check_is_fitted(self)
        if not self.released_:
            refused(type(self).__name__, self._without_test, looked=self._looks)
        every = self.coefficients(reference=False, label=label)
        return curves_of(self._shown(self._answer), every, {} if label is not None else self._spread)

    def _policy(self, schema: Schema | None) -> Policies | None:
        """A missing cell has an effect of its own, unless something else was said."""
        if self.missing is None and (schema is None or schema.missing == "centre"):
            return "indicator"
        return self.missing

    @property
    def _is_open(self) -> bool:
        """Rows are always looked at: with public bounds of all columns, at their lengths alone."""
        return True

    @property
    def _curves(self) -> Curves:
        """Which numbers have curves, and how far the budget goes."""
        if isinstance(self.linear, str) or not isinstance(self.linear, Sequence):
            raise TypeError('linear must be a list of names of columns, such as ["age"]')
        if self.effects not in get_args(Effects):
            raise ValueError('effects must be "auto", "line", "curve" or "both"')
        budget = self._promised()
        return Curves(
            len(Spline(0, 1, cells=self.cells).knots) - 1,
            tuple(self.linear),
            gaussian.mu(budget.epsilon, budget.delta / 2),
            cast(Effects, self.effects),
        )

    def _layout_of(self, found: FoundBounds, response: Response) -> Layout:
        """The columns as they were found, with curves."""
        curves, columns = self._curves, found.declared.columns
        unknown = [name for name in curves.straight if name not in columns]
        if unknown:
            raise ValueError(f'linear names "{unknown[0]}", which is not one of the columns')
        if sum(isinstance(kind, Number) for kind in columns.values()) * (curves.cells + 3) > _MOST_ENTRIES:
            raise ValueError(f"the curves would have more than {_MOST_ENTRIES:,} entries: use fewer cells or columns")
        constant = bool(self.fit_intercept and found.declared.intercept)
        return CurvedLayout(found, constant, response.joint, curves=curves)

    def _planned_by(self, layout: Layout) -> dict[str, Any]:
        """Curves are not whitened: bends are unrelated as they are, and shorter than lines on purpose."""
        planned = super()._planned_by(layout)
        return {"entries": 0} if "entries" in planned and self.effects != "line" else planned

    def _read_by(self, layout: Layout) -> dict[str, Any]:
        """Of numbers as answers also which entries are bends: what they and lines count for is released after them."""
        read = super()._read_by(layout)
        if "skew" in read and isinstance(layout, CurvedLayout) and self.effects in ("auto", "both"):
            read["parts"] = LineParts(layout.scaled if layout.constant else None, layout.bent)
        return read

    def _keep(self, outcome: Outcome[Any], plan: Plan, response: Response, *args: Any, **found: Any) -> Self:
        """With bends shrunk as far as they look like noise, if they were not weighed and curves were not asked for."""
        super()._keep(outcome, plan, response, *args, **found)
        self._spread: Mapping[str, Any] = {}
        if self.released_:
            released = self._fit.released
            if self.effects == "curve":
                released = {**released, "bends_weight": 1.0}
            kept = settled(np.asarray(self._fit.theta), self._layout, self.bounds_.rows, released)
            if kept is not None:
                self._fit, self._spread = replace(self._fit, theta=kept.theta), kept.spread
                for name, value in self._coefficients(self._answer).items():
                    setattr(self, name, value)
        return self
