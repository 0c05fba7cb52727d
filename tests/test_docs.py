"""What the documentation shows runs, and what it promises is in the repository."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import snugdp

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(module.name for module in pkgutil.walk_packages(snugdp.__path__, "snugdp."))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(
    page: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"{page.name}, example {number + 1}", "exec"), names)
    capsys.readouterr()


def test_the_plan_in_the_readme_is_the_plan() -> None:
    plan = str(snugdp.Median(bounds=(0, 500_000), epsilon=0.5, delta=1e-6, beta=100).plan())
    assert plan in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert not failed


def test_every_public_name_is_explained() -> None:
    for name in snugdp.__all__:
        documented = getattr(snugdp, name).__doc__ or name in ("Outcome",)
        assert documented, name


def test_every_page_is_in_the_site() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name in navigation, page.name


def test_every_dependency_has_its_reason() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    decisions = (ROOT / "docs" / "decisions.md").read_text()
    extras = [name for group in project["optional-dependencies"].values() for name in group]
    for requirement in [*project["dependencies"], *extras]:
        name = re.split(r"[<>=]", requirement)[0]
        assert name.lower() in decisions.lower(), name
