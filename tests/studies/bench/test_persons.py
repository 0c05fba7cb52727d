"""The benchmark of persons runs, and its contenders find the same number of persons."""

import polars as pl

from snugdp.tables.persons import person_counts
from snugdp.tables.sources import open_source
from snugdp_studies.bench import persons


def test_every_contender_has_a_time() -> None:
    rows = persons.run(2000, 300, repeats=1)
    assert [row.name for row in rows] == [*persons.JOBS] * 2
    assert rows[0].relative == rows[0].same_work == 1
    assert all(row.min_s > 0 and row.same_work > 0 for row in rows)
    assert all(row.peak_mb is not None and row.peak_mb > 10 for row in rows[len(persons.JOBS) :])


def test_the_contenders_agree() -> None:
    made = persons.table(2000, 300)
    grouped = persons.JOBS[persons.FIRST](made)
    assert isinstance(grouped, pl.DataFrame)
    assert len(grouped) == made["person"].n_unique() == person_counts(open_source(made), "person").sum()
    over = persons.JOBS[persons.SAME_WORK["weigh_rows"]](made)
    assert isinstance(over, pl.DataFrame)
    sizes = dict(made["person"].value_counts().iter_rows())
    assert over["rows"].to_list() == [sizes[each] for each in over["person"].to_list()]
