"""Looks at columns without bounds: numbers on doublings and in zooms, and levels that nobody listed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from snugdp.audit import released_by
from snugdp.audit.finding import Case
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.bounds.looks.looks import Looks
from snugdp.noise import Noise
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource
from snugdp.tables.opened import OpenedTable
from snugdp.tables.sources import open_source
from snugdp_studies.audit.cases.tables import ODD, Generator, near, one_of

Row: TypeAlias = tuple[Any, Any, Any]
Rows: TypeAlias = list[Row]
_MANY: Rows = [(5.0, 2000.0, "a")] * 120  # found, narrow, and zoomed to the end
_FEW: Rows = [(0.5, -3.0, "a"), (1e9, None, None)] * 3


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    for relation in Neighbours:
        tag = ": replace" if relation is Neighbours.REPLACE else ""
        yield _case(f"looks{tag}", relation, ())
        yield _case(f"looks: levels{tag}", relation, ("c",))


def _case(name: str, relation: Neighbours, categories: tuple[str, ...]) -> Case[Rows]:
    failure = Fraction(len(categories), 50)
    looks = Looks(("x", "z"), categories, Fraction(1), failure, relation)

    def draw(rows: Secret[Rows], noise: Noise) -> Any:
        return looks.draw(rows.map(_table if categories else _matrix), noise)

    added = relation is Neighbours.ADD_REMOVE
    here, gone = [_MANY[0]], [] if added else [(80.0, -1.0, "b")]
    worst = [(_MANY + here, _MANY + gone), (_FEW + here, _FEW + gone), ([(1.0, 1.0, "new")], gone)]
    return Case(
        name,
        released_by(draw, {step.id: step.cost for step in looks.steps()}),
        looks.cost,
        partial(list, worst),
        random=partial(near, row=_row, odd=_odd, relation=relation.value, least=1, most=60),
        group="looks",
        tight=added and not categories,  # a replaced row is in one of two bins, and a level is shown or new
    )


def _row(generator: Generator) -> Row:
    return 5.0, float(generator.normal(0, 100)), one_of(generator, ("a", "b"))


def _odd(generator: Generator) -> Row:
    return one_of(generator, (*ODD, None)), one_of(generator, (*ODD, None)), one_of(generator, ("", "nobody", None))


def _matrix(rows: Rows) -> OpenedTable:
    X = np.array([row[:2] for row in rows], dtype=np.float64).reshape(-1, 2)
    return OpenedTable(ArraySource(X, np.zeros(len(rows)), ArraySchema(("x", "z"), x_norm=1, y_bound=1)))


def _table(rows: Rows) -> OpenedTable:
    import polars

    kinds = {"x": polars.Float64, "z": polars.Float64, "c": polars.String}
    columns = zip(kinds.items(), range(3), strict=True)
    table = {name: polars.Series([row[place] for row in rows], dtype=kind) for (name, kind), place in columns}
    return OpenedTable(open_source(polars.DataFrame(table)))
