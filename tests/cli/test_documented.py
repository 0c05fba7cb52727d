"""Every documented command is one of ours, and those that need nothing else run and end as their page says.

The commands of the tutorials are run by ``tests/test_docs.py``, together with the rest of their pages.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from snugdp.cli import main
from tests.cli import people
from tests.cli.people import run
from tests.cli.test_lazy import COMMANDS
from tests.pages import PAGES, ROOT, Reader, blocks

PAGE = ROOT / "docs" / "cli.md"
OF_OURS = re.compile(r"^(?:\$ )?(snugdp .+)$", re.MULTILINE)
ELSEWHERE = {"seconds", "data", "postgres"}  # demo, bench, audit, paper and servers have tests of their own


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the pages take for granted: people.parquet and people.csv, and public rows, new ones and votes."""
    monkeypatch.chdir(tmp_path)
    people.write(tmp_path)
    (tmp_path / "people.toml").unlink()
    people.table(4300)[4000:].write_parquet("public.parquet")
    people.table(50).write_parquet("new.parquet")
    np.save("votes.npy", np.random.default_rng(1).permuted(np.tile([300, 60, 40], (50, 1)), axis=1))
    return tmp_path


@pytest.mark.slow  # make test reads them all below, and runs those of the README
def test_every_documented_command_runs(folder: Path) -> None:
    reader = Reader(kinds={"console", "toml"})
    assert set(reader.follow(PAGE)) <= ELSEWHERE
    assert all(said.stdout.startswith("{") for command, said in reader.said if "--json" in command.words)
    made = "model.json predictions.csv members.parquet coordinates.csv releases.csv guesses.csv labels.csv best.json"
    assert set(made.split()) <= {path.name for path in folder.iterdir()}


def test_the_readme_runs(folder: Path) -> None:
    lines = [line for block in blocks(ROOT / "README.md") for line in OF_OURS.findall(block.text)]
    assert len(lines) >= 5
    for line in lines:
        run(*shlex.split(line, comments=True)[1:])
        if line.startswith("snugdp schema init"):
            (folder / "people.toml").write_text(people.SCHEMA)  # what a person fills in
    assert {"model.json", "report.html", "predictions.csv"} <= {path.name for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.md", "which-epsilon.md", "for/privacy-officers.md", "scores.md"])
def test_commands_of_pages_that_begin_in_the_middle_run(page: str, folder: Path) -> None:
    """A schema, a model, its ledger and rows that were published are there already, unless the page makes them."""
    (folder / "people.toml").write_text(people.SCHEMA)
    lines = [line for block in blocks(ROOT / "docs" / page) for line in OF_OURS.findall(block.text)]
    assert lines
    if not any(" ledger create people.ledger " in line for line in lines):
        model, target = ("logistic", "member") if page == "scores.md" else ("linear", "income")
        run("ledger", "create", "people.ledger", "--dataset", "people", "--epsilon", 2, "--delta", 1e-6)
        paid = ("--epsilon", 1, "--delta", 1e-7, "--ledger", "people.ledger")
        run("fit", model, "people.parquet", "--target", target, *paid, "-o", "model.json")
        people.table(300).write_csv("published.csv")
    for line in lines:
        run(*shlex.split(line, comments=True)[1:])


def test_the_schema_on_the_page_is_that_of_the_people() -> None:
    shown = {block.file: block.text for block in blocks(PAGE) if block.file}
    assert shown["people.toml"] == people.SCHEMA


def test_every_verb_is_on_the_page() -> None:
    for verb in main.VERBS:
        assert f"`snugdp {verb}" in PAGE.read_text(encoding="utf-8"), verb


def documented() -> Iterator[tuple[str, str]]:
    """Where a command is shown, and the command: in the blocks of all pages, and in the help."""
    for page in PAGES:
        for block in blocks(page):
            if block.kind != "python":
                for line in OF_OURS.findall(block.text.replace("\\\n", " ")):
                    yield page.name, line
    for path, command in COMMANDS.items():
        told = f"{command.help or ''}\n{command.epilog or ''}"
        for line in re.findall(r"Example: (snugdp .+)", told):
            yield f"{path} --help", line


@cache
def root() -> Any:
    """The command of all commands."""
    return typer.main.get_command(main.app)


def parsed(words: list[str]) -> Any:
    """The command that these words mean, with its options; nothing is run. Wrong words raise."""
    command = root()
    context = command.make_context("snugdp", words)
    while hasattr(command, "resolve_command"):
        left = [*getattr(context, "_protected_args", []), *context.args]
        name, command, left = command.resolve_command(context, left)
        context = command.make_context(name, left, parent=context)
    return context


def test_every_documented_command_is_one_of_ours() -> None:
    found = list(documented())
    assert len(found) > 60
    for where, line in found:
        try:
            parsed(shlex.split(line, comments=True)[1:])
        except Exception as error:
            raise AssertionError(f"{where}: {line}") from error


def test_wrong_commands_would_be_noticed() -> None:
    fit = "fit linear a.parquet"
    for line in (f"{fit} a.toml --epsilonn 1", fit, "nothing", "plan quadratic a.toml"):
        with pytest.raises(Exception, match=r"(?i)no such|missing|not one of"):
            parsed(line.split())
