"""The regression benchmark: what it reads, how it splits, who is ranked, and what it says of bad input."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from snugdp_studies.bench import regression
from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.run import (
    Contender,
    ContestJob,
    ContestPlan,
    ContestReport,
    ContestScore,
    ContestSetting,
    run,
)
from snugdp_studies.bench.regression import CONTENDERS
from tests.studies.bench.test_contest import invoke, last_column, planned, write_tables

TASK = regression.TASK


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path, TASK)


def test_a_run_from_the_command_line_writes_every_number(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    methods = "adassp,trivial,ridge,ridge-public"
    result = invoke(
        TASK, "--data", folder, "--seeds", 2, "--epsilons", "0.5,4", "--methods", methods, "--loose", 5, "--json", file
    )  # fmt: skip
    assert "NOT PRIVATE" in result.output
    assert "5 times too large" in result.output
    found = json.loads(file.read_text())
    assert found["parameters"]["datasets"] == ["named", "plain"]
    assert found["parameters"]["seeds"] == 2
    assert found["versions"]["numpy"] == np.__version__
    cells = {(c["dataset"], c["epsilon"], c["factor"], c["method"]): c for c in found["cells"]}
    assert len(cells) == 2 * 2 * 2 * 4
    for method in ("trivial", "ridge", "ridge-public"):  # neither the bound nor epsilon is anything to them
        assert len({tuple(c["errors"]) for key, c in cells.items() if key[3] == method}) == 1
    trivial = cells["plain", 0.5, 1.0, "trivial"]["errors"]
    y = last_column()
    y = (y - y.mean()) / np.abs(y - y.mean()).max()
    for number, error in enumerate(trivial):
        test = np.random.default_rng(1000 + number).permutation(len(y))[int(0.7 * len(y)) :]
        assert error == pytest.approx(np.mean(y[test] ** 2), rel=1e-12)
    assert cells["plain", 4.0, 1.0, "ridge"]["mean"] < cells["plain", 4.0, 1.0, "trivial"]["mean"]
    assert cells["plain", 4.0, 5.0, "adassp"]["errors"] != cells["plain", 4.0, 1.0, "adassp"]["errors"]
    assert found["summaries"] == []  # adassp is a peer


def test_the_loose_bound_reaches_the_method(folder: Path) -> None:
    seen = []

    def fit(split: tables.TableSplit, setting: ContestSetting) -> None:
        seen.append((setting.epsilon, setting.delta, setting.variant))

    plan = planned(TASK, folder, ["plain"], ["output"], epsilons=(2.0,), delta=1e-5, seeds=1, variants=(1.0, 3.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CONTENDERS, "output", Contender("output", "ours", fit))
        report = ContestReport(plan, run(plan))
    assert seen == [(2.0, 1e-5, 1.0), (2.0, 1e-5, 3.0)]
    y = tables.split(TASK.tables, str(folder), "plain", 0).test[1]
    assert report.cells[0].second == 1
    assert report.cells[0].mean == pytest.approx(np.mean(y**2))  # a refusal predicts 0


@pytest.mark.parametrize("entry", [float("nan"), float("inf"), 1e300])
def test_an_answer_that_is_no_number_is_the_worst(folder: Path, entry: float) -> None:
    plan = planned(TASK, folder, ["plain"], ["descent", "trivial"], epsilons=(1.0,), seeds=2)
    with pytest.MonkeyPatch.context() as patch:
        wild = Contender("descent", "peer", lambda split, setting: np.full(3, entry))
        patch.setitem(CONTENDERS, "descent", wild)
        report = ContestReport(plan, run(plan))
    (group,) = report.contests()
    winner = report.best(group)
    assert winner is not None
    assert winner.method == "trivial"
    assert (group[0].mean, group[0].deviation) == (np.inf, np.inf)


def scores(errors: dict[str, list[float]], epsilon: float = 1.0, factor: float = 1.0) -> list[ContestScore]:
    job = ContestJob("regression", "folder", "table", factor, "auto", epsilon, 1e-6, 0)
    return [
        ContestScore(replace(job, method=method, number=number), (error, 0.0), 0.1)
        for method, found in errors.items()
        for number, error in enumerate(found)
    ]


def test_only_private_methods_without_public_rows_are_ranked() -> None:
    plan = ContestPlan("regression", "folder", ("table",), tuple(CONTENDERS), (1.0, 5.0))
    close = {"auto": [1.0, 1.02], "sufficient": [1.3, 1.1], "adassp": [1.0, 1.008], "trivial": [5.0, 5.0]}
    outside = {"ridge": [0.1, 0.1], "ridge-public": [0.2, 0.2], "sufficient-validation": [0.3, 0.3]}
    far = {"auto": [2.0, 2.0], "adassp": [1.0, 1.0], "descent": [4.0, 4.0]}
    found = [*scores(close | outside), *scores(far, 4.0), *scores({"auto": [8.0, 8.0]}, 4.0, 5.0)]
    report = ContestReport(plan, tuple(reversed(found)))
    first, second = report.contests(1.0)
    winners = [report.best(group) for group in (first, second)]
    assert [cell.method for cell in winners if cell] == ["adassp", "adassp"]
    auto, sufficient = report.summaries(1.0)
    assert (auto.method, auto.cells, auto.near) == ("auto", 2, 0.5)  # within 1 % in the one, twice as bad in the other
    assert auto.ratio == pytest.approx((1.01 / 1.004 * 2) ** 0.5)
    assert auto.worst == pytest.approx(2)
    assert auto.extra == pytest.approx(4)
    assert (sufficient.near, sufficient.extra) == (0, None)
    cell = next(cell for cell in first if cell.method == "auto")
    assert cell.measured[0] == (1.0, 1.02)
    assert cell.deviation == pytest.approx(0.01)


def test_speed_compares_with_scikit_learn() -> None:
    rows = regression.fit_times(4000, 3, repeats=1, methods=["adassp", "sufficient"])
    names = [row.name for row in rows]
    assert names == [
        "scikit-learn Ridge", "scikit-learn Ridge with intercept", "scikit-learn HuberRegressor",
        "sufficient", "adassp", "1 ridge", "30 ridges",
    ]  # fmt: skip
    console = Console(record=True, width=120)
    regression.show_times(rows, console)
    assert "over Huber" in console.export_text()
