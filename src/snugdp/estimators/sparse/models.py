"""Models on few of very many columns, with a budget: the columns are chosen privately, then the model is fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from snugdp.core.guarantee import Budget, Cost
from snugdp.estimators.inputs import one_column
from snugdp.estimators.labels import as_numbers, declared, labels_of
from snugdp.estimators.methods.linear import METHODS, Recipe
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.sparse.base import SparseModel
from snugdp.estimators.sparse.tables import BoxBounds, ClassBoxBounds, require_truth, targets
from snugdp.mechanisms.linear.base import Design, Fit, Method
from snugdp.mechanisms.objective.adaptive import Adaptive, AdaptiveGLM
from snugdp.mechanisms.objective.glm import GLMObjective
from snugdp.mechanisms.output.glm import OutputGLM
from snugdp.tables.cells.columns import label_texts
from snugdp.tables.layouts.boxes import Box
from snugdp.tables.losses.losses import Logistic
from snugdp.tables.schema.kinds import Category
from snugdp.tables.schema.scaling import classes_in, codes
from snugdp.tables.schema.schema import Schema

_SELECTED = replace(METHODS["adaptive"], fixed={"least_squares": False})  # how many columns are left may be found out
_LINES: dict[str, Recipe] = {**METHODS, "auto": _SELECTED, "adaptive": _SELECTED}


@dataclass(kw_only=True, eq=False, repr=False)
class SparseLinearRegression(RegressorMixin, SparseModel):  # type: ignore[misc]
    """Linear regression with differential privacy on a few of very many columns, which are selected privately.

    Bounds are public: give ``y_bound`` and, unless entries lie in [-1, 1], ``x_bound``; or a ``schema``. Without any of
    them all bounds are found privately. X may be a scipy sparse matrix, which is never made dense as a whole.
    Rows without a target are left out; missing and invalid entries count as 0, or as a schema says (by default as the
    middle of their bounds).

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. Not covered: transformers before it that learn from the same rows (a vocabulary, idf weights,
    ``StandardScaler``), scores on private rows, and the error that is raised when X and y differ in length.

    Parameters
    ----------
    n_features_to_select : int, default=10
        How many columns to select.
    epsilon, delta : Real
        Privacy budget and failure probability of each fit.
    selection : {"gumbel", "gaussian", "votes"}
        "gumbel" selects the columns with the largest noisy |sum of x_j (y - mean)|; "gaussian" does so with less noise
        if whole rows are short, such as texts, and needs ``row_norm``; "votes" lets blocks of rows vote, and refuses
        unless the winners lead clearly.
    selection_share : Real, optional
        The share of the budget that pays for the selection: of mu squared, or of epsilon and delta for votes. 0.2 by
        default.
    blocks : int, default=100
        For "votes": the number of blocks.
    method : str, default="auto"
        How the line is fitted, as in ``LinearRegression``.
    schema : Schema, optional
        Public bounds and values of the columns of a table, instead of ``x_bound`` and ``y_bound``. What it leaves open
        is found privately.
    bounds : FoundBounds or "private", default="private"
        As in ``LinearRegression``.
    x_bound : Real or sequence, default=1
        Public bound on the entries, b for [-b, b], or one bound for each column. Entries outside are clipped.
    x_norm : Real, optional
        Rows of selected entries, each divided by its bound, are shortened to this norm; by default 0.8 times the square
        root of the number of selected columns.
    row_norm : Real, optional
        Whole rows, each entry divided by its bound, are shortened to this norm before columns are selected.
    y_bound : Real or (Real, Real), optional
        Public bounds on the target: b for [-b, b], or (low, high). Targets outside are clipped.
    proposals : dict, optional
        Public settings of the method, as in ``LinearRegression``, without lists.
    fit_intercept, rows, ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    support_ : ndarray of int
        Indices of the selected columns, ascending.
    ranking_ : ndarray of int
        The same indices, in the order in which they were selected.
    selected_names_ : ndarray of str
        Names of the selected columns.
    coef_ : ndarray of shape (n_features,)
        Coefficients, in the units of the data; 0 for columns that were not selected.
    intercept_ : float
        The intercept.
    released_, plan_, outcome_, cost_ and all others
        As in ``LinearRegression``.

    Examples
    --------
    >>> X = [[i % 10 / 10, i % 7 / 7, i % 3 / 3] for i in range(20_000)]
    >>> y = [2 * a - 1 for a, b, c in X]
    >>> SparseLinearRegression(1, epsilon=2, y_bound=2).fit(X, y).support_.tolist()
    [0]
    """

    y_bound: Any = None

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> SparseLinearRegression:
        """Pay, choose columns, fit on them: release or refuse.

        X: rows of an array, a scipy sparse matrix, or a pandas, polars or pyarrow table, with y; or, with a schema, a
        table or the path of one that holds its target. ``groups``: as in ``LinearRegression.fit``. What is public is
        checked before anything is charged.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        named = isinstance(y, str) and self._is_open
        fitted: SparseLinearRegression = self._fitted(X, None if named else targets(y), y, groups)
        return fitted

    @property
    def _nothing_given(self) -> bool:
        return self.y_bound is None

    @row_by_row("prediction")
    def predict(self, X: Any) -> NDArray[np.float64]:
        """The target of every row. Rows are read as in the fit: clipped to their bounds, shortened to the norm."""
        scaled = self._linear(X)
        middle, half = self._box.target_units
        return np.asarray(middle + half * scaled)

    def _bounds(self) -> BoxBounds:
        return BoxBounds(self._known, self.y_bound, self.fit_intercept, self.x_bound)

    def _method(self, design: Design, budget: Budget, first: Cost) -> Method:
        self._recipe(_LINES)
        if self.method == "auto" and design.max_rows == 1 and first.mu_squared and not first.epsilon:
            return Adaptive(design, budget, first.mu_squared, least_squares=False)
        return self._beside(_LINES, design, budget, first)

    def _units(self, layout: Box, fit: Fit) -> tuple[Any, Any]:
        linear = layout.coefficients(fit.theta)
        return self._dense(linear.values), linear.intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        return tags


_LOSSES = (Logistic(),)
LABEL_METHODS: dict[str, Recipe] = {
    "auto": Recipe(AdaptiveGLM, fixed={"losses": _LOSSES}),
    "objective": Recipe(GLMObjective, ("ridge",), {"losses": _LOSSES, "composable": True}, rows=False),
    "output": Recipe(OutputGLM, ("ridge", "shape"), {"loss": Logistic()}, rows=False, several=True),
}


@dataclass(kw_only=True, eq=False, repr=False)
class SparseLogisticRegression(ClassifierMixin, SparseModel):  # type: ignore[misc]
    """Logistic regression with differential privacy on a few of very many columns, which are selected privately.

    Give ``classes``, or a ``schema`` whose target is a ``Boolean`` or a ``Category`` of two values. Without either, and
    without ``x_bound``, the two most frequent labels and all bounds are found privately, and shown. All else is as in
    ``SparseLinearRegression``.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. Not covered: transformers before it that learn from the same rows (a vocabulary, idf weights),
    scores on private rows, and the error that is raised when X and y differ in length.

    Parameters
    ----------
    n_features_to_select, epsilon, delta, ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``SparseLinearRegression``. **Without a ledger, fits are not counted against any budget.**
    classes : sequence, optional
        The two labels; public. Rows with any other label are left out.
    method : {"auto", "objective", "output"}
        As in ``LogisticRegression``; "output" tests the curvature on the selected columns.
    selection, selection_share, blocks, schema, bounds, x_bound, x_norm, row_norm, fit_intercept, proposals, rows
        As in ``SparseLinearRegression``.

    Attributes
    ----------
    classes_ : ndarray
        The two classes, in ascending order.
    coef_ : ndarray of shape (1, n_features)
        Coefficients, in the units of the data; 0 for columns that were not selected.
    intercept_ : ndarray of shape (1,)
        The intercept.
    support_, ranking_, selected_names_ and all others
        As in ``SparseLinearRegression``.

    Examples
    --------
    >>> X = [[i % 10 / 10, i % 7 / 7, i % 3 / 3] for i in range(20_000)]
    >>> y = ["yes" if a > 0.45 else "no" for a, b, c in X]
    >>> model = SparseLogisticRegression(1, epsilon=2, classes=["no", "yes"]).fit(X, y)
    >>> model.support_.tolist(), model.predict([[0.0, 1, 1], [0.9, 0, 0]]).tolist()
    ([0], ['no', 'yes'])
    """

    classes: Any = None

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> SparseLogisticRegression:
        """Pay, choose columns, fit on them: release or refuse.

        X and ``groups`` as in ``SparseLinearRegression.fit``; y: labels. What is public is checked before anything is
        charged.

        Guarantee: that of the class; ``guarantee_`` states it.
        """
        fitted: SparseLogisticRegression
        if self._is_open and self._nothing_given:
            labels = None if y is None or isinstance(y, str) else label_texts(one_column(y, "label"))
            fitted = self._fitted(X, labels, y, groups)
            fitted._take_classes()
            return fitted
        classes = self._declared()
        fitted = self._fitted(X, None if y is None else self._signs(y, classes), y, groups, classes=classes)
        fitted.classes_ = classes
        return fitted

    def _signs(self, y: Any, classes: NDArray[Any]) -> Any:
        """Labels as the target is read: as they are where it lists them, or as numbers."""
        known = self._known
        if known is not None and isinstance(known.columns[known.target], Category):
            return label_texts(one_column(y, "label"))
        places = labels_of(y, classes.tolist())
        return codes(places, 2) if known is None else as_numbers(places)

    _target_kind = Category()

    @property
    def _nothing_given(self) -> bool:
        schema = self.schema
        open_target = isinstance(schema, Schema) and schema.target is not None and schema.columns[schema.target].is_open
        return self.classes is None and (schema is None or open_target)

    def _take_classes(self) -> None:
        """The classes that were found, if there are some."""
        if self.released_:
            self.classes_ = declared(classes_in(self.bounds_.declared))

    @row_by_row("decision")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The log-odds of the second class, for every row. Rows are read as in the fit."""
        return self._linear(X)

    @row_by_row("probabilities")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of both classes, for every row."""
        odds = self._linear(X)
        second = 0.5 * (1.0 + np.tanh(0.5 * odds))
        return np.stack([1.0 - second, second], axis=1)

    @row_by_row("log_probabilities")
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the probabilities of both classes."""
        odds = self._linear(X)
        return -np.stack([np.logaddexp(0.0, odds), np.logaddexp(0.0, -odds)], axis=1)

    @row_by_row("prediction")
    def predict(self, X: Any) -> NDArray[Any]:
        """The more probable class of every row."""
        second = (self._linear(X) > 0).astype(np.int64)
        chosen: NDArray[Any] = self.classes_[second]
        return chosen

    def _restore(self, *given: Any) -> None:
        if self._is_open and self._nothing_given:
            super()._restore(*given)
            self._take_classes()
            return
        self.classes_ = self._declared()
        super()._restore(*given)

    def _declared(self) -> NDArray[Any]:
        require_truth(self._known)
        if self._known is not None and self.classes is None:
            return declared(classes_in(self._known))
        classes = declared(self.classes, "Or leave out x_bound as well, to have classes and bounds found privately")
        if len(classes) != 2:
            raise ValueError("classes must be two labels: a sparse logistic regression tells two classes apart")
        return classes

    def _bounds(self) -> BoxBounds:
        return ClassBoxBounds(self._known, 1 if self._known is None else None, self.fit_intercept, self.x_bound)

    def _method(self, design: Design, budget: Budget, first: Cost) -> Method:
        self._recipe(LABEL_METHODS)
        if self.method == "auto" and design.max_rows == 1 and first.mu_squared and not first.epsilon:
            return AdaptiveGLM(design, budget, losses=_LOSSES, beside=first.mu_squared)
        return self._beside(LABEL_METHODS, design, budget, first)

    def _units(self, layout: Box, fit: Fit) -> tuple[Any, Any]:
        linear, (middle, half) = layout.coefficients(fit.theta), layout.target_units
        return self._dense(linear.values / half)[None], np.array([(linear.intercept - middle) / half])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        return tags
