"""Logistic regression as scikit-learn knows it, with a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike
from snugdp.estimators.glm import GeneralisedModel
from snugdp.estimators.targets import ClassTarget, LabelBounds
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.tables.losses.losses import Logistic
from snugdp.tables.schema.schema import Schema


class LogisticRegression(ClassifierMixin, GeneralisedModel):  # type: ignore[misc]
    """Logistic regression with differential privacy, for two or more classes.

    Public knowledge is required: give ``classes`` and ``x_norm``, or a ``schema`` with bounds for every column of a
    table and a ``Boolean`` or a ``Category`` as its target. A label that is not one of the classes counts as the first
    of ``classes_``; missing and invalid entries count as 0, or as the middle of their bounds.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. Not covered: transformers before it that learn from the same rows (``StandardScaler``), scores
    on private rows, such as those of a grid search, and the error that is raised when X and y differ in length.

    Parameters
    ----------
    epsilon : Real, default=1.0
        Privacy budget of each fit.
    delta : Real, default=1e-6
        Failure probability of each fit.
    classes : sequence, optional
        All possible labels; public. Required without a ``schema``.
    method : {"auto", "objective", "output"}
        Objective perturbation, adapted to the data where that pays ("auto") or plain, or output perturbation, for two
        classes.
    multi_class : {"auto", "softmax", "ovr"}
        For more than two classes: one softmax model, or one model per class (one-versus-rest).
    schema : Schema, optional
        Public bounds and values of the columns of a table, instead of ``classes`` and ``x_norm``.
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
    ledger : Ledger, MemoryLedger, str or path, optional
        The ledger that every fit is charged to, or its path or URL; details in ``LinearRegression``. **Without a
        ledger, fits are not counted against any budget.**
    noise, random_state, progress
        As in ``LinearRegression``.
    neighbours : {"add_remove"}, default="add_remove"
        The only relation with a proof.

    Attributes
    ----------
    released_ : bool
        Whether the fit was released. After a refusal the attributes that describe the model are missing.
    classes_ : ndarray
        The classes, in ascending order.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the units of the data: one row for two classes, otherwise one for each class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    coef_names_ : tuple of str
        What each coefficient belongs to.
    noise_scale_ : ndarray or None
        Standard deviation of the noise in each coefficient, if it is known.
    details_ : dict
        Other released numbers.
    best_proposal_ : dict
        The winning proposal, if several were tried.
    certificate_ : object or None
        What a private test released, if the method has one that does.
    plan_ : Plan
        The plan that was followed.
    outcome_ : Outcome
        The outcome; ``outcome_.cost`` is what was spent.
    cost_ : Cost
        What the fit cost, whether it was released or refused.
    receipt_ : Receipt or None
        The ledger's receipt; None after a rehearsal.
    guarantee_ : object or None
        The guarantee with its ``epsilon``, ``delta``, ``neighbours`` and ``proof``; None after a rehearsal.
    n_features_in_, feature_names_in_
        Number and names of the features, as in scikit-learn.

    Examples
    --------
    >>> X = [[i % 10 / 10, i % 7 / 7] for i in range(20_000)]
    >>> y = ["yes" if a > 0.45 else "no" for a, b in X]
    >>> model = LogisticRegression(epsilon=2, delta=1e-6, classes=["no", "yes"], x_norm=1.5).fit(X, y)
    >>> model.predict([[0.9, 0.5], [0.0, 0.5]]).tolist()
    ['yes', 'no']
    """

    def __init__(
        self,
        epsilon: Real = 1.0,
        delta: Real = 1e-6,
        *,
        classes: Any = None,
        method: str = "auto",
        multi_class: str = "auto",
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
        self.classes = classes
        self.method = method
        self.multi_class = multi_class
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

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The log-odds of the second class for every row; of more than two, those of each against the others.

        Rows are read as in the fit: clipped to their bounds, and missing is the middle.
        """
        return self._linear(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        linear = self._linear(X)
        return self._response().predicted(linear)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of all classes, in the order of ``classes_``, for every row."""
        linear = self._linear(X)
        return self._response().probabilities(linear)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of the probabilities of all classes."""
        linear = self._linear(X)
        return self._response().logarithms(linear)

    def _response(self) -> ClassTarget:
        if self.multi_class not in ("auto", "ovr", "softmax"):
            raise ValueError('multi_class must be "auto", "ovr" (one model for each class) or "softmax"')
        bound = 1 if self.schema is None else None
        given = LabelBounds(self.schema, self.x_norm, bound, self.fit_intercept, self.classes)
        return ClassTarget(Logistic(), given, together=self.multi_class != "ovr")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.target_tags.required = self.schema is None
        return tags
