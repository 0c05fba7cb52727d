"""What columns without a declared type hold, as in a CSV file: numbers, dates or text, by the most frequent cells.

Proof: ``preparation.proof.md``, Lemma 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells.sorts import SORTS
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.columns.sorts import SortPass
from snugdp.tables.schema.infer import settled
from snugdp.tables.schema.kinds import Column


@dataclass(frozen=True)
class CellSorts:
    """A noisy count of every sort of cell in each of the columns.

    Guarantee: cost ``mu_squared``, in the relation (``preparation.proof.md``, Lemma 1).
    """

    columns: tuple[str, ...]
    mu_squared: Fraction
    neighbours: Neighbours

    @property
    def work(self) -> SortPass:
        """The pass that counts."""
        return SortPass(self.columns)

    @cached_property
    def deviation(self) -> Fraction:
        """Of the noise on a count."""
        moved = len(self.columns) * (1 if self.neighbours is Neighbours.ADD_REMOVE else 2)
        return root_above(moved / self.mu_squared)

    @property
    def step(self) -> Step:
        """The step of a plan."""
        noise = StepNoise("cell-sorts", "gaussian", float(self.deviation), "rows", len(self.columns))
        return Step("sorts", StepKind.STATISTIC, noise, Cost(mu_squared=self.mu_squared, neighbours=self.neighbours))

    def draw(self, data: Secret[OpenedTable], noise: Noise) -> Mapping[str, Column | None]:
        """What each of the columns holds; None where noise hides it."""
        counts = data.map(lambda table: table.state(self.work).values())
        noisy = noise.at("sorts").add_integers(counts, Gaussian(self.deviation))
        size, deviation = len(SORTS), float(self.deviation)
        parts = (noisy[at * size : (at + 1) * size] for at in range(len(self.columns)))
        return {name: settled(part, deviation) for name, part in zip(self.columns, parts, strict=True)}
