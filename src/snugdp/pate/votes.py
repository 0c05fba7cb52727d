"""Teachers' votes in any form, as histograms: how many votes each class got in each query. They stay inside a secret.

What is public about votes: how many teachers, queries and classes there are, and the labels of the classes. How one
cell is read is in ``tables/cells``: nothing raises by the value of a cell; only declared types are refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from snugdp.pate.blocks import Block, Part, VoteLines, VoteTable, open_table
from snugdp.secrecy.secret import Secret
from snugdp.secrecy.silence import muted
from snugdp.tables.cells import Names, numbers

Integers = NDArray[np.int64]
Form = Literal["histograms", "teachers", "queries"]

MAX_TEACHERS = 1 << 40  # sums of counts stay far from the end of the whole numbers
_CELLS = 1 << 19  # votes counted at a time


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
    if not 1 <= n_teachers <= MAX_TEACHERS:
        raise ValueError("n_teachers must be at least 1, and at most 2**40")


def _check_shape(queries: int, teachers: int) -> None:
    if not queries:
        raise ValueError("the votes hold no query: give at least one")
    if not teachers:
        raise ValueError("the votes hold no teacher: give at least one")


def tally(found: Integers, width: int) -> Integers:
    """How often each index occurs in each row."""
    flat = found + width * np.arange(len(found))[:, None]
    return np.bincount(flat.ravel(order="K"), minlength=width * len(found)).reshape(len(found), width)


def placed(block: Block, classes: Names) -> Iterator[Integers]:
    """The index of each label among the classes; the one after the last is for what is none of them."""
    if isinstance(block, VoteLines):
        lines = np.stack([classes.indices(line) for line in block.lines]) if block.lines else np.zeros((0, 0), np.int64)
        found = lines if block.rows else lines.T
        yield np.where(found < 0, len(classes), found)
        return
    size = max(1, _CELLS // max(block.shape[1], 1))
    for start in range(0, len(block), size):
        found = _indices(block[start : start + size], classes)
        found[found < 0] = len(classes)
        yield found


def _indices(part: NDArray[Any], classes: Names) -> Integers:
    if part.dtype.kind in "biuf" and part.dtype.itemsize != 2:  # half precision is refused below
        found = classes.of_numbers(np.asarray(part))
        return np.where(np.ma.getmaskarray(part), -1, found) if isinstance(part, np.ma.MaskedArray) else found
    return classes.indices(part.ravel()).reshape(part.shape)


def whole(block: Block) -> Integers:
    """The counts; -1 where a cell is none: missing, negative, not whole, or too large to be one."""
    if isinstance(block, VoteLines):
        lines = np.stack([numbers(line) for line in block.lines]) if block.lines else np.zeros((0, 0))
        cells: NDArray[Any] = lines if block.rows else lines.T
    else:
        cells = block
        if cells.dtype.kind not in "biuf":
            raise TypeError('histograms must hold numbers; for labels use form="teachers" or form="queries"')
    with muted():  # a warning would depend on private values
        plain = np.asarray(cells)
        good = (
            (plain >= 0) & (plain <= MAX_TEACHERS) if plain.dtype.kind != "b" else np.ones(plain.shape, dtype=np.bool_)
        )
        if plain.dtype.kind == "f":
            good &= plain == np.floor(plain)
        if isinstance(cells, np.ma.MaskedArray):
            good &= ~np.ma.getmaskarray(cells)
        return np.where(good, plain, -1).astype(np.int64)
