"""Several classes: one model for each of them against all others. Proof: ``one_versus_rest.proof.md``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.glm import gaussian_run
from snugdp.mechanisms.objective.glm_run import GLMRun, check_budget, check_glm, floats
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Accuracy, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import Purse
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Logistic, OneAgainst, SoftHinge
from snugdp.tables.rows import Rows

THEOREM = theorem("one-versus-rest/1")


@dataclass(frozen=True, init=False)
class OneVersusRest:
    """Fit one model for each class against all others by objective perturbation; a ``Method``.

    The scaled target is the code of the class (``data.losses.codes``). ``theta`` of the fit has a row for each class.

    Guarantee: ``plan().cost``, one Gaussian cost that fits the budget (Theorem 1 of its proof). Add/remove
    neighbours.

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Number(-1, 1)}, target="y"))
    >>> OneVersusRest(design, Budget(1, 1e-6), classes=3).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    design: Design
    budget: Budget
    classes: int
    loss: Logistic | SoftHinge
    ridge: Fraction | None

    def __init__(
        self,
        design: Design,
        budget: Budget,
        *,
        classes: int,
        loss: Logistic | SoftHinge | None = None,
        ridge: Real | None = None,
    ) -> None:
        check_budget(budget)
        check_glm(design)
        plain = Logistic() if loss is None else loss
        OneAgainst(plain, 0, classes)  # refuses other losses, and too many classes
        values = {
            "design": design,
            "budget": budget,
            "classes": classes,
            "loss": plain,
            "ridge": None if ridge is None else gaussian.positive(ridge, "ridge"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not self.cost.fits(budget):  # also reads everything that could be wrong
            raise ValueError("the budget affords nothing: give a larger epsilon or delta, or a larger ridge")

    @cached_property
    def runs(self) -> tuple[GLMRun, ...]:
        """One run for every class."""
        square = Fraction(gaussian.mu(self.budget.epsilon, self.budget.delta)) ** 2 / self.classes
        first = gaussian_run(self.design, square, self.loss, self.ridge)
        losses = [OneAgainst(self.loss, place, self.classes) for place in range(self.classes)]
        return tuple(GLMRun(self.design, loss, first.m, first.ridge, composable=True) for loss in losses)

    @cached_property
    def cost(self) -> Cost:
        """Of all runs."""
        return Cost(mu_squared=self.classes * self.runs[0].cost.mu_squared)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run = self.runs[0]
        noise = StepNoise("objective", "gaussian", times=self.classes, params={"m": float(run.m)})
        return Plan(
            THEOREM.title,
            THEOREM,
            (Step("release", StepKind.RELEASE, noise, self.cost),),
            {"ridge": float(run.ridge), "m": float(run.m)},
            noted("scaled-noise-at-most", noise=run.noise_at_most),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions."""
        noise = self.runs[0].noise_for(rows)
        return Accuracy(noise, noise**2 * float(self.design.x_squared))

    def fit(self, rows: Secret[Rows], purse: Purse) -> Outcome[Fit]:
        """Pay, run, release."""
        return release(self.plan(), self, rows, purse)

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """All runs, over the same rows."""
        fresh = noise.at("release")
        return Fit(np.array([floats(run.draw(data, fresh)) for run in self.runs]), None, self.runs[0].released)
