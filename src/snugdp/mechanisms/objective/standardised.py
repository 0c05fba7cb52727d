"""Labels and counts on rows that were standardised by released numbers: the run alone.

Proof: ``glm_adaptive.proof.md``. The centre and the radius of the rows, which ``AdaptiveGLM`` looks at first, are known
here already.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.adaptive import check_adaptive, for_rows, glm_runs, glm_square
from snugdp.mechanisms.objective.glm import Losses
from snugdp.mechanisms.objective.perturbation import (
    ObjectiveRun,
    coefficients_of,
    fit_of,
    nothing_left,
    total_cost,
)
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows

THEOREM = theorem("glm-standardised/1")


@dataclass(frozen=True)
class StandardisedGLM:
    """Fit one model, or one for each of several classes, on standardised rows; a ``Method``. Nothing is refused.

    ``beside``: mu squared of what was released of the same budget before. ``rows``: their number, as released; where it
    is small there is more ridge.

    Guarantee: ``plan().cost``, which fits the budget, together with ``beside`` (``glm_adaptive.proof.md``, Theorem 2).
    Add/remove neighbours.
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    losses: Losses
    beside: Fraction
    rows: float = 1.0

    def __post_init__(self) -> None:
        check_adaptive(self.design, self.budget, self.losses)
        if not (self.cost + Cost(mu_squared=self.beside)).fits(self.budget):
            raise nothing_left(self.beside)

    @cached_property
    def runs(self) -> tuple[ObjectiveRun, ...]:
        """The runs as planned: their cost is that of every ridge from theirs on."""
        square = glm_square(self.design, self.budget, self.losses, self.beside)
        if square <= 0:
            raise nothing_left(self.beside)
        return glm_runs(self.design, self.budget, self.losses, square, self.beside)

    @cached_property
    def cost(self) -> Cost:
        """All runs."""
        return total_cost(self.runs)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run, noise = self.runs[0], StepNoise("objective", "gaussian", times=len(self.runs))
        step = Step("release", StepKind.RELEASE, noise, self.cost)
        return Plan(THEOREM.title, THEOREM, (step,), {"ridge": float(run.ridge), "m": float(run.m)}, budget=self.budget)

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions."""
        return for_rows(self.runs[0], float(rows)).forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, run, release."""
        return release(self.plan(), self, rows, context)

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """All runs, over the same rows."""
        runs = [for_rows(run, self.rows) for run in self.runs]
        return fit_of(coefficients_of(runs, data, noise.at("release")), runs[0].released)
