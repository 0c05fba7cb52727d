"""What persons add: the same sums in memory and in files, in every cut and order, and hardly more memory for more."""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import Local, gather
from snugdp.tables.passes.counts.keys import key_column
from snugdp.tables.persons import passes
from snugdp.tables.persons.totals import (
    GroupEntries,
    PersonTotals,
    RankEntries,
    SpilledTotals,
    Totals,
    TotalsPass,
    all_weighted,
    person_totals,
)
from snugdp.tables.sources import open_source
from tests.effort import sampled
from tests.tables.persons.test_keep import CONTAINERS

LINES = 3000


def rows(kind: str) -> pl.DataFrame:
    """Persons with one row up to many, some without a name, in cells from 0 to 39."""
    choose = random.Random(8)
    names: list[Any] = [None, *(f"p{k}" if kind == "text" else k for k in range(400))]
    who = [names[int(401 * choose.random() ** 2)] for _ in range(LINES)]
    types = {"who": pl.String if kind == "text" else pl.Int64, "cell": pl.Int64, "x": pl.Float64}
    cells = [choose.randrange(40) for _ in range(LINES)]
    return pl.DataFrame({"who": who, "cell": cells, "x": [choose.randrange(9) / 8 for _ in range(LINES)]}, schema=types)


def query(cells: int) -> Any:
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "person": "who", "max_rows": 3}
    if cells == 1:
        return snugdp.Sum(column="x", bounds=(0, 1), clip=None, **given)
    return snugdp.Histogram(column="cell", values=list(range(cells)), **given)


def entries(cells: int) -> Any:
    return query(cells)._totals._entries


def shown(found: PersonTotals) -> Counter[tuple[Any, ...]]:
    """Every person as what it adds."""
    persons: Counter[tuple[Any, ...]] = Counter()
    for part in found.parts:
        lines = np.column_stack([part.cell, *part.values])
        assert np.all(np.diff(part.person) >= 0)
        for who in range(part.persons):
            persons[tuple(sorted(map(tuple, lines[part.person == who].tolist())))] += 1
    return persons


def expected(table: pl.DataFrame, cells: int) -> Counter[tuple[Any, ...]]:
    """The same by hand."""
    persons: dict[Any, Counter[int]] = {}
    sums: dict[Any, Counter[int]] = {}
    for place, (who, cell, x) in enumerate(table.rows()):
        name = ("nobody", place) if who is None else who
        where = cell if cells > 1 else 0
        persons.setdefault(name, Counter())[where] += 1
        sums.setdefault(name, Counter())[where] += round(x * 2**36)
    found: Counter[tuple[Any, ...]] = Counter()
    for name, counts in persons.items():
        if cells > 1:
            found[tuple(sorted((cell, count) for cell, count in counts.items()))] += 1
        else:
            found[tuple(sorted((cell, sums[name][cell]) for cell in counts))] += 1
    return found


@sampled(3, 1)
@pytest.mark.parametrize("kind", ["numbers", "text"])
@pytest.mark.parametrize("cells", [1, 40])
def test_the_same_in_memory_and_in_files(
    kind: str, cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rows(kind)
    want = expected(table, cells)
    for room, kept in ((passes.MAX_BYTES, Totals), (60_000, SpilledTotals), (8_000, SpilledTotals)):
        monkeypatch.setattr(passes, "MAX_BYTES", room)
        for seed, container in enumerate(("polars", "files", "csv")):
            data = CONTAINERS[container](table.sample(fraction=1, shuffle=True, seed=seed), tmp_path)
            found: PersonTotals = unwrap(person_totals(open_source(data), entries(cells), "who"))
            assert shown(found) == want
            assert isinstance(found, kept) or container == "csv"


def test_what_is_left_in_memory_joins_what_is_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows go into files, and the few after them are not many enough to follow."""
    table, work = rows("numbers"), TotalsPass(entries(40), "who")
    monkeypatch.setattr(passes, "MAX_BYTES", 60_000)
    state = work.empty()
    for part in (table[:-10], table[-10:]):
        state = work.fold(state, nw.from_native(part, eager_only=True))
    assert state.buckets
    assert state.waiting
    assert shown(work.totals(state)) == expected(table, 40)


def test_parts_packed_states_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows("text")
    work = TotalsPass(entries(40), "who")
    want = expected(table, 40)
    for room in (passes.MAX_BYTES, 20_000):
        monkeypatch.setattr(passes, "MAX_BYTES", room)
        states = [gather(open_source(table[start::3]), work) for start in range(3)]
        first = work.unpack(work.pack(states[0]))
        for state in states[1:]:
            first = work.merge(first, work.unpack(work.pack(state)))
        assert shown(work.totals(first)) == want
        assert shown(work.totals(Local(threads=3).run(open_source(table), work))) == want


def test_releases_are_the_same_from_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, sums, groups and quantiles, with the same noise."""
    table = rows("text").rename({"cell": "c"})
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "person": "who"}
    asked: list[Any] = [
        snugdp.Sum(column="x", bounds=(0, 1), max_rows="private", **given),
        snugdp.Histogram(column="c", values=list(range(40)), max_rows=3, **given),
        snugdp.GroupBy(by="c", keys=[1, 2], statistics={"x": "mean"}, bounds={"x": (0, 1)}, max_rows=4, **given),
    ]
    here = [str(each.release(table, noise=snugdp.Simulation(3)).value) for each in asked]
    monkeypatch.setattr(passes, "MAX_BYTES", 20_000)
    assert [str(each.release(table, noise=snugdp.Simulation(3)).value) for each in asked] == here
    ranks = RankEntries("x", snugdp.Median(column="x", bounds=(0, 1), step=0.125, epsilon=1)._grid)
    found = unwrap(person_totals(open_source(table), ranks, "who"))
    assert isinstance(found, SpilledTotals)
    monkeypatch.undo()
    whole = unwrap(person_totals(open_source(table), ranks, "who"))
    one, other = (all_weighted(each, 1 << 20, 2, 0).counts() for each in (found, whole))
    assert one.values.tolist() == other.values.tolist()
    assert one.counts.tolist() == other.counts.tolist()


def test_no_rows_and_rows_in_no_cell() -> None:
    table = rows("numbers")
    for data in (table[:0], table.with_columns(cell=pl.lit(99))):
        work = GroupEntries((key_column(open_source(data), "cell", ["1", "2"]),))
        assert not shown(unwrap(person_totals(open_source(data), work, "who")))


CHILD = """
import resource, sys
import numpy as np, polars as pl
from snugdp.tables.persons import passes, totals
from tests.tables.persons.test_totals import entries
from snugdp.tables.sources import open_source
passes.MAX_BYTES = 24 * 2**20
found = []
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = totals.person_totals(open_source(sys.argv[1]), entries(40), "who")
data.map(lambda all: found.extend(part.persons for part in all.parts))
print(sum(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.nightly
def test_memory_is_bounded(tmp_path: Path) -> None:
    """More persons than fit into the memory that they may have, by far: their lines would need 150 megabytes more."""
    peaks = []
    for people in (600_000, 1_500_000):
        draw = np.random.default_rng(1)
        who, cell = draw.integers(0, people, 5 * people), draw.integers(0, 40, 5 * people)
        path = tmp_path / f"{people}.parquet"
        pl.DataFrame({"who": who, "cell": cell}).write_parquet(path, row_group_size=50_000)
        ran = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True)
        persons, peak = map(int, ran.stdout.split())
        assert persons == len(np.unique(who))
        peaks.append(peak / 1024)
    assert peaks[1] < peaks[0] + 90
