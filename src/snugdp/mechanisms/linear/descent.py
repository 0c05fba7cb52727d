"""Full-batch gradient descent with clipped residuals and Gaussian noise: a baseline. Proof: ``descent.proof.md``."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from snugdp.accounting.gaussian import positive
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.linear.noisy_sums import Drawing, Gradients, affordable, check_gradients, hold, noisy_gradient
from snugdp.mechanisms.linear.spectral import FitUnits, Floats, expectation, forecast_of, gradient_floats, whole_number
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber
from snugdp.tables.rows import Rows

THEOREM = theorem("linear-descent/1")
_STEP = "gradients"

_CLIP = Fraction(1, 4)  # of the bound on the target
_FASTEST = 100


@dataclass(frozen=True, eq=False)
class NoisyDescent:
    """Gradient descent from 0; the answer is the mean over the last half of the path.

    ``rows``: a public guess of the number of rows, for the length of a step; a wrong guess costs accuracy, never
    privacy. ``steps``: each is one pass over the table. ``clip``: where residuals are clipped; by default a quarter of
    the bound on the target. ``rate``: the length of a step, 1 being a Newton step on rows spread evenly over all
    directions; rows are not, and real tables want less.

    Guarantee: the plan's cost, under add/remove, for all tables (``descent.proof.md``, Theorem 1).
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    rows: int
    steps: int = 100
    clip: Real | None = None
    rate: Real = 0.25

    def __post_init__(self) -> None:
        if self._mu_squared <= 0:  # reading it also refuses a bad budget or design
            raise ValueError("the budget is too small: give a larger epsilon or delta")
        check_gradients(self.design)
        object.__setattr__(self, "rows", whole_number(self.rows, "rows", 1, most=None))
        object.__setattr__(self, "steps", whole_number(self.steps, "steps", 1))
        Huber(self._clip)  # refuses a bad clip
        if positive(self.rate, "rate") > _FASTEST:
            raise ValueError(f"rate must be at most {_FASTEST}; 0.25 is typical")

    @cached_property
    def _mu_squared(self) -> Fraction:
        return affordable(self.design, self.budget) ** 2

    @property
    def _clip(self) -> Fraction:
        return _CLIP * self.design.y_bound if self.clip is None else positive(self.clip, "clip")

    @property
    def _rate(self) -> float:
        return float(positive(self.rate, "rate"))

    @property
    def _step(self) -> float:
        return self._rate * self.design.entries / self.rows

    @property
    def _deviation(self) -> float:
        """Of the noise of a gradient, in units of the bounds."""
        return math.sqrt(self.steps / self._mu_squared) * float(self._clip) / FitUnits.of(self.design).y

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        cost = Cost(mu_squared=self._mu_squared, neighbours=self.budget.neighbours)
        scale = math.sqrt(self.steps / self._mu_squared)
        noise = StepNoise("gradient", "gaussian", scale, "row", times=self.steps)
        proposal = {"steps": self.steps, "clip": float(self._clip), "rate": self._rate, "rows": self.rows}
        expect = expectation(self.forecast(self.rows), self.rows)
        step = Step(_STEP, StepKind.RELEASE, noise, cost)
        return Plan(THEOREM.title, THEOREM, (step,), proposal, expect, self.budget)

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for a table of about so many rows, spread evenly."""
        each = whole_number(rows, "rows", 1, most=None) / self.design.entries
        keep = min(1.0, max(-1.0, 1.0 - self._step * each))  # of an error, by one step; a longer step only oscillates
        late = self.steps - self.steps // 2
        weights, after = np.zeros(self.steps), 0.0
        for t in reversed(range(self.steps)):  # what the noise of step t is in the mean of the last ``late`` points
            after = keep * after + (1.0 / late if t >= self.steps - late else 0.0)
            weights[t] = after
        variance = float(weights @ weights) * (self._step * self._deviation) ** 2
        return forecast_of(np.full(self.design.entries, variance), self.design)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay and release; there is nothing to test."""
        gradients = Gradients.of(rows, self.design, context.noise.at(_STEP))
        return release(self.plan(), Drawing(lambda table, noise: self._draw(table, gradients, noise)), rows, context)

    def _draw(self, rows: Secret[Rows], gradients: Gradients, noise: Noise) -> Fit:
        units, share = FitUnits.of(self.design), self._mu_squared / self.steps
        own: Floats = np.zeros(self.design.entries)  # line 1
        total = np.zeros(self.design.entries)
        hold(rows)
        for t in range(self.steps):
            work = gradients.at(units.theta(own).tolist(), self._clip)  # line 2
            cells = noisy_gradient(rows, work, share, noise.at(_STEP))  # line 3
            own = own - self._step * gradient_floats(cells, self._clip, work.limits.target, self.design, units)
            if t >= self.steps // 2:
                total += own
        mean = total / (self.steps - self.steps // 2)  # line 4
        released = {"clip": float(self._clip), "rate": self._rate}
        return Fit(units.theta(mean), None, released)
