"""Breaches at the doors as they were reported: one cell or row that changed how others were read, or raised."""

import io
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import snugdp
from snugdp import Budget, LinearRegression, LogisticRegression, PATEClassifier, PoissonRegression, Simulation, pate
from snugdp.estimators.labels import labels_of
from snugdp.estimators.methods.linear import METHODS
from tests.effort import sampled

TEACHERS, QUERIES = 300, 12


def ballots() -> list[list[str]]:
    """One row a teacher: nearly all agree; the last one answers "?"."""
    agreed = [[str((query + teacher // 250) % 2) for query in range(QUERIES)] for teacher in range(TEACHERS)]
    return [*agreed[:-1], ["?"] * QUERIES]


def text(rows: list[list[str]]) -> io.StringIO:
    return io.StringIO("\n".join([",".join(f"q{i}" for i in range(QUERIES)), *(",".join(row) for row in rows)]))


LOADERS: dict[str, Callable[[list[list[str]]], Any]] = {
    "pandas": lambda rows: pd.read_csv(text(rows)),
    "polars": lambda rows: pl.read_csv(text(rows), infer_schema_length=None),
    "numpy": lambda rows: np.array([[int(cell) if cell.isdigit() else cell for cell in row] for row in rows]),
    "list": lambda rows: [[int(cell) if cell.isdigit() else cell for cell in row] for row in rows],
}


def labelled(votes: Any, test: Any) -> Any:
    return pate.label(votes, Budget(1, 1e-6), form="teachers", classes=[0, 1], test=test, noise=Simulation(3))


@cache
def labelled_without(test: str) -> Any:
    """The same ballots, but for the last teacher, who says nothing."""
    return labelled([*([int(cell) for cell in row] for row in ballots()[:-1]), [None] * QUERIES], test)


@sampled(3)
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("test", ["none", "distance"])
def test_one_teacher_whose_votes_are_question_marks(loader: str, test: Any) -> None:
    found, expected = labelled(LOADERS[loader](ballots()), test), labelled_without(test)
    assert found.refused == expected.refused
    if not found.refused:
        assert found.value.labels.tolist() == expected.value.labels.tolist()
        assert found.value.labels.tolist() == [query % 2 for query in range(QUERIES)]


@pytest.mark.slow
@sampled(12)
@pytest.mark.parametrize("method", METHODS)
def test_one_target_that_is_not_a_list_among_lists(method: str) -> None:
    """It turned the targets of all rows into the middle of their bounds, or raised."""
    rows: dict[str, Any] = {"rows": 2001} if getattr(METHODS[method], "rows", None) else {}
    X = [[1.0]] * 2001

    def fit(y: Any) -> Any:
        model = LinearRegression(
            1, 1e-6, x_norm=1, y_bound=1, fit_intercept=False, method=method, noise=Simulation(2), **rows
        )
        return model.fit(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = {plain: fit(np.array([1.0] * 2000 + [1.0 if plain else np.nan])) for plain in (True, False)}
        for odd in (None, [], [1.0, 2.0], 1.0, "x", [[1.0]]):
            fitted, expected = fit([[1.0]] * 2000 + [odd]), known[odd == 1.0]
            assert fitted.outcome_.refused == expected.outcome_.refused, odd
            if not fitted.outcome_.refused:
                assert fitted.coef_.tolist() == expected.coef_.tolist(), odd
                assert fitted.coef_[0] > 0.5


@sampled(4)
@pytest.mark.parametrize("odd", [None, [], [1, 2], "x"], ids=repr)
def test_nested_targets_of_counts_and_of_sparse_models(odd: Any) -> None:
    X, nested, plain = [[1.0]] * 500, [[1]] * 499 + [odd], [1] * 499 + [None]
    makers: list[Callable[[], Any]] = [
        lambda: PoissonRegression(1, 1e-6, x_norm=1, y_max=2, noise=Simulation(2)),
        lambda: snugdp.SparseLinearRegression(1, epsilon=1, delta=1e-6, y_bound=2, noise=Simulation(2)),
        lambda: LogisticRegression(1, 1e-6, x_norm=1, classes=[0, 1], noise=Simulation(2)),
    ]
    for make in makers:
        assert make().fit(X, nested).coef_.tolist() == make().fit(X, plain).coef_.tolist()


def test_labels_of_single_precision_and_one_that_is_text() -> None:
    y = np.tile(np.array([0.1, 0.2], dtype=np.float32), 50)
    plain = labels_of(y, [0.1, 0.2])
    assert set(plain.tolist()) == {0, 1}
    assert labels_of(np.append(y, "x"), [0.1, 0.2])[:-1].tolist() == plain.tolist()
    assert labels_of(pd.Series([*y, "x"]), [0.1, 0.2])[:-1].tolist() == plain.tolist()


def test_labels_beyond_2_to_the_53_and_one_that_is_missing() -> None:
    y = [2**53, 2**53 + 2, 2**53 + 4] * 5
    classes = [2**53, 2**53 + 2, 2**53 + 4]
    assert labels_of(pd.Series([*y, None]), classes)[:-1].tolist() == labels_of(y, classes).tolist() == [0, 1, 2] * 5
    with pytest.raises(ValueError, match="same label"):  # of which pandas would make one
        LogisticRegression(classes=[2**53, 2**53 + 1], x_norm=1).fit([[1.0]], [2**53])


@sampled(2)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([], []),
        ([[1.0]] * 9, [[1]] * 8 + [[]]),
        ([[1.0]] * 9, [[1]] * 8 + [[1, 2]]),
        ([[1.0]] * 9, [[1]] * 8 + [1]),
        ([[1.0]] * 8 + [[1.0, 2.0]], [1] * 9),
        ([[1.0]] * 8 + [None], [1] * 9),
        ([[1.0]] * 8 + [[]], [1] * 9),
    ],
)
def test_no_row_raises(X: Any, y: Any) -> None:
    teacher: Any = {"n_teachers": 2, "queries": [[0.0], [1.0]], "test": "none", "epsilon": 50}
    models: list[Any] = [
        LinearRegression(1, 1e-6, x_norm=1, y_bound=1, method="adassp"),
        LogisticRegression(1, 1e-6, x_norm=1, classes=[0, 1], method="objective"),
        PATEClassifier(classes=[0, 1], **teacher),
        snugdp.SparseLogisticRegression(1, epsilon=1, delta=1e-6, classes=[0, 1], method="objective"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "no query was answered")  # which the released labels tell
        for model in models:
            model.fit(X, y)
        snugdp.PCA(1, epsilon=1, delta=1e-6, x_norm=1).fit(X)


@pytest.mark.parametrize("odd", [1j, np.timedelta64(1, "s"), [], "x", np.datetime64("2020")], ids=repr)
@pytest.mark.parametrize("form", ["teachers", "queries"])
def test_no_vote_raises(odd: Any, form: Any) -> None:
    votes: list[Any] = [[0, 1, 1]] * 9 + [[0, odd, 1]] + ([odd] if form == "teachers" else [])
    given: dict[str, Any] = {"form": form, "classes": [0, 1], "budget": Budget(1, 1e-6), "test": "none"}
    plain: list[Any] = [[0, 1, 1]] * 9 + [[0, None, 1]] + ([[None] * 3] if form == "teachers" else [])
    outcomes: list[Any] = [pate.label(rows, **given, noise=Simulation(1)) for rows in (votes, plain)]
    found, expected = outcomes
    assert found.value.labels.tolist() == expected.value.labels.tolist()
