"""What all queries share: reading a budget, and turning cells back into the user's units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Generic, TypeVar

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.ledger.question import Question, column_name, question
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.release.spine import Mechanism
from snugdp.secrecy.secret import Secret

Data = TypeVar("Data")
Drawn = TypeVar("Drawn")
Seen = TypeVar("Seen")

_WORDS = ("categories", "candidates", "columns", "law", "neighbours")  # all other parameters are numbers


def budget_for(epsilon: Real, delta: Real, neighbours: Neighbours | str, covered: tuple[Neighbours, ...]) -> Budget:
    """The budget, if the query has a proof in this neighbouring relation."""
    budget = Budget(epsilon, delta, neighbours)
    if budget.neighbours not in covered:
        names = " or ".join(f'"{relation.value}"' for relation in covered)
        raise ValueError(f"this query is proved for neighbours={names} only")
    return budget


def require_delta(budget: Budget) -> None:
    """A test needs a failure probability."""
    if not 0 < budget.delta <= Fraction(1, 2):
        raise ValueError("this release needs 0 < delta <= 1/2, the probability that its test fails; 1e-6 is typical")


def asked(query: Any, data: object) -> Question:
    """The question of a query about a column: its parameters, and the name of the column if it has one."""
    given = {one.name: getattr(query, one.name) for one in fields(query) if one.name not in ("epsilon", "delta")}
    name, column = type(query).__name__, column_name(data)
    parts = {"by": type(query), "budget": query._budget, "column": column}
    given["neighbours"] = query._budget.neighbours
    exact = {key: _exact(value) for key, value in given.items() if key not in _WORDS}
    return question(name if column is None else f"{name} of {column}", **parts, given={**given, **exact})


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
