"""A label is read by its own cell: one odd cell, which changes the type of a whole column, changes no other row."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp import GLM, LinearRegression, LogisticRegression, Number, Schema, Simulation, SparseLogisticRegression
from snugdp.estimators.inputs import target_of
from snugdp.estimators.labels import labels_of
from snugdp.tables.cells import cell as one
from snugdp.tables.losses.losses import SoftHinge
from snugdp.tables.schema.kinds import Boolean, Category
from tests.effort import sampled
from tests.tables.cells.loaders import LOADERS, load

CLASSES: dict[str, tuple[list[Any], list[Any]]] = {  # classes, and labels with one that is none of them
    "numbers": ([0, 1], [0, 1, 1, 0, 7]),
    "floats": ([0.5, 2.0], [0.5, 2.0, 2.0, 0.25]),
    "truth": ([False, True], [False, True, True]),
    "text": (["no", "yes"], ["yes", "no", "maybe"]),
    "digits": (["0", "1", "2"], [0, 2, 1, 9]),
    "codes": (["001", "002"], [2, 1, 1]),
    "decimals": (["1.0", "2.0"], [1.0, 2.0]),
    "far apart": ([-1, 10**6], [-1, 10**6, 3]),
}
ODD: list[Any] = [
    None,
    float("nan"),
    "x",
    "1",
    1,
    2.5,
    "",
    True,
    datetime.date(2020, 1, 1),
    b"\xff",
    Decimal(1),
    object(),
]


MORE_LOADERS: dict[str, Callable[[list[Any]], Any]] = {
    **LOADERS,
    "pandas text": lambda cells: pd.Series([None if cell is None else str(cell) for cell in cells]),
    "pandas floats": lambda cells: pd.Series(cells, dtype="float64"),
    "polars objects": lambda cells: pl.Series(cells, dtype=pl.Object),
}


def containers(cells: list[Any]) -> list[Any]:
    """The column in all the types that libraries may give to it."""
    columns = [load(loader, cells, MORE_LOADERS) for loader in MORE_LOADERS]
    return [column for column in columns if column is not None and len(column) == len(cells)]  # an empty line is no row


@sampled(9)
@pytest.mark.filterwarnings("ignore")  # of the libraries, when they make the columns
@pytest.mark.parametrize("name", CLASSES)
def test_one_odd_cell_changes_no_other_reading(name: str) -> None:
    classes, labels = CLASSES[name]
    known = labels_of(labels, classes).tolist()
    assert set(known) - {-1} == set(range(len(classes))) or name == "digits"
    kinds = set()
    for odd in ODD:
        for column in containers([*labels[:2], odd, *labels[2:]]):
            kinds.add(f"{type(column)} {getattr(column, 'dtype', None)}")
            found = labels_of(column, classes).tolist()
            assert found[:2] + found[3:] == known, (odd, type(column), getattr(column, "dtype", None))
    for column in containers(labels):
        assert labels_of(column, classes).tolist() == known, getattr(column, "dtype", None)
    assert len(kinds) > 12


def test_codes_with_zeros_in_front_are_the_numbers_that_readers_make_of_them() -> None:
    text = ["001", "002", "002"]
    assert labels_of(text, ["001", "002"]).tolist() == [0, 1, 1]
    for odd in ("", "x"):
        read = pd.read_csv(io.StringIO("a,y\n" + "".join(f"1,{cell}\n" for cell in (*text, odd))))["y"]
        assert labels_of(read, ["001", "002"]).tolist() == [0, 1, 1, -1]


def test_classes_that_a_loader_could_confuse_are_refused() -> None:
    with pytest.raises(ValueError, match="two of classes are the same label"):
        LogisticRegression(classes=["1", "1.0"], x_norm=1).fit([[1.0]], ["1"])


def test_what_spells_no_number_is_not_the_class_that_spells_none() -> None:
    assert labels_of(["1", "rare", "other", None], ["1", "other"]).tolist() == [0, -1, 1, -1]


def test_dates_are_not_numbers() -> None:
    days = pd.Series(np.array(["1970-01-01", "1970-01-02"], dtype="M8[ns]"))
    assert labels_of(days, [0, 86_400 * 10**9]).tolist() == [-1, -1]
    assert labels_of(days, ["1970-01-01", "1970-01-02"]).tolist() == [0, 1]


def test_large_columns_of_numbers_are_read_by_their_distinct_values(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def counted(cell: Any) -> Any:
        calls.append(cell)
        return label(cell)

    label = one.label
    monkeypatch.setattr(one, "label", counted)
    many = np.arange(50_000) % 3
    for y in (
        many,
        many.astype(np.float32),
        pd.Series(many),
        pl.Series(many),
        pd.Series(many).astype(str),
        pa.array(many),
    ):
        assert np.array_equal(labels_of(y, ["0", "1"]), np.where(many < 2, many, -1))
    assert len(calls) < 100


class Angry:
    """A cell that answers nothing."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("Jane Q. Canary")

    def __hash__(self) -> int:
        raise ValueError("Jane Q. Canary")

    __str__ = __repr__ = __float__ = __hash__  # type: ignore[assignment]


def test_nothing_that_a_cell_does_raises_or_changes_others() -> None:
    assert labels_of([0, Angry(), "1", [], {}, np.array([1, 2]), [1], 1], [0, 1]).tolist() == [
        0,
        -1,
        1,
        -1,
        -1,
        -1,
        1,
        1,
    ]


X = np.random.default_rng(3).uniform(-0.5, 0.5, (40, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("model", ["logistic", "sparse", "hinge"])
@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_neighbours_give_the_same_fit_but_for_their_row(model: str, library: str) -> None:
    """A row with a label that is none of the classes is left out: with the same noise, the fits agree bit by bit."""
    made: dict[str, Any] = {
        "logistic": LogisticRegression(classes=[0, 1], x_norm=1, method="objective", noise=Simulation(5)),
        "sparse": SparseLogisticRegression(1, classes=[0, 1], method="objective", noise=Simulation(5)),
        "hinge": GLM(SoftHinge(0.5), classes=[0, 1], x_norm=1, method="objective", noise=Simulation(5)),
    }
    rows = np.vstack([X, np.zeros(2)])
    odd = [*map(str, Y), "x"]
    table = {"numpy": np.array, "pandas": pd.Series, "polars": pl.Series}[library]
    columns: tuple[Any, ...] = ([*Y.tolist(), 2], odd, [*map(float, Y), 7.5])
    coefficients = [made[model].fit(rows, table(y)).coef_.tolist() for y in columns]
    assert coefficients == [made[model].fit(X, table(Y.tolist())).coef_.tolist()] * 3


@pytest.mark.parametrize("kind", [LogisticRegression, SparseLogisticRegression])
def test_labels_beside_a_schema(kind: Any) -> None:
    target = Category([False, True]) if kind is LogisticRegression else Boolean()
    schema = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": target}, target="y")
    frame, extra = (
        pd.DataFrame(X, columns=["a", "b"]),
        {} if kind is LogisticRegression else {"n_features_to_select": 1},
    )
    fits = [
        kind(schema=schema, method="objective", noise=Simulation(3), **extra).fit(frame, y).coef_.tolist()
        for y in (Y > 0, pd.Series(Y > 0).astype(str), Y.astype(float), Y.astype(str))
    ]
    assert fits[0] == fits[1] == fits[2] == fits[3]


@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_cell_does_not_change_how_a_column_of_text_is_read(missing: bool) -> None:
    y = pl.Series("y", [None if missing else "0", "1", "?"], dtype=pl.String)
    assert np.array_equal(target_of(y)[1:], [1, np.nan], equal_nan=True)
    LinearRegression(epsilon=1, x_norm=1, y_bound=1).fit(pl.DataFrame({"a": ["x", "y", "z"]}), y)
    assert target_of(pl.Series("y", [None if missing else 1, 1, 0])).tolist()[1:] == [1, 0]
