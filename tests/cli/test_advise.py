"""``snugdp advise``: in words and for machines, from a table, a schema or a number of columns."""

import json
from pathlib import Path

from tests.cli import people
from tests.cli.people import run


def test_from_columns_and_an_epsilon() -> None:
    told = json.loads(run("advise", "linear", "--columns", "4", "--rows", "20000", "--epsilon", "1", "--json").stdout)
    assert told["epsilon"] == 1
    assert 0 < told["error"] < 0.2
    assert "standard deviations of the target" in told["error_is"]


def test_from_a_schema_to_an_epsilon(tmp_path: Path) -> None:
    file = tmp_path / "people.toml"
    file.write_text(people.SCHEMA)
    said = run("advise", "linear", str(file), "--rows", "4000", "--epsilon", "1").stdout
    assert "in units of income" in said
    assert "Plan: Linear regression" in said


def test_mistakes_are_told_in_plain_words() -> None:
    both = run("advise", "linear", "--columns", "3", "--rows", "10", "--error", "1", "--epsilon", "1", code=1).stderr
    assert "give --error" in both
    assert "give a table" in run("advise", "linear", "--rows", "10", "--error", "1", code=1).stderr
    assert "--columns is for" in run("advise", "pca", "--columns", "3", "--rows", "9", "--epsilon", "1", code=1).stderr
