"""Levels of pandas categories: each is read by itself, whatever the others make of the type of all."""

from decimal import Decimal
from typing import Any

import narwhals as nw
import pandas as pd
import pytest

from snugdp.mechanisms.bounds.looks.levels import level_pass


def levels(cells: list[Any]) -> dict[Any, int]:
    work = level_pass("c")
    table = pd.DataFrame({"c": pd.Series(cells, dtype=object).astype("category")})
    keys, counts = work.counts(work.fold(work.empty(), nw.from_native(table, eager_only=True)))
    return dict(zip(keys, counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("cells", "more"),
    [([Decimal("2.5"), Decimal(7)], "?"), ([Decimal("2.5"), Decimal(1)], Decimal(10) ** 50), (["a", "b"], 0.1)],
)
def test_one_more_row_moves_no_level_of_others(cells: list[Any], more: Any) -> None:
    before, after = levels(cells * 3), levels([*cells * 3, more])
    assert all(after.get(key) == count for key, count in before.items())
    assert sum(after.values()) - sum(before.values()) <= 1
