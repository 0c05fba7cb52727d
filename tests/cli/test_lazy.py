"""Nothing is loaded before it is needed: not by an import, not by help, not by completion. Help tells the truth."""

import ast
import inspect
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import snugdp
from snugdp.cli import lazy, main
from snugdp.estimators import registry
from snugdp.estimators.registry import ESTIMATORS
from tests.cli.people import run

HEAVY = ("numpy", "polars", "pandas", "pyarrow", "scipy", "sklearn", "flint", "narwhals", "matplotlib", "duckdb")
TABLES = {"snugdp", "snugdp.lazy", "snugdp.estimators", "snugdp.estimators.registry"}  # of names, and nothing else
LIGHT = TABLES | {"snugdp.cli", "snugdp.cli.main", "snugdp.cli.errors", "snugdp.cli.lazy"}
PROGRAM = """
import sys
from snugdp.cli.main import app
sys.argv = ["snugdp", *sys.argv[1:]]
try:
    app()
except SystemExit:
    pass
print("LOADED", *sorted(sys.modules), file=sys.stderr)
"""


def modules(*words: str, program: str = PROGRAM, **environment: str) -> tuple[set[str], str]:
    """What is loaded after a command, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    return set(done.stderr.split("LOADED")[1].split()), done.stdout


def own(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.split(".")[0] == "snugdp"}


def test_an_import_loads_nothing() -> None:
    program = "import sys, snugdp; dir(snugdp); print('LOADED', *sys.modules, file=sys.stderr)"
    loaded, _ = modules(program=program)
    assert own(loaded) == TABLES
    assert not loaded & set(HEAVY)


def test_help_loads_the_table_alone() -> None:
    loaded, printed = modules("--help")
    assert own(loaded) == LIGHT
    assert not loaded & set(HEAVY)
    assert all(verb in printed for verb in main.VERBS)


@pytest.mark.slow
def test_help_of_a_command_loads_no_library() -> None:
    """One process for all of them: what the first one loads that is too much is named."""
    program = """
import sys
from snugdp.cli.main import app
for verb in sys.argv[1:]:
    sys.argv = ["snugdp", *verb.split(), "--help"]
    try:
        app()
    except SystemExit:
        pass
    print("LOADED", verb, *sorted(sys.modules), sep="|", file=sys.stderr)
"""
    verbs = [*main.VERBS, "bench noise", "ledger create", "schema init"]
    done = subprocess.run([sys.executable, "-c", program, *verbs], capture_output=True, text=True, check=True)
    lines = [line.split("|")[1:] for line in done.stderr.splitlines() if line.startswith("LOADED|")]
    assert [verb for verb, *_ in lines] == verbs
    assert not {verb: heavy for verb, *loaded in lines if (heavy := set(loaded) & set(HEAVY))}
    assert done.stdout.count("Usage") == len(verbs)


@pytest.mark.slow
def test_completion_loads_the_table_alone() -> None:
    given = {"_SNUGDP_COMPLETE": "complete_bash", "COMP_WORDS": "snugdp p", "COMP_CWORD": "1"}
    loaded, printed = modules(**given)
    assert {"plan", "predict", "paper"} <= set(printed.split())
    assert own(loaded) == LIGHT
    assert not loaded & set(HEAVY)
    given = {"_SNUGDP_COMPLETE": "complete_bash", "COMP_WORDS": "snugdp fit l", "COMP_CWORD": "2"}
    assert {"linear", "logistic"} <= set(modules(**given)[1].split())


def commands(group: Any, path: str = "snugdp") -> Iterator[tuple[str, Any]]:
    """All commands below a group, loaded."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands(typer.main.get_command(main.app)))


def test_every_command_has_an_example_of_itself() -> None:
    for path, command in COMMANDS.items():
        assert f"Example: {path}" in inspect.cleandoc(command.help or ""), path


def test_the_table_says_what_the_commands_say() -> None:
    for name, verb in main.VERBS.items():
        told = inspect.cleandoc(lazy.loaded(name, verb).help or "")
        assert " ".join(told.split("\n\n")[0].split()) == verb.help, name


@pytest.mark.parametrize("verb", ["bench", "paper"])
def test_studies_that_are_not_installed_are_told_in_a_sentence(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "find_spec", lambda name: None if name == "snugdp_studies" else name)
    assert run(verb, "noise", code=1).stderr.strip() == (
        f"`snugdp {verb}` is part of snugdp-studies: pip install snugdp-studies"
    )
    assert verb in run("--help").output


def test_exit_codes_are_in_the_help_and_mistakes_get_a_hint() -> None:
    assert "Exit codes" in run("--help").output
    assert "fit" in run("fti", code=2).stderr
    assert "fit" in run(code=2).output  # no words at all


def told_names(module: types.ModuleType) -> dict[str, str | None]:
    """What a module imports for type checkers alone, and from where."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_every_name_is_told_to_type_checkers_and_found() -> None:
    told = told_names(snugdp) | told_names(registry)
    assert told.pop("*") == registry.__name__
    rooms = {name for name, module in told.items() if module == "snugdp"}
    homes = {name: module for module, names in snugdp._NAMES.items() for name in names.split()}
    homes |= {entry.name: entry.module for entry in ESTIMATORS}
    assert {name: module for name, module in told.items() if name not in rooms} == homes
    assert sorted(snugdp.__all__) == sorted(told)
    assert rooms <= set(snugdp._ROOMS)
    for name in snugdp.__all__:
        assert getattr(snugdp, name) is not None
    assert set(snugdp.__all__) <= set(dir(snugdp))


def test_functions_stay_functions_and_rooms_are_modules() -> None:
    import snugdp.mechanisms.order_statistics.median  # modules of the same names
    import snugdp.mechanisms.votes.mode

    for name in ("median", "mode", "vote", "quantile", "select", "save", "load"):
        assert isinstance(getattr(snugdp, name), types.FunctionType), name
    for name in ("pate", "audit", "estimators", "core"):
        assert isinstance(getattr(snugdp, name), types.ModuleType), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = snugdp.nothing
