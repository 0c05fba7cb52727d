"""Linear regression as scikit-learn knows it, with a budget."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from snugdp.accounting.rational import Real
from snugdp.data.arrays import ArraySource, matrix
from snugdp.data.passes import row_map
from snugdp.data.rows import Rows
from snugdp.data.schema import Layout, Schema
from snugdp.estimators.base import (
    AbsentLedger,
    Promise,
    described,
    forecast_lines,
    in_users_units,
    refused,
    rehearsal,
    require_rows,
    whole_rows,
)
from snugdp.estimators.grids import Searched, combinations, options_of
from snugdp.estimators.methods import Options, recipe_for
from snugdp.estimators.tables import Bounds, Table, eager, predictions, read, rows_of, target_of
from snugdp.guarantee import Budget, Neighbours
from snugdp.ledger import MemoryLedger
from snugdp.mechanisms.regression import Design, Fit, Method
from snugdp.noise import Noise, Simulation
from snugdp.outcome import Ledger, Outcome
from snugdp.ptr.propose import Plan
from snugdp.ptr.purse import Purse
from snugdp.ptr.select import Selected
from snugdp.secret import Secret


class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Private linear regression.

    Bounds are public and required: ``x_norm``, on the Euclidean norm of a row (longer rows are shortened), and
    ``y_bound``, b for targets in [-b, b] or (low, high) (others are clipped); or a ``schema`` with bounds for every
    column of a table. What is missing or no number counts as 0, or as the middle of its bounds.

    ``method``: "auto", or one of ``snugdp.estimators.methods.METHODS``. ``proposals``: public proposals for the method,
    such as {"ridge": 10.0}. Where a list is given, as in {"ridge": [1, 10], "clip": [0.1, 0.2]}, every combination is
    tried in private and the best on ``validation`` is kept; ``selection`` says how, as in {"mean_runs": 30, "law":
    "geometric"} (see ``snugdp.Selection``). ``validation``: public (X, y) to choose on.
    ``rows``: a public guess of the number of rows.
    ``ledger``: what every fit is charged to, shared and not copied by ``clone``; without one each fit has a budget of
    its own. ``noise``: a ``Simulation`` for rehearsals, which begins anew at every fit; ``random_state=1`` is short for
    ``Simulation(1)``, as elsewhere in scikit-learn: such fits are NOT PRIVATE, cannot be charged, and warn.
    ``progress``: a bar while files are read.

    After ``fit``: ``released_``, and if it is true ``coef_``, ``intercept_``, ``coef_names_``, ``noise_scale_`` (the
    deviation of the noise in every coefficient, if known) and ``details_`` (other released numbers); always ``plan_``,
    ``cost_``, ``guarantee_``, ``outcome_``, ``receipt_``, ``certificate_``; and ``best_proposal_`` of several. Nothing
    else about the rows is kept, not even their number.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; the theorem is
    ``guarantee_.proof``. Not covered: transformers before it that learn from the same rows (``StandardScaler``), and
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
        ledger: Ledger | None = None,
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

    def plan(self, n_features: int | None = None, rows: int | None = None) -> Plan:
        """What a fit will do, what it costs and what to expect, in your units. No data are read.

        ``n_features``: of an array; a schema knows. ``rows``: a public guess; without one several are shown.
        """
        bounds, guess = self._bounds(), whole_rows(self.rows if rows is None else rows)
        if bounds.schema is not None:
            layout: Layout = bounds.layout
        else:
            known = getattr(self, "n_features_in_", None) if n_features is None else n_features
            width = whole_rows(known, "n_features")
            if width is None:
                raise ValueError("give n_features=..., the number of columns of X, or a schema")
            layout = bounds.array_schema(tuple(f"x{place}" for place in range(width)))
        return _told(self._make(layout, self._budget()), layout, guess)

    def fit(self, X: Any, y: Any = None) -> LinearRegression:
        """Pay, test, release or refuse.

        X: rows of an array or list, or a pandas, polars or pyarrow table, with y; or, with a schema, a table or the
        path of one that holds its target. What is public is checked before anything is charged.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        budget, bounds, guess = self._budget(), self._bounds(), whole_rows(self.rows)
        recipe_for(self.method, self.proposals, self.rows, self.validation)
        purse = Purse(self._fresh_noise(), self.ledger, budget)
        table = read(X, y, bounds)
        if not purse.noise.private:
            require_rows(table.data)
        method = self._make(table.layout, budget)
        plan = _told(method, table.layout, guess)
        progress = False if isinstance(method, Searched) else self.progress  # a bar for every run would count them
        rows = Rows(table.data, table.layout, progress=progress)
        if not isinstance(table.data, ArraySource):
            rows.moments()  # a table that cannot be read is found before the charge
        self._forget()
        self._name_features(table)
        outcome: Outcome[Any] = method.fit(Secret(rows), purse)
        return self._keep(outcome, plan, budget, table.layout)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The target of every row. Rows are read as in the fit: clipped to their bounds, and missing is the middle."""
        check_is_fitted(self)
        if not self.released_:
            refused(type(self).__name__)
        if not isinstance(self._layout, Schema):
            self._check_features(X)
        return predictions(X, self._layout, self._fit.theta)

    def _budget(self) -> Budget:
        return Budget(self.epsilon, self.delta, self.neighbours)

    def _bounds(self) -> Bounds:
        if self.progress not in (None, True, False):
            raise TypeError("progress must be True, False or None")
        return Bounds(self.schema, self.x_norm, self.y_bound, self.fit_intercept)

    def _fresh_noise(self) -> Noise | None:
        """A rehearsal begins anew at every fit: the same seed, the same result."""
        if self.random_state is not None:
            return rehearsal(self.random_state, self.noise)
        return copy.deepcopy(self.noise) if isinstance(self.noise, Simulation) else self.noise

    def _make(self, layout: Layout, budget: Budget) -> Method:
        recipe, proposals = recipe_for(self.method, self.proposals, self.rows, self.validation)
        options = Options(proposals, whole_rows(self.rows), self._scaled_validation(layout))
        design, how = Design(row_map(layout)), options_of(self.selection)
        listed = recipe.listed(proposals, options.validation)
        if not listed:
            return recipe.make(design, budget, options)
        assert options.validation is not None

        def one(proposal: Mapping[str, Any], budget: Budget) -> Method:
            return recipe.make(design, budget, replace(options, proposals=proposal))

        grid = combinations(proposals, listed)
        return Searched(one, grid, budget, validation=options.validation, options=how, progress=self.progress)

    def _scaled_validation(self, layout: Layout) -> tuple[Any, Any] | None:
        if self.validation is None:
            return None
        if not isinstance(self.validation, tuple | list) or len(self.validation) != 2:
            raise TypeError("validation must be a pair (X, y) of public rows and targets")
        X, y = self.validation
        middle, half = layout.target_units
        rows = np.concatenate([np.empty((0, len(layout.features))), *rows_of(X, layout)])
        return rows, np.clip(np.nan_to_num((target_of(y) - middle) / half), -1.0, 1.0)

    def _forget(self) -> None:
        """Nothing of an earlier fit stays beside a later one."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _name_features(self, table: Table) -> None:
        if table.named is not None:
            validate_data(self, table.named, reset=True, skip_check_array=True)
            return
        names = [name for name in table.layout.columns if name != table.layout.target]
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    def _check_features(self, X: Any) -> None:
        """As in the fit: by scikit-learn for arrays and pandas, of whose names all its versions know."""
        frame = eager(X)
        if frame is None or hasattr(X, "set_axis"):
            validate_data(self, X if frame is not None else matrix(X), reset=False, skip_check_array=True)
        elif hasattr(self, "feature_names_in_") and frame.columns != list(self.feature_names_in_):
            raise ValueError("The feature names should match those that were passed during fit, in the same order")

    def _keep(self, outcome: Outcome[Any], plan: Plan, budget: Budget, layout: Layout) -> LinearRegression:
        self._layout = layout
        self.outcome_: Any = outcome
        self.plan_, self.cost_ = plan, outcome.cost
        self.receipt_ = getattr(outcome, "receipt", None)
        self.guarantee_ = None if self.receipt_ is None else Promise.of(budget, plan)
        winner: Outcome[Any] = outcome
        if isinstance(outcome.value, Selected):
            self.best_proposal_, winner = dict(outcome.value.proposal), outcome.value.release
        self.certificate_ = winner.certificate
        self.released_ = not outcome.refused
        fit: Fit | None = winner.value
        self._fit: Any = fit
        if fit is not None:
            linear = layout.coefficients(fit.theta)
            self.coef_, self.intercept_, self.coef_names_ = linear.values, linear.intercept, linear.names
            self.noise_scale_ = None if fit.noise is None else in_users_units(layout, fit.noise)
            self.details_ = dict(fit.released)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if isinstance(state["ledger"], MemoryLedger):
            state["ledger"] = AbsentLedger()
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "released_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None and not isinstance(self.noise, Simulation)
        tags.regressor_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.input_tags.allow_nan = True  # no value may raise: what is no number is missing
        tags.input_tags.string = True  # text in a cell is no number either
        tags.target_tags.required = self.schema is None
        return tags


def _told(method: Method, layout: Layout, rows: int | None) -> Plan:
    """The plan in the user's units."""
    if not isinstance(method, Searched):
        return described(method, layout, rows)
    plan = method.plan()
    return replace(plan, forecast=(*forecast_lines(method, layout, rows), *plan.forecast))
