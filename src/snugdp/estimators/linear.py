"""Linear regression as scikit-learn knows it, with a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike
from snugdp.estimators.inputs import Bounds
from snugdp.estimators.methods.linear import METHODS, Recipe
from snugdp.estimators.model import LinearModel
from snugdp.mechanisms.linear.base import Fit
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.tables.schema.schema import Layout, Schema


class LinearRegression(RegressorMixin, LinearModel):  # type: ignore[misc]
    """Private linear regression.

    Bounds are public and required: ``x_norm``, on the Euclidean norm of a row (longer rows are shortened), and
    ``y_bound``, b for targets in [-b, b] or (low, high) (others are clipped); or a ``schema`` with bounds for every
    column of a table. What is missing or no number counts as 0, or as the middle of its bounds.

    ``method``: "auto", or one of ``estimators.methods.linear.METHODS``. ``proposals``: public proposals for the method,
    such as {"ridge": 10.0}. Where a list is given, as in {"ridge": [1, 10], "clip": [0.1, 0.2]}, every combination is
    tried in private and the best on ``validation`` is kept; ``selection`` says how, as in {"mean_runs": 30, "law":
    "geometric"} (see ``snugdp.Selection``). ``validation``: public (X, y) to choose on.
    ``rows``: a public guess of the number of rows.
    ``ledger``: what every fit is charged to: a ledger, or the path or URL of one; shared and not copied by ``clone``
    and by searches. **Without one nothing is being summed up**: each fit has a budget of its own, ``outcome_.cost``
    carries what it cost, and adding that up is left to you. A pickle keeps where a ledger is, without the password of a
    URL (PGPASSWORD or a .pgpass file supply it there); a ``MemoryLedger`` stays behind.
    ``noise``: a ``Simulation`` for rehearsals, which begins anew at every fit; ``random_state=1`` is short for
    ``Simulation(1)``, as elsewhere in scikit-learn: such fits are NOT PRIVATE, cannot be charged, and warn.
    ``progress``: a bar while files are read.

    After ``fit``: ``released_``, and if it is true ``coef_``, ``intercept_``, ``coef_names_``, ``noise_scale_`` (the
    deviation of the noise in every coefficient, if known) and ``details_`` (other released numbers); always ``plan_``,
    ``cost_``, ``guarantee_``, ``outcome_``, ``receipt_``, ``certificate_``; and ``best_proposal_`` of several. Nothing
    else about the rows is kept, not even their number.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; the theorem is
    ``guarantee_.theorem``. Not covered: transformers before it that learn from the same rows (``StandardScaler``), and
    scores on private rows, such as those of a grid search. That X and y differ in length is said aloud.

    >>> X = [[i % 10 / 10, i % 7 / 7] for i in range(20_000)]
    >>> y = [2 * a - b for a, b in X]
    >>> model = LinearRegression(epsilon=1, delta=1e-6, method="adassp", x_norm=1.5, y_bound=2).fit(X, y)
    >>> bool(abs(model.predict([[0.5, 0.5]])[0] - 0.5) < 0.5)
    True
    """

    def __init__(
        self,
        epsilon: Real = 1.0,
        delta: Real = 1e-6,
        *,
        method: str = "auto",
        schema: Schema | None = None,
        x_norm: Real | None = None,
        y_bound: Real | tuple[Real, Real] | None = None,
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
        self.method = method
        self.schema = schema
        self.x_norm = x_norm
        self.y_bound = y_bound
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
        """The target of every row. Rows are read as in the fit: clipped to their bounds, and missing is the middle."""
        scaled = self._linear(X)
        middle, half = self._layout.target_units
        return middle + half * scaled

    def _recipes(self) -> Mapping[str, Recipe]:
        return METHODS

    def _bounds(self) -> Bounds:
        self._check_progress()
        return Bounds(self.schema, self.x_norm, self.y_bound, self.fit_intercept)

    def _keep_coefficients(self, layout: Layout, fit: Fit) -> None:
        linear = layout.coefficients(fit.theta)
        self.coef_, self.intercept_ = linear.values, linear.intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.target_tags.required = self.schema is None
        return tags
