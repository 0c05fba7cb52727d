"""Generalised linear models by objective perturbation: minimise the losses plus a random linear term.

For labels (logistic, soft hinge) a run is exactly as private as one Gaussian release of the largest gradient. There is
one model, one for each class against all others, or one softmax model for all classes. Proofs: ``glm.proof.md``,
Theorem 2; ``one_versus_rest.proof.md``; ``softmax.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit, check_budget, check_rows
from snugdp.mechanisms.objective.perturbation import (
    GLMRun,
    ObjectiveRun,
    as_ridge,
    check_labels,
    coefficients_of,
    fit_of,
    gaussian_runs,
    gaussian_square,
    lone_run,
    softmax_run,
    total_cost,
)
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, typed_up
from snugdp.propose.forecast import Accuracy, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import Theorem, theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Loss, OneAgainst, Softmax
from snugdp.tables.rows import Rows

THEOREM = theorem("glm-objective/1")
CLASSES_THEOREM = theorem("one-versus-rest/1")
SOFTMAX_THEOREM = theorem("softmax/1")

Losses: TypeAlias = tuple[Loss, ...] | tuple[Softmax]

_MANY_ROWS = 10  # rows * epsilon over coefficients: below that, more ridge than the limit is better


@dataclass(frozen=True)
class GLMObjective:
    """Fit a generalised linear model by objective perturbation; a ``Method``. Nothing is tested and nothing refused.

    ``losses``: one loss; ``OneAgainst`` for every class, for one model each, with a Gaussian cost; or ``Softmax``. For
    several classes the scaled target is the code of the class (``tables.losses.codes``), and ``theta`` of the fit has a
    row for each.
    ``ridge``: in units of scaled rows; the default is the smallest at which the noise of one Gaussian release is enough
    (about c0 B**2 / epsilon), or a larger one if ``rows``, a public guess of their number, is small for the budget. A
    ridge below that is an error. ``composable``: the cost is that of one Gaussian release, for company; it asks for
    more ridge, and is there for losses whose slope never changes its sign.

    Guarantee: ``plan().cost``, which fits the budget (``glm.proof.md``, Theorem 2; for several classes
    ``one_versus_rest.proof.md``, Theorem 1, and ``softmax.proof.md``, Theorem 2). Add/remove neighbours.

    >>> from snugdp.tables.losses.losses import Logistic
    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> plan = GLMObjective(design, Budget(1, 1e-6), losses=(Logistic(),)).plan()
    >>> {name: round(value, 4) for name, value in plan.proposal.items()}
    {'ridge': 1.9455, 'm': 0.2367}
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    losses: Losses
    ridge: Real | None = None
    composable: bool = False
    rows: int | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_labels(self.design)
        check_losses(self.losses)
        check_rows(self.rows)
        if not self.cost.fits(self.budget):  # also reads everything that could be wrong
            raise ValueError("the budget is too small with this ridge: give a larger one, or a larger budget")

    @cached_property
    def _ridge(self) -> Fraction | None:
        return None if self.ridge is None else gaussian.positive(self.ridge, "ridge")

    @property
    def run(self) -> ObjectiveRun:
        """The run as planned, or the first of several."""
        return self.runs[0]

    @cached_property
    def runs(self) -> tuple[ObjectiveRun, ...]:
        """The runs as planned: one, or one for every class."""
        loss = self.losses[0]
        if isinstance(loss, Softmax):
            if self.composable:
                raise ValueError('a softmax model is not composable: leave that out, or use multi_class="ovr"')
            return (softmax_run(self.design, self.budget, loss, self._ridge),)
        if self.composable or len(self.losses) > 1:
            return gaussian_runs(self.design, gaussian_square(self.budget), self.losses, self._ridge)
        if self._ridge is not None:
            return (self._with_ridge(loss, self._ridge),)
        least = lone_run(self.design, self.budget, loss)
        return (least if self._enough else self._more(least),)

    def _with_ridge(self, loss: Loss, ridge: Fraction) -> GLMRun:
        """The run with the ridge that was asked for; with bounded curvature only, the noise follows from it."""
        if loss.kind == "sign_changing":
            return lone_run(self.design, self.budget, loss, ridge)
        least = lone_run(self.design, self.budget, loss)
        if ridge < least.ridge:
            raise ValueError(
                f"ridge must be at least {typed_up(least.ridge)!r} for this budget: below that the noise does not "
                "cover the curvature of the loss"
            )
        return GLMRun(self.design, loss, least.m, ridge)

    @property
    def _enough(self) -> bool:
        """Whether there are so many rows, as far as is known, that the smallest ridge is best."""
        return self.rows is None or self.rows * self.budget.epsilon >= _MANY_ROWS * self.design.entries

    def _more(self, least: GLMRun) -> GLMRun:
        """With few rows: the geometric mean of B**2 / m and B**2 / epsilon."""
        part = Fraction(math.sqrt(float(min(Fraction(1), least.m / self.budget.epsilon))))
        ridge = max(least.ridge, as_ridge(self.design, least.loss, self.budget.epsilon * part))
        return GLMRun(self.design, least.loss, least.m, ridge)

    @cached_property
    def cost(self) -> Cost:
        """What the release costs: all runs."""
        return total_cost(self.runs)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run = self.run
        proved, noise = self._step()
        return Plan(
            proved.title,
            proved,
            (Step("release", StepKind.RELEASE, noise, self.cost),),
            {"ridge": float(run.ridge), "m": float(run.m)},
            noted("scaled-noise-at-most", noise=run.noise_at_most),
            self.budget,
            self.design.protects,
        )

    def _step(self) -> tuple[Theorem, StepNoise]:
        loss, many, m = self.losses[0], len(self.losses), float(self.run.m)
        if isinstance(loss, Softmax):
            params = {"m": m, "classes": loss.classes}
            return SOFTMAX_THEOREM, StepNoise("softmax-objective", "gaussian", params=params)
        noise = StepNoise("objective", "gaussian", times=many, params={"m": m})
        return (CLASSES_THEOREM if many > 1 else THEOREM), noise

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions and classes."""
        return self.run.forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, run, release."""
        return release(self.plan(), self, rows, context)

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """All runs, over the same rows."""
        return fit_of(coefficients_of(self.runs, data, noise.at("release")), self.run.released)


def check_losses(losses: Losses) -> None:
    """Refuse what is neither one loss nor one for each class."""
    if not losses:
        raise ValueError("there must be at least one loss")
    classes = {(loss.loss, loss.classes) for loss in losses if isinstance(loss, OneAgainst)}
    if len(losses) > 1 and (len(classes) != 1 or not all(isinstance(loss, OneAgainst) for loss in losses)):
        raise ValueError("several losses are for several classes: give OneAgainst(loss, place, classes) for each")
