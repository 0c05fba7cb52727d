"""Generalised linear models with a budget: any loss whose slope is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from snugdp.estimators.forecasts.usual import Spread, TargetKind, Usual, of_scores
from snugdp.estimators.methods.glm import GLM_METHODS
from snugdp.estimators.methods.linear import Recipe
from snugdp.estimators.model import LinearModel
from snugdp.estimators.on_cluster import row_by_row
from snugdp.estimators.targets import ClassTarget, CountTarget, LabelBounds, OpenClassTarget, RealTarget, Response
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import ErrorOf
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, Loss, PseudoHuber, SoftHinge, TamedPoisson
from snugdp.tables.schema.schema import Layout, Schema


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralisedModel(LinearModel):
    """What models with a loss have in common. Guarantee: that of ``LinearModel``."""

    _error_of, _without_test = ErrorOf.LINEAR, "auto"

    def _recipes(self) -> Mapping[str, Recipe]:
        return GLM_METHODS

    def _labels(self, loss: Logistic | SoftHinge, *, together: bool) -> ClassTarget | OpenClassTarget:
        """Labels of public classes, or of classes that are found privately or were found before."""
        bound = 1 if self.schema is None else None
        norm = 1 if self.schema is None and self._is_open else self.x_norm  # found privately
        if self.classes is None and self._is_open and (self.schema is None or self._target_is_open):
            known = self._found_before
            return cast(ClassTarget, OpenClassTarget(loss, together).settled(None if known is None else known.declared))
        given = LabelBounds(self._declared, bound, self.fit_intercept, norm, self.classes)
        return ClassTarget(loss, given, together)

    def _usual(self, layout: Layout | None, spread: Spread | None = None) -> Usual:
        """As on real tables, on which the defaults were tried."""
        even, named = super()._usual(layout, spread), layout is None or isinstance(layout, Schema)
        if self.method != "auto" or not named or self._curves is not None or getattr(self, "has_intervals", False):
            return even
        kind = _kind_of(self._response())
        return even if kind is None else of_scores(kind, found=layout is None)

    @property
    def _target_is_open(self) -> bool:
        """Whether a schema leaves it to a fit to find out about its target."""
        schema = self._declared
        return schema is not None and schema.target is not None and schema.columns[schema.target].is_open


def _kind_of(response: Response) -> TargetKind | None:
    """Of which kind a target is, where it is known how much noise there usually is."""
    if response.counts:
        return "counts"
    if not isinstance(response, ClassTarget | OpenClassTarget) or not isinstance(response.loss, Logistic):
        return None
    if response.classes is None or len(response.classes) == 2:
        return "labels"
    return "classes" if response.together else None


@dataclass(eq=False, repr=False)
class GLM(GeneralisedModel):
    """A linear model with differential privacy, for any loss in ``snugdp.tables.losses.losses``.

    The loss says what the target is:

    - ``Logistic()``, ``SoftHinge(h)``: labels; give ``classes``, or have them found as in ``LogisticRegression``.
    - ``TamedPoisson(most, rate)``: counts from 0 to ``most``.
    - ``PseudoHuber(c)``, ``LogCosh(c)``, ``Huber(c)``: numbers. c is relative to a target scaled to [-1, 1] by
      ``y_bound``, or by the bounds that were found.

    Rows without a target, or whose label is none of the classes, are left out.

    Guarantee: each fit is (epsilon, delta)-DP under add/remove, whether it is released or refused; its theorem is in
    ``guarantee_``. Not covered: transformers before it that learn from the same rows, scores on private rows, and
    the error that is raised when X and y differ in length.

    Parameters
    ----------
    loss : Loss
        One of the losses above.
    epsilon, delta : Real
        Privacy budget and failure probability of each fit.
    classes : sequence, optional
        For labels: all possible labels; public.
    y_bound : Real or (Real, Real), optional
        For numbers: public bounds on the target, as in ``LinearRegression``.
    method, schema, bounds, missing, x_norm, fit_intercept, proposals, validation, selection, rows
        As in ``LogisticRegression``.
    ledger, noise, random_state, progress, neighbours, person, max_rows
        As in ``LinearRegression``. **Without a ledger, fits are not counted against any budget.**

    Attributes
    ----------
    classes_ : ndarray
        For labels: the classes, in ascending order.
    coef_, intercept_
        Coefficients and intercept, as in ``LogisticRegression`` for labels and as in ``LinearRegression`` otherwise.
    released_, bounds_, plan_, outcome_, cost_ and all others
        As in ``LinearRegression``.

    Examples
    --------
    >>> from snugdp.tables.losses.losses import SoftHinge
    >>> X = [[i % 10 / 10, i % 7 / 7] for i in range(20_000)]
    >>> y = ["far" if a > 0.45 else "near" for a, b in X]
    >>> model = GLM(SoftHinge(0.5), epsilon=2, classes=["near", "far"], x_norm=1.5).fit(X, y)
    >>> model.predict([[0.9, 0.5], [0.0, 0.5]]).tolist()
    ['far', 'near']
    """

    loss: Loss | None = None
    epsilon: Real = 1.0
    delta: Real = 1e-6
    _: KW_ONLY
    classes: Any = None
    y_bound: Real | tuple[Real, Real] | None = None

    @row_by_row("prediction")
    def predict(self, X: Any) -> NDArray[Any]:
        """The class, rate or number of every row. Rows are read as in the fit."""
        linear, response = self._linear(X), self._answer
        if isinstance(response, ClassTarget):
            return response.predicted(linear)
        if isinstance(response, CountTarget):
            return response.rates(linear)
        middle, half = self._layout.target_units
        return np.asarray(middle + half * linear)

    @available_if(lambda model: getattr(model.loss, "classifies", False))  # type: ignore[untyped-decorator]
    @row_by_row("decision")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The linear function of every row, in the units of the loss; one for each of more than two classes."""
        return self._linear(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """On public rows: accuracy of labels, explained deviance of counts, R squared of numbers."""
        response, guesses = self._answer, self.predict(X)
        measure: Any = {ClassTarget: accuracy_score, CountTarget: _deviance}.get(type(response), r2_score)
        return float(measure(y, guesses, sample_weight=sample_weight))

    def _response(self) -> Response:
        loss = self.loss
        if isinstance(loss, Logistic | SoftHinge):
            self._leave_out("y_bound", "labels have none")
            return self._labels(loss, together=isinstance(loss, Logistic))
        if not isinstance(loss, TamedPoisson | PseudoHuber | LogCosh | Huber):
            raise TypeError(
                "loss must be one of snugdp.tables.losses.losses: Logistic(), SoftHinge(h), TamedPoisson(most, rate), "
                "PseudoHuber(c), LogCosh(c) or Huber(c)"
            )
        self._leave_out("classes", "they are for losses of labels")
        if isinstance(loss, TamedPoisson):
            self._leave_out("y_bound", "the loss has the largest count")
            return CountTarget(loss)
        return RealTarget(loss, self.y_bound)

    def _leave_out(self, name: str, why: str) -> None:
        if getattr(self, name) is not None:
            raise ValueError(f"leave out {name}: {why}")

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
