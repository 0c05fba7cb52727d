"""A released table of statistics: columns of plain values, as a frame of whichever library one likes."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from snugdp.queries.estimate import Estimate
from snugdp.tables.sources import Source

Value: TypeAlias = str | int | float | bool | None
Library: TypeAlias = Literal["polars", "pandas", "pyarrow"]
_SHOWN = 12  # rows of a repr
ABOUT_POPULATION = ("standard_error", "population_lower", "population_upper")  # endings of names, as in ``Estimate``


@dataclass(frozen=True)
class StatisticsTable:
    """Released statistics, a row for every key or every column.

    Parameters
    ----------
    names : tuple of str
        The names of the columns.
    columns : tuple of tuple
        The columns, in the order of their names.
    library : {"polars", "pandas", "pyarrow"}
        The library of ``frame``.

    Examples
    --------
    >>> StatisticsTable(("city", "count"), (("Oslo", "Rome"), (12.0, 30.5)))
    city  count
    Oslo     12
    Rome   30.5
    """

    names: tuple[str, ...]
    columns: tuple[tuple[Value, ...], ...]
    library: Library = "polars"

    def __post_init__(self) -> None:
        if len(self.names) != len(self.columns) or len({len(column) for column in self.columns}) > 1:
            raise ValueError("a table has a name for every column, and columns of one length")

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, name: str) -> tuple[Value, ...]:
        """A column by its name."""
        if name not in self.names:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(self.names)}")
        return self.columns[self.names.index(name)]

    def estimate(self, statistic: str, **keys: Value) -> Estimate:
        """One number with its error, and what is known of the population: ``estimate("income_mean", city="Oslo")``.

        Estimates of different groups are about different rows: ``one.difference(other)`` compares them.

        Parameters
        ----------
        statistic : str
            A column that has another one with its errors, such as "count" or "income_mean".
        **keys
            The value of every key column.

        >>> table = StatisticsTable(("city", "count", "count_error"), (("Oslo", "Rome"), (12.0, 30.5), (3.0, 3.0)))
        >>> print(table.estimate("count", city="Rome"))
        30.5 ± 3.0 (95 %)
        """
        self[statistic], self[f"{statistic}_error"]
        rows = [row for row in range(len(self)) if all(self[name][row] == key for name, key in keys.items())]
        if len(rows) != 1:
            raise KeyError("name the value of every key column of a group that is in the table")
        held = {name: column[rows[0]] for name, column in zip(self.names, self.columns, strict=True)}
        about: dict[str, Any] = {name: held.get(f"{statistic}_{name}") for name in ABOUT_POPULATION}
        return Estimate(float(held[statistic] or 0), float(held[f"{statistic}_error"] or 0), **about)

    @property
    def lines(self) -> tuple[tuple[Value, ...], ...]:
        """Row by row."""
        return tuple(zip(*self.columns, strict=True))

    def to_dict(self) -> dict[str, list[Value]]:
        """The columns by name."""
        return {name: list(column) for name, column in zip(self.names, self.columns, strict=True)}

    def to_polars(self) -> Any:
        """A polars frame."""
        import polars as pl

        return pl.DataFrame([pl.Series(name, _even(held)) for name, held in self.to_dict().items()])

    def to_pandas(self) -> Any:
        """A pandas frame."""
        pandas: Any = importlib.import_module("pandas")
        return pandas.DataFrame({name: pandas.Series(_even(held)) for name, held in self.to_dict().items()})

    def to_arrow(self) -> Any:
        """A pyarrow table."""
        arrow: Any = importlib.import_module("pyarrow")
        return arrow.table({name: arrow.array(_even(held)) for name, held in self.to_dict().items()})

    @property
    def frame(self) -> Any:
        """A frame of the library that the data came in; polars for files."""
        return {"polars": self.to_polars, "pandas": self.to_pandas, "pyarrow": self.to_arrow}[self.library]()

    def __repr__(self) -> str:
        shown = [[name, *map(_written, held[:_SHOWN])] for name, held in self.to_dict().items()]
        widths = [max(map(len, column)) for column in shown]
        text = [isinstance(column[0], str) if column else False for column in self.columns]
        lines = [
            "  ".join(cell.ljust(w) if left else cell.rjust(w) for cell, w, left in zip(row, widths, text, strict=True))
            for row in zip(*shown, strict=True)
        ]
        more = [f"... {len(self) - _SHOWN} more rows"] if len(self) > _SHOWN else []
        return "\n".join(line.rstrip() for line in [*lines, *more])


def library_of(data: object) -> Library:
    """The library whose frames the data are; polars for files and all else."""
    if isinstance(data, Source):
        return data.library
    module = type(data).__module__.partition(".")[0]
    if module == "narwhals":
        return library_of(data.to_native())  # type: ignore[attr-defined]
    return "pandas" if module == "pandas" else "pyarrow" if module == "pyarrow" else "polars"


def _even(values: list[Value]) -> list[Value]:
    """Values that a column can hold: as they are, or as text where some are text and some are not."""
    kinds = {str if isinstance(value, str) else float for value in values if value is not None}
    return [None if value is None else str(value) for value in values] if len(kinds) > 1 else values


def _written(value: Value) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
