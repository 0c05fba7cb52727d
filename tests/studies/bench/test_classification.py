"""The classification benchmark: the same rows for all, honest peers, and numbers that mean what they say."""

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

from snugdp.accounting import gaussian
from snugdp.noise import Simulation
from snugdp_studies.bench import classification
from snugdp_studies.bench.classification import CONTENDERS, descent, made_up, measured
from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.run import (
    Contender,
    ContestJob,
    ContestPlan,
    ContestReport,
    ContestScore,
    ContestSetting,
    contest,
    run,
)
from tests.studies.bench.test_contest import invoke, planned, write_tables

TASK = classification.TASK
load = partial(tables.load, TASK.tables)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path, TASK)


def test_a_run_from_the_command_line(folder: Path) -> None:
    file = folder / "all.json"
    asked = ("--epsilons", "1,4", "--seeds", 2, "--methods", "objective,descent-20,trivial,scikit-learn")
    result = invoke(TASK, "--data", folder, "--datasets", "plain", *asked, "--scalings", "norm,box", "--json", file)
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
    found = tables.TableSplit((X, y), (X[:9], y[:9]), (X, y), classes)
    seen: list[tuple[list[int], float]] = []

    def spy(self: Simulation, values: Any, law: Any) -> list[int]:
        inside = values._value if hasattr(values, "_value") else values.unwrap()
        seen.append((list(inside), float(law.sigma)))
        return list(inside)

    monkeypatch.setattr(Simulation, "add_integers", spy)
    setting = ContestSetting(1.0, 1e-6, 1)
    descent(found, setting, steps=3, rate=1.0)
    whole, seen[:] = list(seen), []
    descent(replace(found, train=(X[1:], y[1:])), setting, steps=1, rate=1.0)
    moved = np.linalg.norm(np.subtract(whole[0][0], seen[0][0]))
    mu = gaussian.mu(1.0, 1e-6)
    length = 2**0.5 if classes == 2 else 2.0
    assert moved <= length * 2**20 + 4
    assert whole[0][1] == pytest.approx(length * 2**20 * 3**0.5 / mu)
    assert len(whole) == 3


def test_methods_for_two_classes_are_left_out_elsewhere() -> None:
    plan = planned(TASK, "sklearn", ["iris"], ["output", "trivial"], epsilons=(1.0,), seeds=1)
    assert [job.method for job in plan.jobs()] == ["trivial"]


def scores(found: dict[str, tuple[float, float]], epsilon: float = 1.0) -> list[ContestScore]:
    job = ContestJob("classification", "folder", "table", "norm", "auto", epsilon, 1e-6, 0)
    return [ContestScore(replace(job, method=name), numbers, 0.1) for name, numbers in found.items()]


def test_only_private_methods_without_public_rows_are_ranked() -> None:
    close = {"auto": (0.505, 0.2), "descent-20": (0.5, 0.198), "trivial": (0.69, 0.5), "scikit-learn": (0.1, 0.0)}
    far = {"auto": (0.6, 0.3), "descent-50": (0.5, 0.2), "scikit-learn-public": (0.2, 0.1)}
    report = ContestReport(
        ContestPlan("classification", "folder", ("table",), tuple(CONTENDERS), ("norm",)),
        [*scores(far, 4.0), *scores(close)],
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


def test_a_peer_that_answers_anything_is_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wild = Contender("trivial", "peer", lambda split, setting: np.full((len(split.test[1]), 2), np.nan))
    monkeypatch.setitem(CONTENDERS, "trivial", wild)
    (score,) = run(planned(TASK, folder, ["plain"], ["trivial"], epsilons=(1.0,), seeds=1))
    assert score.measured[0] > 30


def test_speed_compares_with_scikit_learn() -> None:
    rows = classification.fit_times(4000, 3, repeats=1, methods=["objective"])
    assert [row.name for row in rows] == ["scikit-learn (lbfgs)", "scikit-learn (newton-cholesky)", "objective"]
    console = Console(record=True, width=120)
    classification.show_times(rows, console)
    assert "over scikit-learn" in console.export_text()
