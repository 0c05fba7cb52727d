"""Poisson regression for counts, with a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from snugdp.estimators.glm import GeneralisedModel
from snugdp.estimators.intervals import WithIntervals
from snugdp.estimators.methods.glm import GLM_INFERENCE, GLM_METHODS
from snugdp.estimators.methods.linear import Recipe
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.targets import CountTarget, OpenCountTarget, Response
from snugdp.numerics.rationals import Real, rational
from snugdp.tables.losses.losses import TamedPoisson
from snugdp.tables.schema.schema import Number, Schema


@dataclass(eq=False, repr=False)
class PoissonRegression(WithIntervals, RegressorMixin, GeneralisedModel):  # type: ignore[misc]
    """Poisson regression with differential privacy: the logarithm of the rate of a count is linear.

    Bounds are public: give ``y_max`` and ``x_norm``, or a ``schema`` with ``Number(0, y_max)`` as its target. What is
    left out is found privately. Rows without a count are left out; missing and invalid entries count as in
    ``LinearRegression``.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. Not covered: transformers before it that learn from the same rows, scores on private rows, and
    the error that is raised when X and y differ in length.

    Parameters
    ----------
    epsilon, delta : Real
        Privacy budget and failure probability of each fit.
    y_max : Real, optional
        The largest count; public. Larger counts are clipped. The noise grows with it, so choose it as small as you can
        defend. Needed with ``x_norm``; otherwise it is found privately.
    rate_max : Real, optional
        The largest rate that is fitted; larger rates are predicted as ``rate_max``. Half of ``y_max`` by default: a
        larger rate costs more noise, a smaller one saves none.
    method, schema, bounds, missing, x_norm, fit_intercept, proposals, validation, selection, rows
        As in ``LogisticRegression``.
    inference : bool, default=False
        As in ``LinearRegression``; for counts whose largest is given.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    coef_, intercept_
        Coefficients, an array of shape (n_features,), and intercept of the logarithm of the rate.
    released_, bounds_, plan_, outcome_, cost_ and all others
        As in ``LinearRegression``.

    Examples
    --------
    >>> X = [[i % 10 / 10] for i in range(20_000)]
    >>> y = [1 if a < 0.5 else 4 for (a,) in X]
    >>> model = PoissonRegression(epsilon=2, delta=1e-6, y_max=10, x_norm=1).fit(X, y)
    >>> low, high = model.predict([[0.0], [0.9]])
    >>> bool(low < 2 < 3 < high < 5.5)
    True
    """

    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    y_max: Real | None = None
    rate_max: Real | None = None
    inference: bool = False
    _estimand = "log-rate"

    @row_by_row("prediction")
    def predict(self, X: Any) -> NDArray[np.float64]:
        """The rate of every row, at most ``rate_max``. Rows are read as in the fit."""
        linear = self._linear(X)
        return cast(CountTarget, self._answer).rates(linear)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The part of the deviance of counts that is explained, on public rows."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def _recipes(self) -> Mapping[str, Recipe]:
        return GLM_INFERENCE if self._wants_intervals() else GLM_METHODS

    def _response(self) -> Response:
        rate = None if self.rate_max is None else rational(self.rate_max, "rate_max")
        if (most := self._most()) is not None:
            return CountTarget(TamedPoisson(most, most / 2 if rate is None else rate))
        if not self._is_open:
            raise ValueError(
                "y_max is needed: the largest count there can be, as known without the data; larger ones are clipped. "
                "Or leave out x_norm as well, to have both found privately, or describe the columns of a table by a "
                "schema whose target is Number(0, y_max)"
            )
        known = self._found_before
        return OpenCountTarget(rate).settled(None if known is None else known.declared)

    def _most(self) -> Fraction | None:
        """The largest count, if it is public."""
        if self.y_max is not None:
            return rational(self.y_max, "y_max")
        if isinstance(self.schema, Schema) and self.schema.target is not None:
            column = self.schema.columns[self.schema.target]
            if isinstance(column, Number) and column.upper is not None:
                return rational(column.upper, "the upper bound")
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.target_tags.required = self.schema is None
        tags.target_tags.positive_only = True
        return tags
