"""Generalised linear models by objective perturbation: minimise the losses plus a random linear term.

For labels (logistic, soft hinge) a run is exactly as private as one Gaussian release of the largest gradient. Proof:
``glm.proof.md``; the numbers in the comments are those of its Theorem 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from snugdp.accounting import gaussian
from snugdp.accounting.objective import glm
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.glm_run import GLMRun, as_kappa, as_ridge, check_budget, check_glm, fit_of
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, typed_up
from snugdp.propose.forecast import Accuracy, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import Purse
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Loss
from snugdp.tables.rows import Rows

__all__ = ["GLMObjective", "GLMRun", "company_run", "gaussian_run", "lone_run"]

THEOREM = theorem("glm-objective/1")

_SMALLER = [1 - Fraction(k, 256) for k in (0, 1, 2, 4, 8, 16, 32, 64, 128, 192)]  # of a kappa that did not fit
_BESIDE = [Fraction(k, 20) for k in (21, 20, 19, 18, 17, 16, 15, 14, 12, 10, 8, 6, 4, 2, 1)]  # of epsilon, in company
_FEW = 10  # rows * epsilon over coefficients: below that, more ridge than the limit is better
_STEEP = Fraction(2)  # kappa over m of a composable run: half the ridge for a tenth more noise
_ATTEMPTS = 40


@dataclass(frozen=True, init=False)
class GLMObjective:
    """Fit a generalised linear model by objective perturbation; a ``Method``. Nothing is tested and nothing refused.

    ``ridge``: in units of scaled rows; the default is the smallest at which the noise of one Gaussian release is enough
    (about c0 B**2 / epsilon), or a larger one if ``rows``, a public guess of their number, is small for the budget. A
    ridge below that is an error. ``composable``: the cost is that of one Gaussian release, for company; it asks for
    more ridge, and is there for losses whose slope never changes its sign.

    Guarantee: ``plan().cost``, which fits the budget (``glm.proof.md``, Theorem 2). Add/remove neighbours.

    >>> from snugdp.tables.losses.losses import Logistic
    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> plan = GLMObjective(design, Budget(1, 1e-6), loss=Logistic()).plan()
    >>> {name: round(value, 4) for name, value in plan.proposal.items()}
    {'ridge': 1.9455, 'm': 0.2367}
    """

    design: Design
    budget: Budget
    loss: Loss
    ridge: Fraction | None
    composable: bool
    rows: int | None

    def __init__(
        self,
        design: Design,
        budget: Budget,
        *,
        loss: Loss,
        ridge: Real | None = None,
        composable: bool = False,
        rows: int | None = None,
    ) -> None:
        check_budget(budget)
        check_glm(design)
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise ValueError("rows, a public guess of the number of rows, must be a whole number above 0")
        values = {
            "design": design,
            "budget": budget,
            "loss": loss,
            "ridge": None if ridge is None else gaussian.positive(ridge, "ridge"),
            "composable": composable,
            "rows": rows,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not self.cost.fits(budget):  # also reads everything that could be wrong
            raise ValueError("the budget affords nothing with this ridge: give a larger one, or a larger budget")

    @cached_property
    def run(self) -> GLMRun:
        """The run as planned."""
        if self.composable:
            square = _afforded(gaussian.mu(self.budget.epsilon, self.budget.delta)) ** 2
            return gaussian_run(self.design, square, self.loss, self.ridge)
        if self.ridge is not None:
            return self._with_ridge(self.ridge)
        least = lone_run(self.design, self.budget, self.loss)
        return least if self._enough else self._more(least)

    def _with_ridge(self, ridge: Fraction) -> GLMRun:
        """The run with the ridge that was asked for; with bounded curvature only, the noise follows from it."""
        if self.loss.kind == "sign_changing":
            return lone_run(self.design, self.budget, self.loss, ridge)
        least = lone_run(self.design, self.budget, self.loss)
        if ridge < least.ridge:
            raise ValueError(
                f"ridge must be at least {typed_up(least.ridge)!r} for this budget: below that the noise does not "
                "cover the curvature of the loss"
            )
        return GLMRun(self.design, self.loss, least.m, ridge)

    @property
    def _enough(self) -> bool:
        """Whether there are so many rows, as far as is known, that the smallest ridge is best."""
        return self.rows is None or self.rows * self.budget.epsilon >= _FEW * self.design.entries

    def _more(self, least: GLMRun) -> GLMRun:
        """With few rows: the geometric mean of B**2 / m and B**2 / epsilon."""
        part = Fraction(math.sqrt(float(min(Fraction(1), least.m / self.budget.epsilon))))
        ridge = max(least.ridge, as_ridge(self.design, self.loss, self.budget.epsilon * part))
        return GLMRun(self.design, self.loss, least.m, ridge)

    @property
    def cost(self) -> Cost:
        """What the release costs."""
        return self.run.cost

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run = self.run
        noise = StepNoise("objective", "gaussian", params={"m": float(run.m)})
        return Plan(
            THEOREM.title,
            THEOREM,
            (Step("release", StepKind.RELEASE, noise, run.cost),),
            {"ridge": float(run.ridge), "m": float(run.m)},
            noted("scaled-noise-at-most", noise=run.noise_at_most),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions."""
        noise = self.run.noise_for(rows)
        return Accuracy(noise, noise**2 * float(self.design.x_squared))

    def fit(self, rows: Secret[Rows], purse: Purse) -> Outcome[Fit]:
        """Pay, run, release."""
        return release(self.plan(), self, rows, purse)

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """One run."""
        return fit_of(self.run.draw(data, noise.at("release")), self.run.released)


@lru_cache(maxsize=256)
def lone_run(design: Design, budget: Budget, loss: Loss, ridge: Fraction | None = None) -> GLMRun:
    """The run that a budget affords on its own, with the smallest ridge; for bounded curvature, with this ridge.

    Guarantee: its cost fits the budget (``glm.proof.md``, Theorem 2).
    """
    if loss.kind == "sign_changing":
        lam = as_ridge(design, loss, budget.epsilon / 4) if ridge is None else ridge
        kappa = as_kappa(design, loss, lam)
        return GLMRun(design, loss, _afforded(glm.calibrate(budget.epsilon, budget.delta, loss.kind, kappa=kappa)), lam)
    m = _afforded(glm.calibrate(budget.epsilon, budget.delta, loss.kind))  # 1
    limit = glm.free_kappa(budget.epsilon, m**2, loss.kind)
    runs = (GLMRun(design, loss, m, as_ridge(design, loss, part * limit)) for part in _SMALLER)
    return next((run for run in runs if run.cost.fits(budget)), None) or _nothing()  # 2


def company_run(design: Design, budget: Budget, loss: Loss, m: Fraction, mu_squared: Fraction) -> GLMRun:
    """The run of this m with the smallest ridge at which it fits the budget beside a Gaussian part.

    Guarantee: both together fit the budget (``glm.proof.md``, Theorem 2).
    """
    company = Cost(mu_squared=mu_squared)
    runs = (GLMRun(design, loss, m, as_ridge(design, loss, part * budget.epsilon)) for part in _BESIDE)
    return next((run for run in runs if (run.cost + company).fits(budget)), None) or _nothing()  # 2


def gaussian_run(design: Design, square: Fraction, loss: Loss, ridge: Fraction | None = None) -> GLMRun:
    """The run whose cost is that of one Gaussian release, its mu squared at most ``square``.

    Without a ridge, kappa is twice m. Guarantee: ``cost.mu_squared`` is at most the square.
    """
    if loss.kind not in glm.CLASS_C:
        raise ValueError("a composable cost is proved only for losses whose slope never changes its sign")
    return _gaussian_run(design, square, loss, ridge)


@lru_cache(maxsize=256)
def _gaussian_run(design: Design, square: Fraction, loss: Loss, ridge: Fraction | None) -> GLMRun:
    m = Fraction(math.sqrt(square) * (1 - 2.0**-40))
    for _ in range(_ATTEMPTS):  # 3
        lam = as_ridge(design, loss, _STEEP * m) if ridge is None else ridge
        run = GLMRun(design, loss, m, lam, composable=True)
        spent = run.cost.mu_squared
        if spent <= square:
            return run
        m = m * Fraction(math.sqrt(square / spent) * (1 - 2.0**-20))
    return _nothing()


def _afforded(value: float) -> Fraction:
    if not value > 0:
        _nothing()
    return Fraction(value)


def _nothing() -> GLMRun:
    raise ValueError("the budget affords nothing: give a larger epsilon or delta, or a larger ridge")
