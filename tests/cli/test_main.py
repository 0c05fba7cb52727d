"""The command line: the version is the package's, schemas and bounds tell nothing, benchmarks run."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import snugdp
from snugdp.cli.main import app


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == snugdp.__version__
    assert importlib.metadata.version("snugdp") == snugdp.__version__


@pytest.mark.slow
def test_bench_noise_prints_ratios() -> None:
    result = CliRunner().invoke(app, ["bench", "noise", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "OpenDP" in result.output


def test_bench_queries_prints_ratios() -> None:
    result = CliRunner().invoke(app, ["bench", "queries", "--rows", "2000", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "trimmed mean" in result.output


def test_schema_check_never_quotes_a_first_line_that_may_be_a_row(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("Alice,Oslo,HIV\nBob,Rome,none\n")
    (tmp_path / "schema.toml").write_text('[columns.age]\ntype = "number"\nlower = 0\nupper = 120\n')
    result = CliRunner().invoke(app, ["schema", "check", str(tmp_path / "schema.toml"), str(tmp_path / "people.csv")])
    assert result.exit_code == 1
    assert "Alice" not in result.output
    assert "no column" in result.output


def test_from_a_file_to_a_schema_with_private_bounds(tmp_path: Path) -> None:
    file, schema = tmp_path / "people.parquet", tmp_path / "schema.toml"
    pl.DataFrame({"age": [20.0 + i % 60 for i in range(5000)], "city": ["Rome", "Oslo"] * 2500}).write_parquet(file)
    made = CliRunner().invoke(app, ["schema", "init", str(file), "-o", str(schema)])
    assert made.exit_code == 0, made.output
    assert "Rome" not in schema.read_text()
    assert "lower" in schema.read_text()
    unfinished = CliRunner().invoke(app, ["schema", "check", str(schema), str(file)])
    assert unfinished.exit_code == 1
    assert "snugdp bounds" in unfinished.output
    found = CliRunner().invoke(app, ["bounds", str(file), "--column", "age", "--epsilon", "2"])
    assert found.exit_code == 0, found.output
    assert "[columns.age]" in found.output
    assert "Plan: Bounds" in found.output


def test_help_lists_the_commands() -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    assert "demo" in output
    assert "bench" in output
