"""What is found about columns in private, as a release of its own. Proof: ``preparation.proof.md``, Theorem 3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.bounds.preparation import TablePreparation, known_columns, with_usual_radius
from snugdp.noise import Noise
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundBounds
from snugdp.tables.opened import OpenedTable
from snugdp.tables.schema.schema import Schema

THEOREM = theorem("preparation/1")


@dataclass(frozen=True)
class LooksRelease:
    """Bounds, centres, scales and levels of the declared columns, and nothing else. ``found``: what is known before.

    Guarantee: ``plan().cost``, which fits the budget, in either relation; where nothing is open it is 0
    (``preparation.proof.md``, Theorem 3).
    """

    declared: Schema
    budget: Budget
    found: FoundBounds | None = None

    def __post_init__(self) -> None:
        if not self.plan().cost.fits(self.budget):
            raise ValueError("the budget is too small to find bounds in private: give a larger epsilon or delta")

    @cached_property
    def known(self) -> FoundBounds | None:
        """What is known without any look, if that is all."""
        if self.found is not None or not self.declared.complete:
            return self.found
        return with_usual_radius(FoundBounds(self.declared, known_columns(self.declared), 1.0, 1.0))

    @cached_property
    def preparation(self) -> TablePreparation:
        """The looks, with all of the budget."""
        return TablePreparation(self.declared, self.budget, standardised=False, alone=True)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        if self.known is not None:
            free = Cost(neighbours=self.budget.neighbours)
            steps: tuple[Step, ...] = (Step("public", StepKind.STATISTIC, StepNoise("known-bounds"), free),)
            return Plan(THEOREM.title, THEOREM, steps, budget=self.budget)
        notes = (Note("column-found", {"rows": self.preparation.rows_needed}),)
        return Plan(
            THEOREM.title, THEOREM, self.preparation.steps(), forecast=Forecast(notes=notes), budget=self.budget
        )

    def read(self, table: OpenedTable) -> None:
        """Make the first pass over a table now, before anything is charged."""
        if self.known is None:
            self.preparation.read(table)

    def fit(self, data: Secret[OpenedTable], context: ReleaseContext) -> Outcome[FoundBounds]:
        """Pay and look; refuse if nothing can be told of any column."""
        return certify_and_release(self.plan(), self, self, data, context)

    def certify(self, data: Secret[OpenedTable], noise: Noise) -> FoundBounds | None:
        """What was found; nothing where all columns are without a declared type, and none can be told."""
        return self.known if self.known is not None else self.preparation.certify(data, noise)

    def draw(self, data: Secret[OpenedTable], certificate: FoundBounds | None, noise: Noise) -> FoundBounds | None:
        """The same; rows are taken to be as long as standardised ones usually are."""
        return self.known if certificate is None or self.known is not None else with_usual_radius(certificate)
