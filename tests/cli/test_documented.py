"""Every command on the page about the command line runs, and ends as the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from snugdp.cli.main import VERBS
from tests.cli import people
from tests.cli.people import run

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
BLOCK = re.compile(r"(?:^<!-- needs (.+?) -->\n)?^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def documented() -> list[tuple[str, int]]:
    """The commands that need nothing else, in their order, and how they end."""
    found = []
    for needs, block in BLOCK.findall(PAGE):
        for line in block.splitlines():
            assert line.startswith("$ snugdp "), line
            code = re.search(r"# exit code (\d)", line)
            if not needs:
                found.append((line, int(code[1]) if code else 0))
    return found


def test_every_documented_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    people.write(tmp_path)
    (tmp_path / "people.toml").unlink()
    people.table(50).write_parquet(tmp_path / "new.parquet")
    for line, code in documented():
        words = shlex.split(line, comments=True)[2:]
        result = run(*words, code=code)
        if words[:2] == ["schema", "init"]:
            (tmp_path / "people.toml").write_text(people.SCHEMA)  # what a person fills in
        if "--json" in words:
            assert result.stdout.startswith("{")
    assert {"model.json", "predictions.csv", "members.parquet", "coordinates.csv", "releases.csv"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_every_verb_is_on_the_page() -> None:
    for verb in VERBS:
        assert f"`snugdp {verb}" in PAGE, verb
