"""A cluster of two workers with a JVM each: the same state as here, even if one of them is killed during the pass."""

from __future__ import annotations

from pathlib import Path

from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import measure
from snugdp.tables.passes.moments import GramPass
from tests.tables.clusters import MARKS, SCHEMA, TABLE, WORK, in_files, needs_pyspark, spark_session
from tests.tables.tallies import Murderous

needs_pyspark()
pytestmark = MARKS


def test_a_cluster_gives_the_same_state_even_if_it_loses_an_executor(tmp_path: Path) -> None:
    with spark_session("local-cluster[2,1,1024]") as session:
        table = in_files(session, tmp_path)
        gram = GramPass(SCHEMA)
        assert gram.pack(unwrap(measure(table, gram))) == gram.pack(unwrap(measure(TABLE, gram)))
        work = Murderous(WORK.columns, tmp_path / "killed", executor=True)
        assert unwrap(measure(table, work)) == unwrap(measure(TABLE, WORK))
        assert "CoarseGrainedExecutorBackend" in (tmp_path / "killed").read_text()
