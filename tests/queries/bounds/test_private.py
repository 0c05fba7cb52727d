"""Private bounds: the exact law of both ends for every pair of neighbours, useful bounds, and bad input."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from snugdp import Cost, MemoryLedger, Simulation
from snugdp.mechanisms.bounds.exponential_grid import GridEnds, reach, scores
from snugdp.noise import Gumbel
from snugdp.queries.bounds.private import Bounds, private_bounds
from snugdp.tables.passes.columns.exponential_grid import CELLS, EDGES, GridCounts, tally
from snugdp.tables.schema.kinds import Number
from tests.effort import often, repeated, sampled
from tests.queries.witness import Witness

Rows = tuple[float, ...]
EPSILON = 10.2  # so large that a few rows show the worst case
UNIVERSE = (-math.inf, 0.0, math.inf, math.nan)


def tables(relation: str) -> Iterator[tuple[Rows, Rows]]:
    """Every unordered pair of neighbours of up to seven rows and one more; in make test the smallest and the worst."""
    for size in range(8) if often(0, 1) else (0, 1, 7):
        for rows in itertools.combinations_with_replacement(UNIVERSE, size):
            for value in UNIVERSE:
                if relation == "add_remove":
                    yield rows, (*rows, value)
                else:
                    yield from ((rows, (*rows[:i], value, *rows[i + 1 :])) for i in range(size))


def contests(rows: Rows, query: Bounds) -> list[NDArray[np.float64]]:
    """The scores of every edge in units of the noise, for the two ends."""
    witness = Witness()
    query.release(list(rows), noise=witness)
    return [
        np.array(scores, dtype=float) / float(law.scale) for scores, law in witness.contests if isinstance(law, Gumbel)
    ]


def loss(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The largest logarithm of a ratio of probabilities over all pairs, in either direction."""
    laws = [weights - np.logaddexp.reduce(weights, axis=1, keepdims=True) for weights in (one, other)]
    return float(np.abs(laws[0] - laws[1]).max())


@pytest.mark.slow
@sampled(6)
@repeated
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("outside", [0, 0.1])
def test_each_end_keeps_its_half_and_needs_all_of_it(relation: str, outside: float) -> None:
    query = Bounds(epsilon=EPSILON, neighbours=relation, outside=outside)
    pairs = {tuple(tuple(sorted(rows, key=repr)) for rows in pair) for pair in tables(relation)}
    known = {rows: contests(rows, query) for rows in {rows for pair in pairs for rows in pair}}
    for end in (0, 1):
        one, other = (np.array([known[pair[side]][end] for pair in pairs]) for side in (0, 1))
        assert loss(one, other) <= EPSILON / 2 * (1 + 1e-9)
        assert loss(one / 0.8, other / 0.8) > EPSILON / 2


def histograms(cells: int, rows: int) -> Iterator[tuple[int, ...]]:
    for placed in itertools.combinations_with_replacement(range(cells), rows):
        yield tuple(placed.count(cell) for cell in range(cells))


@sampled(6)
@pytest.mark.parametrize("outside", [Fraction(0), Fraction(1, 100), Fraction(2, 5)])
@pytest.mark.parametrize("slack", [0, 2])
def test_scores_move_by_their_reach_at_most(outside: Fraction, slack: int) -> None:
    moved = {"add_remove": Fraction(0), "replace": Fraction(0)}
    for size in range(5):
        for counts in histograms(7, size):
            here = scores(np.array(counts), outside, slack)
            more = [np.array(counts) + np.eye(7, dtype=np.int64)[cell] for cell in range(7)]
            there = [scores(other, outside, slack) for other in more]
            moved["add_remove"] = max(moved["add_remove"], *(_apart(here, other) for other in there))
            moved["replace"] = max(
                moved["replace"], *(_apart(one, two) for one, two in itertools.combinations(there, 2))
            )
    for relation in ("add_remove", "replace"):
        assert moved[relation] == reach(outside, relation)


def _apart(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


@given(st.lists(st.floats(width=64), max_size=30), st.randoms(use_true_random=False))
def test_a_tally_is_a_sum_over_rows(values: list[float], random: Any) -> None:
    whole = tally(np.array(values, dtype=np.float64))
    assert whole.sum() == sum(not math.isnan(value) for value in values)
    random.shuffle(values)
    parts = [tally(np.array([value])) for value in values]
    assert (sum(parts, np.zeros(CELLS, dtype=np.int64)) == whole).all()
    below = np.cumsum(whole)[0:-1:2]
    assert below.tolist() == [sum(value < edge for value in values) for edge in EDGES]


def test_the_grid_is_public_and_symmetric() -> None:
    assert (-EDGES[::-1] == EDGES).all()
    assert (np.diff(EDGES) > 0).all()
    assert EDGES.max() == 2.0**60
    assert EDGES[EDGES > 0].min() == 2.0**-20
    with pytest.raises(ValueError, match="read-only"):
        EDGES[0] = 1


MADE_UP = np.random.default_rng(1)
COLUMNS: dict[str, tuple[NDArray[np.float64], tuple[float, float]]] = {
    "ages": (MADE_UP.integers(18, 90, 5000).astype(float), (16, 96)),
    "incomes": (MADE_UP.lognormal(10.4, 0.5, 5000), (8192, 131072)),
    "signed": (MADE_UP.normal(0, 1, 5000), (-3, 3)),
    "constant": (np.full(5000, 5.0), (4, 6)),
    "indicator": ((np.arange(5000) % 2).astype(np.float64), (0, 1)),
    "negative": (-MADE_UP.lognormal(0, 0.1, 5000), (-1.5, -0.75)),
    "small": (MADE_UP.uniform(0.0010, 0.0011, 5000), (0.0009, 0.0013)),
    "outliers": (np.append(MADE_UP.uniform(1, 2, 4990), [1e300, math.inf, -math.inf, *[1e18] * 7]), (0.875, 2.5)),
}


@sampled(2)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_bounds_are_close(name: str, relation: str) -> None:
    rows, (low, high) = COLUMNS[name]
    value = private_bounds(rows, epsilon=4, neighbours=relation).value
    assert value is not None
    lower, upper = map(float, value.number.bounds)
    assert low <= lower < upper <= high
    beyond = (rows < lower).mean(), (rows > upper).mean()
    assert max(beyond) < 0.03


@sampled(3)
@repeated
@pytest.mark.parametrize("rows", [[], [5.0], [math.nan] * 9, [math.inf, -math.inf], [None, "x", 10**400]])
def test_few_or_strange_rows_still_give_bounds(rows: list[Any]) -> None:
    for relation, seed in itertools.product(("add_remove", "replace"), range(often(5, 20))):
        value = private_bounds(rows, epsilon=1, neighbours=relation, noise=Simulation(seed)).value
        assert value is not None
        assert not value.number.is_open


def test_the_forecast_holds() -> None:
    """The edge that is drawn misses by more than the slack with a probability of at most 1/40, from the exact law."""
    rows = MADE_UP.lognormal(3, 2, 400)
    mechanism = GridEnds(Fraction(1, 2), Fraction(1, 100), "add_remove", len(EDGES), 1)
    for counts in (tally(rows), tally(rows)[::-1], tally(np.empty(0)), tally(np.full(90, -np.inf))):
        values = np.array([float(score) for score in scores(counts, mechanism.outside, mechanism.slack)])
        law = np.exp((values - values.max()) / float(mechanism.law.scale))
        assert law[values < values.max() - mechanism.slack].sum() / law.sum() <= 1 / 40
    assert values.max() < 0


@pytest.mark.slow
def test_columns_of_a_table_share_the_budget(tmp_path: Path) -> None:
    table = pl.DataFrame({name: rows for name, (rows, _) in COLUMNS.items()})
    names = ["ages", "incomes", "signed"]
    table.write_parquet(tmp_path / "table.parquet")
    ledger = MemoryLedger(6, 0, "add_remove", composition="tight")
    table.write_csv(tmp_path / "table.csv")
    for data in (table, table.to_pandas(), table.to_arrow(), tmp_path / "table.parquet", tmp_path / "table.csv"):
        one = private_bounds(data, columns=names, epsilon=12, noise=Simulation(1))
        assert one == private_bounds(table, columns=names, epsilon=12, noise=Simulation(1))
    outcome = private_bounds(table, columns=names, epsilon=6, ledger=ledger)
    assert outcome.value is not None
    assert list(outcome.value.columns) == names
    assert isinstance(outcome.value["ages"], Number)
    assert ledger.spent == Cost(epsilon=6)
    assert len(Bounds(columns=names, epsilon=6).plan().steps) == 3
    with pytest.raises(ValueError, match="several"):
        outcome.value.number  # noqa: B018


def test_the_pass_is_exact_in_any_partition() -> None:
    import narwhals as nw

    table = pl.DataFrame({name: rows for name, (rows, _) in COLUMNS.items()})
    work = GridCounts(tuple(COLUMNS))
    whole = work.fold(work.empty(), nw.from_native(table, eager_only=True))
    parts = work.empty()
    for start in range(0, len(table), 777):
        part = work.fold(work.empty(), nw.from_native(table[start : start + 777], eager_only=True))
        parts = work.merge(work.unpack(work.pack(part)), parts)
    assert (work.table(parts) == work.table(whole)).all()
    assert work.table(whole).sum() == 5000 * len(COLUMNS)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": math.nan}, ValueError, "epsilon"),
        ({"neighbours": "swap"}, ValueError, "neighbours"),
        ({"outside": 0.5}, ValueError, "outside"),
        ({"outside": -0.1}, ValueError, "outside"),
        ({"outside": math.nan}, ValueError, "outside"),
        ({"columns": "a"}, TypeError, "list of names"),
        ({"columns": []}, ValueError, "at least one"),
        ({"columns": ["a", "a"]}, ValueError, "twice"),
        ({"columns": [1]}, TypeError, "list of names"),
        ({"columns": ["b"]}, ValueError, "no column"),
        ({"columns": ["text"]}, TypeError, "must hold numbers"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    ledger = MemoryLedger(10, 0, "add_remove", composition="tight")
    data = pd.DataFrame({"a": [1.0, 2.0], "text": pd.to_datetime(["2077-07-07", "2020-01-01"])})
    with pytest.raises(error, match=message) as caught:
        private_bounds(data, **{"epsilon": 1, "columns": ["a"], **changes}, ledger=ledger)
    assert ledger.spent == Cost()
    assert "2077" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [np.array(["x"]), pa.array([b"x"]), pl.Series([["x"]]), 3.5, pd.DataFrame({"a": [1.0]})]
)
def test_a_column_alone_must_hold_numbers(data: Any) -> None:
    ledger = MemoryLedger(10, 0, "add_remove", composition="tight")
    with pytest.raises(TypeError):
        private_bounds(data, epsilon=1, ledger=ledger)
    assert ledger.spent == Cost()
