"""Labels become numbers row by row, by a public list, from any container; nothing that they hold raises."""

import warnings
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp.tables.losses import losses
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.scaling import (
    MAX_CLASSES,
    Affine,
    Coded,
    Sign,
    blocks,
    classes_in,
    codes,
    target_scale,
    with_classes,
)
from snugdp.tables.schema.schema import Boolean, Category, Number, Schema

VALUES = ["red", "green", "blue"]
SCHEMA = Schema({"x": Number(-1, 1), "colour": Category(VALUES)}, target="colour")
ROWS = ["red", "blue", "green", "pink", None, "red"]
CODES = [-1.0, 1.0, 0.0, -1.0]  # two rows are none of the classes


def targets(schema: Schema, frame: Any) -> list[float]:
    found = schema.vectors(nw.from_native(frame, eager_only=True))[1]
    assert found is not None
    return [float(value) for value in found]


def test_every_container_has_the_same_codes() -> None:
    table: dict[str, Any] = {"x": [0.0] * 6, "colour": ROWS}
    for frame in (
        pd.DataFrame(table),
        pd.DataFrame(table).astype({"colour": "category"}),
        pl.DataFrame(table),
        pl.DataFrame(table).with_columns(pl.col("colour").cast(pl.Categorical)),
        pa.table(table),
    ):
        assert targets(SCHEMA, frame) == CODES


@pytest.mark.parametrize("strange", [float("nan"), b"red", {"a": 1}, ["red"], object(), 10**400, pd.NaT, 1j])
def test_no_label_raises_warns_or_moves_another(strange: Any) -> None:
    cells = pd.Series([*ROWS, strange], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = targets(SCHEMA, pd.DataFrame({"x": [0.0] * 7, "colour": cells}))
    assert found == (CODES if strange not in (b"red", ["red"]) else [*CODES, -1.0])  # these are labels


@pytest.mark.parametrize("count", [2, 3, 4, 7, 10, 99, MAX_CLASSES])
def test_codes_survive_the_row_map(count: int) -> None:
    """What a loss makes of a code is the class it came from."""
    places = np.arange(count)
    assert np.isnan(codes(np.array([-1]), count)).all()
    for schema in (
        Schema({"x": Number(-1, 1), "y": Category(list(range(count)))}, target="y"),
        Schema({**{f"x{j}": Number(-1, 1) for j in range(9)}, "y": Category(list(range(count)))}, target="y"),
    ):
        mapped = row_map(schema)
        _, w = mapped.integers(np.zeros((count, len(schema.features))), codes(places, count))
        found = losses.codes(w.astype(np.float64), mapped.target_limit, count)
        assert found.tolist() == list(range(count))
        for place in (0, count // 2, count - 1):
            loss = losses.OneAgainst(losses.Logistic(), place, count)
            signs = losses.labels(loss, w.astype(np.float64), mapped.target_limit)
            assert (signs == 1).tolist() == [each == place for each in range(count)]
    if count == 2:
        assert losses.labels(losses.Logistic(), w.astype(np.float64), mapped.target_limit).tolist() == [-1, 1]


def test_a_boolean_stays_what_it_was() -> None:
    schema = Schema({"x": Number(-1, 1), "y": Boolean()}, target="y")
    frame = pd.DataFrame({"x": [0.0] * 4, "y": pd.Series([True, False, None, "x"], dtype=object)})
    assert targets(schema, frame) == [1.0, -1.0]
    assert classes_in(schema) == (False, True)
    assert with_classes(schema, (0, 1)) is schema


def test_scales_of_targets() -> None:
    assert isinstance(target_scale(Category(["a", "b"])), Coded)
    assert target_scale(Category(["a", "b"])).width == 1
    assert not isinstance(target_scale(Number(0, 1)), Coded)
    assert SCHEMA.target_units == (0.0, 1.0)
    assert SCHEMA.coefficients([2.0, 0.5]).intercept == 0.5


def test_a_category_is_still_a_category_among_the_features() -> None:
    schema = Schema({"colour": Category(VALUES), "y": Category(["no", "yes"])}, target="y")
    assert schema.features == ("colour=red", "colour=green", "colour=blue", "intercept")
    assert with_classes(schema, ("yes", "no")).columns["y"] == Category(["yes", "no"])
    assert Schema.from_toml(schema.to_toml()) == schema


def test_files_are_read_as_frames_are(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": [0.5, -0.5, 0.25, 0.0, 1.0, -1.0], "colour": ROWS})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    answer = Rows(frame, SCHEMA, progress=False).moments()
    for name in ("t.parquet", "t.csv"):
        found = Rows(tmp_path / name, SCHEMA, progress=False).state(GramPass(SCHEMA))
        assert (found.gram(), found.cross()) == (answer.gram(), answer.cross())


def test_what_cannot_be_learned_is_refused_in_public() -> None:
    for values in (["a"], list(range(MAX_CLASSES + 1))):
        with pytest.raises(TypeError, match=f"2 to {MAX_CLASSES} listed values"):
            Schema({"x": Number(0, 1), "y": Category(values)}, target="y")
    with pytest.raises(TypeError, match="Boolean or a Category"):
        classes_in(Schema({"x": Number(0, 1), "y": Number(0, 1)}, target="y"))
    with pytest.raises(TypeError, match="Boolean or a Category"):
        classes_in(Schema({"x": Number(0, 1)}))


@pytest.mark.parametrize("odd", [[np.nan, np.inf, -np.inf, 1e308, 3.0, -7.25], [np.nan], [-np.inf], [1.0], []])
def test_columns_of_numbers_are_scaled_together_as_each_by_itself(odd: list[float]) -> None:
    """In a block with a column of another kind they are scaled one by one: the same floats, whatever stands beside."""
    odd = [*odd, 0.0, -0.0, 5e-324, *np.linspace(-0.1, 0.1, 7 - len(odd)).tolist()]
    table = pl.DataFrame(
        {"a": odd, "b": odd[::-1], "c": np.linspace(-4, 0, 10, dtype=np.float32), "yes": [True, False] * 5}
    )
    scales: dict[str, Any] = {"a": Affine(1.5, 0.25, 0.5), "b": Affine(0.0, 3.0, 0.5), "c": Affine(-2.0, 0.1, 0.5)}
    frame = nw.from_native(table, eager_only=True)
    (together, _), (alone, _) = (
        next(blocks(frame, {**scales, **more}, False, None)) for more in ({}, {"yes": Sign(0.5)})
    )
    assert together.tobytes() == np.ascontiguousarray(alone[:, :3]).tobytes()
    assert not np.isnan(together).any()
