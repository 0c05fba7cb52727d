"""The classification benchmark: the same rows for all, honest peers, and numbers that mean what they say."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics import accuracy_score, log_loss
from typer.testing import CliRunner

from snugdp.accounting import gaussian
from snugdp.cli.main import app
from snugdp.noise import Simulation
from snugdp_studies.bench.classification import speed
from snugdp_studies.bench.classification.methods import CONTENDERS, descent
from snugdp_studies.bench.classification.task import TASK, made_up, measured
from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.report import Report, contest
from snugdp_studies.bench.contest.run import Job, Plan, Score, run
from snugdp_studies.bench.contest.task import Contender, Setting, importable

load, split = partial(tables.load, TASK.tables), partial(tables.split, TASK.tables)


def plan(data: str, datasets: list[str] | None = None, methods: list[str] | None = None, **rest: Any) -> Plan:
    return Plan.of(TASK, data, datasets, methods, variants=("norm",), **rest)


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["bench", "classification", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    words = np.where(X @ [2, -1, 0] + rng.logistic(size=300) > 0, "yes", "no")
    lines = [",".join([*map(repr, row.tolist()), "7", word]) for row, word in zip(X, words, strict=True)]
    (tmp_path / "plain.csv").write_text("\n".join(lines))
    with gzip.open(tmp_path / "named.csv.gz", "wt") as file:
        file.write("a,b,c,constant,label\n" + "\n".join(lines))
    return tmp_path


def test_a_run_from_the_command_line(folder: Path) -> None:
    file = folder / "all.json"
    wish = ("--epsilons", "1,4", "--seeds", 2, "--methods", "objective,descent-20,trivial,scikit-learn")
    result = invoke("--data", folder, "--datasets", "plain", *wish, "--scalings", "norm,box", "--json", file)
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.output
    found = json.loads(file.read_text())
    cells = {(c["scaling"], c["epsilon"], c["method"]): c for c in found["cells"]}
    assert len(cells) == 2 * 2 * 4
    for cell in cells.values():
        assert cell["mean"] == pytest.approx(np.mean(cell["log_loss"]))
        assert cell["second mean"] == pytest.approx(np.mean(cell["wrong"]))
    assert cells["norm", 1.0, "trivial"]["log_loss"] == pytest.approx([math.log(2)] * 2)
    assert cells["norm", 1.0, "scikit-learn"]["log_loss"] == cells["norm", 4.0, "scikit-learn"]["log_loss"]
    assert cells["norm", 4.0, "scikit-learn"]["mean"] < 0.6
    assert cells["norm", 4.0, "objective"]["mean"] < math.log(2)
    assert [summary["method"] for summary in found["summaries"]] == ["objective"]
    assert found["summaries"][0]["cells"] == 4


def test_rows_are_scaled_and_split_as_said(folder: Path) -> None:
    X, y = load(str(folder), "named")
    other, labels = load(str(folder), "plain")
    assert np.array_equal(X, other)
    assert np.array_equal(y, labels)
    assert X.shape == (300, 3)  # the constant column is gone
    assert np.allclose(np.linalg.norm(X, axis=1), 1)
    box, _ = load(str(folder), "plain", "box")
    assert np.allclose([box.min(axis=0), box.max(axis=0)], [[-1 / math.sqrt(3)] * 3, [1 / math.sqrt(3)] * 3])
    assert np.linalg.norm(box, axis=1).max() <= 1
    found = split(str(folder), "plain", 3)
    assert [len(part[1]) for part in (found.train, found.public, found.test)] == [180, 30, 90]
    assert np.array_equal(found.train[1], y[np.random.default_rng(1003).permutation(300)[:180]])
    assert (found.rows_guess, found.classes) == (200, 2)


def test_built_in_and_made_up_tables() -> None:
    assert TASK.tables.names("synthetic") == ["even", "rare", "three"]
    assert "breast_cancer" in TASK.tables.names("sklearn")
    X, y = load("sklearn", "iris")
    assert (X.shape, sorted(set(y.tolist()))) == ((150, 4), [0, 1, 2])
    assert set(load("sklearn", "digits-odd")[1].tolist()) == {0, 1}
    rare = load("synthetic", "rare")[1]
    assert 0.1 < np.mean(rare) < 0.25
    assert np.bincount(load("synthetic", "three")[1]).min() > 1000


def test_measures_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    chances, labels = rng.dirichlet([1, 1, 1], 50), rng.integers(0, 3, 50)
    loss, wrong = measured(chances, labels)
    assert loss == pytest.approx(log_loss(labels, chances, labels=[0, 1, 2]))
    assert wrong == pytest.approx(1 - accuracy_score(labels, chances.argmax(axis=1)))
    assert measured(np.full((2, 2), np.nan), np.array([0, 1]))[0] == pytest.approx(-math.log(1e-15))


@pytest.mark.parametrize("classes", [2, 3])
def test_descent_spends_its_budget_and_no_more(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it adds noise to moves by at most the length it is calibrated for when one row comes or goes."""
    X, y = made_up(400, 3, classes)
    found = tables.Split((X, y), (X[:9], y[:9]), (X, y), classes)
    seen: list[tuple[list[int], float]] = []

    def spy(self: Simulation, values: Any, law: Any) -> list[int]:
        inside = values._value if hasattr(values, "_value") else values.unwrap()
        seen.append((list(inside), float(law.sigma)))
        return list(inside)

    monkeypatch.setattr(Simulation, "add_integers", spy)
    setting = Setting(1.0, 1e-6, 1)
    descent(found, setting, steps=3, rate=1.0)
    whole, seen[:] = list(seen), []
    descent(replace(found, train=(X[1:], y[1:])), setting, steps=1, rate=1.0)
    moved = np.linalg.norm(np.subtract(whole[0][0], seen[0][0]))
    mu = gaussian.mu(1.0, 1e-6)
    length = 2**0.5 if classes == 2 else 2.0
    assert moved <= length * 2**20 + 4
    assert whole[0][1] == pytest.approx(length * 2**20 * 3**0.5 / mu)
    assert len(whole) == 3


@pytest.mark.slow
def test_runs_repeat_themselves_in_any_number_of_processes(folder: Path) -> None:
    wish = plan(str(folder), ["plain"], ["descent-20", "trivial"], epsilons=(1.0,), seeds=2)
    here, there = run(wish), run(wish, jobs=2)
    assert [(s.job, s.measured) for s in here] == sorted(
        [(s.job, s.measured) for s in there], key=lambda x: [s.job for s in here].index(x[0])
    )


def test_methods_for_two_classes_are_left_out_elsewhere() -> None:
    wish = plan("sklearn", ["iris"], ["output", "trivial"], epsilons=(1.0,), seeds=1)
    assert [job.method for job in wish.jobs()] == ["trivial"]


def scores(found: dict[str, tuple[float, float]], epsilon: float = 1.0) -> list[Score]:
    job = Job("classification", "folder", "table", "norm", "auto", epsilon, 1e-6, 0)
    return [Score(replace(job, method=name), numbers, 0.1) for name, numbers in found.items()]


def test_only_private_methods_without_public_rows_are_ranked() -> None:
    close = {"auto": (0.505, 0.2), "descent-20": (0.5, 0.198), "trivial": (0.69, 0.5), "scikit-learn": (0.1, 0.0)}
    far = {"auto": (0.6, 0.3), "descent-50": (0.5, 0.2), "scikit-learn-public": (0.2, 0.1)}
    report = Report(
        Plan("classification", "folder", ("table",), tuple(CONTENDERS), ("norm",)), [*scores(far, 4.0), *scores(close)]
    )
    first, second = report.contests()
    assert [cell.method for cell in first] == ["auto", "descent-20", "trivial", "scikit-learn"]
    (auto,) = report.summaries()
    assert (auto.cells, auto.near, auto.extra) == (2, 0.5, 0.5)
    assert auto.ratio == pytest.approx((1.01 * 1.2) ** 0.5)
    assert auto.worst == pytest.approx(1.2)
    console = Console(record=True, width=120)
    console.print(contest(report, second))
    assert "descent-50 *" in console.export_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--data: a folder of tables named NAME.csv.gz"),
        (["--data", "{}/nowhere"], "is no folder"),
        (["--data", "{}/empty"], "there is no table in"),
        (["--data", "{}", "--datasets", "bikes"], "no table bikes; there are named, plain"),
        (["--data", "{}", "--methods", "magic"], "no method magic; there are auto, objective"),
        (["--data", "{}", "--scalings", "round"], "--scalings are norm, box"),
        (["--data", "{}", "--epsilons", "-1"], "epsilons must be above 0"),
        (["--data", "{}", "--json", "{}/nowhere/all.json"], "No such file"),
    ],
)
def test_bad_wishes_are_answered_in_a_sentence(folder: Path, arguments: list[str], words: str) -> None:
    (folder / "empty").mkdir()
    result = invoke(*(argument.format(folder) for argument in arguments))
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,a\n2,b\n" * 10, "too small"),
        ("a\nb\n" * 100, "too small"),
        ("1,2,a\n3,x,b\n" * 50, "cannot be read"),
        ("1,2,a\n1,b\n" * 50, "cannot be read"),
        ("1,a\nnan,b\n" * 50, "missing or infinite"),
        ("1,a\n2,a\n" * 50, "has 1 labels"),
        ("1,a\n1,b\n" * 50, "nothing to learn"),
    ],
)
def test_a_table_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "odd.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"odd\.csv.*{words}"):
        plan(str(tmp_path))


def test_a_broken_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd.csv.gz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"odd\.csv\.gz cannot be read"):
        plan(str(tmp_path))


def test_a_peer_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "diffprivlib", None)
    assert not importable("diffprivlib")
    result = invoke("--data", "synthetic", "--datasets", "even", "--methods", "diffprivlib,trivial", "--seeds", 1)
    assert result.exit_code == 0, result.output
    assert "diffprivlib: not importable here" in result.output


def test_a_peer_that_answers_anything_is_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wild = Contender("trivial", "peer", lambda split, setting: np.full((len(split.test[1]), 2), np.nan))
    monkeypatch.setitem(CONTENDERS, "trivial", wild)
    (score,) = run(plan(str(folder), ["plain"], ["trivial"], epsilons=(1.0,), seeds=1))
    assert score.measured[0] > 30


def test_speed_compares_with_scikit_learn() -> None:
    rows = speed.run(4000, 3, repeats=1, methods=["objective"])
    assert [row.name for row in rows] == ["scikit-learn (lbfgs)", "scikit-learn (newton-cholesky)", "objective"]
    console = Console(record=True, width=120)
    speed.show(rows, console)
    assert "over scikit-learn" in console.export_text()
