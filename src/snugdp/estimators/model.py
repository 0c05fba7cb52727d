"""What all private linear models have in common: bounds, budget, plan, fit, and what is kept of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.estimators.base import (
    Promise,
    in_users_units,
    refused,
    require_rows,
    whole_rows,
    with_fits,
)
from snugdp.estimators.grids import Score, Searched, combinations, options_of, squares
from snugdp.estimators.inputs import FitBounds, InputTable, read, rows_of, target_of
from snugdp.estimators.methods.linear import Options, Recipe, recipe_for
from snugdp.estimators.private import PrivateEstimator
from snugdp.mechanisms.linear.base import Design, Fit, Method
from snugdp.numerics.threads import one_blas_thread
from snugdp.propose.forecast import ErrorOf
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.arrays import ArraySource
from snugdp.tables.passes.base import row_map
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Layout, Schema


class LinearModel(PrivateEstimator):
    """A scikit-learn estimator of a linear function, with a budget. What its target is, subclasses say.

    Guarantee: each fit is (epsilon, delta)-DP, whether it is released or refused: that of its method.
    """

    _error_of, _without_test = ErrorOf.PREDICTION, "adassp"

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
        return self._told(self._make(layout, self._budget()), layout, guess)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Pay, test, release or refuse.

        X: rows of an array or list, or a pandas, polars or pyarrow table, with y; or, with a schema, a table or the
        path of one that holds its target. What is public is checked before anything is charged.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        budget, bounds, guess = self._budget(), self._bounds(), whole_rows(self.rows)
        recipe_for(self.method, self.proposals, self.rows, self.validation, self._recipes())
        context = ReleaseContext(self._fresh_noise(), self.ledger, budget)
        table = self._read(X, y, bounds)
        if not context.noise.private:
            require_rows(table.data)
        method = self._make(table.layout, budget)
        plan = self._told(method, table.layout, guess)
        progress = False if isinstance(method, Searched) else self.progress  # a bar for every run would count them
        rows = Rows(table.data, table.layout, progress=progress)
        with one_blas_thread():
            if not isinstance(table.data, ArraySource):
                rows.moments()  # a table that cannot be read is found before the charge
            self._forget()
            self._name_features(table)
            asked = context.with_question(
                lambda: self._question(table.layout.features, y, **self._as_read(table.layout))
            )
            outcome: Outcome[Any] = method.fit(Secret(rows), asked)
        return self._keep(outcome, plan, budget, table.layout)

    @abstractmethod
    def _recipes(self) -> Mapping[str, Recipe]:
        """The ways to fit, by name."""

    @abstractmethod
    def _bounds(self) -> FitBounds:
        """The public bounds, checked."""

    @abstractmethod
    def _keep_coefficients(self, layout: Layout, fit: Fit) -> None:
        """Set ``coef_`` and ``intercept_`` in the user's units."""

    def _read(self, X: Any, y: Any, bounds: FitBounds) -> InputTable:
        return read(X, y, bounds)

    def _as_read(self, layout: Layout) -> dict[str, Any]:
        """Public parameters that may be given in several forms, in one of them."""
        return {"validation": self._scaled_validation(layout)}

    def _given(self) -> Mapping[str, Any]:
        """What every method gets besides proposals, such as a loss."""
        return {}

    def _goodness(self) -> Callable[[NDArray[np.float64], NDArray[np.float64]], float]:
        """How good a linear function is for public targets; the larger the better."""
        return squares

    def _shown(self, layout: Layout) -> Layout:
        """The layout in whose units coefficients are shown."""
        return layout

    def _target(self, y: Any, layout: Layout) -> NDArray[np.float64]:
        """Public targets as they are scaled in a fit."""
        middle, half = layout.target_units
        return np.clip(np.nan_to_num((target_of(y) - middle) / half), -1.0, 1.0)

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

    def _make(self, layout: Layout, budget: Budget) -> Method:
        recipe, proposals = recipe_for(self.method, self.proposals, self.rows, self.validation, self._recipes())
        validation = self._scaled_validation(layout)
        options = Options(proposals, whole_rows(self.rows), validation, self._given())
        design, how = Design(row_map(layout)), options_of(self.selection)
        listed = recipe.listed(proposals, validation)
        if not listed:
            return recipe.make(design, budget, options)
        assert validation is not None

        def one(proposal: Mapping[str, Any], budget: Budget) -> Method:
            return recipe.make(design, budget, replace(options, proposals=proposal))

        grid, score = combinations(proposals, listed), Score(*validation, self._goodness())
        return Searched(one, grid, budget, score=score, options=how, progress=self.progress)

    def _scaled_validation(self, layout: Layout) -> tuple[Any, Any] | None:
        if self.validation is None:
            return None
        if not isinstance(self.validation, tuple | list) or len(self.validation) != 2:
            raise TypeError("validation must be a pair (X, y) of public rows and targets")
        X, y = self.validation
        rows = np.concatenate([np.empty((0, len(layout.features))), *rows_of(X, layout)])
        return rows, self._target(y, layout)

    def _told(self, method: Method, layout: Layout, rows: int | None) -> Plan:
        """The plan in the user's units."""
        return with_fits(method.plan(), method, self._shown(layout), rows, self._error_of)

    def _name_features(self, table: InputTable) -> None:
        self._name(table.named, [name for name in table.layout.columns if name != table.layout.target])

    def _keep(self, outcome: Outcome[Any], plan: Plan, budget: Budget, layout: Layout) -> Self:
        from snugdp.mechanisms.selection.select import Selected

        self._layout = layout
        self._record(outcome, plan, Promise(budget, plan.theorem))
        winner: Outcome[Any] = outcome
        if isinstance(outcome.value, Selected):
            self.best_proposal_, winner = dict(outcome.value.proposal), outcome.value.release
        self.certificate_ = winner.certificate
        fit: Fit | None = winner.value
        self._fit: Any = fit
        if fit is not None:
            shown = self._shown(layout)
            self.coef_names_ = shown.coefficients(np.zeros(len(layout.features))).names
            self._keep_coefficients(shown, fit)
            self.noise_scale_ = None if fit.noise is None else in_users_units(shown, fit.noise)
            self.details_ = dict(fit.released)
        return self

    def _restore(self, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
        """The fit again, from a model file. ``names``: of the features."""
        bounds = self._bounds()
        layout = bounds.array_schema(names) if bounds.schema is None else bounds.layout
        self._require_features(names, layout.columns)
        self._keep(outcome, plan, self._budget(), layout)
        ways, width = len(getattr(self, "classes_", ())), len(layout.features)
        if self.released_ and np.shape(self._fit.theta) != ((width,) if ways <= 2 else (ways, width)):
            raise ValueError("a released model has as many coefficients as there are features")
