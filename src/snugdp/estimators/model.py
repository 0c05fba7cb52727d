"""What all private linear models have in common: bounds, budget, plan, fit, and what is kept of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.estimators.base import Forecaster, fit_forecast, in_users_units, refused, require_rows, with_fits
from snugdp.estimators.grids import Score, Searched, combinations, options_of
from snugdp.estimators.inputs import InputTable, NormBounds, rows_of
from snugdp.estimators.methods.linear import Options, Recipe, recipe_for
from snugdp.estimators.private import PrivateEstimator
from snugdp.estimators.targets import Response
from snugdp.mechanisms.linear.base import Design, Fit, Method
from snugdp.numerics.rationals import Real
from snugdp.numerics.threads import one_blas_thread
from snugdp.propose.forecast import ErrorOf
from snugdp.propose.plan import Plan, whole_rows
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.passes.base import row_map
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Layout, Schema


@dataclass(kw_only=True, eq=False, repr=False)
class LinearModel(PrivateEstimator):
    """A scikit-learn estimator of a linear function, with a budget. What its target is, subclasses say.

    Guarantee: each fit is (epsilon, delta)-DP, whether it is released or refused: that of its method.
    """

    method: str = "auto"
    schema: Schema | None = None
    x_norm: Real | None = None
    fit_intercept: bool = True
    proposals: Mapping[str, Any] | None = None
    validation: tuple[Any, Any] | None = None
    selection: Mapping[str, Any] | None = None
    rows: int | None = None

    _error_of, _without_test = ErrorOf.PREDICTION, "adassp"

    def plan(self, n_features: int | None = None, rows: int | None = None) -> Plan:
        """What a fit will do, what it costs and what to expect, in your units. No data are read.

        ``n_features``: of an array; a schema knows. ``rows``: a public guess; without one several are shown.
        """
        response, bounds = self._checked()
        guess = whole_rows(self.rows if rows is None else rows)
        layout = bounds.layout(self._array_names(n_features))
        method = self._make(response, layout, self._budget())
        return with_fits(method.plan(), method, response.shown(layout), guess, self._error_of)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Pay, test, release or refuse.

        X: rows of an array or list, or a pandas, polars or pyarrow table, with y; or, with a schema, a table or the
        path of one that holds its target. What is public is checked before anything is charged.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        budget, (response, bounds), guess = self._budget(), self._checked(), whole_rows(self.rows)
        recipe_for(self.method, self.proposals, self.rows, self.validation, self._recipes())
        context = ReleaseContext(self._fresh_noise(), self.ledger, budget)
        table = response.read(X, y, bounds)
        require_rows(context.noise, table.is_empty)
        method = self._make(response, table.layout, budget)
        plan = with_fits(method.plan(), method, response.shown(table.layout), guess, self._error_of)
        progress = False if isinstance(method, Searched) else self.progress  # a bar for every run would count them
        rows = Rows(table.data, table.layout, progress=progress)
        with one_blas_thread():
            if not isinstance(table.data, ArraySource):
                rows.moments()  # a table that cannot be read is found before the charge
            self._forget()
            self._name_features(table)
            public = partial(self._as_read, response, table.layout)
            asked = context.with_question(lambda: self._question(table.layout.features, y, **public()))
            outcome: Outcome[Any] = method.fit(Secret(rows), asked)
        return self._keep(outcome, plan, budget, response, table.layout)

    @abstractmethod
    def _recipes(self) -> Mapping[str, Recipe]:
        """The ways to fit, by name."""

    @abstractmethod
    def _response(self) -> Response:
        """What is predicted, checked."""

    def _checked(self) -> tuple[Response, NormBounds]:
        """What is predicted, and the public bounds."""
        self._check_progress()
        response = self._response()
        return response, response.bounds(self.schema, self.x_norm, self.fit_intercept)

    def _as_read(self, response: Response, layout: Layout) -> dict[str, Any]:
        """Public parameters that may be given in several forms, in one of them."""
        classes = {} if response.classes is None else {"classes": response.classes}
        return {"validation": self._scaled_validation(response, layout), **classes}

    def _linear(self, X: Any) -> NDArray[np.float64]:
        """The products of theta with all rows, read as in the fit: clipped to their bounds, missing as the middle."""
        check_is_fitted(self)
        if not self.released_:
            refused(type(self).__name__, self._without_test)
        if not isinstance(self._layout, Schema):
            self._check_features(X)
        theta: NDArray[np.float64] = self._fit.theta
        none = np.empty((0, *theta.shape[:-1]))
        return np.concatenate([none, *(rows @ theta.T for rows in rows_of(X, self._layout))])

    def _make(self, response: Response, layout: Layout, budget: Budget) -> Method:
        recipe, proposals = recipe_for(self.method, self.proposals, self.rows, self.validation, self._recipes())
        validation = self._scaled_validation(response, layout)
        given = {"losses": response.losses} if response.losses else {}
        options = Options(proposals, whole_rows(self.rows), validation, given)
        design, how = Design(row_map(layout)), options_of(self.selection)
        listed = recipe.listed(proposals, validation)
        if not listed:
            return recipe.make(design, budget, options)
        assert validation is not None

        def one(proposal: Mapping[str, Any], budget: Budget) -> Method:
            return recipe.make(design, budget, replace(options, proposals=proposal))

        grid, score = combinations(proposals, listed), Score(*validation, response.value)
        return Searched(one, grid, budget, score=score, options=how, progress=self.progress)

    def _scaled_validation(self, response: Response, layout: Layout) -> tuple[Any, Any] | None:
        if self.validation is None:
            return None
        if not isinstance(self.validation, tuple | list) or len(self.validation) != 2:
            raise TypeError("validation must be a pair (X, y) of public rows and targets")
        X, y = self.validation
        rows = np.concatenate([np.empty((0, len(layout.features))), *rows_of(X, layout)])
        return rows, response.scaled(y, layout)

    def _forecaster(self, n_features: int | None) -> Forecaster:
        response, bounds = self._checked()
        layout = bounds.layout(self._array_names(n_features))
        target = layout.target if self._error_of is ErrorOf.PREDICTION and bounds.schema is not None else None
        method, shown = self._make(response, layout, self._budget()), response.shown(layout)
        return Forecaster(self._error_of, target, lambda rows, epsilon: fit_forecast(method, shown, rows, epsilon))

    def _name_features(self, table: InputTable) -> None:
        self._name(table.named, [name for name in table.layout.columns if name != table.layout.target])

    def _keep(self, outcome: Outcome[Any], plan: Plan, budget: Budget, response: Response, layout: Layout) -> Self:
        from snugdp.mechanisms.selection.select import Selected

        self._layout = layout
        self._record(outcome, plan, budget)
        if response.classes is not None:
            self.classes_ = response.classes
        winner: Outcome[Any] = outcome
        if isinstance(outcome.value, Selected):
            self.best_proposal_, winner = dict(outcome.value.proposal), outcome.value.release
        self.certificate_ = winner.certificate
        fit: Fit | None = winner.value
        self._fit: Any = fit
        if fit is not None:
            shown = response.shown(layout)
            self.coef_names_ = shown.coefficients(np.zeros(len(layout.features))).names
            self._keep_coefficients(response, shown, fit)
            self.noise_scale_ = None if fit.noise is None else in_users_units(shown, fit.noise)
            self.details_ = dict(fit.released)
        return self

    def _keep_coefficients(self, response: Response, layout: Layout, fit: Fit) -> None:
        """Set ``coef_`` and ``intercept_`` in the user's units: one row for each model of classes."""
        linear = [layout.coefficients(theta) for theta in np.atleast_2d(fit.theta)]
        if response.classes is None:
            self.coef_: Any = linear[0].values
            self.intercept_: Any = linear[0].intercept
        else:
            self.coef_ = np.array([each.values for each in linear])
            self.intercept_ = np.array([each.intercept for each in linear])

    def _restore(self, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
        """The fit again, from a model file. ``names``: of the features."""
        response, bounds = self._checked()
        layout = bounds.layout(names)
        self._require_features(names, layout.columns)
        self._keep(outcome, plan, self._budget(), response, layout)
        models, width = len(getattr(self, "classes_", ())), len(layout.features)
        if self.released_ and np.shape(self._fit.theta) != ((width,) if models <= 2 else (models, width)):
            raise ValueError("a released model has as many coefficients as there are features")
