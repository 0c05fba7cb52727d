"""The default for labels and counts: look at where rows lie and how long they are, then perturb the objective.

The noise of objective perturbation grows with the longest row that is allowed, and the bounds of a schema allow rows
that are far longer than those of a table. A tenth of the budget buys a centre and a radius around it; rows beyond are
shortened. One model, one for each class, or one softmax model. Proof: ``glm_adaptive.proof.md``; the numbers in the
comments are those of its algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from snugdp.accounting import gaussian
from snugdp.accounting.objective import glm
from snugdp.accounting.objective.run import CLASS_C
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.affordable import (
    company_run,
    gaussian_runs,
    gaussian_square,
    nothing_left,
    softmax_run,
)
from snugdp.mechanisms.objective.glm import GLMObjective, check_losses
from snugdp.mechanisms.objective.perturbation import (
    ObjectiveRun,
    check_budget,
    check_labels,
    coefficients_of,
    fit_of,
    root_below,
    total_cost,
)
from snugdp.mechanisms.objective.scale import of_design
from snugdp.mechanisms.objective.spread import MeanRow, RowRadius, Spread
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.affine import AffineRows, undo_affine
from snugdp.tables.losses.losses import Loss, Softmax
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows

THEOREM = theorem("glm-adaptive/1")

# Chosen on breast cancer, digits (even or odd) and six made-up tables: docs/classification.md.
_CENTRE_SHARE, _RADIUS_SHARE = Fraction(6, 100), Fraction(4, 100)  # of M squared
_SPARED_DELTA = Fraction(9, 10)  # of delta: the rest pays for a smaller ridge
_ROW_NORM = 2  # the longest row that is kept, in units of the constant
_FEW_ROWS_RIDGE = 0.01  # ridge for few rows, times (B coefficients / m)**2 / rows
_MIN_SIGNAL = 0.5  # rows times mu over coefficients: below that a private centre is noise


@dataclass(frozen=True)
class _Parts:
    """What the budget affords: the releases before the runs, and the runs with their smallest ridges."""

    centre: MeanRow | None
    radius: RowRadius
    runs: tuple[ObjectiveRun, ...]

    @property
    def before(self) -> Cost:
        """What is released before the runs costs."""
        return self.radius.cost if self.centre is None else self.centre.cost + self.radius.cost

    @property
    def after(self) -> Cost:
        """What the runs cost."""
        return total_cost(self.runs)


@lru_cache(maxsize=64)
def _parts(design: Design, budget: Budget, losses: tuple[Loss, ...] | tuple[Softmax], beside: Fraction) -> _Parts:
    square, stretched = _square(design, budget, losses, beside), stretched_design(design)
    if square <= 0:
        raise nothing_left(beside)
    centre = MeanRow(design, root_below(_CENTRE_SHARE * square)) if design.row_map.constant else None
    radius = RowRadius(root_below(_RADIUS_SHARE * square))
    before = _Parts(centre, radius, ()).before.mu_squared
    loss, left = losses[0], square - before
    runs: tuple[ObjectiveRun, ...]
    if isinstance(loss, Softmax):
        runs = (softmax_run(stretched, budget, loss, mu_squared=before + beside),)
    elif len(losses) == 1:
        runs = (company_run(stretched, budget, loss, root_below(left), before + beside),)
    else:
        runs = gaussian_runs(stretched, left, losses)
    parts = _Parts(centre, radius, runs)
    if not (parts.before + parts.after + Cost(mu_squared=beside)).fits(budget):
        raise nothing_left(beside)
    return parts


def _square(design: Design, budget: Budget, losses: tuple[Loss, ...] | tuple[Softmax], beside: Fraction) -> Fraction:
    """M squared: what there is for the centre, the radius and the gradients."""
    loss = losses[0]
    if isinstance(loss, Softmax):
        return softmax_run(stretched_design(design), budget, loss, mu_squared=beside).run.m_squared
    if len(losses) > 1:
        return gaussian_square(budget) - beside
    spared = _SPARED_DELTA if loss.kind in CLASS_C else Fraction(1)
    return Fraction(glm.calibrate(budget.epsilon, budget.delta * spared, loss.kind)) ** 2 - beside


def stretched_design(design: Design) -> Design:
    """The design of rows whose features reach from 0 to twice the constant, whatever their units were."""
    rows = design.row_map
    return Design(RowMap(rows.entries, _ROW_NORM, rows.target_bound, None, rows.constant))


@dataclass(frozen=True, init=False)
class AdaptiveGLM:
    """Fit one model, or one for each of several classes, on rows moved and shortened by released numbers; a ``Method``.

    ``losses``: one loss, ``OneAgainst`` for every class, or ``Softmax``. With several classes, ``theta`` of the fit has
    a row for each. ``beside``: mu squared of a Gaussian release that somebody else makes of the same budget; noise and
    ridge are chosen for all of it together, as a smaller budget for the fit alone would ask for far more ridge.
    Nothing is tested and nothing is refused: it is private on all data alike.

    Guarantee: ``plan().cost``, which fits the budget, together with ``beside`` (``glm_adaptive.proof.md``, Theorem 1).
    Add/remove neighbours.

    >>> from snugdp.tables.losses.losses import Logistic
    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> AdaptiveGLM(design, Budget(1, 1e-6), losses=[Logistic()]).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    design: Design
    budget: Budget
    losses: tuple[Loss, ...] | tuple[Softmax]
    beside: Fraction

    def __init__(
        self,
        design: Design,
        budget: Budget,
        *,
        losses: Sequence[Loss] | Sequence[Softmax],
        beside: Fraction = Fraction(0),
    ) -> None:
        check_budget(budget)
        check_labels(design)
        check_losses(losses)
        if not isinstance(losses[0], Softmax) and losses[0].kind == "sign_changing":
            raise ValueError("the curvature of this loss is bounded only: use GLMObjective")
        for name, value in (("design", design), ("budget", budget), ("losses", tuple(losses)), ("beside", beside)):
            object.__setattr__(self, name, value)
        if not self._parts.runs:  # in public
            raise ValueError("the budget is too small: give a larger epsilon or delta")

    @cached_property
    def _parts(self) -> _Parts:
        return _parts(self.design, self.budget, self.losses, self.beside)

    @property
    def cost(self) -> Cost:
        """All that is released."""
        return self._parts.before + self._parts.after

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        parts = self._parts
        run = parts.runs[0]
        radius = StepNoise("row-norms", "gaussian", float(1 / parts.radius.mu), "rows")
        objective = StepNoise("objective", "gaussian", times=len(parts.runs))
        steps = [
            Step("radius", StepKind.STATISTIC, radius, parts.radius.cost),
            Step("release", StepKind.RELEASE, objective, parts.after),
        ]
        if parts.centre is not None:
            centre = StepNoise("row-sums", "gaussian", float(parts.centre.deviation), "rows")
            steps.insert(0, Step("centre", StepKind.STATISTIC, centre, parts.centre.cost))
        proposal = {"ridge": float(run.ridge), "m": float(run.m)}
        return Plan(THEOREM.title, THEOREM, tuple(steps), proposal, budget=self.budget)

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions, half as long as the bounds allow."""
        run = self._run(self._parts.runs[0], float(rows))
        noise = run.noise_for(rows) * 2 * _ROW_NORM
        return Accuracy(noise, noise**2 * float(self.design.x_squared))

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look at the rows, release. The outcome's certificate is a ``Spread``."""
        return certify_and_release(self.plan(), self, self, rows, context)

    def certify(self, data: Secret[Rows], noise: Noise) -> Spread:
        """The private centre and radius."""
        parts, checked = self._parts, data.map(lambda rows: of_design(rows, self.design))
        width = self.design.entries - self.design.row_map.constant
        centre = (0.0,) * width if parts.centre is None else parts.centre.draw(checked, noise.at("centre"))  # 1
        return parts.radius.draw(checked, noise.at("radius"), centre)  # 2

    def draw(self, data: Secret[Rows], certificate: Spread, noise: Noise) -> Fit:
        """The runs, on rows around the centre and as long as the radius."""
        centre, stretch = certificate.centre, _ROW_NORM / certificate.radius
        moved: Secret[Rows] = data.map(lambda rows: AffineRows(rows, centre, stretch, _ROW_NORM))  # 3
        runs = [self._run(run, certificate.rows) for run in self._parts.runs]  # 4
        thetas = undo_affine(coefficients_of(runs, moved, noise.at("release")), centre, stretch)  # 5
        released = {**runs[0].released, "radius": certificate.radius, "rows": certificate.rows}
        return fit_of(thetas, released)

    def _run(self, run: ObjectiveRun, rows: float) -> ObjectiveRun:
        """More ridge where rows are few."""
        few = _FEW_ROWS_RIDGE * float(run.design.x_squared) * (run.design.entries / float(run.m)) ** 2 / rows
        return replace(run, ridge=max(run.ridge, Fraction(round(few * 4096), 4096)))


def recommended(
    design: Design, budget: Budget, *, losses: Sequence[Loss] | Sequence[Softmax], rows: int | None = None
) -> GLMObjective | AdaptiveGLM:
    """The method for labels that public numbers recommend: epsilon, delta, coefficients and a guess of the rows.

    With a private centre and radius unless rows are too few for noise to tell them.

    >>> from snugdp.tables.losses.losses import Logistic
    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> [type(recommended(design, Budget(1, 1e-6), losses=[Logistic()], rows=n)).__name__ for n in (3, 1000)]
    ['GLMObjective', 'AdaptiveGLM']
    """
    check_budget(budget)
    if rows is not None and rows * gaussian.mu(budget.epsilon, budget.delta) < _MIN_SIGNAL * design.entries:
        return GLMObjective(design, budget, losses=losses, rows=rows)
    return AdaptiveGLM(design, budget, losses=losses)
