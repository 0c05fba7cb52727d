"""The regression benchmark: what it reads, how it splits, who is ranked, and what it says of bad input."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from snugdp.cli.main import app
from snugdp.noise.simulation import shuffled
from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.report import Report
from snugdp_studies.bench.contest.run import Job, Plan, Score, run
from snugdp_studies.bench.contest.task import Contender, Setting, importable, noise_start
from snugdp_studies.bench.regression import speed, task
from snugdp_studies.bench.regression.methods import CONTENDERS
from snugdp_studies.bench.regression.task import TASK

load, split = partial(tables.load, TASK.tables), partial(tables.split, TASK.tables)


def plan(data: str, datasets: list[str] | None = None, methods: list[str] | None = None, **rest: Any) -> Plan:
    return Plan.of(TASK, data, datasets, methods, **{"variants": (1.0,), **rest})


def made_up(rows: int = 200, columns: int = 3) -> Any:
    X, y = task.made_up(rows, columns, heavy=False)
    return np.column_stack([X, np.full(rows, 7.0), y + 5])  # a constant column, a target away from 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.savetxt(tmp_path / "plain.csv", made_up(), delimiter=",")
    with gzip.open(tmp_path / "named.csv.gz", "wt") as file:
        file.write("a,b,c,d,target\n")
        np.savetxt(file, made_up(), delimiter=",")
    (tmp_path / "notes.txt").write_text("no table")
    return tmp_path


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["bench", "regression", *map(str, arguments)])


def test_a_run_from_the_command_line_writes_every_number(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    methods = "adassp,trivial,ridge,ridge-public"
    result = invoke(
        "--data", folder, "--seeds", 2, "--epsilons", "0.5,4", "--methods", methods, "--loose", 5, "--json", file
    )  # fmt: skip
    assert result.exit_code == 0, result.output
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
    y = made_up()[:, -1]
    y = (y - y.mean()) / np.abs(y - y.mean()).max()
    for number, error in enumerate(trivial):
        test = np.random.default_rng(1000 + number).permutation(len(y))[int(0.7 * len(y)) :]
        assert error == pytest.approx(np.mean(y[test] ** 2), rel=1e-12)
    assert cells["plain", 4.0, 1.0, "ridge"]["mean"] < cells["plain", 4.0, 1.0, "trivial"]["mean"]
    assert cells["plain", 4.0, 5.0, "adassp"]["errors"] != cells["plain", 4.0, 1.0, "adassp"]["errors"]
    assert found["summaries"] == []  # adassp is a peer


def test_rows_are_scaled_and_split_as_said(folder: Path) -> None:
    X, y = load(str(folder), "named")
    other, target = load(str(folder), "plain")
    assert np.array_equal(X, other)
    assert np.array_equal(y, target)
    assert X.shape == (200, 3)  # the constant column is gone
    assert np.allclose(np.linalg.norm(X, axis=1), 1)
    assert np.abs(y).max() == 1
    assert abs(y.mean()) < 1e-12
    found = split(str(folder), "plain", 3)
    assert [len(part[1]) for part in (found.train, found.public, found.test)] == [120, 20, 60]
    assert np.array_equal(found.train[1], y[np.random.default_rng(1003).permutation(200)[:120]])
    assert found.rows_guess == 100
    assert np.array_equal(shuffled(5, 40), np.random.default_rng(5).permutation(40))


@pytest.mark.slow
def test_runs_repeat_themselves_in_any_number_of_processes(folder: Path) -> None:
    wish = plan(str(folder), ["plain"], ["adassp", "ridge"], epsilons=(1.0,), seeds=2)
    here, there = Report(wish, run(wish)), Report(wish, run(wish, jobs=2))
    assert [(c.method, c.measured) for c in here.cells] == [(c.method, c.measured) for c in there.cells]
    assert noise_start("plain", "adassp", 1.0, 1.0, 0) == 2239410307426773502  # the same on every machine


def test_the_loose_bound_reaches_the_method(folder: Path) -> None:
    seen = []

    def fit(split: tables.Split, setting: Setting) -> None:
        seen.append((setting.epsilon, setting.delta, setting.variant))

    wish = plan(str(folder), ["plain"], ["output"], epsilons=(2.0,), delta=1e-5, seeds=1, variants=(1.0, 3.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CONTENDERS, "output", Contender("output", "ours", fit))
        report = Report(wish, run(wish))
    assert seen == [(2.0, 1e-5, 1.0), (2.0, 1e-5, 3.0)]
    y = split(str(folder), "plain", 0).test[1]
    assert report.cells[0].second == 1
    assert report.cells[0].mean == pytest.approx(np.mean(y**2))  # a refusal predicts 0


@pytest.mark.parametrize("entry", [float("nan"), float("inf"), 1e300])
def test_an_answer_that_is_no_number_is_the_worst(folder: Path, entry: float) -> None:
    wish = plan(str(folder), ["plain"], ["descent", "trivial"], epsilons=(1.0,), seeds=2)
    with pytest.MonkeyPatch.context() as patch:
        wild = Contender("descent", "peer", lambda split, setting: np.full(3, entry))
        patch.setitem(CONTENDERS, "descent", wild)
        report = Report(wish, run(wish))
    (group,) = report.contests()
    winner = report.best(group)
    assert winner is not None
    assert winner.method == "trivial"
    assert (group[0].mean, group[0].deviation) == (np.inf, np.inf)


def scores(errors: dict[str, list[float]], epsilon: float = 1.0, factor: float = 1.0) -> list[Score]:
    job = Job("regression", "folder", "table", factor, "auto", epsilon, 1e-6, 0)
    return [
        Score(replace(job, method=method, number=number), (error, 0.0), 0.1)
        for method, found in errors.items()
        for number, error in enumerate(found)
    ]


def test_only_private_methods_without_public_rows_are_ranked() -> None:
    wish = Plan("regression", "folder", ("table",), tuple(CONTENDERS), (1.0, 5.0))
    close = {"auto": [1.0, 1.02], "sufficient": [1.3, 1.1], "adassp": [1.0, 1.008], "trivial": [5.0, 5.0]}
    outside = {"ridge": [0.1, 0.1], "ridge-public": [0.2, 0.2], "sufficient-validation": [0.3, 0.3]}
    far = {"auto": [2.0, 2.0], "adassp": [1.0, 1.0], "descent": [4.0, 4.0]}
    found = [*scores(close | outside), *scores(far, 4.0), *scores({"auto": [8.0, 8.0]}, 4.0, 5.0)]
    report = Report(wish, tuple(reversed(found)))
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--data: a folder of tables named NAME.csv.gz"),
        (["--data", "{}/nowhere"], "is no folder"),
        (["--data", "{}/empty"], "there is no table in"),
        (["--data", "{}", "--datasets", "bikes"], "no table bikes; there are named, plain"),
        (["--data", "{}", "--methods", "magic"], "no method magic; there are auto, objective"),
        (["--data", "{}", "--loose", "0.5"], "a factor above 1"),
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
        ("1,2\n" * 10, "too small"),
        ("1\n" * 100, "too small"),
        ("1,2\n3,x\n" * 50, "cannot be read"),
        ("1,2\n1,2,3\n" * 50, "cannot be read"),
        ("1,2\n3,nan\n" * 50, "missing or infinite"),
        ("1,2\n3,2\n" * 50, "nothing to learn"),
        ("1,2\n1,3\n" * 50, "nothing to learn"),
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


def test_speed_compares_with_scikit_learn() -> None:
    rows = speed.run(4000, 3, repeats=1, methods=["adassp", "sufficient"])
    names = [row.name for row in rows]
    assert names == [
        "scikit-learn Ridge", "scikit-learn Ridge with intercept", "scikit-learn HuberRegressor",
        "sufficient", "adassp", "1 ridge", "30 ridges",
    ]  # fmt: skip
    console = Console(record=True, width=120)
    speed.show(rows, console)
    assert "over Huber" in console.export_text()
