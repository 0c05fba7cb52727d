"""The default for labels and counts: look at where rows lie and how long they are, then perturb the objective.

The noise of objective perturbation grows with the longest row that is allowed, and the bounds of a schema allow rows
that are far longer than those of a table. A tenth of the budget buys a centre and a radius around it; rows beyond are
shortened. One model, or one for each class. Proof: ``glm_adaptive.proof.md``; the numbers in the comments are those of
its algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.objective import glm
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.glm import company_run, gaussian_run
from snugdp.mechanisms.objective.glm_run import GLMRun, check_budget, check_glm, floats
from snugdp.mechanisms.objective.perturbation import root_below
from snugdp.mechanisms.objective.scale import of_design
from snugdp.mechanisms.objective.spread import MeanRow, RowRadius, Spread
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import Purse
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.affine import StretchedRows, unstretched
from snugdp.tables.losses.losses import Loss, OneAgainst
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows

THEOREM = theorem("glm-adaptive/1")

# Chosen on breast cancer, digits (even or odd) and six made-up tables: docs/classification.md.
_CENTRE, _RADIUS = Fraction(6, 100), Fraction(4, 100)  # of M squared
_SPARED = Fraction(9, 10)  # of delta: the rest pays for a smaller ridge
_RATIO = 2  # the longest row that is kept, in units of the constant
_FEW = 0.01  # ridge for few rows, times (B coefficients / m)**2 / rows


@dataclass(frozen=True)
class _Parts:
    """What the budget affords: the releases before the runs, and the runs with their smallest ridges."""

    centre: MeanRow | None
    radius: RowRadius
    runs: tuple[GLMRun, ...]

    @property
    def before(self) -> Cost:
        """What is released before the runs costs."""
        return self.radius.cost if self.centre is None else self.centre.cost + self.radius.cost

    @property
    def after(self) -> Cost:
        """What the runs cost."""
        return sum((run.cost for run in self.runs[1:]), self.runs[0].cost)


@lru_cache(maxsize=64)
def _parts(design: Design, budget: Budget, losses: tuple[Loss, ...]) -> _Parts:
    alone = len(losses) == 1
    kind, spared = losses[0].kind, _SPARED if losses[0].kind in glm.CLASS_C else Fraction(1)
    total = glm.calibrate(budget.epsilon, budget.delta * spared, kind) if alone else _mu(budget)
    if total <= 0:
        raise ValueError("the budget affords nothing: give a larger epsilon or delta")
    square, stretched = Fraction(total) ** 2, stretched_design(design)
    centre = MeanRow(design, root_below(_CENTRE * square)) if design.row_map.constant else None
    radius = RowRadius(root_below(_RADIUS * square))
    before = _Parts(centre, radius, ()).before.mu_squared
    left = square - before
    if alone:
        runs = [company_run(stretched, budget, losses[0], root_below(left), before)]
    else:
        first = gaussian_run(stretched, left / len(losses), losses[0])
        runs = [replace(first, loss=loss) for loss in losses]  # no cost depends on which class it is
    parts = _Parts(centre, radius, tuple(runs))
    if not (parts.before + parts.after).fits(budget):
        raise ValueError("the budget affords nothing: give a larger epsilon or delta")
    return parts


def _alike(losses: Sequence[Loss]) -> bool:
    """Whether all are one loss, but for the class."""
    return len({(loss.loss, loss.classes) for loss in losses if isinstance(loss, OneAgainst)}) == 1


def _mu(budget: Budget) -> float:
    return gaussian.mu(budget.epsilon, budget.delta)


def stretched_design(design: Design) -> Design:
    """The design of rows whose features reach from 0 to twice the constant, whatever their units were."""
    rows = design.row_map
    return Design(RowMap(rows.entries, _RATIO, rows.target_bound, None, rows.constant))


@dataclass(frozen=True, init=False)
class AdaptiveGLM:
    """Fit one model, or one for each of several classes, on rows moved and shortened by released numbers; a ``Method``.

    ``losses``: one loss, or ``OneAgainst`` for every class. With several, ``theta`` of the fit has a row for each.
    Nothing is tested and nothing is refused: it is private on all data alike.

    Guarantee: ``plan().cost``, which fits the budget (``glm_adaptive.proof.md``, Theorem 1). Add/remove neighbours.

    >>> from snugdp.tables.losses.losses import Logistic
    >>> from snugdp.tables.schema.schema import Boolean, Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Boolean()}, target="y"))
    >>> AdaptiveGLM(design, Budget(1, 1e-6), losses=[Logistic()]).plan().cost.fits(Budget(1, 1e-6))
    True
    """

    design: Design
    budget: Budget
    losses: tuple[Loss, ...]

    def __init__(self, design: Design, budget: Budget, *, losses: Sequence[Loss]) -> None:
        check_budget(budget)
        check_glm(design)
        if not losses:
            raise ValueError("there must be at least one loss")
        if len(losses) > 1 and (not all(isinstance(loss, OneAgainst) for loss in losses) or not _alike(losses)):
            raise ValueError("several losses are for several classes: give OneAgainst(loss, place, classes) for each")
        if losses[0].kind == "sign_changing":
            raise ValueError("the curvature of this loss is bounded only: use GLMObjective")
        for name, value in (("design", design), ("budget", budget), ("losses", tuple(losses))):
            object.__setattr__(self, name, value)
        assert self._parts.runs  # a budget that affords nothing is refused here, in public

    @cached_property
    def _parts(self) -> _Parts:
        return _parts(self.design, self.budget, self.losses)

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
        noise = run.noise_for(rows) * 2 * _RATIO
        return Accuracy(noise, noise**2 * float(self.design.x_squared))

    def fit(self, rows: Secret[Rows], purse: Purse) -> Outcome[Fit]:
        """Pay, look at the rows, release. The outcome's certificate is a ``Spread``."""
        return certify_and_release(self.plan(), self, self, rows, purse)

    def certify(self, data: Secret[Rows], noise: Noise) -> Spread:
        """The private centre and radius."""
        parts, checked = self._parts, data.map(lambda rows: of_design(rows, self.design))
        width = self.design.entries - self.design.row_map.constant
        centre = (0.0,) * width if parts.centre is None else parts.centre.draw(checked, noise.at("centre"))  # 1
        return parts.radius.draw(checked, noise.at("radius"), centre)  # 2

    def draw(self, data: Secret[Rows], certificate: Spread, noise: Noise) -> Fit:
        """The runs, on rows around the centre and as long as the radius."""
        centre, stretch = certificate.centre, _RATIO / certificate.radius
        moved: Secret[Rows] = data.map(lambda rows: StretchedRows(rows, centre, stretch, _RATIO))  # 3
        runs = [self._run(run, certificate.rows) for run in self._parts.runs]  # 4
        fresh = noise.at("release")
        thetas = np.concatenate([floats(run.draw(moved, fresh)).reshape(-1, self.design.entries) for run in runs])  # 5
        back = unstretched(thetas, centre, stretch)
        released = {**runs[0].released, "radius": certificate.radius, "rows": certificate.rows}
        return Fit(back if len(back) > 1 else back[0], None, released)

    def _run(self, run: GLMRun, rows: float) -> GLMRun:
        """More ridge where rows are few."""
        few = _FEW * float(run.design.x_squared) * (run.design.entries / float(run.m)) ** 2 / rows
        return replace(run, ridge=max(run.ridge, Fraction(round(few * 4096), 4096)))
