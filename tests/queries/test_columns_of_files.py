"""Queries that take a column by itself, asked about a column of a table: the same answer, and the same question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import snugdp
from snugdp import MemoryLedger, Mode, Simulation, TrimmedMean

CELLS = [0.25, None, float("nan"), 7.0, -0.5, float("inf"), *(i / 100 for i in range(60))]
TABLE = pl.DataFrame({"x": CELLS, "shop": ["Rome", None, "Oslo", "rome", "1", *(["Rome"] * 61)]})
ASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "trimmed mean": (snugdp.trimmed_mean, {"bounds": (-1, 1), "delta": 1e-6}),
    "tested trimmed mean": (snugdp.trimmed_mean, {"bounds": (-1, 1), "delta": 1e-6, "beta": 0.1}),
    "trimmed mean without bounds": (snugdp.trimmed_mean, {"delta": 1e-6}),
    "tested median": (snugdp.median, {"bounds": (-1, 1), "delta": 1e-6, "method": "test"}),
    "tested quantile": (
        snugdp.quantile,
        {"q": 0.3, "bounds": (-1, 1), "delta": 1e-6, "beta": 0.2, "neighbours": "replace"},
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_numbers_of_a_file_are_those_of_the_column(name: str, tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "rows.parquet")
    ask, given = ASKED[name]
    answers = [
        str(ask(data, epsilon=5, noise=Simulation(1), **given, **column).value)
        for data, column in ((TABLE["x"], {}), (TABLE, {"column": "x"}), (tmp_path / "rows.parquet", {"column": "x"}))
    ]
    assert len(set(answers)) == 1


def test_the_mode_of_a_file_is_that_of_the_column(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "rows.csv")
    given: dict[str, Any] = {"categories": ["Rome", "Oslo", 1], "epsilon": 5, "delta": 1e-3, "noise": Simulation(1)}
    assert snugdp.mode(tmp_path / "rows.csv", column="shop", **given).value == "Rome"
    assert snugdp.mode(TABLE["shop"], **given).value == "Rome"
    with pytest.raises(TypeError, match="name of a column"):
        Mode(column=3, categories=["a"], epsilon=1, delta=1e-6)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name of a column"):
        TrimmedMean(column=3, bounds=(0, 1), epsilon=1)  # type: ignore[arg-type]


def test_a_column_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "rows.parquet")
    ledger = MemoryLedger(1, 1e-6, "replace")
    with pytest.raises(Exception, match="nothing"):
        snugdp.mode(
            TABLE, column="nothing", categories=["a"], epsilon=1, delta=1e-6, neighbours="replace", ledger=ledger
        )
    with pytest.raises(TypeError, match="must hold numbers"):
        snugdp.trimmed_mean(tmp_path / "rows.parquet", column="shop", bounds=(0, 1), epsilon=1, ledger=ledger)
    assert ledger.spent.epsilon == 0
