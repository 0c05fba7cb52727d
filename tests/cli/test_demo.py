"""The demonstration: what it shows is true, and its files are those of the commands."""

from pathlib import Path

import polars as pl
import pytest

import snugdp
from snugdp.cli.commands import demo, demo_table
from tests.cli.people import run


def test_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_table, "_RUNS", 1)
    monkeypatch.setattr(demo, "_EPSILONS", (0.3, 1.0))
    out = tmp_path / "demo"
    shown = run("demo", "--out", str(out)).stdout
    told = "A table|Plan: Linear regression|the released line|not private|NOT PRIVATE|refused|left:"
    assert not [words for words in told.split("|") if words not in shown]
    model = snugdp.load(out / "model.json")
    test = demo_table.people()[demo_table.ROWS :]
    assert demo_table.error(model.predict(test), test) < 6  # the mean for everybody is off by 8.3
    with snugdp.Ledger.open(out / "people.ledger") as ledger:
        assert [entry.state for entry in ledger.entries()] == ["released", "released", "refused"]
    assert snugdp.Schema.from_toml(out / "people.toml") == demo_table.WAGES
    assert len(pl.read_parquet(out / "people.parquet")) == demo_table.ROWS
    assert (out / "report.html").read_text().startswith("<!")
    assert "already" in run("demo", "--out", str(out), code=1).stderr


@pytest.mark.slow
def test_rehearsals_fall_with_epsilon() -> None:
    table = demo_table.people()
    train, test = table[: demo_table.ROWS], table[demo_table.ROWS :]
    best = demo_table.plain_error(demo_table.plain_line(train), test)
    little, much = (demo_table.rehearsed(train, test, epsilon, 1e-7) for epsilon in (0.03, 1.0))
    assert best - 0.05 < much < best + 0.1 < little
