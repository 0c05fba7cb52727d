"""Logistic regression as scikit-learn knows it, with a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from snugdp.estimators.glm import GeneralisedModel
from snugdp.estimators.intervals import WithIntervals
from snugdp.estimators.methods.glm import GLM_INFERENCE, GLM_METHODS
from snugdp.estimators.methods.linear import Recipe
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.targets import ClassTarget, OpenClassTarget
from snugdp.numerics.rationals import Real
from snugdp.tables.losses.losses import Logistic


@dataclass(eq=False, repr=False)
class LogisticRegression(WithIntervals, ClassifierMixin, GeneralisedModel):  # type: ignore[misc]
    """Logistic regression with differential privacy, for two or more classes.

    Classes and bounds are public: give ``classes`` and ``x_norm``, or a ``schema`` with bounds for every column of a
    table and a ``Boolean`` or a ``Category`` as its target. What is left out, both or parts of the schema, is found in
    private: labels that many rows have are classes then, and shown, so that they must not be names or free text of
    persons. Rows whose label is missing or not one of the classes are left out; missing and invalid entries count as in
    ``LinearRegression``.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. Not covered: transformers before it that learn from the same rows (``StandardScaler``), scores
    on private rows, such as those of a grid search, and the error that is raised when X and y differ in length.

    Parameters
    ----------
    epsilon, delta : Real
        Privacy budget and failure probability of each fit.
    classes : sequence, optional
        All possible labels; public. Needed with ``x_norm``; otherwise they are found privately, up to 100 of them.
    method : {"auto", "objective", "output"}
        Objective perturbation, adapted to the data where that pays ("auto") or plain, or output perturbation, for two
        classes.
    multi_class : {"auto", "softmax", "ovr"}
        For more than two classes: one softmax model, or one model per class (one-versus-rest).
    schema : Schema, optional
        Public bounds and values of the columns of a table, instead of ``classes`` and ``x_norm``. What it leaves open
        is found privately.
    bounds, missing
        As in ``LinearRegression``.
    x_norm : Real, optional
        Public bound on the Euclidean norm of a row; longer rows are shortened to it.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    proposals : dict, optional
        Public settings of the method, such as {"ridge": 2.0}. With lists every combination is a candidate, and the best
        on ``validation`` is selected privately.
    validation : (X, y), optional
        Public rows and labels to select on.
    selection : dict, optional
        How to select; see ``Selection``.
    rows : int, optional
        A public guess of the number of rows.
    inference : bool, default=False
        As in ``LinearRegression``; for two classes that are listed.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    classes_ : ndarray
        The classes, in ascending order, as given or found.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the units of the data: one row for two classes, otherwise one for each class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    released_, bounds_, plan_, outcome_, cost_ and all others
        As in ``LinearRegression``.

    Examples
    --------
    >>> X = [[i % 10 / 10, i % 7 / 7] for i in range(20_000)]
    >>> y = ["yes" if a > 0.45 else "no" for a, b in X]
    >>> model = LogisticRegression(epsilon=2, delta=1e-6, classes=["no", "yes"], x_norm=1.5).fit(X, y)
    >>> model.predict([[0.9, 0.5], [0.0, 0.5]]).tolist()
    ['yes', 'no']
    >>> LogisticRegression(epsilon=1, delta=1e-6).fit(X, y).classes_.tolist()
    ['no', 'yes']
    """

    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    classes: Any = None
    multi_class: str = "auto"
    inference: bool = False
    _estimand = "log-odds"

    @row_by_row("decision")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The log-odds of the second class for every row; of more than two, those of each against the others.

        Rows are read as in the fit: clipped to their bounds, and missing is the middle.
        """
        return self._linear(X)

    @row_by_row("prediction")
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        linear = self._linear(X)
        return self._answer.predicted(linear)

    @row_by_row("probabilities")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of all classes, in the order of ``classes_``, for every row."""
        linear = self._linear(X)
        return self._answer.probabilities(linear)

    @row_by_row("log_probabilities")
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of the probabilities of all classes."""
        linear = self._linear(X)
        return self._answer.logarithms(linear)

    @property
    def _answer(self) -> ClassTarget:
        return cast(ClassTarget, super()._answer)

    def _recipes(self) -> Mapping[str, Recipe]:
        return GLM_INFERENCE if self._wants_intervals() else GLM_METHODS

    def _response(self) -> ClassTarget | OpenClassTarget:
        if self.multi_class not in ("auto", "ovr", "softmax"):
            raise ValueError('multi_class must be "auto", "ovr" (one model for each class) or "softmax"')
        return self._labels(Logistic(), together=self.multi_class != "ovr")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.target_tags.required = self.schema is None
        return tags
