"""Weights of rows bound what a person adds, and persons are counted by their numbers of rows."""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from snugdp.tables.persons import BINS, WEIGHT, passes, person_counts, weigh_rows
from snugdp.tables.sources import TableError, open_source
from tests.effort import sampled
from tests.tables.persons.tables import KEY, NAMES, Row, content, some_rows, table
from tests.tables.persons.test_keep import CONTAINERS

WEIGHED = ("id", *NAMES, "weight")


def skewed(seed: int = 1) -> list[Row]:
    """Persons with one row up to many."""
    rows = some_rows(seed, 600, 64)
    return [row for place, row in enumerate(rows) if row[0] is None or place % 9 <= row[0] % 10]


def weighed(data: object, cap: int) -> Counter[Row]:
    return content(weigh_rows(open_source(data), WEIGHED[:-1], "id", cap, KEY), WEIGHED)


def expected(rows: list[Row], cap: int) -> Counter[Row]:
    sizes = Counter(row[0] for row in rows)
    found: Counter[Row] = Counter()
    for row in rows:
        size = 1 if row[0] is None else sizes[row[0]]
        cells = tuple(None if cell is None else float(cell) if not isinstance(cell, str) else cell for cell in row)
        found[(*cells, float(WEIGHT * min(size, cap) // size))] += 1
    return found


@sampled(15)
@pytest.mark.parametrize("container", ["polars", "pandas", "pyarrow", "csv", "parquet", "pandas objects", "duckdb"])
@pytest.mark.parametrize("room", [passes.MAX_BYTES, 3000])
def test_weights_and_counts(container: str, room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = skewed()
    data = CONTAINERS[container](table(rows), tmp_path)
    monkeypatch.setattr(passes, "MAX_BYTES", room)
    for cap in (1, 3, 20):
        assert weighed(data, cap) == expected(rows, cap)
    sizes = Counter(row[0] for row in rows)
    counts = [1] * sizes.pop(None) + list(sizes.values())
    bins = Counter((count - 1).bit_length() for count in counts)
    assert person_counts(open_source(data), "id").tolist() == [bins[place] for place in range(BINS)]
    assert len(bins) > 3


def test_the_weights_of_a_person_add_up_to_the_cap_at_most() -> None:
    for cap in (1, 2, 7):
        totals: Counter[Any] = Counter()
        rows = [*skewed(), *[(99, 1.0, "a")] * 23]  # W is no multiple of 23
        for (person, *_, weight), number in weighed(table(rows), cap).items():
            if person is not None:
                totals[person] += int(weight) * number
        assert max(totals.values()) <= cap * WEIGHT
        assert max(totals.values()) > cap * WEIGHT - Fraction(WEIGHT, 10**6)


@pytest.mark.parametrize("cap", [1, 4])
def test_a_person_moves_its_own_rows_and_one_bin(cap: int) -> None:
    rows = skewed(5)
    before, counts = weighed(table(rows), cap), person_counts(open_source(table(rows)), "id")
    for person in (0, 9, 33):
        without = table([row for row in rows if row[0] != person])
        gone = weighed(without, cap)
        assert gone <= before
        assert {row[0] for row in before - gone} <= {float(person)}
        moved = counts - person_counts(open_source(without), "id")
        assert sorted(moved.tolist())[-1] == moved.sum() == 1


def test_what_is_public_is_refused() -> None:
    source = open_source(pl.DataFrame({"id": [1], "Weight": [1]}))
    with pytest.raises(ValueError, match="another name"):
        weigh_rows(source, ["Weight"], "id", 1, KEY)
    for cap in (0, True, 10**6):
        with pytest.raises(ValueError, match="from 1 to 37785"):
            weigh_rows(source, ["id"], "id", cap, KEY)
    with pytest.raises(TableError, match="tell persons apart"):
        person_counts(source, "nobody")
    assert weigh_rows(source, ["id"], "id", 2, KEY, weight="w").types.keys() == {"id", "w"}
