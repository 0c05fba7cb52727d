"""Why a linear model says what it says of a row: what every column adds. Post-processing of released coefficients.

What a column adds is counted from what is usual there, so that it does not depend on how entries are centred: a number
from the centre, a curve from the mean of its knots, a level from the mean of all levels, a boolean from half way. What
is usual is public or was released.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.coefficients import kinds_of, unwrapped
from snugdp.tables.found import FoundLevels
from snugdp.tables.layouts.standardised import StandardisedLayout
from snugdp.tables.schema.kinds import Category, Spline
from snugdp.tables.schema.schema import Layout, entry_names

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
_MOST_ROWS, _MOST_COLUMNS = 5, 12  # that are shown


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What every column adds to the predictions of some rows. As private as these rows, like the predictions.

    Parameters
    ----------
    columns : tuple of str
        The columns that the model reads.
    base : float
        The answer for a row that is usual in every column.
    contributions : ndarray of shape (n_rows, n_columns)
        By how much each column moves the answer from there.

    Examples
    --------
    >>> found = Explanation(("age", "city"), 10.0, np.array([[-1.0, 4.0]]))
    >>> found.sums.tolist()
    [13.0]
    >>> found
    base   10
    city   +4
    age    -1
    sum    13
    """

    columns: tuple[str, ...]
    base: float
    contributions: Floats

    @property
    def sums(self) -> Floats:
        """What the model says of every row, before it is clipped or made a probability: all contributions and base."""
        sums: Floats = self.base + self.contributions.sum(axis=1)
        return sums

    @property
    def frame(self) -> pl.DataFrame:
        """The same as a polars frame, a line for every row."""
        import polars as pl

        moved = {f"contribution={name}": own for name, own in zip(self.columns, self.contributions.T, strict=True)}
        return pl.DataFrame({"base": np.full(len(self.contributions), self.base), **moved, "sum": self.sums})

    def largest(self, row: int = 0) -> dict[str, float]:
        """The contributions to the prediction of one row, the largest first."""
        own = self.contributions[row]
        return {self.columns[place]: float(own[place]) for place in np.argsort(-np.abs(own), kind="stable")}

    def _lines(self) -> list[tuple[str, ...]]:
        """What is shown: the first rows side by side, and the columns that move them most."""
        rows = self.contributions[:_MOST_ROWS]
        order = np.argsort(-np.abs(rows).max(axis=0, initial=0.0), kind="stable")
        kept, others = order[:_MOST_COLUMNS], order[_MOST_COLUMNS:]
        lines = [(self.columns[place], *(f"{value:+.4g}" for value in rows[:, place])) for place in kept]
        if others.size:
            rest = rows[:, others].sum(axis=1)
            lines.append((f"{others.size} other columns", *(f"{value:+.4g}" for value in rest)))
        return [
            ("base", *(f"{self.base:.4g}" for _ in rows)),
            *lines,
            ("sum", *(f"{value:.4g}" for value in self.sums[:_MOST_ROWS])),
        ]

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        shown = [
            "  ".join(
                [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))]
            )
            for name, *cells in lines
        ]
        more = len(self.contributions) - _MOST_ROWS
        return "\n".join([*shown, f"and {more:,} more rows"] if more > 0 else shown)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for name, *cells in self._lines()
        )
        return f"<table><tbody>{rows}</tbody></table>"


def explained(layout: Layout, theta: Floats, vectors: Iterable[Floats]) -> Explanation:
    """A linear function of the vectors of rows in the units of ``layout``, column by column."""
    inner, (middle, half) = unwrapped(layout), layout.target_units
    spans, usual = inner.spans, _usual(layout, theta)
    parts = [_contributions(block, theta, spans) for block in vectors]
    moved = half * np.concatenate([np.empty((0, len(spans))), *parts]) - np.array([*usual.values()])
    base = middle + half * _constant(inner) * float(theta[-1]) + sum(usual.values())
    return Explanation(tuple(spans), base, moved)


def _contributions(block: Floats, theta: Floats, spans: Mapping[str, slice]) -> Floats:
    with np.errstate(all="ignore"):  # a warning would depend on cells
        return np.stack([block[:, own] @ theta[own] for own in spans.values()], axis=1)


def _constant(layout: Any) -> float:
    """The entry that is the same in all vectors: that of the intercept, if there is one."""
    joint = isinstance(layout, StandardisedLayout) and layout.joint and layout.constant
    return float(layout.scaled) if joint else float(layout.intercept)


def _usual(layout: Layout, theta: Floats) -> dict[str, float]:
    """What every column adds where it is usual, as against a row without any entries."""
    every, inner = layout.coefficients(theta), unwrapped(layout)
    given, kinds = dict(zip(every.names, every.values.tolist(), strict=True)), kinds_of(layout)
    return {name: sum(given[entry] * part for entry, part in _levels(inner, name, kinds)) for name in inner.spans}


def _levels(layout: Any, name: str, kinds: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The entries of levels and of knots, with their shares: those of levels as they were found, otherwise even."""
    kind = kinds.get(name)
    if not isinstance(kind, Category | Spline):
        return
    entries = entry_names(name, kind)
    found = layout.bounds.get(name) if isinstance(layout, StandardisedLayout) else None
    shares = found.shares if isinstance(found, FoundLevels) and sum(found.shares) > 0 else (1.0,) * len(entries)
    yield from ((entry, share / sum(shares)) for entry, share in zip(entries, shares, strict=True))
