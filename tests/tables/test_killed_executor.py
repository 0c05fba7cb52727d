"""A cluster that loses an executor: in a session of its own, beside which there must be no other."""

from pathlib import Path

import pytest

from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import measure
from snugdp.tables.passes.moments import GramPass
from tests.tables.clusters import MARKS, SCHEMA, TABLE, WORK, in_files, needs_pyspark, spark_session
from tests.tables.tallies import Murderous

needs_pyspark()
pytestmark = MARKS


@pytest.mark.slow
def test_a_cluster_gives_the_same_state_even_if_it_loses_an_executor(tmp_path: Path) -> None:
    """Two workers with a JVM each, one of which is killed during the pass."""
    with spark_session("local-cluster[2,1,1024]", tmp_path) as session:
        table = in_files(session, tmp_path / "rows")
        gram = GramPass(SCHEMA)
        assert gram.pack(unwrap(measure(table, gram))) == gram.pack(unwrap(measure(TABLE, gram)))
        work = Murderous(WORK.columns, tmp_path / "killed", executor=True)
        assert unwrap(measure(table, work)) == unwrap(measure(TABLE, WORK))
        assert "CoarseGrainedExecutorBackend" in (tmp_path / "killed").read_text()
