"""Poisson regression for counts, with a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike
from snugdp.estimators.glm import GeneralisedModel
from snugdp.estimators.targets import Counts
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.tables.losses.losses import TamedPoisson
from snugdp.tables.schema.schema import Number, Schema


class PoissonRegression(RegressorMixin, GeneralisedModel):  # type: ignore[misc]
    """Private Poisson regression: the logarithm of the rate of a count is linear.

    What is needed is public: ``y_max``, the largest count (larger ones are clipped), and ``x_norm``, a bound on the
    Euclidean norm of a row; or a ``schema`` with ``Number(0, y_max)`` as its target. ``rate_max``: rates up to there
    are fitted as usual and larger ones are predicted as ``rate_max``; half of ``y_max`` if left out, for more rate
    costs more noise and less saves none. Noise grows with ``y_max``: choose it as small as is honest.

    ``method``, ``proposals``, ``validation``, ``selection``, ``rows``, ``ledger``, ``noise``, ``random_state``,
    ``progress``, and what a fit leaves behind: as in ``LogisticRegression``; ``coef_`` has one number for each column.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; the theorem is
    ``guarantee_.theorem``. Not covered: transformers before it that learn from the same rows, and scores on private
    rows.

    >>> X = [[i % 10 / 10] for i in range(20_000)]
    >>> y = [1 if a < 0.5 else 4 for (a,) in X]
    >>> model = PoissonRegression(epsilon=2, delta=1e-6, y_max=10, x_norm=1).fit(X, y)
    >>> low, high = model.predict([[0.0], [0.9]])
    >>> bool(low < 2 < 3 < high < 5.5)
    True
    """

    def __init__(
        self,
        epsilon: Real = 1.0,
        delta: Real = 1e-6,
        *,
        y_max: Real | None = None,
        rate_max: Real | None = None,
        method: str = "auto",
        schema: Schema | None = None,
        x_norm: Real | None = None,
        fit_intercept: bool = True,
        proposals: Mapping[str, Any] | None = None,
        validation: tuple[Any, Any] | None = None,
        selection: Mapping[str, Any] | None = None,
        rows: int | None = None,
        ledger: LedgerLike | None = None,
        noise: Noise | None = None,
        random_state: int | None = None,
        progress: bool | None = None,
        neighbours: Neighbours | str = "add_remove",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.y_max = y_max
        self.rate_max = rate_max
        self.method = method
        self.schema = schema
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.proposals = proposals
        self.validation = validation
        self.selection = selection
        self.rows = rows
        self.ledger = ledger
        self.noise = noise
        self.random_state = random_state
        self.progress = progress
        self.neighbours = neighbours

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The rate of every row, at most ``rate_max``. Rows are read as in the fit."""
        linear = self._linear(X)
        return self._response().rates(linear)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The part of the deviance of counts that is explained, on public rows."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def _response(self) -> Counts:
        most = self._most()
        rate = most / 2 if self.rate_max is None else rational(self.rate_max, "rate_max")
        return Counts(TamedPoisson(most, rate))

    def _most(self) -> Any:
        if self.y_max is not None:
            return rational(self.y_max, "y_max")
        if isinstance(self.schema, Schema) and self.schema.target is not None:
            column = self.schema.columns[self.schema.target]
            if isinstance(column, Number):
                return rational(column.upper, "the upper bound")
        raise ValueError(
            "y_max is needed: the largest count there can be, as known without the data; larger ones are clipped. Or "
            "describe the columns of a table by a schema whose target is Number(0, y_max)"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.target_tags.required = self.schema is None
        tags.target_tags.positive_only = True
        return tags
