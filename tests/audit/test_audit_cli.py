"""``snugdp audit`` and its page."""

import json
import re
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import snugdp.cli.commands.audit as cli
from snugdp.audit import registry
from snugdp.audit.finding import Curve, Finding
from snugdp.audit.run import Report, audit
from snugdp.core.guarantee import Cost
from snugdp.report.audit import drawn as shown
from snugdp.report.audit import page, pictures
from snugdp.report.words import missed
from tests.accounting.atoms import gaussian_delta
from tests.audit.toys import case, laplace_sum
from tests.cli import people

ONE = "framework: distance, Laplace"
run = partial(people.run, "audit", env={"COLUMNS": "200", "TERM": "dumb"})


def test_one_mechanism(tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    result = run(ONE, "--layers", "N", "--processes", "1", "--report", place)
    assert "2 of 2 claims hold" in result.output  # as a whole, and step by step
    assert ONE in place.read_text()


def test_findings_as_json() -> None:
    result = run(ONE, "--layers", "N", "--processes", "1", "--json")
    told = json.loads(result.stdout)
    assert told["passed"] is True
    assert {one["layer"] for one in told["findings"]} == {"N"}


def test_mistakes_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_built", lambda group: ())  # no case has to be made
    for words, said in ((["nobody"], "no case"), (["framework", "--layers", "Q"], "no layer Q")):
        assert said in run(*words, "--processes", "1", code=1).output


def test_a_failure_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = case(laplace_sum(1), Cost(epsilon="0.4"))
    monkeypatch.setattr(registry, "matching", lambda name: (wrong,))
    result = run("toy", "--layers", "N", "--processes", "1", code=1)
    assert "FAILED" in result.output
    assert "0 of 2 claims hold" in result.output
    run("toy", "--layers", "N", "--clean", "2", code=1)


def test_clean_runs_are_counted() -> None:
    assert "2 runs: 4 claims, 0 alarms" in run(ONE, "--layers", "N", "--clean", "2", "--processes", "1").output


def test_without_the_studies_only_registered_cases_are_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "library", lambda: None)
    monkeypatch.setattr(registry, "_others", {})
    registry._built.cache_clear()
    try:
        nothing = run("--layers", "N", "--processes", "1", code=1)
        assert nothing.output.count("pip install snugdp-studies") == 1
        registry.register(case(laplace_sum(1), Cost(epsilon=1)))
        found = run("--layers", "N", "--processes", "1")
        assert "2 of 2 claims hold" in found.output
        assert found.output.count("pip install snugdp-studies") == 1
    finally:
        registry._built.cache_clear()


def test_what_cannot_be_written_is_said_before_the_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_audited", lambda *_, **__: pytest.fail("an hour later"))
    assert "no such folder" in run("--report", tmp_path / "nowhere" / "audit.html", code=1).output


class Tags(HTMLParser):
    VOID = frozenset({"meta", "br", "path"})

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


@pytest.mark.slow
def test_the_page_stands_alone() -> None:
    curve = Curve((0.0, 1.0), (0.4, 0.1), (0.5, float("inf")), (0.3, 0.2), (0.6, 1.0))
    strange = Finding("D", "<script>alert(1)</script>", "delta(1) <= 0.1", "0.3", False, "look & see", curve)
    report = audit([registry.case(ONE)], layers="DN")
    both = Report((strange, *report.findings), report.seconds, 1.0, report.versions, "quick", report.groups)
    html = page(both)
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert "script" not in tags.seen
    assert not re.search(r"https?://|@import|url\(", html)
    assert "&lt;script&gt;" in html
    assert tags.seen.count("svg") == 4  # two of each case: errors and deltas
    assert "nan" not in html.split("<body>")[1]


def test_pictures_stay_inside() -> None:
    drawn = pictures(Curve((-1.0, 0.0, 1.0), (0.7, 0.4, 0.0), (2.0, -1.0, float("nan"))), "strange")
    lines = re.findall(r'class="(?:claimed|measured|guess)" points="([^"]*)"', drawn)
    numbers = [float(x) for x in re.findall(r"-?[\d.]+", " ".join(lines))]
    assert len(lines) == 5
    assert min(numbers) >= 0
    assert max(numbers) <= 220
    named = re.findall(r'text-anchor="middle">([^<]*)<', drawn)
    assert named == ["0", "0.5", "1", "false positives", "-1", "0", "1", "epsilon"]


def test_errors_are_those_of_the_gaussian_mechanism() -> None:
    cost = Cost(mu=1)
    at = np.linspace(-6.0, 6.0, 481).tolist()
    lines = [(epsilon, gaussian_delta(1, epsilon)) for epsilon in at]
    assert lines[300][1] == pytest.approx(cost.delta_at(at[300]))
    for rate in (0.01, 0.2, 0.5, 0.9):
        assert missed(lines, rate, both=False) == pytest.approx(norm.cdf(norm.isf(rate) - 1), abs=1e-4)


def test_a_case_is_drawn_once_and_what_failed_comes_first() -> None:
    curve = Curve((0.0, 1.0), (0.4, 0.1), (0.3, 0.1))
    three = [Finding("D", "one", "", "", True, "", curve), Finding("E", "one", "", "", False, "", curve)]
    assert [each.finding.layer for each in shown([*three, Finding("N", "one", "", "", True)])] == ["E"]
    assert [each.finding.layer for each in shown(three[:1] * 2)] == ["D"]
