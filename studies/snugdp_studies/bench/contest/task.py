"""What one contest is about: its tables, its contenders, what is measured, and how the results are shown."""

from __future__ import annotations

import hashlib
import importlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from snugdp_studies.bench.contest.tables import Scaling, Split, Tables

if TYPE_CHECKING:
    from snugdp_studies.bench.contest.report import Cell, Report, Summary
    from snugdp_studies.bench.contest.run import Job, Plan

Kind: TypeAlias = Literal["ours", "peer", "public", "reference"]


@dataclass(frozen=True)
class Setting:
    """What a contender is told besides the rows: the budget, where its noise starts, and the variant of the contest."""

    epsilon: float
    delta: float
    noise: int
    variant: Any = None


@dataclass(frozen=True)
class Contender:
    """One method. ``kind``: ours and peers are ranked; "public" ones need public rows and references are not private
    methods, so both are shown outside the ranking. ``binary``: it has no answer for more than two classes.
    """

    name: str
    kind: Kind
    fit: Callable[[Split, Setting], Any]
    binary: bool = False

    @property
    def ranked(self) -> bool:
        """Whether it can be the best."""
        return self.kind in ("ours", "peer")


class Task(ABC):
    """One contest. A variant is one more way in which every method is run: a scaling, or a loose bound.

    ``measures``: the names of what a fit is measured by; the mean of the first decides who is best.
    """

    name: ClassVar[str]
    tables: ClassVar[Tables]
    contenders: ClassVar[dict[str, Contender]]
    measures: ClassVar[tuple[str, str]]
    variant: ClassVar[str]
    about: ClassVar[str]
    notes: ClassVar[tuple[str, ...]]

    def scaling(self, variant: Any) -> Scaling:
        """How the rows of a variant are scaled."""
        return "norm"

    @abstractmethod
    def check(self, variants: Sequence[Any]) -> None:
        """Raise a ValueError if there is no such variant."""

    @abstractmethod
    def noise_key(self, job: Job) -> tuple[object, ...]:
        """What the noise of a fit depends on."""

    @abstractmethod
    def measure(self, answer: Any, split: Split) -> tuple[float, float]:
        """What is measured of a contender's answer on the held-out rows."""

    @abstractmethod
    def title(self, cell: Cell) -> str:
        """The heading of the table in which a cell stands."""

    @abstractmethod
    def columns(self, cell: Cell, winner: Cell | None, group: Sequence[Cell]) -> dict[str, str]:
        """One row of the table of a group, by its headings."""

    def rivals(self, group: Sequence[Cell]) -> list[Cell]:
        """Those to which a method of ours is compared for the share of cells in which it is as good as all."""
        return [cell for cell in group if self.contenders[cell.method].kind == "peer"]

    @abstractmethod
    def extra(self, report: Report, method: str) -> float | None:
        """One more number about a method of ours over all tables."""

    def parts(self, variants: Sequence[Any]) -> Sequence[Any]:
        """The variants that are summed up apart; None for all together."""
        return (None,)

    def part_title(self, part: Any) -> str:
        """What a summary is about."""
        return "all cells"

    @abstractmethod
    def summary(self, found: Summary, plan: Plan) -> dict[str, str]:
        """A method of ours over all tables, by the headings of the summary."""

    def chosen(self, asked: list[str] | None) -> list[str]:
        """The contenders asked for, in our order; all of them without a wish."""
        if unknown := [name for name in asked or [] if name not in self.contenders]:
            raise ValueError(f"there is no method {', '.join(unknown)}; there are {', '.join(self.contenders)}")
        return [name for name in self.contenders if not asked or name in asked]


def named(name: str) -> Task:
    """The task of this name, in any process."""
    task: Task = importlib.import_module(f"snugdp_studies.bench.{name}.task").TASK
    return task


def noise_start(*parts: object) -> int:
    """A number that depends on the names alone: the same on every machine and in every process."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, parts)).encode()).digest()[:8], "big")


def importable(name: str) -> bool:
    """Whether a contender can run here: diffprivlib is no dependency, and lags behind scikit-learn."""
    if name != "diffprivlib":
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("diffprivlib.models")
    except ImportError:
        return False
    return True
