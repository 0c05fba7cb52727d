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
from snugdp.estimators.targets import LabelBounds, Labels
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.tables.losses.losses import Logistic
from snugdp.tables.schema.schema import Schema


class LogisticRegression(ClassifierMixin, GeneralisedModel):  # type: ignore[misc]
    """Private logistic regression for two or more classes.

    What is needed is public: ``classes``, all labels there can be, and ``x_norm``, a bound on the Euclidean norm of a
    row (longer rows are shortened); or a ``schema`` with bounds for every column of a table and a Boolean or a Category
    as its target. A label that is none of the classes counts as the first of ``classes_``; an entry that is missing or
    no number counts as 0, or as the middle of its bounds.

    ``method``: "auto", "objective" or "output" (see ``snugdp.estimators.methods.glm``). ``proposals``: public
    proposals for the method, such as {"ridge": 2.0}. Where a list is given every combination is tried in private and
    the best on ``validation``, public (X, y), is kept; ``selection`` says how (see ``snugdp.Selection``).
    ``multi_class``: for more than two classes one model, "softmax", or one for each class against the others, "ovr".
    ``rows``: a public guess of the number of rows.
    ``ledger``: what every fit is charged to: a ledger, or the path or URL of one; shared and not copied by ``clone``
    and by searches. **Without one nothing is being summed up**: each fit has a budget of its own, ``outcome_.cost``
    carries what it cost, and adding that up is left to you. A pickle keeps where a ledger is, without the password of a
    URL (PGPASSWORD or a .pgpass file supply it there); a ``MemoryLedger`` stays behind.
    ``noise``: a ``Simulation`` for rehearsals, which begins anew at every fit; ``random_state=1`` is short for
    ``Simulation(1)``: such fits are NOT PRIVATE, cannot be charged, and warn. ``progress``: a bar while files are read.

    After ``fit``: ``classes_``, in ascending order; ``released_``, and if it is true ``coef_`` and ``intercept_`` (one
    row for two classes, otherwise one for each), ``coef_names_``, ``noise_scale_`` (the deviation of the noise in every
    coefficient, if known) and ``details_`` (other released numbers); always ``plan_``, ``cost_``, ``guarantee_``,
    ``outcome_``, ``receipt_``, ``certificate_``; and ``best_proposal_`` of several. Nothing else about the rows is
    kept, not even their number.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; the theorem is
    ``guarantee_.theorem``. Not covered: transformers before it that learn from the same rows (``StandardScaler``), and
    scores on private rows, such as those of a grid search. That X and y differ in length is said aloud.

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

    def _response(self) -> Labels:
        if self.multi_class not in ("auto", "ovr", "softmax"):
            raise ValueError('multi_class must be "auto", "ovr" (one model for each class) or "softmax"')
        bound = 1 if self.schema is None else None
        given = LabelBounds(self.schema, self.x_norm, bound, self.fit_intercept, self.classes)
        return Labels(Logistic(), given, together=self.multi_class != "ovr")

    def _keep(self, *given: Any) -> Any:
        self.classes_ = self._response().classes
        return super()._keep(*given)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise on the few rows of scikit-learn's checks
        tags.target_tags.required = self.schema is None
        return tags
