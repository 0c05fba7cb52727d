"""Persons on a cluster that loses a worker: in a session of its own, beside which there must be no other."""

from pathlib import Path

import pytest

from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import measure
from snugdp.tables.persons import keep_rows
from snugdp.tables.persons.totals import person_totals
from snugdp.tables.sources import open_source
from tests.tables.clusters import MARKS, needs_pyspark, spark_session
from tests.tables.persons.tables import GRID, KEY, NAMES, MurderousEntries, content, some_rows, table
from tests.tables.persons.test_cluster import collected, in_files
from tests.tables.persons.test_totals import shown
from tests.tables.tallies import Murderous, Tally

needs_pyspark()
pytestmark = MARKS


@pytest.mark.slow
def test_a_killed_executor_changes_nothing(tmp_path: Path) -> None:
    """Two workers with a JVM each, one of which is killed when the rows that are kept are read."""
    rows = table(some_rows(4, 3000, 300))
    with spark_session("local-cluster[2,1,1024]", tmp_path) as session:
        there = in_files(session, rows, tmp_path / "rows")
        source = keep_rows(open_source(there), NAMES, "id", 2, KEY)
        here = keep_rows(open_source(rows), NAMES, "id", 2, KEY)
        work = Murderous(("x",), tmp_path / "killed", executor=True)
        assert unwrap(measure(source, work)) == unwrap(measure(here, Tally(("x",))))
        assert "CoarseGrainedExecutorBackend" in (tmp_path / "killed").read_text()
        assert collected(source) == content(here, NAMES)
        murder = MurderousEntries("x", GRID, tally=Murderous(("x",), tmp_path / "again", executor=True))
        far, near = (unwrap(person_totals(open_source(data), murder, "id")) for data in (there, rows))
        assert (tmp_path / "again").exists()
        assert shown(far) == shown(near)
