"""The errata page and the tests name each other."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


def _tests() -> dict[str, list[str]]:
    """Erratum id -> test references, from the files beside this one."""
    found: dict[str, list[str]] = {}
    for path in sorted(HERE.glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                match = re.match(r"test_([a-z]\d+)_", node.name)
                assert match, f"{path.name}::{node.name} has no erratum id"
                found.setdefault(match[1].upper(), []).append(f"tests/errata/{path.name}::{node.name}")
    return found


def _sections() -> dict[str, str]:
    """Erratum id -> its text on the page."""
    parts = re.split(r"^### ([A-Z]\d+): ", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_erratum_has_a_test_and_every_test_an_erratum() -> None:
    assert set(_sections()) == set(_tests())
    assert len(_sections()) == len(re.findall(r"^### ", PAGE, flags=re.MULTILINE))


def test_every_erratum_names_its_tests() -> None:
    tests = _tests()
    for key, text in _sections().items():
        assert re.findall(r"`(tests/errata/\S+)`", text) == tests[key], key


def test_every_erratum_has_the_same_form() -> None:
    for key, text in _sections().items():
        first = "Code" if key.startswith("C") else "Paper"
        labels = re.findall(r"^- \*\*(\w+):\*\*", text, flags=re.MULTILINE)
        assert labels[:4] == [first, "Wrong", "True", "Evidence"], key
        assert set(labels[4:]) == {"Test"}, key


def test_summary_lists_every_erratum_once() -> None:
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.*) \| ([\w ]+) \|$", PAGE, flags=re.MULTILINE)
    assert [key for key, _, _ in rows] == list(_sections())
    allowed = {"privacy violated", "loose", "typo", "gap in the argument", "utility claim not reproduced"}
    assert {severity for _, _, severity in rows} <= allowed
    for key, subject, _ in rows:
        assert _sections()[key].startswith(subject + "\n"), key
