"""``snugdp audit`` and its page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from snugdp.audit import mutants as suite
from snugdp.audit import registry
from snugdp.audit.finding import Curve, Finding
from snugdp.audit.mutants.base import Mutant, Verdict
from snugdp.audit.run import Report, audit
from snugdp.cli.main import app
from snugdp.guarantee import Cost
from snugdp.report.audit import page
from snugdp.report.curves import picture
from tests.audit.toys import case, laplace_sum

ONE = "framework: distance, Laplace"


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["audit", *words], env={"COLUMNS": "200", "TERM": "dumb"})


def test_one_mechanism(tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    result = run("framework", "--layers", "N", "--processes", "1", "--report", str(place))
    assert result.exit_code == 0, result.output
    assert f"{len(registry.registered('framework'))} of" in result.output
    assert ONE in place.read_text()


def test_findings_as_json() -> None:
    result = run("framework", "--layers", "N", "--processes", "1", "--json")
    told = json.loads(result.stdout)
    assert told["passed"] is True
    assert {one["layer"] for one in told["findings"]} == {"N"}


def test_mistakes_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ours", lambda: iter(()))
    monkeypatch.setattr(registry, "registered", lambda group=None: ())
    for words, said in ((["nobody"], "no case"), (["framework", "--layers", "Q"], "no layer Q")):
        result = run(*words, "--processes", "1")
        assert result.exit_code == 1
        assert said in result.output


def test_a_failure_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = case(laplace_sum(1), Cost(epsilon="0.4"))
    monkeypatch.setattr(registry, "matching", lambda name: (wrong,))
    result = run("toy", "--layers", "N", "--processes", "1")
    assert result.exit_code == 1
    assert "FAILED" in result.output
    assert "0 of 1 claims hold" in result.output
    assert run("toy", "--layers", "N", "--clean", "2").exit_code == 1


def test_clean_runs_are_counted() -> None:
    result = run("framework", "--layers", "N", "--clean", "2", "--processes", "1")
    assert result.exit_code == 0, result.output
    assert "2 runs: 20 claims, 0 alarms" in result.output


def verdicts() -> list[Verdict]:
    def nothing(quick: bool) -> list[Finding]:
        return []

    made = [Mutant(name, "Makes | it wrong.", ("S",), None, nothing, number=k) for k, name in enumerate("ab", 1)]  # type: ignore[arg-type]
    return [Verdict(made[0], True, "S", "add", "Laplace(1)", "p = 0"), Verdict(made[1], False, reason="too subtle")]


def test_the_table_of_mutants_goes_into_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "run_mutants", lambda progress, quick: [progress(one) or one for one in verdicts()])
    monkeypatch.setattr(suite, "mutants", lambda: (1, 2))
    page_of = tmp_path / "page.md"
    page_of.write_text("before\n<!-- mutants: begin -->\nold\n<!-- mutants: end -->\nafter\n")
    for _ in range(2):
        result = run("--mutants", "--markdown", str(page_of))
        assert result.exit_code == 1  # one survived, and nobody had said that it would
    text = page_of.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| 1 | a | Makes / it wrong. | S | add |" in text
    assert text.count("1 of 2 mistakes on purpose were caught") == 1
    page_of.write_text("no marks")
    assert "has no lines" in run("--mutants", "--markdown", str(page_of)).output


def test_the_page_of_the_documentation_has_its_marks() -> None:
    text = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    assert text.index("<!-- mutants: begin -->") < text.index("<!-- mutants: end -->")


class Tags(HTMLParser):
    VOID = frozenset({"meta", "br", "path", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick"}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone() -> None:
    curve = Curve((0.0, 1.0), (0.4, 0.1), (0.5, float("inf")), (0.3, 0.2), (0.6, 1.0))
    strange = Finding("D", "<script>alert(1)</script>", "delta(1) <= 0.1", "0.3", False, "look & see", curve)
    report = audit([registry.case(ONE)], layers="DN")
    both = Report((strange, *report.findings), report.seconds, 1.0, report.versions, "quick", report.groups)
    html = page(both, verdicts())
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert "script" not in tags.seen
    assert not re.search(r"https?://|@import|url\(", html)
    assert "&lt;script&gt;" in html
    assert "1 of 2 caught" in html
    assert tags.seen.count("svg") == 1 + sum(one.curve is not None for one in report.findings)
    assert "nan" not in html.split("<body>")[1]


def test_a_picture_stays_inside() -> None:
    drawn = picture(Curve((-1.0, 0.0, 1.0), (0.7, 0.4, 0.0), (2.0, -1.0, float("nan"))), "strange")
    lines = re.findall(r'class="(?:claimed|measured)" points="([^"]*)"', drawn)
    numbers = [float(x) for x in re.findall(r"-?[\d.]+", " ".join(lines))]
    assert len(numbers) == 12
    assert min(numbers) >= 0
    assert max(numbers) <= 220
    assert re.findall(r'text-anchor="middle">([^<]*)<', drawn) == ["-1", "0", "1", "epsilon"]
