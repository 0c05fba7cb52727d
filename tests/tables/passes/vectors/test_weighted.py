"""Sums over rows with weights: those over a table in which each row is repeated, in any order and partition."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp import Number, Schema
from snugdp.tables.losses.losses import LogCosh, Logistic
from snugdp.tables.passes.base import RowPass
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure
from snugdp.tables.passes.derivatives.softmax import SoftmaxGradient
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.passes.vectors.weighted import WEIGHT, WeightedPass, by_weight
from snugdp.tables.rows import Rows
from snugdp.tables.sources import open_source
from snugdp.tables.weighed_table import WeighedTable

SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, "y")
THETA = (Fraction(1, 3 * 2**3).limit_denominator(8), Fraction(-5, 8), Fraction(1, 4))
PASSES: dict[str, RowPass[Any]] = {
    "gram": GramPass(SCHEMA),
    "log-cosh": GradientEnclosure(SCHEMA, THETA, LogCosh("0.25"), hessian=True),
    "logistic, from balls": GradientEnclosure(SCHEMA, THETA, Logistic(), level=1),
    "softmax": SoftmaxGradient(SCHEMA, THETA * 3, 3),
}


def table(rows: int, seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    made = {name: random.uniform(-1.2, 1.2, rows) for name in "aby"}
    made["y"][::7] = np.nan  # left out, with their weights
    return pl.DataFrame({**made, "weight": random.integers(0, 5, rows)})


def folded(work: Any, frame: pl.DataFrame) -> Any:
    return work.fold(work.empty(), nw.from_native(frame, eager_only=True))


@pytest.mark.parametrize("name", PASSES)
def test_a_weight_counts_a_row_so_often(name: str) -> None:
    work, frame = PASSES[name], table(120, 1)
    weighted = WeightedPass(work, "weight")
    often = frame.select(pl.all().repeat_by("weight").explode()).drop_nulls("weight").drop("weight")
    expected = folded(work, often)
    found = folded(weighted, frame)
    assert found.values() == expected.values()
    np.testing.assert_allclose(found.floats, expected.floats, rtol=1e-9)
    random = np.random.default_rng(2)
    for _ in range(3):
        mixed = frame[random.permutation(120).tolist()]
        cuts, total = [0, *sorted(random.integers(0, 120, 3).tolist()), 120], weighted.empty()
        for start, stop in pairwise(cuts):
            total = weighted.merge(weighted.unpack(weighted.pack(folded(weighted, mixed[start:stop]))), total)
        assert total.values() == expected.values()


def test_rows_in_memory_have_their_weights() -> None:
    frame = table(3000, 3)
    work = PASSES["log-cosh"]
    one = open_source(frame.drop("weight")[:10])
    rows = Rows(WeighedTable(open_source(frame), one, 4, "weight"), SCHEMA)
    assert (rows.weight, rows.unit, rows.one.weight) == (4, WEIGHT, None)
    before = rows.state(work).values()
    images = rows.images()
    assert images is not None
    assert images.complete
    assert rows.state(work).values() == before == folded(WeightedPass(work, "weight"), frame).values()
    V, w, weights = images.sample(500)
    assert len(V) == len(w) == len(weights)
    assert {*weights.tolist()} == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert rows.one.state(work).count == folded(work, frame.drop("weight")[:10]).count
    with pytest.raises(TypeError, match="only sums over rows"):
        rows.state(object())  # type: ignore[arg-type]


def test_the_largest_weights_of_many_rows_travel() -> None:
    work = WeightedPass(PASSES["gram"], "weight")
    state = folded(work, table(50, 4).with_columns(weight=pl.lit(WEIGHT)))
    state.add_times(2**75, folded(PASSES["gram"], table(1, 5).drop("weight")))
    assert work.unpack(work.pack(state)).values() == state.values()


def test_rows_are_divided_by_weight_without_it() -> None:
    frame = nw.from_native(table(40, 6), eager_only=True)
    parts = dict(by_weight(frame, "weight"))
    assert sum(len(part) for part in parts.values()) == 40
    assert all(part.columns == ["a", "b", "y"] for part in parts.values())
    assert list(by_weight(frame[:0], "weight")) == []
