"""Commands that read CSV: quoted line breaks by default, every line for itself on demand, and no charge in between."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from snugdp.cli.main import app
from snugdp.tables.sources import FileSource
from tests.cli import people
from tests.cli.people import new_ledger, run
from tests.effort import sampled


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """broken.csv, which is not well formed, and a ledger."""
    monkeypatch.chdir(tmp_path)
    people.write(tmp_path, 400)
    content = (tmp_path / "people.csv").read_bytes()
    (tmp_path / "broken.csv").write_bytes(content + b'1,"SECRET,Rome,true,2,30000\n')
    new_ledger(10)
    return tmp_path


PAID = ("--epsilon", "1", "--ledger", "people.ledger", "--yes")
FIT = ("fit", "--method", "adassp", "--epsilon", 1, "--yes", "linear")
COMMANDS = [
    ("fit", "linear", "broken.csv", "people.toml", "--method", "adassp", *PAID),
    ("query", "median", "broken.csv", "-c", "age", "--lower", "0", "--upper", "120", *PAID),
    ("query", "vote", "broken.csv", "-c", "city", "--values", "Rome,Oslo,Lima", *PAID),
    ("bounds", "broken.csv", "-c", "age", *PAID),
    ("select", "linear", "broken.csv", "people.toml", "--validation", "people.parquet", "--mean-runs", "1", *PAID),
    ("select", "linear", "people.csv", "people.toml", "--validation", "broken.csv", "--mean-runs", "1", *PAID),
    ("schema", "check", "people.toml", "broken.csv"),
]


@sampled(3)
@pytest.mark.parametrize("words", COMMANDS)
def test_an_ill_formed_file_costs_nothing_and_can_be_read_line_by_line(words: tuple[str, ...], folder: Path) -> None:
    before = run("ledger", "show", "people.ledger").stdout
    said = run(*words, code=1)
    assert "broken.csv is not a well-formed CSV file" in " ".join(said.output.split())
    assert "SECRET" not in said.output
    assert run("ledger", "show", "people.ledger").stdout == before
    if words[0] != "select" and "median" not in words:  # which is slow, and which may be refused
        run(*words, "--no-multiline")


def test_predictions_are_not_begun(folder: Path) -> None:
    run(*FIT, "people.csv", "people.toml", "-o", "model.json")
    run("predict", "model.json", "broken.csv", "-o", "out.csv", code=1)
    run("predict", "model.json", "broken.csv", "-o", "out.csv", "--no-multiline")
    assert len(pl.read_csv(folder / "out.csv")) == 401


def test_votes_and_other_formats(folder: Path) -> None:
    (folder / "votes.csv").write_bytes(b'a,b\n"90\n",10\n80,20\n')
    words = ("--classes", "x,y", "--epsilon", "5", "--test", "none", "--json", "--yes")
    assert '"labels": ["x", "x"]' in run("pate", "label", "votes.csv", *words).stdout
    run(*FIT, "people.parquet", "people.toml", "--no-multiline")
    assert "age" in run("schema", "init", "people.csv", "--no-multiline").stdout


OPENED = [
    ("fit", "linear", "people.csv", "people.toml", "--method", "adassp"),
    ("fit", "pca", "people.csv", "people.toml", "--components", "2"),
    ("query", "median", "people.csv", "-c", "age", "--lower", "0", "--upper", "120"),
    ("query", "quantile", "people.csv", "-c", "age", "--q", "0.5", "--schema", "people.toml"),
    ("query", "vote", "people.csv", "-c", "city", "--values", "Rome,Oslo,Lima"),
    ("bounds", "people.csv", "-c", "age"),
    ("select", "linear", "people.csv", "people.toml", "--validation", "people.parquet", "--mean-runs", "2"),
]


@sampled(9)
@pytest.mark.parametrize("words", OPENED, ids=lambda words: " ".join(words[:2]))
def test_a_table_is_opened_once(words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    of = FileSource.of

    def counted(paths: Any, **given: Any) -> FileSource:
        opened.extend(map(str, paths))
        return of(paths, **given)

    monkeypatch.setattr(FileSource, "of", counted)
    result = CliRunner().invoke(app, [*words, "--epsilon", "1", "--yes"])
    assert result.exit_code in (0, 3), result.output
    assert opened.count("people.csv") == 1
