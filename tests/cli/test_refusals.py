"""Whatever fails after the charge is a refusal with its exit code: no traceback, no file, and the charge stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import snugdp
from snugdp.noise import Exact
from tests.cli.people import run
from tests.effort import sampled

AGE = ["-c", "age", "--lower", "0", "--upper", "120"]
COMMANDS = {
    "count": ["query", "count"],
    "mean": ["query", "mean", *AGE],
    "mean by group": ["query", "mean", *AGE, "--by", "city", "-o", "OUT"],
    "group-by": ["query", "group-by", "--by", "city", "-o", "OUT"],
    "quantiles": ["query", "quantiles", *AGE, "--q", "0.25", "--q", "0.5"],
    "bounds": ["bounds", "-c", "age"],
    "describe": ["describe", "SCHEMA", "-o", "OUT"],
}


@sampled(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_failure_after_the_charge(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise MemoryError("a cell of 4711")

    table, schema, out = tmp_path / "people.parquet", tmp_path / "people.toml", tmp_path / "out.csv"
    pl.DataFrame({"age": [40.0] * 50, "city": ["Oslo"] * 50}).write_parquet(table)
    schema.write_text(snugdp.Schema({"age": snugdp.Number(0, 120)}).to_toml())
    ledger = snugdp.Ledger.open(tmp_path / "people.ledger", dataset="people", budget=snugdp.Budget(2, 1e-3))
    monkeypatch.setattr(Exact, "answer", failing)
    words = [{"OUT": str(out), "SCHEMA": str(schema)}.get(word, word) for word in COMMANDS[name]]
    at = 1 if words[0] != "query" else 2
    budget = ["--epsilon", "1", *([] if name == "bounds" else ["--delta", "1e-6"])]
    done = run(*words[:at], table, *words[at:], *budget, "--ledger", ledger.address, "-y", code=3)
    assert "4711" not in done.output
    assert "Traceback" not in done.output
    assert not out.exists()
    assert not ledger.affords(snugdp.Cost(epsilon="1.5"))
