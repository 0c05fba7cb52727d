"""Teachers' votes in any form, as histograms: how many votes each class got in each query. They stay inside a secret.

What is public about votes: how many teachers, queries and classes there are, and the labels of the classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from snugdp.pate.blocks import Part, VoteTable, open_table
from snugdp.pate.cells import MOST, Integers, placed, tally, whole
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import Names

Form = Literal["histograms", "teachers", "queries"]


@dataclass(frozen=True)
class Panel:
    """What is public about votes."""

    teachers: int
    queries: int
    classes: tuple[Hashable, ...]


def read(
    votes: object,
    *,
    form: Form = "histograms",
    n_teachers: int | None = None,
    classes: Iterable[Hashable] | None = None,
) -> tuple[Panel, Secret[Integers]]:
    """The public panel, and the private histograms: one row per query, one column per class.

    ``form``: "histograms" (one row per query, one column per class), "teachers" (labels, one row per teacher, one
    column per query) or "queries" (labels, one row per query, one column per teacher). Votes are arrays, lists of
    lists, pandas, polars or pyarrow tables, paths of Parquet files, or polars LazyFrames; the last two are read in
    batches, in the order of their rows.

    Labels need ``classes``. A label that is not among them, or is missing, is an abstention.

    Histograms take the names of a table's columns for ``classes``, or 0, 1, 2, ... Without ``n_teachers`` every row
    must add up to the same number, which is then the number of teachers: nobody abstains. With it a row may add up to
    less.

    Guarantee: labels never raise by their values. Histograms that cannot come from the teachers are refused, in words
    that quote nothing; this tells two neighbours apart only if a teacher abstains where ``n_teachers`` is not given.

    >>> panel, histograms = read([["cat", "dog", "dog"], ["cat", None, "cat"]], form="queries", classes=["cat", "dog"])
    >>> panel
    Panel(teachers=3, queries=2, classes=('cat', 'dog'))
    >>> histograms
    <secret>
    """
    if form not in get_args(Form):
        raise ValueError('form must be "histograms", "teachers" or "queries"')
    _check_teachers(n_teachers)
    listed = None if classes is None else _labels(classes)
    if form != "histograms" and listed is None:
        raise ValueError(
            f'form="{form}" needs classes: the list of all labels that count as votes, from public knowledge'
        )
    if form == "histograms":
        return _histograms(open_table(votes, None if listed is None else len(listed)), n_teachers, listed)
    assert listed is not None
    return _counted(open_table(votes, n_teachers if form == "queries" else None), form, n_teachers, listed)


def _histograms(table: VoteTable, n_teachers: int | None, listed: Names | None) -> tuple[Panel, Secret[Integers]]:
    labels = listed if listed is not None else _labels(range(table.width) if table.names is None else table.names)
    parts = [whole(block) for block in table.whole.blocks()]
    _check_shape(sum(map(len, parts)), 1)
    if len(labels) != table.width:
        raise ValueError(f"the histograms have {table.width} columns, but {len(labels)} classes are listed")
    counts = np.concatenate(parts)
    sums = counts.sum(axis=1)
    # The domain: counts of at least 0 that add up to at most K, or to K where nobody abstains. No neighbour of a
    # member leaves it, so an error here cannot tell neighbours apart.
    valid = bool((counts >= 0).all())
    if n_teachers is None:
        n_teachers = int(sums[0])
        if not (valid and n_teachers and bool((sums == n_teachers).all())):
            raise ValueError(
                "the rows must be histograms that add up to the same number of votes, the number of teachers. If "
                "teachers may abstain, say how many there are with n_teachers=..."
            )
    elif not (valid and bool((sums <= n_teachers).all())):
        raise ValueError(
            f"the rows must be histograms: whole numbers of at least 0 that add up to at most n_teachers={n_teachers}. "
            'For labels use form="teachers" or form="queries"'
        )
    return Panel(int(n_teachers), len(counts), tuple(labels.names)), Secret(counts)


def _counted(table: VoteTable, form: Form, n_teachers: int | None, labels: Names) -> tuple[Panel, Secret[Integers]]:
    found: list[Integers] = []
    rows = 0
    for part in table.parts:
        rows, counts = _votes(part, form, labels)
        if form == "queries" and found:  # every part holds other teachers' votes in the same queries
            found[0] += counts
        else:
            found.append(counts)
    queries, teachers = (table.width, rows) if form == "teachers" else (rows, table.width)
    _check_shape(queries, teachers)
    if n_teachers is not None and n_teachers != teachers:
        where = "rows" if form == "teachers" else "columns"
        raise ValueError(f'with form="{form}" there are as many teachers as {where}, {teachers}, not {n_teachers}')
    return Panel(teachers, queries, tuple(labels.names)), Secret(np.concatenate(found))


def _votes(part: Part, form: Form, labels: Names) -> tuple[int, Integers]:
    """The number of rows, and the histograms: of the columns where these are queries, of the rows otherwise."""
    rows, width = 0, len(labels) + 1
    total = np.zeros((part.width if form == "teachers" else 0, width), dtype=np.int64)
    by_block = [total]
    for block in part.blocks():
        for found in placed(block, labels):
            rows += len(found)
            if form == "teachers":
                total += tally(found.T, width)
            else:
                by_block.append(tally(found, width))
    return rows, np.concatenate(by_block)[:, :-1]


def _labels(classes: Iterable[Hashable]) -> Names:
    """The labels of the classes: at least two, all different, and none that stands for a missing vote."""
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise TypeError("classes must be a list of labels")
    labels = Names(tuple(classes), "classes")
    if len(labels) < 2:
        raise ValueError("there must be at least two classes: with one there is nothing to vote on")
    return labels


def _check_teachers(n_teachers: int | None) -> None:
    if n_teachers is None:
        return
    if isinstance(n_teachers, bool) or not isinstance(n_teachers, int | np.integer):
        raise TypeError("n_teachers must be a whole number")
    if not 1 <= n_teachers <= MOST:
        raise ValueError("n_teachers must be at least 1, and at most 2**40")


def _check_shape(queries: int, teachers: int) -> None:
    if not queries:
        raise ValueError("the votes hold no query: give at least one")
    if not teachers:
        raise ValueError("the votes hold no teacher: give at least one")
