"""A description of columns of which it is not known what they hold, or between which bounds: found, then described.

Proof: ``mechanisms/statistics/described.proof.md``, Theorem 3; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.bounds.preparation import TablePreparation
from snugdp.mechanisms.statistics.described import DescribedRelease
from snugdp.noise import Noise
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import Shown
from snugdp.queries.description.table import DescribedTable
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.release.stages import TwoStages
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundBounds
from snugdp.tables.opened import OpenedTable
from snugdp.tables.schema.schema import Schema
from snugdp.tables.sources import open_source

if TYPE_CHECKING:
    from snugdp.queries.description.result import Description

THEOREM = theorem("describe-found/1")
DESCRIPTION = "description"  # a step
_LOOKS_SHARE = Fraction(1, 4)  # of the square of mu
_MIN_EPSILON_SHARE = Fraction(1, 1000)  # of epsilon: with a large delta looks hardly need any


@dataclass(frozen=True)
class InOneStep:
    """All portions of a description under one step: which there are follows from what was released before."""

    mechanism: DescribedRelease

    def draw(self, data: Secret[Mapping[str, Any]], noise: Noise) -> dict[str, Any]:
        """What every portion draws, by its id."""
        return self.mechanism.draw(data, noise.at(DESCRIPTION))


@dataclass(frozen=True)
class OpenDescription:
    """Looks at all columns, then a description by what they found, as one release.

    ``declared``: what is public about the columns. ``make``: the description by what was found, for a share.
    ``show(described, data, drawn)``: for people.

    Guarantee: ``plan.cost``, which fits the budget (``described.proof.md``, Theorem 3). Both relations.
    """

    declared: Schema
    budget: Budget
    make: Callable[[FoundBounds, Share], DescribedTable]
    show: Callable[[DescribedTable, object, Mapping[str, Any]], Description]

    @cached_property
    def preparation(self) -> TablePreparation:
        """The looks, for a quarter of what Gaussian noise may cost."""
        if not self.budget.delta:
            raise ValueError(
                "what columns hold, and their bounds and values, is found privately with Gaussian noise: give delta > "
                "0, such as 1e-6, or declare them in a schema"
            )
        whole = Fraction(gaussian.mu(self.budget.epsilon, self.budget.delta))
        mu = Fraction(float(whole) * float(_LOOKS_SHARE) ** 0.5)
        epsilon = max(Fraction(gaussian.epsilon(mu, self.budget.delta)), self.budget.epsilon * _MIN_EPSILON_SHARE)
        return TablePreparation(self.declared, replace(self.budget, epsilon=epsilon), standardised=False, alone=True)

    @cached_property
    def share(self) -> Share:
        """What the looks leave: exactly."""
        looks = self.preparation.cost
        whole = Fraction(gaussian.mu(self.budget.epsilon, self.budget.delta - looks.delta)) ** 2
        return Share(Fraction(0), whole - looks.mu_squared, self.budget.neighbours)

    @property
    def _step(self) -> Step:
        noise = StepNoise(DESCRIPTION, "gaussian", times=len(self.declared.columns))
        return Step(DESCRIPTION, StepKind.RELEASE, noise, self.share.cost)

    @cached_property
    def plan(self) -> Plan:
        """What will be done and what it costs."""
        steps = (*self.preparation.steps(), self._step)
        plan = Plan("Describe", THEOREM, steps, {}, self._forecast(), self.budget)
        if not plan.cost.fits(self.budget):
            raise ValueError("the budget is too small to find bounds and describe as well: give a larger epsilon")
        return plan

    def _forecast(self) -> Forecast:
        rows = {"rows": self.preparation.rows_needed}
        notes = (Note("describe-sought"), Note("column-found", rows), Note("missing-counted"))
        return Forecast(chances=(PassChance(1.0, "always"),), notes=notes)

    def release(self, data: object, context: ReleaseContext) -> Outcome[Description]:
        """Pay, look, and describe what was found."""
        source = open_source(data)
        self.declared.check({name: source.type_for_reading(name) for name in source.types})
        table = OpenedTable(source, self.declared)
        self.preparation.read(table)

        def then(opened: Secret[OpenedTable], found: FoundBounds, paid: ReleaseContext) -> Outcome[Description]:
            described = self.make(found, self.share)  # 3
            plan = Plan("Describe", THEOREM, (self._step,), budget=self.budget)
            shown = Shown(InOneStep(described.mechanism), lambda drawn: self.show(described, data, drawn))
            states = opened.map(lambda each: described.statistics(each.state(described.work)))
            return release(plan, shown, states, paid)  # 4

        stages = TwoStages(self.plan, self.preparation, then, self.share.cost)
        return stages.release_second(Secret(table), context, _whole)


def _whole(found: FoundBounds) -> FoundBounds:
    return found
