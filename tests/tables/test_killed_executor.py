"""A cluster that loses an executor: in a session of its own, beside which there must be no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugdp import LinearRegression, LogisticRegression, Simulation
from snugdp.estimators.pate import tables
from snugdp.secrecy.secret import unwrap
from snugdp.tables import engines
from snugdp.tables.engines import measure
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.schema.schema import Schema
from tests.estimators.pate import panels
from tests.tables.clusters import MARKS, SCHEMA, TABLE, WORK, in_files, needs_pyspark, spark_session
from tests.tables.tallies import KillingTask, Murderous, MurderousStage, MurderousTeacher

needs_pyspark()
pytestmark = MARKS


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two workers with a JVM each."""
    with spark_session("local-cluster[2,1,1024]", tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "person"), [("_Made", None), ("_Assigned", "who"), ("training", None)])
def test_teachers_vote_the_same_even_if_an_executor_is_lost(
    stage: str, person: str | None, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While records are made, while equal ones are numbered, and while a teacher is trained."""
    flag, model = tmp_path / "killed", panels.Watchful()
    for i in range(4):
        panels.TABLE[i::4].write_parquet(tmp_path / f"{i}.parquet")
    table = session.read.parquet(str(tmp_path / "*.parquet"))
    if stage == "training":
        model = MurderousTeacher(flag=flag)
    else:
        real = getattr(tables, stage)
        monkeypatch.setattr(tables, stage, lambda records: MurderousStage(real(records), flag))
    assert panels.votes(table, model, person) == panels.votes(panels.TABLE, panels.Watchful(), person)
    assert "CoarseGrainedExecutorBackend" in flag.read_text()


@pytest.mark.slow
def test_a_cluster_gives_the_same_even_if_it_loses_an_executor(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is killed during a pass, and one in the middle of each fit."""
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
