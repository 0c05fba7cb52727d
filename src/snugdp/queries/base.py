"""What all queries share: a budget that is read once, a plan, a release, and answers in the user's units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.core.outcome import LedgerLike, Outcome
from snugdp.ledger.question import Question, column_name, question
from snugdp.noise import Noise
from snugdp.numerics.rationals import rational
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import Mechanism
from snugdp.secrecy.secret import Secret

Data = TypeVar("Data")
Drawn = TypeVar("Drawn")
Seen = TypeVar("Seen")

_NAMES = ("by", "candidates", "categories", "clip", "column", "columns", "keys", "law", "method", "neighbours")
_WORDS = (*_NAMES, "schema", "statistics", "values")  # all other parameters are numbers


@dataclass(frozen=True, kw_only=True)
class Query(ABC, Generic[Seen]):
    """A question about a table, with its parameters as fields. What follows from them is prepared once and kept."""

    covered: ClassVar[tuple[Neighbours, ...]] = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)

    @cached_property
    def _budget(self) -> Budget:
        """The budget, if the query has a proof in this neighbouring relation."""
        given: Any = self
        budget = Budget(given.epsilon, getattr(self, "delta", 0), given.neighbours)
        if budget.neighbours not in self.covered:
            names = " or ".join(f'"{relation.value}"' for relation in self.covered)
            raise ValueError(f"this query is proved for neighbours={names} only")
        return budget

    @abstractmethod
    def plan(self) -> Plan:
        """What will be done, what it costs, what to expect. No data are read."""

    def release(self, data: object, *, ledger: LedgerLike | None = None, noise: Noise | None = None) -> Outcome[Seen]:
        """Pay, test where there is a test, release or refuse.

        ``ledger``: what is charged, a ledger or the path or URL of one. Without it this call has a budget of its own
        and nothing is being summed up, but for the ``cost`` of the outcome.

        Guarantee: the plan's cost, for neighbours in the chosen relation; assumptions are in the privacy promise.
        """
        context = ReleaseContext(noise, ledger, self._budget)
        return self._release(data, context.with_question(lambda: self._question(self._column(data))))

    @classmethod
    def _answer(cls, given: Mapping[str, Any]) -> Outcome[Seen]:
        """The release that a function asks for; ``given``: its arguments, by name."""
        query = cls(**{one.name: given[one.name] for one in fields(cls)})
        return query.release(given["data"], ledger=given["ledger"], noise=given["noise"])

    @abstractmethod
    def _release(self, data: object, context: ReleaseContext) -> Outcome[Seen]:
        """The release itself, in a context that pays."""

    def _column(self, data: object) -> str | None:
        """The name of the column that is asked about, if it has one."""
        return column_name(data)

    def _question(self, column: str | None) -> Question:
        """What is asked: the parameters, and the column."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("epsilon", "delta")}
        name = type(self).__name__
        parts = {"by": type(self), "budget": self._budget, "column": column}
        given["neighbours"] = self._budget.neighbours
        exact = {key: _exact(value) for key, value in given.items() if key not in _WORDS}
        return question(name if column is None else f"{name} of {column}", **parts, given={**given, **exact})

    def __getstate__(self) -> dict[str, Any]:
        """The parameters: what was prepared is made again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def require_delta(budget: Budget) -> None:
    """A test needs a failure probability."""
    if not 0 < budget.delta <= Fraction(1, 2):
        raise ValueError("this release needs 0 < delta <= 1/2, the probability that its test fails; 1e-6 is typical")


def _exact(value: Any) -> Any:
    """A number that was given as text, as the number."""
    if isinstance(value, tuple | list):
        return [_exact(end) for end in value]
    return rational(value, "number") if isinstance(value, str) else value


@dataclass(frozen=True)
class Shown(Generic[Data, Drawn, Seen]):
    """A mechanism whose public output is turned into the user's units."""

    mechanism: Mechanism[Data, Drawn]
    show: Callable[[Drawn], Seen]

    def draw(self, data: Secret[Data], noise: Noise) -> Seen:
        """Draw, then show."""
        return self.show(self.mechanism.draw(data, noise))
