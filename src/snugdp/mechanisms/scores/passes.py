"""One pass over a table: every row's score and target, and exact sums of what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from snugdp.mechanisms.scores.images import Ask, Integers, RowImages
from snugdp.mechanisms.scores.tasks import ScoreTask
from snugdp.tables.passes.base import SummingPass, Sums


@dataclass(frozen=True, eq=False, repr=False)
class ScoringBatch:
    """Some rows, which can be sliced, how a model is asked about them, and their targets; -1 for none. Private."""

    rows: Any
    ask: Ask
    targets: Integers


class RowReader(Protocol):
    """How the rows of a frame come before a model. The target of a row depends on that row alone."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All that are read."""

    def read(self, frame: Any) -> Iterator[ScoringBatch]:
        """All rows of a frame, some at a time."""


@dataclass(frozen=True)
class ModelScorePass(SummingPass[Sums]):
    """Scores of rows, summed up.

    Guarantee: whole numbers, equal for every order and partition of the rows, to which a row adds a function of that
    row and of public values (``scores.proof.md``, Theorem 1, with what it assumes of a model).
    """

    task: ScoreTask
    reader: RowReader
    alone: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that the model and the target need."""
        return self.reader.columns

    def empty(self) -> Sums:
        """No rows."""
        return Sums(self.task.held)

    def fold(self, state: Sums, frame: Any) -> Sums:
        """The rows of one more frame."""
        images = RowImages(self.task.width, self.task.scale, self.alone)
        for asked in self.reader.read(frame):
            if len(asked.targets):
                found = images.of(asked.ask, asked.rows, len(asked.targets))
                state.accumulate(self.task.tally(found, asked.targets))
        return state
