"""Persons as the unit of privacy: a release about a few rows of each, carried over from single rows to persons.

Proof: ``persons.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Unit
from snugdp.noise import Noise
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Plan, whole_rows
from snugdp.propose.theorem import theorem

if TYPE_CHECKING:
    from snugdp.tables.sources import Source
    from snugdp.tables.weighed_table import WeighableTable, WeighedTable

MaxRows: TypeAlias = int | Literal["private"] | tuple[Literal["private"], int]
THEOREM = theorem("persons/1")
PRIVATE = "private"
LARGEST_CAP = 1024  # the last candidate of a cap that is found privately, unless another one is declared
_KEY_WORDS, _WORD_BITS = 4, 32  # of the key of the hash
_ALMOST = 1 - Fraction(1, 10**9)  # room for rounding
_ONE = (
    "several rows of one person are proved to be protected if the whole cost of a release is pure or Gaussian; "
    "this one has a test, a threshold for keys or levels that are not listed, or a perturbed objective. Use "
    'max_rows=1, which always works, or list keys and levels, or take a method without a test, such as method="adassp"'
)
_PRIVATE_CAP = (
    'max_rows="private" is for count, sum, mean, variance, standard_deviation, proportion, histogram and group_by with '
    'listed keys, and for regressions with method="auto": give max_rows as a number here, such as max_rows=1'
)


@dataclass(frozen=True)
class Persons:
    """Whose rows belong together, how many of each person are used, and what may be spent on a person.

    ``column``: of the identifiers. ``most``: rows of a person. ``budget``: for a person, with all rows.
    ``is_private``: whether the cap is to be found privately; then ``most`` is the public bound, its last candidate.

    Guarantee: a release about the kept table that costs ``plan`` for one row costs ``self.plan(plan)`` for one person,
    whatever the number of rows (``persons.proof.md``, Theorem 1). One that was planned for persons, on the tables that
    ``weighed`` makes, costs what its plan says (Theorem 2 there).
    """

    column: str
    most: int
    budget: Budget
    is_private: bool = False

    @classmethod
    def of(cls, person: Any, max_rows: Any, budget: Budget, *, private: bool = False) -> Persons | None:
        """From the parameters of a query or an estimator; None where rows are protected one by one.

        ``private``: whether whoever asks can find a cap privately, as ``max_rows="private"`` says; otherwise that is
        refused.
        """
        most, is_private = cap_of(max_rows)
        if is_private and not private:
            raise ValueError(_PRIVATE_CAP)
        if person is None:
            if most > 1:
                raise ValueError('max_rows needs person="...", the column that says whose rows belong together')
            return None
        if not isinstance(person, str) or not person:
            raise TypeError('person must be the name of a column, such as person="customer_id"')
        if (most > 1 or is_private) and budget.neighbours is Neighbours.REPLACE:
            raise ValueError(
                "with max_rows above 1, or found privately, the number of rows is private: use max_rows=1, or "
                'neighbours="add_remove"'
            )
        return cls(person, most, budget, is_private)

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
        """The plan for persons: from one for single rows of the kept table, or as it was planned for persons."""
        if plan.unit is Unit.PERSON:
            return self._planned(plan)
        if not covered(plan.cost) and self.most > 1:
            raise ValueError(f"max_rows={self.most}: {_ONE}")
        steps = tuple(replace(step, cost=grouped(step.cost, self.most)) for step in plan.steps)  # 3
        note = Note("persons-one") if self.most == 1 else Note("persons-several", {"rows": self.most})
        whole = replace(plan, steps=steps, budget=self.budget, unit=Unit.PERSON).with_notes(note)
        if self.most > 1 and not whole.cost.fits(self.budget):
            raise ValueError(f"max_rows={self.most}: this release does not fit into the budget of a person")
        return whole

    def _planned(self, plan: Plan) -> Plan:
        """A plan for persons whose rows weigh at most ``most`` together."""
        if not plan.cost.fits(self.budget):  # 5
            raise ValueError(f"max_rows={self.most}: this release does not fit into the budget of a person")
        if any(note.code.startswith("persons-") for note in plan.forecast.notes):
            return plan
        note = Note("persons-together-one") if self.most == 1 else Note("persons-together", {"rows": self.most})
        return replace(plan, budget=self.budget).with_notes(note)

    def weighed(
        self, source: Source, columns: Sequence[str], noise: Noise, *, progress: bool | None = None
    ) -> WeighedTable | WeighableTable:
        """All rows with weights that add up to at most ``most`` for each person, and one row of each: of one key.

        Where the weight is to be found privately, how many rows persons have, and one row of each. All of it is
        private, and the same in every pass over it. The key is drawn here, without a look at any row.
        """
        from snugdp.tables.persons.keep import keep_rows  # polars: only for those who bring a table
        from snugdp.tables.persons.weights import person_counts, weigh_rows
        from snugdp.tables.weighed_table import WeighableTable, WeighedTable, unused

        key, name = drawn_key(noise), unused(columns)
        one = keep_rows(source, columns, self.column, 1, key, progress=progress)
        weigh = partial(weigh_rows, source, columns, self.column, key=key, weight=name, progress=False)
        if self.is_private:
            return WeighableTable(one, person_counts(source, self.column, progress=False).tolist(), weigh, name)
        return WeighedTable(weigh(self.most), one, self.most, name)  # 4

    def kept(self, source: Source, columns: Sequence[str], noise: Noise, *, progress: bool | None = None) -> Source:
        """At most so many rows of each person, as a table of its own: private, and the same in every pass over it.

        The key is drawn here, without a look at any row.
        """
        from snugdp.tables.persons.keep import keep_rows  # polars: only for those who bring a table

        return keep_rows(source, columns, self.column, self.most, drawn_key(noise), progress=progress)  # 2


def cap_of(max_rows: Any) -> tuple[int, bool]:
    """The most rows of a person, and whether that is the public bound of a cap that is to be found privately.

    >>> cap_of(3), cap_of("private"), cap_of(("private", 50))
    ((3, False), (1024, True), (50, True))
    """
    if isinstance(max_rows, str):
        if max_rows != PRIVATE:
            raise ValueError('max_rows must be a whole number, or "private"')
        return LARGEST_CAP, True
    if isinstance(max_rows, tuple | list):
        if len(max_rows) != 2 or max_rows[0] != PRIVATE:
            raise ValueError('max_rows must be a whole number, "private", or ("private", the largest cap)')
        return whole_rows(max_rows[1], "the largest cap of max_rows") or LARGEST_CAP, True
    return whole_rows(max_rows, "max_rows") or 1, False


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
