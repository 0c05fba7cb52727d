"""What queries do with missing cells: they are left out where that is proved, and every plan says what is done."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import snugdp
from snugdp.noise import Simulation

NUMBERS = [float(value) for value in np.random.default_rng(2).uniform(20, 60, 900)]
GAPS: list[Any] = [None if place % 6 == 0 else value for place, value in enumerate(NUMBERS)]
KNOWN = [value for value in GAPS if value is not None]
RANGE: dict[str, Any] = {"bounds": (0, 100), "epsilon": 1}
LABELS: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}

LEFT_OUT: dict[str, Any] = {
    "median": snugdp.Median(**RANGE),
    "median, tested": snugdp.Median(**RANGE, delta=1e-6, method="test", beta=20),
    "median, test of all rows": snugdp.Median(**RANGE, delta=1e-6, method="test", beta=200),
    "quantile": snugdp.Quantile(q=0.9, **RANGE),
    "quantiles": snugdp.Quantiles(q=[0.1, 0.9], **RANGE),
    "interquartile range": snugdp.InterquartileRange(**RANGE),
    "minimum": snugdp.Minimum(**RANGE),
    "maximum": snugdp.Maximum(**RANGE),
    "quantile, replaced": snugdp.Quantile(q=0.5, neighbours="replace", **RANGE),
    "sum": snugdp.Sum(**RANGE),
    "mean": snugdp.Mean(**RANGE),
    "variance": snugdp.Variance(**RANGE),
    "deviation": snugdp.StandardDeviation(**RANGE),
}
BY_LABEL: dict[str, Any] = {
    "mode": snugdp.Mode(categories=["a", "b"], **LABELS),
    "vote": snugdp.Vote(candidates=["a", "b"], epsilon=1),
    "vote, tested": snugdp.Vote(candidates=["a", "b"], noise_epsilon=2, **LABELS),
}
OTHERS: dict[str, tuple[Any, str]] = {
    "bounds": (snugdp.Bounds(columns=["x"], epsilon=1), "missing-entries"),
    "covariance": (snugdp.Covariance(columns=("x", "z"), bounds=((0, 1), (0, 1)), epsilon=1), "missing-entries"),
    "entries": (snugdp.Count(column="x", epsilon=1), "missing-entries"),
    "histogram": (snugdp.Histogram(edges=[0, 1], epsilon=1), "missing-counted"),
    "describe": (snugdp.Describe(schema=snugdp.Schema({"x": snugdp.Number(0, 1)}), epsilon=1), "missing-counted"),
    "groups": (snugdp.GroupBy(by="x", keys=["a"], epsilon=1), "missing-keys"),
    "groups of missing": (snugdp.GroupBy(by="x", keys=["a"], missing=True, epsilon=1), "missing-keys-kept"),
    "fixed": (snugdp.Median(missing=50, **RANGE), "missing-as"),
    "fixed in a test": (snugdp.Median(missing=50, delta=1e-6, beta=1, **RANGE), "missing-as"),
    "trimmed": (snugdp.TrimmedMean(rows=10, **RANGE), "missing-as-lower"),
    "replaced": (
        snugdp.Quantile(q=0.5, rows=9, delta=1e-6, beta=1, neighbours="replace", **RANGE),
        "missing-as-lower",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_missing_numbers_are_left_out(name: str) -> None:
    query = LEFT_OUT[name]
    whole = query.release(KNOWN, noise=Simulation(3)).value
    for data in (GAPS, pd.Series(GAPS), pl.Series(GAPS), ["?" if value is None else value for value in GAPS]):
        assert query.release(data, noise=Simulation(3)).value == whole
    assert [note.code for note in query.plan().forecast.notes if "missing" in note.code] == ["missing-entries"]


@pytest.mark.parametrize("name", BY_LABEL)
def test_missing_labels_are_left_out(name: str) -> None:
    cells: list[Any] = ["a"] * 300 + ["b"] * 40
    whole = BY_LABEL[name].release(cells, noise=Simulation(3)).value
    assert BY_LABEL[name].release([*cells, *[None, np.nan, "c"] * 200], noise=Simulation(3)).value == whole
    assert "missing entries are left out" in str(BY_LABEL[name].plan())


@pytest.mark.parametrize("name", OTHERS)
def test_every_plan_says_what_is_done(name: str) -> None:
    query, code = OTHERS[name]
    assert [note.code for note in query.plan().forecast.notes if "missing" in note.code] == [code]
    assert "\n  missing  " in str(query.plan())


def test_a_test_between_replaced_rows_keeps_the_public_number() -> None:
    """Left out, a row that becomes missing would move all ranks by a number that is public in the proof."""
    query = snugdp.TrimmedMean(trim=0.25, **RANGE)
    lowest = [0.0 if value is None else value for value in GAPS]
    assert query.release(GAPS, noise=Simulation(3)).value == query.release(lowest, noise=Simulation(3)).value
    fixed = snugdp.TrimmedMean(trim=0.25, missing=40, **RANGE)
    middle = [40.0 if value is None else value for value in GAPS]
    assert fixed.release(GAPS, noise=Simulation(3)).value == query.release(middle, noise=Simulation(3)).value
    assert "counts as 0, the lower bound" in str(snugdp.TrimmedMean(trim=0.25, rows=9, **RANGE).plan())


def test_missing_cells_are_counted_on_request(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": GAPS, "city": ["Rome", None, ""] * 300})
    table.write_parquet(tmp_path / "t.parquet")
    table.write_csv(tmp_path / "t.csv")
    for data in (table, table.to_pandas(), tmp_path / "t.parquet", tmp_path / "t.csv"):
        for column, gaps in (("x", 150), ("city", 600)):
            found: Any = snugdp.count(data, column=column, missing=True, epsilon=1, noise=Simulation(1)).value
            entries: Any = snugdp.count(data, column=column, epsilon=1, noise=Simulation(1)).value
            assert found.value - entries.value == gaps - (900 - gaps)  # the same noise on both
            replaced: Any = snugdp.count(data, column=column, missing=True, epsilon=50, neighbours="replace").value
            assert abs(replaced.value - gaps) < 5
    with pytest.raises(ValueError, match="needs column"):
        snugdp.Count(missing=True, epsilon=1)
    assert snugdp.Count(column="x", missing=True, epsilon=1).plan().cost == snugdp.Count(epsilon=1).plan().cost
