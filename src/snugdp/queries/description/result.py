"""A released description of a table: its rows, a line for every column, and the counts of listed values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from snugdp.queries.estimate import Estimate, with_digits
from snugdp.queries.table import StatisticsTable, Value
from snugdp.tables.found_lines import date_text

COLUMN, TYPE, RANKS = "column", "type", "quantile_ranks"
_BEFORE = (COLUMN, TYPE, "count", "count_error", "missing", "missing_error")
_MOMENTS = (
    "mean", "mean_error", "mean_below", "mean_above",
    "standard_deviation", "standard_deviation_error", "standard_deviation_below", "standard_deviation_above",
)  # fmt: skip
_AFTER = (RANKS, "top", "top_count")
VALUE_NAMES = (COLUMN, "value", "count", "count_error")
_ESTIMATED = ("count", "missing", "mean", "standard_deviation")
_HEADS = {"standard_deviation": "deviation"}
_SHOWN = 5  # values of a column in a text


def names_with(quantiles: Sequence[str]) -> tuple[str, ...]:
    """The names of the table of columns, with these quantiles."""
    return (*_BEFORE, *_MOMENTS, *quantiles, *_AFTER)


@dataclass(frozen=True)
class TextTable:
    """Columns of text. What stands in the first and, of listed values, in the last is words; all else is numbers."""

    heads: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]

    def is_words(self, place: int) -> bool:
        """Whether a column is words."""
        return place == 0 or self.heads[place] == "most frequent"

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """Line by line."""
        return tuple(zip(*self.columns, strict=True))

    @property
    def widths(self) -> list[int]:
        """Of the columns, in letters."""
        return [max(map(len, (head, *column))) for head, column in zip(self.heads, self.columns, strict=True)]

    def within(self, width: int) -> Iterator[TextTable]:
        """Tables of numbers that are not wider than so many letters, if columns are not; each names its lines."""
        first, *others = range(len(self.heads))
        rest = width - self.widths[first]
        while others:
            many = max(1, sum(used <= rest for used in accumulate(self.widths[place] + 2 for place in others)))
            kept, others = [first, *others[:many]], others[many:]
            yield TextTable(tuple(self.heads[at] for at in kept), tuple(self.columns[at] for at in kept))

    def __str__(self) -> str:
        widths = self.widths
        return "\n".join(
            "  ".join(
                cell.ljust(width) if self.is_words(place) else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (self.heads, *self.lines)
        )


@dataclass(frozen=True)
class Description:
    """What was released about the columns of a table.

    Dates are numbers of days since 1970 here, and dates where the description is printed.

    Parameters
    ----------
    rows : Estimate
        How many rows the table has; without an error where that is public.
    columns : StatisticsTable
        A row for every column: ``count`` (rows with an entry), ``missing``, ``mean`` (of booleans the share of yes),
        ``standard_deviation``, quantiles such as ``50%``, and the most frequent listed value (``top``). In 19 of 20
        cases the noise is below the number in ``..._error``, and quantiles are off by at most ``quantile_ranks`` ranks.
        ``..._below`` and ``..._above``: what clipping may hide, as in ``Estimate``.
    values : StatisticsTable
        The counts of listed values, or of those that were found, the most frequent ones of every column first.
    left_out : mapping of str to str
        Columns of the table that are not described, and why; with a schema there are none.

    Examples
    --------
    >>> import polars as pl
    >>> from snugdp import Describe, Number, Schema
    >>> query = Describe(schema=Schema({"age": Number(0, 120)}), epsilon=1)
    >>> found = query.release(pl.DataFrame({"age": [20 + i % 41 for i in range(5000)]})).value
    >>> 39 < found.mean("age").value < 41, found.columns["column"]
    (True, ('age',))
    """

    rows: Estimate
    columns: StatisticsTable
    values: StatisticsTable
    left_out: Mapping[str, str] = field(default_factory=dict)

    def mean(self, column: str) -> Estimate:
        """The mean of a column; of a column of booleans the share of yes."""
        return self._estimate(column, "mean")

    def count(self, column: str) -> Estimate:
        """How many rows have an entry in a column."""
        return self._estimate(column, "count")

    def _estimate(self, column: str, statistic: str) -> Estimate:
        line = self._line(column)
        value, error = line[statistic], line[f"{statistic}_error"]
        if not isinstance(value, float) or not isinstance(error, float):
            raise KeyError(f"no {statistic} of this column was released")
        below, above = (line.get(f"{statistic}_{side}", 0.0) for side in ("below", "above"))
        assert not isinstance(below, str)
        assert not isinstance(above, str)
        return Estimate(value, error, below=below, above=above)

    def _line(self, column: str) -> dict[str, Value]:
        return dict(zip(self.columns.names, self.columns.lines[self._place(column)], strict=True))

    def _place(self, column: str) -> int:
        names = self.columns[COLUMN]
        if column not in names:
            raise KeyError(f"there is no such column; there are {', '.join(map(str, names))}")
        return names.index(column)

    def counts(self, column: str) -> dict[Value, Estimate]:
        """The listed values of a column with their counts, the most frequent first."""
        self._place(column)
        lines = self.values.lines
        return {value: Estimate(float(c or 0), float(e or 0)) for name, value, c, e in lines if name == column}

    def to_polars(self) -> Any:
        """The columns as a polars frame."""
        return self.columns.to_polars()

    def to_pandas(self) -> Any:
        """The columns as a pandas frame."""
        return self.columns.to_pandas()

    def to_arrow(self) -> Any:
        """The columns as a pyarrow table."""
        return self.columns.to_arrow()

    @property
    def frame(self) -> Any:
        """The columns as a frame of the library that the data came in; polars for files."""
        return self.columns.frame

    @property
    def quantiles(self) -> tuple[str, ...]:
        """The names of the quantiles."""
        return self.columns.names[len(_BEFORE) + len(_MOMENTS) : -len(_AFTER)]

    def texts(self) -> tuple[TextTable, ...]:
        """Tables for people: of numbers, of dates, and of listed values; those that there are."""
        lines = [dict(zip(self.columns.names, line, strict=True)) for line in self.columns.lines]
        of_type = {kind: [line for line in lines if line[TYPE] == kind] for kind in _POINTS}
        made = {f"{kind}s": self._with_points(of_type[kind], _POINTS[kind]) for kind in _POINTS if of_type[kind]}
        if labels := [line for line in lines if line[TYPE] not in _POINTS]:
            listed = {name: tuple(_with_error(line, name) for line in labels) for name in _ESTIMATED[:2]}
            words = {"most frequent": tuple(self._most_frequent(str(line[COLUMN])) for line in labels)}
            made["values"] = {COLUMN: tuple(str(line[COLUMN]) for line in labels), **listed, **words}
        return tuple(TextTable((head, *list(one)[1:]), tuple(one.values())) for head, one in made.items())

    def _with_points(self, lines: list[dict[str, Value]], point: Callable[[Value], str]) -> dict[str, tuple[str, ...]]:
        """Columns with means and quantiles. ``point``: how one of these is written."""
        shown = {COLUMN: tuple(str(line[COLUMN]) for line in lines)}
        for name in _ESTIMATED:
            if any(line[name] is not None for line in lines):
                write = partial(_date_with_error if point is _date and name == "mean" else _with_error, name=name)
                shown[_HEADS.get(name, name)] = tuple(write(line) for line in lines)
        return shown | {name: tuple(point(line[name]) for line in lines) for name in self.quantiles}

    def _most_frequent(self, column: str) -> str:
        counts = list(self.counts(column).items())
        words = ", ".join(f"{value} {max(one.value, 0):,.0f}" for value, one in counts[:_SHOWN])
        more = f", {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
        return f"{words}{more} (each ± {counts[0][1].error:,.0f})" if counts else ""

    @property
    def rows_text(self) -> str:
        """The number of rows in words."""
        error = f" ± {self.rows.error:,.0f}" if self.rows.error else ""
        return f"{self.rows.value:,.0f}{error} {'row' if self.rows.value == 1 and not error else 'rows'}"

    @property
    def ranks_text(self) -> str:
        """How far quantiles are off, in words; nothing if there are none."""
        ranks = [rank for rank in self.columns[RANKS] if isinstance(rank, int)]
        return (
            f" Quantiles are off by at most {max(ranks):,} ranks, where rows lie evenly around them." if ranks else ""
        )

    @property
    def hidden_text(self) -> str:
        """How much clipping may hide of means, in words; nothing where that is less than their noise."""
        lines = [dict(zip(self.columns.names, line, strict=True)) for line in self.columns.lines]
        means = [self.mean(str(line[COLUMN])) for line in lines if line["mean"] is not None]
        words = ["Rows beyond bounds that were found privately may lie anywhere: means leave them out."]
        said = words if any(mean.above is None for mean in means) else []
        for line, mean in zip([line for line in lines if line["mean"] is not None], means, strict=True):
            far = max(mean.below or 0.0, mean.above or 0.0)
            if far > mean.error:
                said.append(f"Clipping may hide up to {with_digits(far, mean.error)} of the mean of {line[COLUMN]}.")
        return "\n".join(said)

    @property
    def left_out_text(self) -> str:
        """What is not described, in words: a line for every column."""
        return "\n".join(f"Left out: {name}: {reason}." for name, reason in self.left_out.items())

    def __str__(self) -> str:
        parts = [self.rows_text, *map(str, self.texts()), self.hidden_text, self.left_out_text]
        return "\n\n".join(part for part in parts if part)

    __repr__ = __str__


def _with_error(line: dict[str, Value], name: str) -> str:
    """A number with the digits that its error leaves, and the error."""
    value, error = line[name], line[f"{name}_error"]
    if not isinstance(value, float) or not isinstance(error, float):
        return ""
    if not error:
        return _plain(value)
    if name in _ESTIMATED[:2]:
        return f"{value:,.0f} ± {error:,.0f}"
    return f"{with_digits(value, error)} ± {with_digits(error, error)}"


def _plain(value: Value) -> str:
    if not isinstance(value, float):
        return "" if value is None else str(value)
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def _date(value: Value) -> str:
    return date_text(value) if isinstance(value, float) else ""


def _date_with_error(line: dict[str, Value], name: str) -> str:
    """A mean of dates, and its error in days."""
    value, error = line[name], line[f"{name}_error"]
    return f"{_date(value)} ± {_plain(error)} days" if isinstance(error, float) else ""


_POINTS: Mapping[str, Callable[[Value], str]] = {"number": _plain, "date": _date}  # how quantiles are written, by type
