"""What a notebook shows: the parts of the report, of what was released; and the tutorial runs from top to bottom."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import snugdp
from snugdp.audit.finding import Finding
from snugdp.audit.run import Report
from snugdp.core import screen
from snugdp.release import progress
from tests.pages import ROOT
from tests.report.test_model import EVIL, Page

NOTEBOOK = ROOT / "docs" / "tutorials" / "notebook.ipynb"


def shown(value: Any) -> str:
    """As a notebook asks for it; read strictly."""
    page: str = value._repr_html_()
    return Page(page).text


def run(source: str, names: dict[str, Any]) -> Any:
    """A cell: the value of its last line, if that is an expression."""
    *body, last = ast.parse(source).body
    shows = isinstance(last, ast.Expr)
    exec(compile(ast.Module(body if shows else [*body, last], []), str(NOTEBOOK), "exec"), names)
    return (
        eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names) if isinstance(last, ast.Expr) else None
    )


def test_the_tutorial_runs_and_its_cells_show_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells), "kept without outputs"
    names: dict[str, Any] = {}
    values = [run("".join(cell["source"]), names) for cell in cells]
    told = [shown(value) for value in values if hasattr(value, "_repr_html_")]
    assert len(told) == 5  # the ledger twice, a plan, an outcome, a model
    assert ["Plan: Median" in text for text in told] == [False, True, False, False, False]
    assert abs(dict(zip(names["model"].coef_names_, names["model"].coef_, strict=True))["size"] - 9.5) < 2
    assert "The city" in Path("flats.html").read_text(encoding="utf-8")


def test_a_refusal_and_a_rehearsal_are_told_as_such() -> None:
    refused = snugdp.mode(["a", "b"], categories=["a", "b"], epsilon=1, delta=1e-6)
    assert "refused" in shown(refused)
    rehearsed = snugdp.count([1.0] * 50, epsilon=1, noise=snugdp.Simulation(1))
    assert "NOT PRIVATE" in shown(rehearsed)


def test_names_are_escaped_and_passwords_are_not_shown() -> None:
    found = snugdp.histogram([EVIL] * 99, values=[EVIL, "b"], epsilon=9)
    assert EVIL not in found._repr_html_()
    assert EVIL in shown(found)
    model = snugdp.LinearRegression(1, 1e-6, ledger="postgresql://ann:secret@db.example/privacy")
    bundle = model._repr_mimebundle_()
    assert "secret" not in bundle["text/html"] + bundle["text/plain"]
    assert "LinearRegression" in shown(model)


def test_an_audit_says_what_failed() -> None:
    good, bad = (Finding("E", name, "delta(1) <= 0.1", "at least 0.2", name == "a") for name in "ab")
    assert "every claim holds" in shown(Report((good,)))
    assert "claims failed" in shown(Report((good, bad)))


def test_a_spinner_is_shown_in_notebooks_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def there(name: str) -> object:
        seen.append(name)
        return object()

    monkeypatch.setattr(screen, "find_spec", there)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with progress.waiting("fitting", None):
        pass
    assert seen == ["ipywidgets"]
