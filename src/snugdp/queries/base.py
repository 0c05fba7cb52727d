"""What all queries share: a budget that is read once, a plan, a release, and answers in the user's units."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Required, Self, TypedDict, TypeVar

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.core.outcome import LedgerLike, Outcome, Unit
from snugdp.ledger.question import Question, column_name, question
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import EPSILONS
from snugdp.propose.plan import Plan
from snugdp.queries.bounds.given import GivenBounds
from snugdp.queries.docstrings import inherit_docstring
from snugdp.release.context import ReleaseContext, require_same
from snugdp.release.parts import part_of
from snugdp.release.persons import MaxRows, Persons
from snugdp.release.spine import Mechanism
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Ends
from snugdp.tables.schema.schema import undivided

if TYPE_CHECKING:
    from snugdp.ledger.parts import TablePart
    from snugdp.tables.sources import Source

Data = TypeVar("Data")
Drawn = TypeVar("Drawn")
Seen = TypeVar("Seen")
Seen_co = TypeVar("Seen_co", covariant=True)

_NAMES = ("by", "candidates", "categories", "clip", "column", "columns", "keys", "law", "method", "neighbours")
_LATER = {"person": None, "max_rows": 1, "inference": False}  # with their defaults, with which keys do not tell of them
_WORDS = (*_NAMES, "person", "schema", "statistics", "values")  # all other parameters are numbers


class ReleaseKeywords(TypedDict, total=False):
    """The keyword arguments of every function that asks a query; a test compares them with the query's fields."""

    epsilon: Required[Real]
    neighbours: Neighbours | str
    person: str | None
    max_rows: MaxRows
    ledger: LedgerLike | None
    noise: Noise | None


class ColumnKeywords(ReleaseKeywords, total=False):
    """Those of a query on one column."""

    delta: Real
    column: str | None


class BoundedKeywords(ColumnKeywords, total=False):
    """Those of a query on one column of numbers."""

    bounds: GivenBounds


class SearchedQuery(Protocol[Seen_co]):
    """A query and what is found privately before it, as one release."""

    @property
    def plan(self) -> Plan:
        """What will be done and what it costs."""

    def release(self, data: object, context: ReleaseContext) -> Outcome[Seen_co]:
        """Pay, look, and ask with what was found."""


class PersonRelease(Protocol[Seen_co]):
    """A release about what persons add with all their rows."""

    @property
    def plan(self) -> Plan:
        """What will be done and what it costs."""

    def release(self, source: Source, library: Any, context: ReleaseContext) -> Outcome[Seen_co]:
        """Read, pay, draw."""


@dataclass(frozen=True, kw_only=True)
class Query(ABC, Generic[Seen]):
    """A question about a table, with its parameters as fields. What follows from them is prepared once and kept.

    Parameters
    ----------
    person : str, optional
        The column that says whose rows belong together, such as "customer_id": then persons are protected, whatever
        the number of their rows. A row without an identifier is a person of its own. The data are a table with this
        column and those that are asked about. Identifiers of 16 digits and more must not be in a plain column of
        pandas (int64, object, str), where they are left out: read them as "string" or "Int64".
    max_rows : int, "private" or ("private", int), default=1
        How much a person may contribute: as much as so many rows. The noise grows with it. Of counts, histograms,
        proportions and groups with listed keys all rows of a person are used, and their total is scaled down where it
        is longer; of other releases so many rows are kept, chosen at random. "private": the cap is found privately
        and released with the answer, for about a tenth of the budget, among caps up to 1024 or to the given bound.
    """

    person: str | None = None
    max_rows: MaxRows = 1

    finds_caps: ClassVar[bool] = False  # whether max_rows may be "private"
    covered: ClassVar[tuple[Neighbours, ...]] = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
    _later: ClassVar[Mapping[str, Any]] = {}  # further parameters that keys do not tell of with their defaults
    _partial: ClassVar[bool] = False  # whether there is an answer also where some bounds are not found

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        inherit_docstring(cls)

    @cached_property
    def _budget(self) -> Budget:
        """The budget, if the query has a proof in this neighbouring relation."""
        given: Any = self
        budget = Budget(given.epsilon, getattr(self, "delta", 0), given.neighbours)
        if budget.neighbours not in self.covered:
            names = " or ".join(f'"{relation.value}"' for relation in self.covered)
            raise ValueError(f"this query is proved for neighbours={names} only")
        return budget

    def plan(self, *, ledger: LedgerLike | None = None, error: Real | None = None) -> Plan:
        """What will be done, what it costs, what to expect. No data are read.

        ``ledger``: the one that is to pay; if it protects somebody else, or counts by another relation, that is said
        here. Nothing is charged. ``error``: noise is to move the answer by less in 19 of 20 cases; the plan is then for
        the smallest epsilon, of round ones up to 10, that is expected to bring it.
        """
        if error is not None:
            return self._at(self._epsilon_for(float(rational(error, "error")))).plan(ledger=ledger)
        require_same(ledger, Unit.ROW if self._persons is None else Unit.PERSON, self._budget.neighbours)
        if self._persons is not None:
            return self._persons.plan(self._of_rows.plan()) if self._totals is None else self._totals.plan
        return self._plan if self._search is None else self._search.plan

    def _epsilon_for(self, error: float) -> float:
        """The smallest epsilon that is expected to bring an error. All that counts is public."""
        if error <= 0:
            raise ValueError("error must be above 0: how far noise may move the answer")
        most = self._at(EPSILONS[-1]).plan().forecast.answer_error
        if most is None:
            raise ValueError(
                "error=... is for queries whose plan says in one number how far noise moves the answer: give rows=..., "
                "a public guess, if there is such a parameter; otherwise compare plans at several epsilons"
            )
        if most > error:
            raise ValueError(
                f"no epsilon up to {EPSILONS[-1]:g} is enough: at epsilon {EPSILONS[-1]:g} noise moves the answer by "
                f"less than {most:.4g} in 19 of 20 cases"
            )
        return EPSILONS[bisect_left(EPSILONS, True, key=lambda each: self._error_at(each) <= error)]

    def _at(self, epsilon: float) -> Self:
        """The same query at another epsilon."""
        given: Any = {"epsilon": epsilon}
        return replace(self, **given)

    def _error_at(self, epsilon: float) -> float:
        """Without end where the plan does not say it, and where the epsilon is too small for the query."""
        try:
            expected = self._at(epsilon).plan().forecast.answer_error
        except ValueError:
            return math.inf
        return math.inf if expected is None else expected

    @cached_property
    def _persons(self) -> Persons | None:
        """Whose rows belong together, by this query or its schema; None where rows are protected one by one."""
        found = getattr(getattr(self, "bounds", None), "declared", None)
        given = (self.person, *(getattr(each, "person", None) for each in (getattr(self, "schema", None), found)))
        person = next((name for name in given if name is not None), None)
        return Persons.of(person, self.max_rows, self._budget, private=self.finds_caps)

    @property
    def _totals(self) -> PersonRelease[Seen] | None:
        """The release about the totals of persons, where there is one; otherwise some rows of each are kept."""
        return None

    @cached_property
    def _of_rows(self) -> Self:
        """The same question about the kept rows, each of which is protected by itself."""
        assert self._persons is not None
        for budget in self._persons.row_budgets:
            asked = self.without_persons(epsilon=budget.epsilon)
            if self._persons.most == 1 or self._persons.fits(asked.plan()):
                return asked
        return asked  # whose plan says what is wrong with it

    def without_persons(self, **changes: Any) -> Self:
        """The same question about a table in which every row is somebody's only one."""
        schema, bounds = (getattr(self, name, None) for name in ("schema", "bounds"))
        known: dict[str, Any] = {} if schema is None else {"schema": undivided(schema)}
        if bounds is not None and hasattr(bounds, "declared"):
            known["bounds"] = replace(bounds, declared=undivided(bounds.declared))
        return replace(self, person=None, max_rows=1, **known, **changes)

    @property
    def _read_columns(self) -> tuple[str, ...] | None:
        """The columns of a table that are read; None where the data are a column by itself."""
        column = getattr(self, "column", None)
        return None if column is None else (column,)

    @property
    @abstractmethod
    def _plan(self) -> Plan:
        """The plan where all bounds are known."""

    @property
    def _open(self) -> Mapping[str, Ends]:
        """The columns whose bounds are to be found first, and the ends of them that are public."""
        return {}

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        """The same with bounds that were found, about so many rows, and less to spend."""
        raise NotImplementedError

    def _opened(self, data: object) -> tuple[Source, object]:
        """The table in which open columns are looked at, and the data as the query reads them afterwards."""
        raise NotImplementedError

    @cached_property
    def _search(self) -> SearchedQuery[Seen] | None:
        if not self._open:
            return None
        from snugdp.queries.search import BoundsSearch  # looks read tables: only for those who need them

        return BoundsSearch(self)

    def release(self, data: object, *, ledger: LedgerLike | None = None, noise: Noise | None = None) -> Outcome[Seen]:
        """Pay, test where there is a test, release or refuse.

        Guarantee: the plan's cost, for neighbours in the chosen relation; assumptions are in the privacy promise.

        Parameters
        ----------
        data : array-like or table
            The column, or a pair of columns where two are asked about. A query that names columns takes a table with
            them instead: a frame, the path of files, a database table or a Spark table.
        ledger : Ledger, MemoryLedger, str or path, optional
            The ledger to charge, or its path or URL. Without one this release is not counted against any budget; the
            outcome still states its ``cost``.
        noise : Noise, optional
            A ``Simulation`` rehearses the release, which is then NOT PRIVATE.

        Returns
        -------
        Outcome
            ``Released`` with the value, or ``Refused`` where there is a test; ``NotPrivate`` after a rehearsal.
        """
        part = part_of(ledger, None if self._persons is None else self._persons.column)
        if part is not None:
            return self._in_part(data, part, ledger, noise)
        return self._asked_of(data, ledger, noise)

    def _in_part(self, data: object, part: TablePart, ledger: LedgerLike | None, noise: Noise | None) -> Outcome[Seen]:
        """The release about the rows of one part of a table."""
        from snugdp.queries.parts import in_part  # polars: only for those who bring a table
        from snugdp.queries.persons import alone

        rows, only = in_part(data, part, self._read_columns, None if self._persons is None else self._persons.column)
        if only is None or self._persons is not None:
            return self._asked_of(rows, ledger, noise, part)
        if hasattr(self, "column"):
            named = replace(self, column=only)  # type: ignore[call-arg]
            return named._asked_of(rows, ledger, noise, part)
        ReleaseContext(noise, ledger, self._budget, part=part)  # what it refuses is refused before rows are read
        return self._asked_of(alone(rows, only), ledger, noise, part)

    def _asked_of(
        self, data: object, ledger: LedgerLike | None, noise: Noise | None, part: TablePart | None = None
    ) -> Outcome[Seen]:
        """The release about these rows."""
        asked = self._for(data)
        persons = asked._persons
        if persons is None:
            context = ReleaseContext(noise, ledger, asked._budget, part=part)
            return asked._answered(data, context.with_question(lambda: asked._question(asked._column(data))))
        from snugdp.queries.persons import PersonTable  # polars: only for those who bring a table

        context = ReleaseContext(noise, ledger, asked._budget, unit=Unit.PERSON, part=part)
        table = PersonTable.of(data, persons, asked._read_columns)
        context = context.with_question(lambda: asked._question(table.column or asked._column(data)))
        if asked._totals is not None:
            named = asked if table.column is None else replace(asked, column=table.column)  # type: ignore[call-arg]
            assert named._totals is not None
            return named._totals.release(table.source, table.library, context)
        return asked._of_rows._answered(table.kept(context.noise), context.for_persons(persons))

    def _for(self, data: object) -> Self:
        """The same question, with what names and declared types of the data add to it."""
        return self

    def _answered(self, data: object, context: ReleaseContext) -> Outcome[Seen]:
        """The release in a context that pays, after a search for bounds where they are not known."""
        return self._release(data, context) if self._search is None else self._search.release(data, context)

    @classmethod
    def _answer(
        cls, data: object, *, ledger: LedgerLike | None = None, noise: Noise | None = None, **parameters: Any
    ) -> Outcome[Seen]:
        """The release that a function asks for."""
        return cls(**parameters).release(data, ledger=ledger, noise=noise)

    @abstractmethod
    def _release(self, data: object, context: ReleaseContext) -> Outcome[Seen]:
        """The release itself, in a context that pays."""

    def _column(self, data: object) -> str | None:
        """The name of the column that is asked about, if it has one."""
        named: str | None = getattr(self, "column", None)
        return column_name(data) if named is None else named

    def _question(self, column: str | None) -> Question:
        """What is asked: the parameters, and the column."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("epsilon", "delta")}
        later = {**_LATER, **self._later}
        given = {key: value for key, value in given.items() if later.get(key, ...) != value}
        name = type(self).__name__
        parts = {"by": type(self), "budget": self._budget, "column": column}
        given["neighbours"] = self._budget.neighbours
        exact = {key: _exact(value) for key, value in given.items() if key not in _WORDS}
        return question(name if column is None else f"{name} of {column}", **parts, given={**given, **exact})

    def __getstate__(self) -> dict[str, Any]:
        """The parameters: what was prepared is made again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def require_name(column: object) -> None:
    """A column goes by its name."""
    if column is not None and not isinstance(column, str):
        raise TypeError("column must be the name of a column of the table")


def require_delta(budget: Budget) -> None:
    """A test needs a failure probability."""
    if not 0 < budget.delta <= Fraction(1, 2):
        raise ValueError("this release needs 0 < delta <= 1/2, the probability that its test fails; 1e-6 is typical")


def _exact(value: Any) -> Any:
    """A number that was given as text, as the number."""
    if isinstance(value, tuple | list):
        return [_exact(end) for end in value]
    return rational(value, "number") if isinstance(value, str) and value != "private" else value


@dataclass(frozen=True)
class Shown(Generic[Data, Drawn, Seen]):
    """A mechanism whose public output is turned into the user's units."""

    mechanism: Mechanism[Data, Drawn]
    show: Callable[[Drawn], Seen]

    def draw(self, data: Secret[Data], noise: Noise) -> Seen:
        """Draw, then show."""
        return self.show(self.mechanism.draw(data, noise))
