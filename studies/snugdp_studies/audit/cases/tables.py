"""Neighbouring tables of made-up rows: ordinary ones, and what nobody expects in a cell."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.equality import equal
from snugdp.estimators.labels import labels_of
from snugdp.tables.layouts.arrays import vector

Row = TypeVar("Row")
Generator: TypeAlias = np.random.Generator
Floats: TypeAlias = NDArray[np.float64]
Table: TypeAlias = tuple[Floats, list[Any]]  # rows and targets

ODD = (math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, 1e9, 2.0**53)


def near(
    generator: Generator,
    row: Callable[[Generator], Row],
    odd: Callable[[Generator], Row],
    *,
    relation: str,
    least: int = 2,
    most: int = 40,
    ordered: bool = False,
) -> tuple[list[Row], list[Row]]:
    """A list of rows and a neighbour of it: between ``least`` and ``most`` rows are in both.

    The row that differs is odd in half of the cases, or the same as another one. The others are in another order in
    the second table, unless ``ordered``: then the row that differs is the last one.
    """
    n = int(generator.integers(least, most + 1))
    rows = [odd(generator) if generator.random() < 0.1 else row(generator) for _ in range(n)]
    rows[1 : n // 3 : 3] = rows[:1] * len(rows[1 : n // 3 : 3])  # ties
    one, other = (_extra(generator, rows, row, odd) for _ in range(2))
    rest = list(rows) if ordered else [rows[place] for place in generator.permutation(len(rows))]
    if relation == "replace":
        return [*rows, one], [*rest, other]
    return [*rows, one], rest


def _extra(
    generator: Generator, rows: Sequence[Row], row: Callable[[Generator], Row], odd: Callable[[Generator], Row]
) -> Row:
    kind = generator.random()
    if kind < 0.5:
        return odd(generator)
    return rows[int(generator.integers(len(rows)))] if kind < 0.6 and rows else row(generator)


def one_of(generator: Generator, values: Sequence[Row]) -> Row:
    """Any of them."""
    return values[int(generator.integers(len(values)))]


def any_of(*values: Row) -> Callable[[Generator], Row]:
    """What draws one of them."""
    return lambda generator: one_of(generator, values)


def entries(generator: Generator, d: int) -> list[float]:
    """A row about as long as a bound of 1, often with ties."""
    values = generator.normal(0, 1 / math.sqrt(d), d)
    return [float(value) for value in (np.round(values, 1) if generator.random() < 0.3 else values)]


def odd_entries(generator: Generator, d: int) -> list[float]:
    """A row at its bound or far beyond, or with cells that are no numbers."""
    kind = generator.random()
    if kind < 0.3:  # along an axis, exactly at the bound
        axis, sign = int(generator.integers(d)), one_of(generator, (-1.0, 1.0))
        return [sign * (place == axis) for place in range(d)]
    values = generator.normal(0, 3, d)
    if kind < 0.6:
        return [float(value) for value in values / np.linalg.norm(values)]
    return [one_of(generator, ODD) if generator.random() < 0.6 else float(value) for value in values]


def with_targets(
    generator: Generator,
    d: int,
    target: Callable[[Generator], Any],
    odd: Callable[[Generator], Any],
    *,
    relation: str = "add_remove",
    ordered: bool = False,
    least: int = 2,
    most: int = 40,
) -> tuple[Table, Table]:
    """Neighbouring tables of rows with ``d`` entries and a target each."""

    def row(generator: Generator) -> tuple[list[float], Any]:
        return entries(generator, d), target(generator)

    def strange(generator: Generator) -> tuple[list[float], Any]:
        return odd_entries(generator, d), odd(generator)

    first, second = near(generator, row, strange, relation=relation, ordered=ordered, least=least, most=most)
    return table(first), table(second)


def table(rows: Sequence[tuple[Sequence[float], Any]]) -> Table:
    """Rows with targets, as an array and a list."""
    return np.array([row for row, _ in rows], dtype=np.float64), [target for _, target in rows]


def more(rows: Table, entries: Sequence[float], target: Any, times: int = 1) -> Table:
    """The table with one row more, or with several of the same."""
    X, y = rows
    return np.vstack([X, np.tile(np.array(entries, dtype=np.float64), (times, 1))]), [*y, *[target] * times]


def apart(first: Table, second: Table) -> int:
    """The index of the row that one of the tables has more: the first where they differ."""
    rows = zip(*first, strict=True), zip(*second, strict=True)
    same = (np.array_equal(x, z, equal_nan=True) and equal(y, u) for (x, y), (z, u) in zip(*rows, strict=False))
    return next((place for place, equal in enumerate(same) if not equal), min(len(first[1]), len(second[1])))


def apart_with_targets(first: Table, second: Table, classes: Sequence[Any] | None = None) -> int:
    """The same index among rows with a target, for mechanisms that drop the others before they scatter rows."""
    before = list(first[1][: apart(first, second)])
    known = ~np.isnan(vector(before)) if classes is None else labels_of(before, list(classes)) >= 0
    return int(np.count_nonzero(known))


def without(rows: Table, place: int) -> Table:
    """The table without one of its rows."""
    return np.delete(rows[0], place, axis=0), [target for number, target in enumerate(rows[1]) if number != place]


def foremost(pairs: Sequence[tuple[Row, Row]], place: int, *, back: bool = False) -> list[tuple[Row, Row]]:
    """The pairs with this one first, turned round if its second table is the one to start from.

    Smaller noise is looked for on the first pair: the sooner it is seen there, the less there is to run.
    """
    first = pairs[place][::-1] if back else pairs[place]
    return [first, *(pair for number, pair in enumerate(pairs) if number != place)]


def number(generator: Generator) -> float:
    """A target within [-1, 1]."""
    return float(np.round(generator.uniform(-1, 1), 2))


def odd_number(generator: Generator) -> float:
    """A target at its bound, beyond it, or no number."""
    return one_of(generator, (1.0, -1.0, 0.0, *ODD))


def spread_out(n: int, d: int, *, length: float = 0.9, slope: float = 0.5) -> Table:
    """Ordinary rows, the same at every call: all directions, targets close to a line."""
    turn = 2 * math.pi * (np.arange(n)[:, None] * np.sqrt(np.arange(2, d + 2))[None, :] % 1.0)
    X = length * np.sin(turn) / math.sqrt(d)
    return X, [float(value) for value in np.clip(slope * X.sum(axis=1), -1, 1)]
