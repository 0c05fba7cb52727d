"""What the documentation shows runs, and what it promises is in the repository."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import snugdp
from tests.effort import sampled
from tests.ledger.conftest import SERVER, new_database
from tests.pages import PAGES, ROOT, TUTORIALS, Reader, blocks
from tests.tables.clusters import MARKS
from tests.test_house import texts

ALONE = [page for page in PAGES if page not in TUTORIALS]
THERE = {
    "spark": bool(find_spec("pyspark") and (shutil.which("java") or os.environ.get("JAVA_HOME"))),
    "postgres": bool(find_spec("psycopg") and SERVER),
}
MISSING = {
    "spark": "Spark needs Java 17 and pip install 'snugdp[spark]'",
    "postgres": "no PostgreSQL server: run python tools/with_postgres.py make test, or set SNUGDP_TEST_POSTGRES",
}
DATABASE = "postgresql://ann@db.example/privacy"  # of the pages
SLOW = [
    "pate",
    "selection",
    "choosing-epsilon",
    "auditing",
    "pca",
    "your-own-csv",
    "orders-and-customers",
    "scikit-learn",
    "ledger",
]
LONG = {"spark": [*MARKS[1:], pytest.mark.slow], **{stem: [pytest.mark.slow] for stem in SLOW}}
TAKE_SECONDS = ("estimators.pate.classifier", "estimators.sparse.models", "accounting.selection.shared")
EXAMPLES = [
    pytest.param(module, marks=[pytest.mark.slow] if module.endswith(TAKE_SECONDS) else [])
    for module, text in texts().items()
    if ">>> " in text
]


@sampled(7)
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=LONG.get(page.stem, [])) for page in ALONE]
)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Reader(kinds={"python"}, compares=False).follow(page)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Somebody who sits down in an empty folder, with all that is to be had on this machine."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "SNUGDP_STATE": str(tmp_path / "state"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 512m --conf spark.ui.enabled=false "
        "--conf spark.ui.showConsoleProgress=false --conf spark.driver.host=127.0.0.1 pyspark-shell",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    with new_database() if THERE["postgres"] else nullcontext("") as database:
        yield Reader(there=[name for name, there in THERE.items() if there], instead={DATABASE: database})


@sampled(6)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=LONG.get(page.stem, [])) for page in TUTORIALS],
)
def test_tutorials_run(page: Path, reader: Reader) -> None:
    if missing := reader.follow(page):
        pytest.skip(f"the rest of the page ran: {MISSING[missing[0]]}")


def test_tutorials_are_told_what_they_need() -> None:
    needs = {block.needs for page in TUTORIALS for block in blocks(page) if block.needs is not None}
    assert needs == set(THERE)
    for page in TUTORIALS:
        kinds = {block.kind for block in blocks(page)}
        assert kinds <= {"python", "console", "toml", "text", "sh"}, page
        assert page.stem == "index" or "python" in kinds, page


def test_the_plan_in_the_readme_is_the_plan() -> None:
    plan = str(snugdp.Median(bounds=(0, 500_000), epsilon=0.5).plan())
    assert plan in (ROOT / "README.md").read_text()


@sampled(12)
@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_examples(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert not failed


PUBLIC = {
    f"{room.__name__}.{name}": getattr(room, name)
    for room in (snugdp, importlib.import_module("snugdp.pate"), importlib.import_module("snugdp.audit"))
    for name in room.__all__
    if inspect.isclass(getattr(room, name)) or inspect.isfunction(getattr(room, name))
}
_SECTION = re.compile(r"^(\w+)\n-+\n(.*?)(?=^\w+\n-+$|\Z)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_explained(name: str) -> None:
    """The parameters of the docstring, if it lists any, are those of the signature."""
    public = PUBLIC[name]
    explained = inspect.cleandoc(vars(public).get("__doc__") or public.__doc__ or "")
    assert explained.partition("\n")[0].endswith("."), "the first line is a sentence"
    sections = dict(_SECTION.findall(explained))
    if "Parameters" in sections:
        heads = re.findall(r"^(\S.*?)(?: : .*)?$", sections["Parameters"], re.MULTILINE)
        told = [argument.lstrip("*") for head in heads for argument in head.split(", ")]
        assert sorted(told) == sorted(inspect.signature(public).parameters)
    else:
        assert not _arguments(public), "numpydoc: a section Parameters"


def _arguments(public: Any) -> bool:
    """Whether somebody is meant to give it arguments."""
    made_elsewhere = issubclass(public, Exception | Enum) if inspect.isclass(public) else False
    if made_elsewhere or public in (snugdp.Account, snugdp.Ledger, snugdp.Plan, snugdp.PrivateAlgorithm):
        return False
    return bool(inspect.signature(public).parameters)


def test_every_page_is_in_the_site() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert f" {page.relative_to(ROOT / 'docs').as_posix()}\n" in navigation, page


def test_every_dependency_has_its_reason() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    decisions = (ROOT / "docs" / "decisions.md").read_text()
    extras = [name for group in project["optional-dependencies"].values() for name in group]
    for requirement in [*project["dependencies"], *extras]:
        name = re.split(r"[<>=]", requirement)[0]
        assert name.lower() in decisions.lower(), name
