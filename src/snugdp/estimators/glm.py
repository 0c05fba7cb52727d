"""Generalised linear models with a budget: any loss whose slope is bounded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import LedgerLike
from snugdp.estimators.inputs import Bounds, Table
from snugdp.estimators.methods.glm import GLM_METHODS
from snugdp.estimators.methods.linear import Recipe
from snugdp.estimators.model import LinearModel
from snugdp.estimators.targets import Bare, Counts, LabelBounds, Labels, Numbers, Response
from snugdp.mechanisms.linear.base import Fit
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import ErrorOf
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, Loss, PseudoHuber, SoftHinge, TamedPoisson
from snugdp.tables.schema.schema import Layout, Schema


class GeneralisedModel(LinearModel):
    """What models with a loss have in common. Guarantee: that of ``LinearModel``."""

    _error_of, _without_test = ErrorOf.LINEAR, "auto"

    @abstractmethod
    def _response(self) -> Response:
        """What is predicted, checked."""

    def _recipes(self) -> Mapping[str, Recipe]:
        return GLM_METHODS

    def _bounds(self) -> Bounds:
        self._check_progress()
        return self._response().bounds(self.schema, self.x_norm, self.fit_intercept)

    def _read(self, X: Any, y: Any, bounds: Bounds) -> Table:
        return self._response().read(X, y, bounds)

    def _as_read(self, layout: Layout) -> dict[str, Any]:
        response = self._response()
        classes = {"classes": response.classes} if isinstance(response, Labels) else {}
        return {**super()._as_read(layout), **classes}

    def _given(self) -> Mapping[str, Any]:
        response = self._response()
        return {"losses": response.losses, "softmax": getattr(response, "softmax", None)}

    def _target(self, y: Any, layout: Layout) -> NDArray[np.float64]:
        return self._response().scaled(y, layout)

    def _goodness(self) -> Callable[[NDArray[np.float64], NDArray[np.float64]], float]:
        return self._response().value

    def _shown(self, layout: Layout) -> Layout:
        return layout if isinstance(self._response(), Numbers) else Bare(layout)

    def _keep_coefficients(self, layout: Layout, fit: Fit) -> None:
        response = self._response()
        linear = [layout.coefficients(theta) for theta in np.atleast_2d(fit.theta)]
        if isinstance(response, Labels):
            self.coef_: Any = np.array([each.values for each in linear])
            self.intercept_: Any = np.array([each.intercept for each in linear])
        else:
            self.coef_, self.intercept_ = linear[0].values, linear[0].intercept


class GLM(GeneralisedModel):
    """A private linear model with any of the losses of ``snugdp.tables.losses.losses``.

    ``loss`` says what the target is. ``Logistic()``, ``SoftHinge(h)``: labels, with ``classes``, all labels there can
    be. ``TamedPoisson(most, rate)``: counts from 0 to ``most``. ``PseudoHuber(c)``, ``LogCosh(c)``, ``Huber(c)``:
    numbers, with ``y_bound``; c is in units of a target scaled to [-1, 1]. All else, and what a fit leaves behind, is
    as in ``LogisticRegression``.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; the theorem is
    ``guarantee_.theorem``. Not covered: transformers before it that learn from the same rows, and scores on private
    rows.

    >>> from snugdp.tables.losses.losses import SoftHinge
    >>> X = [[i % 10 / 10, i % 7 / 7] for i in range(20_000)]
    >>> y = ["far" if a > 0.45 else "near" for a, b in X]
    >>> model = GLM(SoftHinge(0.5), epsilon=2, classes=["near", "far"], x_norm=1.5).fit(X, y)
    >>> model.predict([[0.9, 0.5], [0.0, 0.5]]).tolist()
    ['far', 'near']
    """

    def __init__(
        self,
        loss: Loss | None = None,
        epsilon: Real = 1.0,
        delta: Real = 1e-6,
        *,
        classes: Any = None,
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
        self.loss = loss
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
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

    def predict(self, X: Any) -> NDArray[Any]:
        """The class, rate or number of every row. Rows are read as in the fit."""
        linear, response = self._linear(X), self._response()
        if isinstance(response, Labels):
            return response.predicted(linear)
        if isinstance(response, Counts):
            return response.rates(linear)
        middle, half = self._layout.target_units
        return np.asarray(middle + half * linear)

    @available_if(lambda model: getattr(model.loss, "classifies", False))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The linear function of every row, in the units of the loss; one for each of more than two classes."""
        return self._linear(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """On public rows: accuracy of labels, explained deviance of counts, R squared of numbers."""
        response, guesses = self._response(), self.predict(X)
        measure: Any = {Labels: accuracy_score, Counts: _deviance}.get(type(response), r2_score)
        return float(measure(y, guesses, sample_weight=sample_weight))

    def _response(self) -> Response:
        loss = self.loss
        if isinstance(loss, Logistic | SoftHinge):
            self._leave_out("y_bound", "labels have none")
            bound = 1 if self.schema is None else None
            given = LabelBounds(self.schema, self.x_norm, bound, self.fit_intercept, self.classes)
            return Labels(loss, given, together=isinstance(loss, Logistic))
        if not isinstance(loss, TamedPoisson | PseudoHuber | LogCosh | Huber):
            raise TypeError(
                "loss must be one of snugdp.tables.losses.losses: Logistic(), SoftHinge(h), TamedPoisson(most, rate), "
                "PseudoHuber(c), LogCosh(c) or Huber(c)"
            )
        self._leave_out("classes", "they are for losses of labels")
        if isinstance(loss, TamedPoisson):
            self._leave_out("y_bound", "the loss has the largest count")
            return Counts(loss)
        return Numbers(loss, self.y_bound)

    def _leave_out(self, name: str, why: str) -> None:
        if getattr(self, name) is not None:
            raise ValueError(f"leave out {name}: {why}")

    def _keep(self, *given: Any) -> Any:
        response = self._response()
        if isinstance(response, Labels):
            self.classes_ = response.classes
        return super()._keep(*given)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if getattr(self.loss, "classifies", False):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(poor_score=True)
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags(poor_score=True)
        tags.target_tags.required = self.schema is None
        tags.target_tags.positive_only = isinstance(self.loss, TamedPoisson)
        return tags


def _deviance(y: Any, guesses: Any, sample_weight: Any = None) -> float:
    return float(d2_tweedie_score(y, guesses, sample_weight=sample_weight, power=1))
