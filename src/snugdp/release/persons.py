"""Persons as the unit of privacy: a release about a few rows of each, carried over from single rows to persons.

Proof: ``persons.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Unit
from snugdp.noise import Noise
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, whole_rows
from snugdp.propose.theorem import theorem

if TYPE_CHECKING:
    from snugdp.tables.sources import Source

THEOREM = theorem("persons/1")
_KEY_WORDS, _WORD_BITS = 4, 32  # of the key of the hash
_ALMOST = 1 - Fraction(1, 10**9)  # room for rounding
_ONE = (
    "rows of one person are proved to be protected together for releases whose whole cost is pure, or is Gaussian; "
    "this one has a test, a threshold for what is not listed, or a perturbed objective. Use max_rows=1, which always "
    'works, or a method without these, such as method="adassp" or listed keys'
)


@dataclass(frozen=True)
class Persons:
    """Whose rows belong together, how many of each person are used, and what may be spent on a person.

    ``column``: of the identifiers. ``most``: rows of a person. ``budget``: for a person, with all rows.

    Guarantee: a release about the kept table that costs ``plan`` for one row costs ``self.plan(plan)`` for one person,
    whatever the number of rows (``persons.proof.md``, Theorem 1).
    """

    column: str
    most: int
    budget: Budget

    @classmethod
    def of(cls, person: Any, max_rows: Any, budget: Budget) -> Persons | None:
        """From the parameters of a query or an estimator; None where rows are protected one by one."""
        most = whole_rows(max_rows, "max_rows") or 1
        if person is None:
            if most > 1:
                raise ValueError('max_rows needs person="...", the column that says whose rows belong together')
            return None
        if not isinstance(person, str) or not person:
            raise TypeError('person must be the name of a column, such as person="customer_id"')
        if most > 1 and budget.neighbours is Neighbours.REPLACE:
            raise ValueError(
                'with max_rows above 1 the number of rows is private: use max_rows=1, or neighbours="add_remove"'
            )
        return cls(person, most, budget)

    @property
    def row_budgets(self) -> tuple[Budget, ...]:
        """What may be spent on a single row, the best first: the first whose plan ``fits`` is taken."""
        if self.most == 1:
            return (self.budget,)
        pure = replace_epsilon(self.budget, self.budget.epsilon / self.most)
        return (pure, self.gaussian_budget) if self.budget.delta else (pure,)

    @property
    def gaussian_budget(self) -> Budget:
        """What may be spent on a single row by Gaussian noise; by pure noise where there is no delta."""
        whole, most = self.budget, self.most
        if most == 1 or not whole.delta:
            return replace_epsilon(whole, whole.epsilon / most)
        mu = Fraction(gaussian.mu(whole.epsilon, whole.delta)) / most * _ALMOST
        epsilon = Fraction(gaussian.epsilon(mu, whole.delta))
        if not epsilon:
            raise ValueError(f"max_rows={most} leaves nothing of this budget for a single row: use fewer rows")
        return replace_epsilon(whole, epsilon)

    def fits(self, plan: Plan) -> bool:
        """Whether a plan for single rows is one for persons within the budget."""
        return self.most == 1 or (covered(plan.cost) and grouped(plan.cost, self.most).fits(self.budget))

    def plan(self, plan: Plan) -> Plan:
        """The plan for persons, from one for single rows of the kept table."""
        if not covered(plan.cost) and self.most > 1:
            raise ValueError(f"max_rows={self.most}: {_ONE}")
        steps = tuple(replace(step, cost=grouped(step.cost, self.most)) for step in plan.steps)  # 3
        note = Note("persons-one") if self.most == 1 else Note("persons-several", {"rows": self.most})
        whole = replace(plan, steps=steps, budget=self.budget, unit=Unit.PERSON).with_notes(note)
        if self.most > 1 and not whole.cost.fits(self.budget):
            raise ValueError(f"max_rows={self.most}: this release does not fit into the budget of a person")
        return whole

    def kept(self, source: Source, columns: Sequence[str], noise: Noise, *, progress: bool | None = None) -> Source:
        """At most so many rows of each person, as a table of its own: private, and the same in every pass over it.

        The key is drawn here, without a look at any row.
        """
        from snugdp.tables.persons.keep import keep_rows  # polars: only for those who bring a table

        return keep_rows(source, columns, self.column, self.most, drawn_key(noise), progress=progress)  # 2


def drawn_key(noise: Noise) -> int:
    """The key of one release: 128 bits, uniform, and never shown."""
    words = noise.scatter(_KEY_WORDS, 1 << _WORD_BITS)  # 1
    return sum(int(word) << _WORD_BITS * place for place, word in enumerate(words))


def covered(cost: Cost) -> bool:
    """Whether there is a theorem for several rows: the cost is pure, or it is Gaussian."""
    return not (cost.delta or cost.variation or cost.atoms or (cost.mu_squared and cost.epsilon))


def grouped(cost: Cost, rows: int) -> Cost:
    """What is spent on so many rows together, of a cost that is covered."""
    if rows == 1:
        return cost
    return Cost(mu_squared=cost.mu_squared * rows**2, epsilon=cost.epsilon * rows, neighbours=cost.neighbours)


def replace_epsilon(budget: Budget, epsilon: Fraction) -> Budget:
    """The same budget with another epsilon."""
    return Budget(epsilon, budget.delta, budget.neighbours)
