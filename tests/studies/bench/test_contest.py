"""What all contests share: the same rows for every method, plans checked before the work, sentences for bad input."""

import gzip
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugdp.noise.simulation import shuffled
from snugdp_studies.bench import classification, regression
from snugdp_studies.bench.contest import tables
from snugdp_studies.bench.contest.run import ContestPlan, ContestReport, ContestTask, importable, noise_start, run
from tests.cli import people

ROWS = 300
VARIANTS: dict[str, tuple[Any, ...]] = {"regression": (1.0,), "classification": ("norm",)}
both = pytest.mark.parametrize("task", [regression.TASK, classification.TASK], ids=lambda task: task.name)


def planned(
    task: ContestTask,
    data: str | Path,
    datasets: list[str] | None = None,
    methods: list[str] | None = None,
    **rest: Any,
) -> ContestPlan:
    return ContestPlan.of(task, str(data), datasets, methods, **{"variants": VARIANTS[task.name], **rest})


def invoke(task: ContestTask, *arguments: object, code: int = 0) -> Any:
    return people.run("bench", task.name, *arguments, code=code)


def last_column() -> Any:
    """A target away from 0."""
    return regression.made_up(ROWS, 3, heavy=False)[1] + 5


def write_tables(folder: Path, task: ContestTask) -> Path:
    """Two tables that differ in their header only, with a constant column; labels are words."""
    X, _ = regression.made_up(ROWS, 3, heavy=False)
    last = last_column()
    cells = np.where(last > 5, "yes", "no").tolist() if task is classification.TASK else map(repr, last.tolist())
    lines = [",".join([*map(repr, row.tolist()), "7", cell]) for row, cell in zip(X, cells, strict=True)]
    (folder / "plain.csv").write_text("\n".join(lines))
    with gzip.open(folder / "named.csv.gz", "wt") as file:
        file.write("a,b,c,constant,last\n" + "\n".join(lines))
    (folder / "notes.txt").write_text("no table")
    (folder / "empty").mkdir()
    return folder


@pytest.fixture
def folder(tmp_path: Path, task: ContestTask) -> Path:
    return write_tables(tmp_path, task)


@both
def test_rows_are_scaled_and_split_as_said(task: ContestTask, folder: Path) -> None:
    (X, y), (other, target) = (tables.load(task.tables, str(folder), name) for name in ("named", "plain"))
    assert np.array_equal(X, other)
    assert np.array_equal(y, target)
    assert X.shape == (ROWS, 3)  # the constant column is gone
    assert np.allclose(np.linalg.norm(X, axis=1), 1)
    box, _ = tables.load(task.tables, str(folder), "plain", "box")
    assert np.allclose([box.min(axis=0), box.max(axis=0)], [[-(3**-0.5)] * 3, [3**-0.5] * 3])
    assert np.linalg.norm(box, axis=1).max() <= 1
    found = tables.split(task.tables, str(folder), "plain", 3)
    assert [len(part[1]) for part in (found.train, found.public, found.test)] == [180, 30, 90]
    assert np.array_equal(found.train[1], y[np.random.default_rng(1003).permutation(ROWS)[:180]])
    assert found.rows_guess == 200
    assert np.array_equal(shuffled(5, 40), np.random.default_rng(5).permutation(40))
    if task is regression.TASK:
        assert np.abs(y).max() == 1
        assert abs(y.mean()) < 1e-12
    else:
        assert found.classes == 2


@pytest.mark.slow
def test_runs_repeat_themselves_in_any_number_of_processes(tmp_path: Path) -> None:
    folder = write_tables(tmp_path, regression.TASK)
    plan = planned(regression.TASK, folder, ["plain"], ["adassp", "ridge"], epsilons=(1.0,), seeds=2)
    here, there = ContestReport(plan, run(plan)), ContestReport(plan, run(plan, jobs=2))
    assert [(c.method, c.measured) for c in here.cells] == [(c.method, c.measured) for c in there.cells]


def test_noise_starts_at_the_same_number_on_every_machine() -> None:
    assert noise_start("plain", "adassp", 1.0, 1.0, 0) == 2239410307426773502


REQUESTS = [
    ([], "--data: a folder of tables named NAME.csv.gz"),
    (["--data", "{}/nowhere"], "is no folder"),
    (["--data", "{}/empty"], "there is no table in"),
    (["--data", "{}", "--datasets", "bikes"], "no table bikes; there are named, plain"),
    (["--data", "{}", "--methods", "magic"], "no method magic; there are auto, "),
    (["--data", "{}", "--epsilons", "-1"], "epsilons must be above 0"),
    (["--data", "{}", "--json", "{}/nowhere/all.json"], "No such file"),
]


@pytest.mark.parametrize(
    ("task", "arguments", "words"),
    [
        *((task, *request) for task in (regression.TASK, classification.TASK) for request in REQUESTS),
        (regression.TASK, ["--data", "{}", "--loose", "0.5"], "a factor above 1"),
        (classification.TASK, ["--data", "{}", "--scalings", "round"], "--scalings are norm, box"),
    ],
)
def test_bad_requests_are_answered_in_a_sentence(
    task: ContestTask, folder: Path, arguments: list[str], words: str
) -> None:
    result = invoke(task, *(argument.format(folder) for argument in arguments), code=1)
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("task", "text", "words"),
    [
        (regression.TASK, "1,2\n" * 10, "too small"),
        (regression.TASK, "1\n" * 100, "too small"),
        (regression.TASK, "1,2\n3,x\n" * 50, "cannot be read"),
        (regression.TASK, "1,2\n1,2,3\n" * 50, "cannot be read"),
        (regression.TASK, "1,2\n3,nan\n" * 50, "missing or infinite"),
        (regression.TASK, "1,2\n3,2\n" * 50, "nothing to learn"),
        (regression.TASK, "1,2\n1,3\n" * 50, "nothing to learn"),
        (regression.TASK, b"no archive", "cannot be read"),
        (classification.TASK, "1,2,a\n3,x,b\n" * 50, "cannot be read"),
        (classification.TASK, "1,a\nnan,b\n" * 50, "missing or infinite"),
        (classification.TASK, "1,a\n2,a\n" * 50, "has 1 labels"),
        (classification.TASK, "1,a\n1,b\n" * 50, "nothing to learn"),
    ],
)
def test_a_table_that_cannot_be_used_is_named(tmp_path: Path, task: ContestTask, text: str | bytes, words: str) -> None:
    name, content = ("odd.csv", text.encode()) if isinstance(text, str) else ("odd.csv.gz", text)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{re.escape(name)}.*{words}"):
        planned(task, tmp_path)


@both
def test_a_peer_that_is_not_there_is_left_out(task: ContestTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    assert not importable("diffprivlib")
    result = invoke(task, "--data", "synthetic", "--datasets", "even", "--methods", "diffprivlib,trivial", "--seeds", 1)
    assert "diffprivlib: not importable here" in result.output
