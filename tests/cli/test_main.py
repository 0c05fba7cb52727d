"""The command line: the version is the package's, schemas and bounds tell nothing, benchmarks run."""

import importlib.metadata
from pathlib import Path

import polars as pl
import pytest

import snugdp
from tests.cli.people import run


def test_version() -> None:
    assert run("--version").output.strip() == importlib.metadata.version("snugdp") == snugdp.__version__


NOISE = pytest.param("noise", "OpenDP", marks=pytest.mark.slow)


@pytest.mark.parametrize(("words", "says"), [NOISE, ("queries --rows 2000", "trimmed mean")])
def test_bench_prints_ratios(words: str, says: str) -> None:
    assert says in run("bench", *words.split(), "--repeats", 1).output


def test_schema_check_never_quotes_a_first_line_that_may_be_a_row(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("Alice,Oslo,HIV\nBob,Rome,none\n")
    (tmp_path / "schema.toml").write_text('[columns.age]\ntype = "number"\nlower = 0\nupper = 120\n')
    said = run("schema", "check", tmp_path / "schema.toml", tmp_path / "people.csv", code=1).output
    assert "Alice" not in said
    assert "no column" in said


def test_from_a_file_to_a_schema_with_private_bounds(tmp_path: Path) -> None:
    file, schema = tmp_path / "people.parquet", tmp_path / "schema.toml"
    pl.DataFrame({"age": [20.0 + i % 60 for i in range(5000)], "city": ["Rome", "Oslo"] * 2500}).write_parquet(file)
    run("schema", "init", file, "-o", schema)
    assert "Rome" not in schema.read_text()
    assert "lower" in schema.read_text()
    assert "To be found privately: age, city" in run("schema", "check", schema, file).output
    found = run("bounds", file, "--column", "age", "--epsilon", 2).output
    assert "[columns.age]" in found
    assert "Plan: Bounds" in found
