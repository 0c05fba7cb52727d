"""What all ways to fit a model have in common: the public design, the released fit, and the interface of a method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.core.outcome import Outcome, Unit
from snugdp.propose.forecast import Accuracy
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.base import row_map
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Schema

MOST_ENTRIES = 128
"""Of a row, where a method looks at X'X beside other statistics: of more it is mostly noise, and takes long."""

_BITS = 60


@dataclass(frozen=True)
class Design:
    """What is public about the rows of a regression: their number of entries and their bounds, as they are enforced.

    Rows and targets are those of the row map: whole numbers of cells, times ``unit``. ``weight``: so much the rows of
    one person weigh together, at most, where all of them are used with weights; None where they are not.
    ``max_rows``: of a person, who comes or goes with all of them, where so many are kept; 1 where that is a row.
    """

    row_map: RowMap
    weight: int | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.weight is not None and (self.weight < 1 or self.max_rows > 1):
            raise ValueError("the rows of a person weigh 1 at least, and are not kept as well")

    @classmethod
    def of(cls, schema: Schema, bits: int | None = None) -> Design:
        """The design of a schema with a target."""
        if schema.target is None:
            raise ValueError("a regression needs a target: name one in the schema")
        return cls(row_map(schema, bits))

    @property
    def entries(self) -> int:
        """The number of coefficients, with the intercept."""
        return self.row_map.entries

    @property
    def unit(self) -> Fraction:
        """One cell. Entries of X'X and X'y are in units of its square."""
        return self.row_map.unit

    @property
    def x_squared(self) -> Fraction:
        """B squared, exactly: no row has a larger squared norm, the constant included."""
        return self.row_map.limits.norm_squared * self.unit**2

    @property
    def x_bound(self) -> Fraction:
        """B, rounded up."""
        square = self.x_squared
        return Fraction(math.isqrt(math.ceil(square * 4**_BITS)) + 1, 2**_BITS)

    @property
    def together(self) -> int:
        """How many rows one neighbour has more than the other: 1, or as many as the rows of a person count for."""
        return 1 if self.weight is None else self.weight

    @property
    def curvature(self) -> Fraction:
        """The most that a person adds to an eigenvalue of X'X, rounded up: B squared for each row."""
        return self.max_rows * self.x_bound**2

    @property
    def protects(self) -> Unit:
        """Whom a method for this design protects, before rows of persons are thought of."""
        return Unit.ROW if self.weight is None and self.max_rows == 1 else Unit.PERSON

    def require_single_rows(self, method: str) -> None:
        """Refuse several rows of a person where nothing is proved of them."""
        if self.protects is not Unit.ROW:
            raise ValueError(
                f"max_rows={self.max_rows * self.together}: {method} is not proved for persons with several rows. "
                "Use max_rows=1, which always works"
            )

    @property
    def y_bound(self) -> Fraction:
        """The bound on a target, exactly."""
        return self.row_map.target_limit * self.unit


def of_design(rows: Rows, design: Design) -> Rows:
    """The rows, if theirs is this design: others have other sensitivities, and end like any private failure."""
    if row_map(rows.schema, rows.bits) != design.row_map or rows.weight != design.weight:
        raise ValueError("the rows do not have the design that was planned for")
    return rows


def one_of_each(rows: Rows, design: Design) -> Rows:
    """One row of each person, of rows of this design: all of them where single rows are protected."""
    return of_design(rows, design).one


def check_budget(budget: Budget) -> None:
    """Refuse a budget that no theorem here speaks of."""
    if budget.neighbours is not Neighbours.ADD_REMOVE:
        raise ValueError('this method is proved for neighbours="add_remove" only: leave out neighbours')
    if not budget.delta:
        raise ValueError("this method has Gaussian noise and needs delta > 0, such as 1e-6")


def check_rows(rows: int | None) -> None:
    """Refuse a guess of the number of rows that is none."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise ValueError("rows, a public guess of the number of rows, must be a whole number above 0")


@dataclass(frozen=True)
class Fit:
    """What a method released: coefficients on a public grid, one for each entry of the row map, and how noisy they are.

    ``noise``: the standard deviation of the noise of each coefficient, or of all of them (root of the mean square), as
    far as released numbers tell; ``None`` where they do not. ``released``: every other number that was released or
    chosen from released numbers, such as the regulariser.
    """

    theta: NDArray[np.float64]
    noise: float | NDArray[np.float64] | None = None
    released: Mapping[str, float] = field(default_factory=dict)


class KeepsRows:
    """A method of which every pass begins with the rows of its design: it pays to keep them at the first."""

    @property
    def enough_rows(self) -> int | None:
        """With about so many the first pass is all that it needs, by what is public; None if it never is."""
        return None


class SumsRows:
    """A method of which the first pass sums up the rows, and that needs no second moments of them."""


def first_pass(method: object, rows: Rows) -> None:
    """The first pass that a method makes, before its charge: a table that cannot be read is found there."""
    if isinstance(method, SumsRows):
        rows.sums()
    elif isinstance(method, KeepsRows):
        rows.read(keep=True, enough=method.enough_rows)
    else:
        rows.read(keep=False)


class Method(Protocol):
    """One way to fit: made from the design, the budget and proposals; all of it public and checked when it is made."""

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        ...

    def forecast(self, rows: int) -> Accuracy:
        """What to expect for a table of about so many rows whose entries are spread evenly over all directions."""
        ...

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, test, release or refuse."""
        ...
