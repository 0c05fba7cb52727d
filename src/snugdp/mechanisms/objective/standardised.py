"""Labels and counts on rows that were standardised by released numbers: the run alone.

Proof: ``glm_adaptive.proof.md``. The centre and the radius of the rows, which ``AdaptiveGLM`` looks at first, are known
here already. So may be what was found of the target, the largest count or the classes: what a run costs does not depend
on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

from snugdp.accounting.composition import Atom, Branch, either
from snugdp.accounting.objective.corners import fewer_levels
from snugdp.accounting.objective.multiclass import SoftmaxBound
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.adaptive import check_adaptive, for_rows, glm_runs, glm_square
from snugdp.mechanisms.objective.class_means import ClassStart
from snugdp.mechanisms.objective.glm import Losses
from snugdp.mechanisms.objective.perturbation import (
    ObjectiveRun,
    SoftmaxModel,
    as_ridge,
    coefficients_of,
    fit_of,
    gaussian_runs,
    gaussian_square,
    nothing_left,
    total_cost,
)
from snugdp.mechanisms.objective.shrinkage import unshrunk
from snugdp.noise import Noise
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Logistic, Loss, OneAgainst, SoftHinge, Softmax
from snugdp.tables.rows import Rows

THEOREM, CLASSES = theorem("glm-standardised/1"), theorem("found-classes/1")

# How many classes there may be, and the part of delta for this case: one model for two classes, or a softmax model.
# The rest of delta pays for levels of a loss that are put together.
_CASES = ((2, Fraction(70, 100)), (10, Fraction(18, 100)), (100, Fraction(10, 100)))
_MOST_BY_LEVELS = 10  # classes of a case whose removals are followed level by level: for 100 that gains nothing

# Chosen on twelve kinds of made-up tables and on scikit-learn's breast cancer and digits: docs/benchmarks.md.
_PART = Fraction(86, 100)  # of the largest m of a run for labels: beside looks a ridge is larger, and so is its price
_FEW_ROWS_RIDGE = 0.02  # ridge for few rows, times (B coefficients / m)**2 / rows


class StandardisedRuns(ABC):
    """Runs on standardised rows, and what all of them do alike."""

    @property
    @abstractmethod
    def runs(self) -> tuple[ObjectiveRun, ...]:
        """As planned."""

    @abstractmethod
    def plan(self) -> Plan:
        """What will be done and what it costs."""

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly over all directions; of classes that are found, for two."""
        return for_rows(self.runs[0], float(rows), _FEW_ROWS_RIDGE).forecast(rows)

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, run, release."""
        return release(self.plan(), self, rows, context)

    @abstractmethod
    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """All runs, over the same rows."""


@dataclass(frozen=True)
class StandardisedGLM(StandardisedRuns):
    """Fit one model, or one for each of several classes, on standardised rows; a ``Method``. Nothing is refused.

    ``beside``: mu squared of what was released of the same budget before. ``rows``: their number, as released; where it
    is small there is more ridge. ``found``: a loss of the same kind as the planned one, whose scale was released.
    ``bound``: of a softmax run, as in ``softmax_run``. ``flat``: the entries of columns in which one value was found.

    Guarantee: ``plan().cost``, which fits the budget, together with ``beside`` (``glm_adaptive.proof.md``, Theorem 2).
    Add/remove neighbours.
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    losses: Losses
    beside: Fraction
    rows: float = 1.0
    found: Loss | None = None
    bound: SoftmaxBound = "corners"
    flat: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_adaptive(self.design, self.budget, self.losses)
        if self.found is not None and [self.found.kind] != [getattr(loss, "kind", "") for loss in self.losses]:
            raise ValueError("the loss that is found must be of the kind of the one that is planned")
        if not (self.cost + Cost(mu_squared=self.beside)).fits(self.budget):
            raise nothing_left(self.beside)

    @cached_property
    def _square(self) -> Fraction:
        square = glm_square(self.design, self.budget, self.losses, self.beside)
        if square <= 0:
            raise nothing_left(self.beside)
        return square

    @cached_property
    def start(self) -> ClassStart | None:
        """What comes before a softmax run, if anything does."""
        return ClassStart.of(self.design, self.losses[0], self._square)

    @cached_property
    def runs(self) -> tuple[ObjectiveRun, ...]:
        """The runs as planned: their cost is that of every ridge from theirs on."""
        before = Fraction(0) if self.start is None else self.start.cost.mu_squared
        square, beside = self._square - before, self.beside + before
        return glm_runs(self.design, self.budget, self.losses, square, beside, part=_PART, bound=self.bound)

    @cached_property
    def cost(self) -> Cost:
        """All that is released."""
        runs = total_cost(self.runs)
        return runs if self.start is None else self.start.cost + runs

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run, noise = self.runs[0], StepNoise("objective", "gaussian", times=len(self.runs))
        before = () if self.start is None else self.start.steps
        steps = (*before, Step("release", StepKind.RELEASE, noise, total_cost(self.runs)))
        proposal = {"ridge": float(run.ridge), "m": float(run.m)}
        return Plan(THEOREM.title, THEOREM, steps, proposal, budget=self.budget, unit=self.design.protects)

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """All runs, over the same rows."""
        if self.start is not None and isinstance(run := self.runs[0], SoftmaxModel):
            return fit_of(*self.start.draw(run, data, noise))
        return _fitted(
            [for_rows(self._scaled(run), self.rows, _FEW_ROWS_RIDGE) for run in self.runs],
            data,
            noise,
            self.rows,
            self.flat,
        )

    def _scaled(self, run: ObjectiveRun) -> ObjectiveRun:
        """The run with the loss that was found: the same m, and a ridge at which kappa is not above the planned one."""
        if self.found is None:
            return run
        return replace(run, loss=self.found, ridge=as_ridge(run.design, self.found, run.kappa))


Cases: TypeAlias = tuple[tuple[int, StandardisedGLM], ...]  # the most classes of a case, and its plan


@dataclass(frozen=True)
class StandardisedClasses(StandardisedRuns):
    """Fit a model of classes that were found, on standardised rows; a ``Method``. Nothing is refused.

    ``classes``: how many were found, 2 to ``most``. ``together``: one softmax model for more than two of them, rather
    than one model for each against the others. ``beside``, ``rows`` and ``flat``: as in ``StandardisedGLM``.

    Guarantee: ``plan().cost``, which fits the budget together with ``beside`` and does not depend on ``classes``
    (``glm_adaptive.proof.md``, Theorem 3). Add/remove neighbours.
    """

    design: Design
    budget: Budget
    _: KW_ONLY
    loss: Logistic | SoftHinge
    together: bool
    classes: int
    beside: Fraction
    rows: float = 1.0
    flat: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_adaptive(self.design, self.budget, (self.loss,))
        if not 2 <= self.classes <= self.most:
            raise ValueError(f"there must be 2 to {self.most} classes")
        if not (self.cost + Cost(mu_squared=self.beside)).fits(self.budget):
            raise nothing_left(self.beside)

    @property
    def most(self) -> int:
        """So many classes are planned for."""
        return self._cases[-1][0] if self.together else _CASES[-1][0]

    @property
    def _cases(self) -> Cases:
        return _planned_cases(self.design, self.budget, self.loss, self.beside)

    @cached_property
    def _square(self) -> Fraction:
        """Mu squared of all models, one for each class."""
        square = gaussian_square(self.budget) - self.beside
        if square <= 0:
            raise nothing_left(self.beside)
        return square

    @cached_property
    def runs(self) -> tuple[ObjectiveRun, ...]:
        """The runs for as many classes as there are."""
        count = self.classes
        if not self.together:
            losses = (self.loss,) if count == 2 else tuple(OneAgainst(self.loss, k, count) for k in range(count))
            return gaussian_runs(self.design, self._square, losses)
        run = self._case.runs[0]
        return (run if count == 2 else replace(run, loss=Softmax(count)),)

    @property
    def _case(self) -> StandardisedGLM:
        """What is planned for so many classes."""
        return next(case for most, case in self._cases if self.classes <= most)

    @property
    def _start(self) -> ClassStart | None:
        """What comes before a softmax run, for the classes that there are."""
        start = self._case.start if self.together else None
        return None if start is None else start.for_classes(self.classes)

    @cached_property
    def cost(self) -> Cost:
        """Of whatever case it is."""
        return _whichever(self._cases) if self.together else Cost(mu_squared=self._square)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        run = self.runs[0]
        step = Step("release", StepKind.RELEASE, StepNoise("classes-objective", "gaussian"), self.cost)
        proposal = {"ridge": float(run.ridge), "m": float(run.m)}
        return Plan(CLASSES.title, CLASSES, (step,), proposal, budget=self.budget, unit=self.design.protects)

    def draw(self, data: Secret[Rows], noise: Noise) -> Fit:
        """The runs, over the same rows."""
        if self._start is not None and isinstance(run := self.runs[0], SoftmaxModel):
            return fit_of(*self._start.draw(run, data, noise.at("release")))
        runs = [for_rows(run, self.rows, _FEW_ROWS_RIDGE) for run in self.runs]
        return _fitted(runs, data, noise, self.rows, self.flat)


def _fitted(runs: Sequence[ObjectiveRun], data: Secret[Rows], noise: Noise, rows: float, flat: tuple[int, ...]) -> Fit:
    """What the runs release, without what a ridge took, as far as that is known."""
    thetas, given_back = unshrunk(coefficients_of(runs, data, noise.at("release")), runs, rows, flat)
    return fit_of(thetas, {**runs[0].released, **given_back})


def _as_one_atom(case: StandardisedGLM) -> Atom:
    """A run and the Gaussian releases before it, if there are any."""
    atom = case.runs[0].run.atom
    if case.start is None:
        return atom
    square = case.start.cost.mu_squared

    def beside(branches: tuple[Branch, ...]) -> tuple[Branch, ...]:
        return tuple(replace(branch, mu_squared=branch.mu_squared + square) for branch in branches)

    by_levels = not any(branch.mu_squared for branch in atom.remove)
    return Atom(beside(atom.add), beside(fewer_levels(atom.remove) if by_levels else atom.remove))


@lru_cache(maxsize=64)
def _planned_cases(design: Design, budget: Budget, loss: Logistic | SoftHinge, beside: Fraction) -> Cases:
    """The plan of each case, for the most classes of its own and for its part of delta, as far as the budget goes.

    Removals are followed by levels where what that costs fits the budget; otherwise all cases have the bound by the
    trace.
    """
    company = Cost(mu_squared=beside)
    cases = _cases_of(design, budget, loss, beside, _MOST_BY_LEVELS)
    fits = (_whichever(cases) + company).fits(budget)
    return cases if fits else _cases_of(design, budget, loss, beside, 0)


def _cases_of(design: Design, budget: Budget, loss: Logistic | SoftHinge, beside: Fraction, by_levels: int) -> Cases:
    """``by_levels``: the most classes of a case whose removals are followed so.

    Where delta is large the looks are so good that nothing is left for many classes, whose parts of it are small.
    """
    cases: list[tuple[int, StandardisedGLM]] = []
    for most, part in _CASES:
        losses: Losses = (loss,) if most == 2 else (Softmax(most),)
        own = replace(budget, delta=budget.delta * part)
        bound: SoftmaxBound = "corners" if most <= by_levels else "trace"
        try:
            cases.append((most, StandardisedGLM(design, own, losses=losses, beside=beside, bound=bound)))
        except ValueError:
            if not cases:
                raise
            break
    return tuple(cases)


def _whichever(cases: Cases) -> Cost:
    """What any of these cases costs."""
    failure = max(case.cost.delta for _, case in cases)
    return Cost(atoms=(either(*(_as_one_atom(case) for _, case in cases)),), delta=failure)
