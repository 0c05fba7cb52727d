"""A cluster that loses an executor: in a session of its own, beside which there must be no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugdp import LinearRegression, LogisticRegression, Simulation
from snugdp.secrecy.secret import unwrap
from snugdp.tables import engines
from snugdp.tables.engines import measure
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.schema.schema import Schema
from tests.tables.clusters import MARKS, SCHEMA, TABLE, WORK, in_files, needs_pyspark, spark_session
from tests.tables.tallies import KillingTask, Murderous

needs_pyspark()
pytestmark = MARKS


@pytest.mark.slow
def test_a_cluster_gives_the_same_even_if_it_loses_an_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers with a JVM each, one of which is killed during a pass, and one in the middle of each fit."""
    with spark_session("local-cluster[2,1,1024]", tmp_path) as session:
        table = in_files(session, tmp_path / "rows")
        gram = GramPass(SCHEMA)
        assert gram.pack(unwrap(measure(table, gram))) == gram.pack(unwrap(measure(TABLE, gram)))
        work = Murderous(WORK.columns, tmp_path / "killed", executor=True)
        assert unwrap(measure(table, work)) == unwrap(measure(TABLE, WORK))
        assert "CoarseGrainedExecutorBackend" in (tmp_path / "killed").read_text()
        labels = Schema({name: kind for name, kind in SCHEMA.columns.items() if name != "b"}, target="kind of")
        fits: dict[str, Any] = {
            "logistic": lambda: LogisticRegression(epsilon=1, delta=1e-6, schema=labels, noise=Simulation(1)),
            "auto": lambda: LinearRegression(epsilon=1, delta=1e-6, schema=SCHEMA, noise=Simulation(1)),
        }
        for name, make in fits.items():
            flag = tmp_path / name
            with monkeypatch.context() as patch:
                patch.setattr(engines, "_Task", KillingTask.after(2, flag))
                there = make().fit(table)
            assert "CoarseGrainedExecutorBackend" in flag.read_text()
            assert np.array_equal(there.coef_, make().fit(TABLE).coef_)
