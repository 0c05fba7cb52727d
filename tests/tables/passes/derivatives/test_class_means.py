"""Sums by class and looks at a slope: whole numbers of single rows, whatever the order, the parts and the cells."""

import math
import pickle
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from snugdp.tables.passes.derivatives.class_means import STEEPNESS_CELLS, ClassSumPass, SteepnessPass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema
from tests.mechanisms.objective.tables import DESIGN, SCHEMA, frame, images

RULE = ((3.0, 0.0, 0.5), (0.0, 3.0, -0.25), (-3.0, -3.0, 1 / 3)), (0.1, -0.3, 0.2)
WORKS = {
    "sums": ClassSumPass(SCHEMA, 3),
    "slope": SteepnessPass(SCHEMA, *RULE, 0.7, 2.5),
    "a steep one": SteepnessPass(SCHEMA, *RULE, 2.0**100, 2.0**-60),
}


def odd(n: int, seed: int) -> pd.DataFrame:
    table = frame(n, seed, "class")
    table.iloc[:4] = [[math.nan, 1.0, 0.3], [math.inf, -math.inf, 1.0], [1e308, 5e-324, 7.0], [0, 0, -0.4]]
    return table


def folded(work: Any, table: pd.DataFrame) -> list[int]:
    values: list[int] = work.fold(work.empty(), nw.from_native(table, eager_only=True)).values()
    return values


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
def test_every_order_and_partition_gives_the_sum_over_single_rows(work: Any) -> None:
    table = odd(60, 2)
    work, whole = pickle.loads(pickle.dumps(work)), folded(work, table)
    assert folded(work, table[::-1]) == whole
    assert Rows(table, SCHEMA).state(work).values() == whole
    parts = [work.fold(work.empty(), nw.from_native(table[i::3], eager_only=True)) for i in range(3)]
    assert work.merge(work.merge(parts[2], parts[0]), work.unpack(work.pack(parts[1]))).values() == whole
    alone = np.array([folded(work, table[i : i + 1]) for i in range(len(table))], dtype=object)
    assert alone.sum(axis=0).tolist() == whole
    if isinstance(work, ClassSumPass):
        assert max(sum(v * v for v in row) for row in alone) <= DESIGN.row_map.limits.norm_squared
        assert all(np.count_nonzero(np.reshape(row, (3, 3)).any(axis=1)) <= 1 for row in alone)
    else:
        assert max(abs(row[0]) for row in alone) <= STEEPNESS_CELLS
        assert max(abs(row[0]) for row in alone) == STEEPNESS_CELLS or work.slope < 1


def test_sums_are_those_of_the_rows_as_they_are_used() -> None:
    table = frame(200, 1, "class")
    X, y = images(table)
    true = np.stack([X[np.rint(y) == k].sum(axis=0) for k in (-1, 0, 1)])
    assert np.allclose(np.reshape(folded(WORKS["sums"], table), (3, 3)) * float(DESIGN.unit), true)


def test_a_look_is_the_derivative_of_the_log_loss_by_the_slope() -> None:
    table, (scores, offsets) = frame(300, 3, "class"), RULE
    X, y = images(table)
    f, mine = X @ np.array(scores).T, np.rint(y).astype(int) + 1

    def loss(slope: float) -> float:
        u = slope * f + np.array(offsets)
        return float((np.logaddexp.reduce(u, axis=1) - u[np.arange(len(u)), mine]).sum())

    (said,) = folded(SteepnessPass(SCHEMA, scores, offsets, 0.7, 100.0), table)
    assert said / STEEPNESS_CELLS * 100 == pytest.approx((loss(0.7 + 1e-5) - loss(0.7 - 1e-5)) / 2e-5, abs=0.02)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((((1.0,) * 2,) * 3, (0.0,) * 3, 1.0, 1.0), "3 entries"),
        ((((1.0,) * 3,) * 3, (0.0,) * 2, 1.0, 1.0), "an offset for each"),
        ((((math.nan,) * 3,) * 3, (0.0,) * 3, 1.0, 1.0), r"at most 2\*\*100"),
        ((((1.0,) * 3,) * 3, (math.inf,) * 3, 1.0, 1.0), r"at most 2\*\*100"),
        ((((1.0,) * 3,) * 3, (0.0,) * 3, 0.0, 1.0), "above 0"),
        ((((1.0,) * 3,) * 3, (0.0,) * 3, 1.0, math.nan), "above 0"),
    ],
)
def test_bad_rules_are_refused_in_public(given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SteepnessPass(SCHEMA, *given)


def test_there_must_be_classes() -> None:
    for make in (lambda s: ClassSumPass(s, 3), lambda s: SteepnessPass(s, ((1.0, 0.0),) * 3, (0.0,) * 3, 1.0, 1.0)):
        with pytest.raises(ValueError, match="target"):
            make(Schema({"x": Number(0, 1)}))
