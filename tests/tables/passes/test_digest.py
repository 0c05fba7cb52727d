"""The digest of rows: the same in every order and in all batches, and another one for every cell that changes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from snugdp.tables.passes.digest import DigestPass, words
from tests.effort import often, repeated

CELLS: dict[str, list[Any]] = {
    "float": [0.5, -0.25, None, 7.0],
    "whole": [1, 2, None, 2**62],
    "flag": [True, False, None, True],
    "text": ["a", "", None, "Ünal"],
    "day": [dt.date(2020, 1, 1), dt.date(2021, 5, 3), None, dt.date(1969, 1, 1)],
    "money": [Decimal("1.50"), Decimal("2.25"), None, Decimal("-3.00")],
    "keys": [["a", "b"], [], None, ["b"]],
}
TABLE = pl.DataFrame(CELLS)
WORK = DigestPass(tuple(CELLS))


def digest(*frames: Any, work: DigestPass = WORK) -> tuple[int, ...]:
    states = [work.fold(work.empty(), nw.from_native(frame, eager_only=True)) for frame in frames]
    total = work.empty()
    for state in states:
        total = work.merge(total, work.unpack(work.pack(state)))
    return work.sums(total)


def test_order_batches_and_the_container_do_not_matter() -> None:
    whole = digest(TABLE)
    assert whole[0] == 4
    assert digest(TABLE.reverse()) == digest(TABLE[:1], TABLE[3:], TABLE[1:3]) == whole
    assert digest(TABLE.select(*reversed(TABLE.columns))) == whole
    assert digest(TABLE.to_arrow()) == whole
    assert digest(TABLE, work=DigestPass(())) == whole


def test_blocks_do_not_matter() -> None:
    rows = pl.DataFrame({"x": np.random.default_rng(1).normal(size=40_000)})
    work = DigestPass(("x",))
    assert digest(rows, work=work) == digest(rows[:123], rows[123:], work=work)


@pytest.mark.parametrize("name", CELLS)
def test_one_cell_that_changes_is_seen(name: str) -> None:
    """Also where it comes to be missing, or not to be missing any more; and where two rows swap a cell."""
    whole, column = digest(TABLE), TABLE[name].to_list()
    for place in range(4):
        for other in range(4):
            if column[other] == column[place]:
                continue
            changed = list(column)
            changed[place] = column[other]
            frame = TABLE.with_columns(pl.Series(name, changed, dtype=TABLE[name].dtype))
            assert digest(frame) != whole
            changed[other] = column[place]
            assert digest(frame.with_columns(pl.Series(name, changed, dtype=TABLE[name].dtype))) != whole
    assert digest(TABLE[:3]) != whole
    assert digest(TABLE, TABLE[:1])[1:] != whole[1:]


@repeated
def test_small_whole_numbers_collide_no_more_than_others() -> None:
    """Floats with many zero bits, in many columns: all rows of a grid have hashes of their own."""
    grid = np.array(np.meshgrid(*[np.arange(16.0)] * 4)).reshape(4, -1).T
    work = DigestPass(tuple("abcd"))
    frames = [pl.DataFrame(row[None, :], schema=list("abcd")) for row in grid[:: often(251, 64)]]
    assert len({digest(frame, work=work)[1:] for frame in frames}) == len(frames)
    swapped = [pl.DataFrame({"a": [x], "b": [y]}) for x in range(9) for y in range(9)]
    assert len({digest(frame, work=DigestPass(("a", "b")))[1:] for frame in swapped}) == 81


def test_levels_are_text_whatever_their_codes() -> None:
    one, other = (pl.Series(cells, dtype=pl.Categorical) for cells in (["x", "y"], ["y", "x"]))
    assert words(one).tolist() == words(other)[::-1].tolist() == words(pl.Series(["x", "y"])).tolist()


def test_types_that_polars_does_not_know() -> None:
    cells = pa.array([Decimal("1" * 50), None, Decimal("2" * 50)], pa.decimal256(60, 0))
    work = DigestPass(("huge",))
    found = digest(pa.table({"huge": cells}), work=work)
    assert found[0] == 3
    assert found != digest(pa.table({"huge": cells.take([0, 1, 0])}), work=work)
