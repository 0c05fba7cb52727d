"""Several classes with one softmax model, by objective perturbation. Proof: ``softmax.proof.md``.

The numbers in the comments are those of the proof's Theorem 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.objective import linear, multiclass
from snugdp.accounting.objective.multiclass import SoftmaxRun
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.glm import GLMObjective
from snugdp.mechanisms.objective.glm_adaptive import AdaptiveGLM, stretched_design
from snugdp.mechanisms.objective.glm_run import check_budget, check_glm, floats, root_above
from snugdp.mechanisms.objective.minimiser import PerturbedLoss
from snugdp.mechanisms.objective.perturbation import root_below
from snugdp.mechanisms.objective.scale import of_design
from snugdp.mechanisms.objective.spread import MeanRow, RowRadius
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import Real
from snugdp.propose.forecast import Accuracy, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import Purse
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Logistic, OneAgainst
from snugdp.tables.passes.softmax import SoftmaxPass
from snugdp.tables.rowmap import Floats
from snugdp.tables.rows import Rows

THEOREM = theorem("softmax/1")

_PART = Fraction(1, 6)  # kappa, as a part of epsilon: what the determinant costs
_CENTRE, _RADIUS = Fraction(6, 100), Fraction(4, 100)  # as for one class
_FINE = 20
_CURVED = 0.6
_FEW = 0.5  # rows times mu over coefficients: below that a private centre is noise
_NOTHING = "the budget affords nothing: give a larger epsilon or delta, or a larger ridge"


class SoftmaxLoss(PerturbedLoss):
    """The sum of softmax losses over the rows plus ``ridge`` / 2 times the squared norm, as a ``Problem``.

    Guarantee: as ``Problem`` promises (``softmax.proof.md``, Theorem 1).
    """

    __slots__ = ("classes",)

    def __init__(self, rows: Rows, design: Design, classes: int, ridge: Fraction) -> None:
        super().__init__(rows, design, Logistic(), ridge)  # the loss gives the scale on which Hessians change
        self.classes = classes
        self.centre = (Fraction(0),) * self.dimension

    @property
    def dimension(self) -> int:
        """One coefficient for each class and entry."""
        return self.classes * self.design.entries

    @property
    def smoothness(self) -> Fraction:
        """The ridge, and half the squared norm of every row."""
        if self._count is None:
            self.gradient([Fraction(0)] * self.dimension, 0)
        return self.ridge + (self._count or 0) * self.design.x_squared / 2

    def _read(self, theta: tuple[Fraction, ...], level: int, hessian: bool) -> None:
        work = SoftmaxPass(self.rows.schema, theta, self.classes, level, hessian, self.rows.bits)
        state = self.rows.state(work)
        self.sweeps += 1
        self._count = state.count
        sums, error = work.gradient(state)
        self._known[theta, level] = [a + self.ridge * value for a, value in zip(sums, theta, strict=True)], error
        if hessian:
            self._last = work.second(state), np.array([float(value) for value in theta])

    def _from_sample(self, b: Floats) -> Floats:
        self.rows.images()  # kept in memory, if they fit
        return np.zeros(self.dimension)


@dataclass(frozen=True)
class SoftmaxModel:
    """One run: the minimiser of the softmax losses + ridge/2 |Theta|**2 + b . Theta, on a public grid.

    Guarantee: ``cost``, when one row comes or goes (``softmax.proof.md``, Theorem 2).
    """

    design: Design
    classes: int
    m: Fraction
    ridge: Fraction

    @cached_property
    def sigma(self) -> Fraction:
        """The standard deviation of b: the root of 2 times B / m, rounded up."""
        return linear.smallest_ridge(root_above(2 * self.design.x_squared), self.m, 44)  # 1

    @property
    def run(self) -> SoftmaxRun:
        """What accounting needs to know, exactly."""
        return SoftmaxRun(2 * self.design.x_squared / self.sigma**2, self.design.x_squared / self.ridge, self.classes)

    @property
    def cost(self) -> Cost:
        """One atom."""
        return Cost(atoms=(self.run.atom,))

    @property
    def grid(self) -> int:
        """Coefficients are multiples of 2**grid."""
        reach = 1 / self.design.x_bound
        return reach.numerator.bit_length() - reach.denominator.bit_length() - _FINE

    @property
    def noise_at_most(self) -> float:
        """No coefficient has more noise than this, in the root mean square."""
        return float(self.sigma / self.ridge)

    def noise_for(self, rows: int) -> float:
        """About the noise of a coefficient for so many rows, spread evenly over directions and classes."""
        curvature = _CURVED * float(self.design.x_squared) * rows / self.design.entries / self.classes
        return float(self.sigma) / (float(self.ridge) + curvature)

    def draw(self, rows: Secret[Rows], noise: Noise) -> tuple[Fraction, ...]:
        """The exact minimiser, rounded to the grid, class by class."""
        problem = rows.map(lambda r: SoftmaxLoss(of_design(r, self.design), self.design, self.classes, self.ridge))
        return tuple(noise.minimiser(problem, Gaussian(self.sigma), grid=self.grid))  # 2, 3

    @property
    def released(self) -> dict[str, float]:
        """The public numbers of the run."""
        names = ("ridge", "sigma", "m", "noise_at_most")
        return {name: float(getattr(self, name)) for name in names}


@lru_cache(maxsize=64)
def _model(design: Design, budget: Budget, classes: int, ridge: Fraction | None, mu_squared: Fraction) -> SoftmaxModel:
    """The run with the least noise at this ridge, beside a Gaussian part."""
    lam = linear.smallest_ridge(design.x_squared, budget.epsilon * _PART) if ridge is None else ridge
    mu = root_above(mu_squared) if mu_squared else Fraction(0)
    m = multiclass.softmax(budget.epsilon, budget.delta, classes, design.x_squared / lam, mu=mu)
    if m <= 0:
        raise ValueError(_NOTHING)
    model = SoftmaxModel(design, classes, Fraction(m), lam)
    if not (model.cost + Cost(mu_squared=mu_squared)).fits(budget):
        raise ValueError(_NOTHING)
    return model


def _check(design: Design, budget: Budget, classes: int) -> None:
    check_budget(budget)
    check_glm(design)
    OneAgainst(Logistic(), 0, classes)  # refuses too few and too many


@dataclass(frozen=True, init=False)
class Softmax:
    """Fit one softmax model for several classes by objective perturbation; a ``Method``. Nothing is refused.

    The scaled target is the code of the class (``data.losses.codes``). ``theta`` of the fit has a row for each class;
    the chance of class k is exp(x . theta_k) over the sum for all.

    Guarantee: ``plan().cost``, which fits the budget (``softmax.proof.md``, Theorem 2). Add/remove neighbours.

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Number(-1, 1)}, target="y"))
    >>> Softmax(design, Budget(1, 1e-6), classes=3).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    design: Design
    budget: Budget
    classes: int
    ridge: Fraction | None

    def __init__(self, design: Design, budget: Budget, *, classes: int, ridge: Real | None = None) -> None:
        _check(design, budget, classes)
        values = {"design": design, "budget": budget, "classes": classes}
        values["ridge"] = None if ridge is None else gaussian.positive(ridge, "ridge")
        for name, value in values.items():
            object.__setattr__(self, name, value)
        assert self.model.m  # a budget that affords nothing is refused here, in public

    @property
    def model(self) -> SoftmaxModel:
        """The run as planned."""
        return _model(self.design, self.budget, self.classes, self.ridge, Fraction(0))

    @property
    def cost(self) -> Cost:
        """What the release costs."""
        return self.model.cost

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        model = self.model
        noise = StepNoise("softmax-objective", "gaussian", params={"m": float(model.m), "classes": self.classes})
        return Plan(
            THEOREM.title,
            THEOREM,
            (Step("release", StepKind.RELEASE, noise, model.cost),),
            {"ridge": float(model.ridge), "m": float(model.m)},
            noted("scaled-noise-at-most", noise=model.noise_at_most),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions and classes."""
        noise = self.model.noise_for(rows)
        return Accuracy(noise, noise**2 * float(self.design.x_squared))

    def fit(self, rows: Secret[Rows], purse: Purse) -> Outcome[Fit]:
        """Pay, run, release."""
        return release(self.plan(), self, rows, purse)

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """One run."""
        theta = floats(self.model.draw(data, noise.at("release"))).reshape(self.classes, self.design.entries)
        return Fit(theta, None, self.model.released)


@dataclass(frozen=True)
class _Parts:
    """What the budget affords: the releases before the run, and the run with its smallest ridge."""

    centre: MeanRow | None
    radius: RowRadius
    runs: tuple[SoftmaxModel, ...]

    @property
    def before(self) -> Cost:
        """What is released before the run costs."""
        return self.radius.cost if self.centre is None else self.centre.cost + self.radius.cost

    @property
    def after(self) -> Cost:
        """What the run costs."""
        return self.runs[0].cost


@lru_cache(maxsize=64)
def _parts(design: Design, budget: Budget, classes: int) -> _Parts:
    alone = _model(stretched_design(design), budget, classes, None, Fraction(0))
    square = alone.run.m_squared
    centre = MeanRow(design, root_below(_CENTRE * square)) if design.row_map.constant else None
    radius = RowRadius(root_below(_RADIUS * square))
    before = _Parts(centre, radius, ()).before.mu_squared
    return _Parts(centre, radius, (_model(stretched_design(design), budget, classes, None, before),))


@dataclass(frozen=True, init=False)
class AdaptiveSoftmax(AdaptiveGLM):
    """One softmax model on rows moved and shortened by released numbers: the default for several classes.

    Guarantee: ``plan().cost``, which fits the budget (``softmax.proof.md``, Theorem 2; ``glm_adaptive.proof.md``,
    Theorem 1).

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Number(-1, 1)}, target="y"))
    >>> AdaptiveSoftmax(design, Budget(1, 1e-6), classes=4).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    classes: int

    def __init__(self, design: Design, budget: Budget, *, classes: int) -> None:
        _check(design, budget, classes)
        losses = tuple(OneAgainst(Logistic(), place, classes) for place in range(classes))
        for name, value in (("design", design), ("budget", budget), ("losses", losses), ("classes", classes)):
            object.__setattr__(self, name, value)
        assert self._parts.runs  # a budget that affords nothing is refused here, in public

    @cached_property
    def _parts(self) -> _Parts:  # type: ignore[override]
        return _parts(self.design, self.budget, self.classes)


def recommended(
    design: Design, budget: Budget, *, classes: int = 2, rows: int | None = None
) -> GLMObjective | AdaptiveGLM | Softmax:
    """The method for labels that public numbers recommend: epsilon, delta, coefficients and a guess of the rows.

    With a private centre and radius unless rows are too few for noise to tell them; softmax from three classes on.

    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> [type(recommended(design, Budget(1, 1e-6), rows=n)).__name__ for n in (3, 1000)]
    ['GLMObjective', 'AdaptiveGLM']
    """
    check_budget(budget)
    few = rows is not None and rows * gaussian.mu(budget.epsilon, budget.delta) < _FEW * design.entries
    if classes == 2:
        loss = Logistic()
        return GLMObjective(design, budget, loss=loss, rows=rows) if few else AdaptiveGLM(design, budget, losses=[loss])
    return Softmax(design, budget, classes=classes) if few else AdaptiveSoftmax(design, budget, classes=classes)
