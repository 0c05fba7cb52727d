"""Looks: what a row moves, by brute force; what they cost; and what they find, on ordinary and on hostile tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from snugdp import Neighbours, Simulation
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.bounds.looks.looks import Looks
from snugdp.noise import Exact, Gaussian
from snugdp.secrecy.secret import PrivateComputationError, Secret, unwrap
from snugdp.tables.found import Flag, FoundLevels, FoundNumber
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource
from snugdp.tables.opened import OpenedTable
from snugdp.tables.sources import Source, TableError, open_source
from tests.effort import often, repeated, sampled
from tests.mechanisms.scripted import Scripted

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
SQUARE = Fraction(24, 100) * Fraction(".2291") ** 2  # at epsilon 1 and delta 1e-6
FAILURE = Fraction(1, 10**7)
Row = tuple[Any, ...]


class Recorded(Scripted):
    """Levels too: what was seen of them, and none of them shown unless an answer says so."""

    def __init__(self, answers: list[Any] | None = None, seed: int | None = None) -> None:
        super().__init__(answers, seed)
        self.levels: list[tuple[dict[Any, int], Fraction, int]] = []

    def keys_above(self, counts: Any, law: Any, threshold: int) -> list[tuple[Any, int]]:
        keys, numbers = unwrap(counts)
        assert isinstance(law, Gaussian)
        self.levels.append((dict(zip(keys, numbers.tolist(), strict=True)), law.sigma, threshold))
        return []


def opened(source: Source) -> Secret[OpenedTable]:
    return Secret(OpenedTable(source))


def table(rows: list[Row], numbers: int, categories: int) -> Secret[OpenedTable]:
    columns = {f"x{i}": pl.Series([row[i] for row in rows], dtype=pl.Float64) for i in range(numbers)}
    texts = {f"c{i}": pl.Series([row[numbers + i] for row in rows], dtype=pl.String) for i in range(categories)}
    return Secret(OpenedTable(open_source(pl.DataFrame({**columns, **texts}))))


def looks_at(numbers: int, categories: int, relation: Neighbours = ADD, **given: Any) -> Looks:
    names = tuple(f"x{i}" for i in range(numbers)), tuple(f"c{i}" for i in range(categories))
    given = {"mu_squared": SQUARE, "failure": FAILURE if categories else Fraction(0), **given}
    return Looks(*names, neighbours=relation, **given)


def first_look(looks: Looks, rows: list[Row]) -> Recorded:
    noise = Recorded()
    looks.draw(table(rows, len(looks.numbers), len(looks.categories)), noise)
    assert len(noise.seen) == 1  # zeros are answered: nothing is found
    return noise


def moved(looks: Looks, one: Recorded, other: Recorded) -> tuple[int, int]:
    """Of the first look: the square of the distance of all that both tables have, and the labels that one has alone."""
    (first, sigma), (second, _) = one.seen[0], other.seen[0]
    assert sigma**2 * looks.shares[0] >= len(looks.numbers) + len(looks.categories)
    square = sum(((a - b) ** 2 for a, b in zip(first, second, strict=True) if a != b), Fraction(0))
    alone = 0
    for (mine, spread, _), (yours, _, _) in zip(one.levels, other.levels, strict=True):
        assert spread == sigma
        square += sum((mine[key] - yours[key]) ** 2 for key in mine.keys() & yours.keys())
        alone += len(mine.keys() ^ yours.keys())
        assert all((mine | yours)[key] == 1 for key in mine.keys() ^ yours.keys())
    return int(square), alone


CELLS = (0.0, 1.5, math.inf, None)
LABELS = ("a", "b", "", None)


@pytest.mark.slow
def test_what_a_row_moves_by_brute_force() -> None:
    """All rows of a small universe beside all tables of one row: one count for each column, also where cells miss."""
    looks, rows = looks_at(1, 1), list(product(CELLS, LABELS))
    alone = {row: first_look(looks, [row]) for row in rows}
    for one, other in combinations_with_replacement(rows, 2):
        both = first_look(looks, [one, other])
        for before in {one, other}:
            square, lone = moved(looks, both, alone[before])
            assert square + lone == 2
            assert lone <= 1


def test_what_a_replaced_row_moves_by_brute_force() -> None:
    looks, found = looks_at(1, 1, REPLACE), set()
    seen = {row: first_look(looks, [(1.5, "a"), row]) for row in product(CELLS, LABELS)}
    for old, new in product(seen, repeat=2):
        square, alone = moved(looks, seen[new], seen[old])
        found.add(square + alone)
        assert (square + alone == 0) == (repr(old).replace("''", "None") == repr(new).replace("''", "None"))
    assert max(found) == 4


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_all_looks_together_cost_what_is_charged(relation: Neighbours) -> None:
    """The exact distance over everything released, on narrow columns that are zoomed to the end."""
    looks = looks_at(3, 0, relation)
    rows: list[Row] = [(5.0, 2000.0, -1e-3)] * 6000
    other = [] if relation is ADD else [(8.5, 8.0, 1.0)]
    first = Recorded(seed=9)
    found = looks.draw(table([*rows, rows[0]], 3, 0), first)
    assert {one.flag for one in found.columns.values()} == {Flag.CONSTANT}
    second = Recorded(first.said)
    assert looks.draw(table([*rows, *other], 3, 0), second) == found
    square = first.distance_squared(second)
    assert square <= SQUARE
    assert len(first.seen) == 4
    if relation is ADD:
        assert square > SQUARE * (1 - Fraction(1, 10**9))  # attained: with less noise it would not be true


def test_less_columns_in_a_zoom_have_less_noise_for_the_same_price() -> None:
    looks = looks_at(4, 0)
    rows = [(5.0, float(i % 40), math.sin(i), float(i % 7)) for i in range(6000)]
    noise = Recorded(seed=1)
    looks.draw(table(rows, 4, 0), noise)
    sizes = [len(values) // 32 for values, _ in noise.seen[1:]]
    assert sizes == [4, 1, 1]
    for (_, sigma), columns, share in zip(noise.seen[1:], sizes, looks.shares[1:], strict=True):
        assert 1 - 1e-12 < float(columns / sigma**2 / share) <= 1


def test_a_lone_level_is_shown_as_rarely_as_is_charged() -> None:
    for numbers, categories, relation in product((0, 3), (1, 2, 5), (ADD, REPLACE)):
        looks = looks_at(numbers, categories, relation)
        made = looks.selection
        assert made is not None
        assert made.law == looks.law(0, numbers + categories)
        sigma = float(made.law.sigma)
        assert categories * stats.norm.sf((made.threshold - 1.5) / sigma) <= float(FAILURE)
        assert categories * stats.norm.sf((made.threshold - 2.5) / sigma) > float(FAILURE)


def test_the_exact_law_of_levels_and_missing_stays_below_the_cost() -> None:
    """One category, few rows, large failure: a label that comes, a label that others have, and a row without one."""
    looks = looks_at(0, 1, mu_squared=Fraction(1, 16), failure=Fraction(1, 50))
    assert looks.selection is not None
    sigma, least = float(looks.law(0, 1).sigma), looks.selection.threshold
    bins = np.arange(-60, 61) - 0.5

    def shown(count: int) -> Any:
        law = np.zeros(62)
        if count == 0:
            law[0] = 1.0
            return law
        edges = np.concatenate([[-np.inf], least - 0.5 + np.arange(61), [np.inf]])
        return np.diff(stats.norm.cdf(edges, count, sigma))

    def release(levels: tuple[int, ...], missing: int) -> Any:
        law = np.diff(stats.norm.cdf(bins, missing, sigma), prepend=0, append=1)
        for count in levels:
            law = np.outer(law, shown(count)).ravel()
        return law

    pairs = [((0,), 0, (1,), 0), ((7,), 3, (8,), 3), ((7,), 3, (7,), 4), ((0,), 5, (1,), 5), ((0,), 0, (0,), 1)]
    for epsilon in (0.0, 0.3, 1.0):
        claimed, worst = looks.cost.delta_at(epsilon), 0.0
        for before, absent, after, lacking in pairs:
            p, q = release(before, absent), release(after, lacking)
            worst = max(worst, *(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p))))
        assert worst <= claimed
    assert worst >= stats.norm.sf((least - 1.5) / sigma) * (1 - 1e-9)  # a label that nobody else has


def test_costs_and_steps() -> None:
    for numbers, categories, relation in [(3, 2, ADD), (3, 0, REPLACE), (0, 2, ADD)]:
        looks = looks_at(numbers, categories, relation)
        steps = looks.steps()
        assert [step.id for step in steps] == (["grid", "zoom", "zoom-2", "zoom-3"] if numbers else ["grid"])
        total = sum((step.cost for step in steps[1:]), steps[0].cost)
        failure = FAILURE if categories else Fraction(0)
        assert total == looks.cost == Cost(mu_squared=SQUARE, delta=failure, neighbours=relation)
    assert looks_at(2, 0, weights=(1, 1)).shares == (SQUARE / 2, SQUARE / 2)


def found(data: object, numbers: tuple[str, ...], categories: tuple[str, ...] = (), seed: int = 1, **given: Any) -> Any:
    failure = FAILURE if categories else Fraction(0)
    looks = Looks(numbers, categories, **{"mu_squared": SQUARE, "failure": failure, **given})
    return looks.draw(Secret(OpenedTable(open_source(data))), Simulation(seed))


def ordinary(n: int, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        "normal": generator.normal(40, 3, n),
        "year": generator.integers(1990, 2021, n).astype(np.float64),
        "money": generator.lognormal(8, 0.7, n),
        "both": generator.normal(0, 1e-3, n),
        "holes": np.where(generator.random(n) < 0.2, np.nan, generator.uniform(5, 9, n)),
    }


def test_ordinary_columns_are_found() -> None:
    sharp = 0
    for seed in range(5):
        data = ordinary(5000, seed)
        columns, rows = found(pl.DataFrame(data), tuple(data), seed=seed)
        assert 4500 < rows < 5500
        for name, values in data.items():
            one, known = columns[name], values[~np.isnan(values)]
            assert one.flag is Flag.FOUND
            assert ((one.lower <= known) & (known <= one.upper)).mean() > 0.98
            assert one.missing == 0.0 if name != "holes" else 0.15 < one.missing < 0.25
            near = abs(one.centre - known.mean()) < 0.35 * known.std() and 0.5 < one.scale / known.std() < 1.5
            sharp += near and one.upper - one.lower < 16 * known.std()
    assert sharp >= 23  # of 25: noise looks like a thin tail in one of twenty


def hostile(n: int) -> dict[str, list[Any]]:
    return {
        "constant": [7.25] * n,
        "zeros": [0.0] * n,
        "outlier": [1e300, *[0.5] * (n - 1)],
        "infinite": [math.inf] * n,
        "minus": [-math.inf] * n,
        "absent": [math.nan] * n,
        "tiny": [5e-324] * n,
        "huge": [-1e300] * n,
        "clusters": [1e9 if i % 2 else 0.0 for i in range(n)],
        "spread": [(-1.0) ** i * 2.0 ** (i % 160 - 80) for i in range(n)],
    }


@sampled(14)
@pytest.mark.parametrize("n", [0, 1, 2, 50, 20_000])
@pytest.mark.parametrize("known", [(None, None), (0.0, None), (None, 0.0), (1e290, None), (None, -1e290), (2.0, None)])
@pytest.mark.parametrize("square", [SQUARE, Fraction(10**6), Fraction(1, 10**9)])
def test_hostile_columns_never_break_anything(n: int, known: Any, square: Fraction) -> None:
    data = {name: column[:n] for name, column in hostile(max(n, 1)).items()}
    frame = pl.DataFrame({name: pl.Series(column, dtype=pl.Float64) for name, column in data.items()})
    ends = {} if known == (None, None) else dict.fromkeys(data, known)
    columns, rows = found(frame, tuple(data), mu_squared=square, known=ends, weights=(5, 5, 1, 1, 1, 1, 1, 1))
    assert rows >= 1
    low, high = (-math.inf if known[0] is None else known[0]), (math.inf if known[1] is None else known[1])
    for one in columns.values():
        assert low <= one.lower < one.upper <= high
        assert one.missing is not None
        assert 0 <= one.missing <= 1
    if square == SQUARE and n <= 50:
        assert sum(one.flag is Flag.NOT_FOUND for one in columns.values()) >= len(data) - 1


def test_what_is_said_of_hostile_columns() -> None:
    columns, _ = found(pl.DataFrame(hostile(20_000)), tuple(hostile(1)))
    flags = {name: one.flag for name, one in columns.items()}
    assert flags["constant"] is flags["zeros"] is flags["tiny"] is Flag.CONSTANT
    assert flags["absent"] is Flag.NOT_FOUND
    assert columns["absent"].missing > 0.95
    assert flags["infinite"] is flags["minus"] is flags["huge"] is Flag.COARSE
    assert columns["outlier"].upper < 1.0
    assert columns["clusters"].lower < 0.0
    assert columns["clusters"].upper > 1e9
    assert 7.0 < columns["constant"].lower < 7.25 < columns["constant"].upper < 7.5


def test_nanoseconds_are_resolved() -> None:
    """They are beyond the last doubling, which is taken for one more."""
    values = 1.7e18 + np.random.default_rng(0).normal(0, 1e16, 10_000)
    one = found(pl.DataFrame({"t": values}), ("t",))[0]["t"]
    assert one.flag is Flag.FOUND
    assert abs(one.centre - 1.7e18) < 5e15
    assert 5e15 < one.scale < 2e16


def test_a_public_end_is_kept() -> None:
    money = np.random.default_rng(0).lognormal(8, 1, 5000)
    one = found(pl.DataFrame({"m": money}), ("m",), known={"m": (0.0, None)})[0]["m"]
    assert one.lower == 0.0
    assert one.flag is Flag.FOUND
    assert 6000 < one.upper < 60_000
    one = found(pl.DataFrame({"m": money}), ("m",), known={"m": (None, 5000.0)})[0]["m"]
    assert one.upper == 5000.0
    assert one.lower < 500.0


def test_levels() -> None:
    generator = np.random.default_rng(0)
    data = {
        "x": generator.normal(0, 1, 10_000),
        "c": generator.choice(np.array(["red", "blue", "rare", None]), 10_000, p=[0.5, 0.3, 0.001, 0.199]),
        "k": generator.choice([10, 9, 1], 10_000),
    }
    for frame in (pd.DataFrame(data), pl.DataFrame({**data, "c": data["c"].tolist()})):
        columns, rows = found(frame, ("x",), ("c", "k"))
        one, other = columns["c"], columns["k"]
        assert isinstance(one, FoundLevels)
        assert isinstance(other, FoundLevels)
        assert (one.values, other.values) == (("blue", "red"), (1, 9, 10))
        assert np.allclose(one.shares, (0.3, 0.5), atol=0.05)
        assert one.missing == pytest.approx(0.195, abs=0.05)
        assert 9000 < rows < 11_000
        assert other.missing == 0.0
    columns, rows = found(pd.DataFrame(data), (), ("c",))
    assert columns["c"].values == ("blue", "red")
    assert 9500 < rows < 10_500
    few = found(pl.DataFrame({"c": ["a", "b"]}), (), ("c",))[0]["c"]
    assert (few.values, few.flag) == ((), Flag.NOT_FOUND)


def test_every_container_and_order_gives_the_same(tmp_path: Path) -> None:
    data = ordinary(4000)
    data["c"] = np.where(data["normal"] > 40, "up", "down")
    frame = pl.DataFrame(data)
    numbers = tuple(name for name in data if name != "c")
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=700)
    frame.with_columns(pl.col("holes").fill_nan(None)).write_csv(tmp_path / "t.csv")
    first = found(frame, numbers, ("c",))
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    for other in (shuffled, frame.to_pandas(), frame.to_arrow(), tmp_path / "t.parquet", tmp_path / "t.csv"):
        assert found(other, numbers, ("c",)) == first
    layout = ArraySchema(numbers[:-1], x_norm=1, y_bound=1)
    X = np.column_stack([data[name] for name in numbers[:-1]])
    names = (*layout.names, layout.target)
    matrix = ArraySource(X, data["holes"], layout)
    looks = Looks(names, (), SQUARE)
    renamed = frame.rename({"holes": layout.target})
    assert looks.draw(opened(matrix), Simulation(2)) == looks.draw(opened(open_source(renamed)), Simulation(2))


@pytest.mark.slow
def test_five_thousand_columns() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(3, 1, (1500, 4999)).astype(np.float32)
    layout = ArraySchema(tuple(f"x{i}" for i in range(4999)), x_norm=1, y_bound=1)
    looks = Looks((*layout.names, layout.target), (), Fraction(60))
    columns, rows = looks.draw(opened(ArraySource(X, X[:, 0].astype(np.float64), layout)), Exact())
    assert len(columns) == 5000
    assert 1300 < rows < 1700
    numbers = [one for one in columns.values() if isinstance(one, FoundNumber)]
    assert sum(one.flag is Flag.FOUND for one in numbers) > 4900
    assert np.median([one.centre for one in numbers]) == pytest.approx(3.0, abs=0.3)


@pytest.mark.slow
@repeated
def test_rows_needed() -> None:
    """12.4: with (z + 1) sigma rows in one doubling a column is found in five of six cases."""
    data, seeds = pl.DataFrame({"x": [5.5] * 69}), range(often(60, 200))
    seen = [found(data, ("x",), seed=seed)[0]["x"].flag for seed in seeds]
    assert 0.75 < np.mean([flag is not Flag.NOT_FOUND for flag in seen]) < 0.93


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"numbers": ()}, "need columns"),
        ({"numbers": ("a", "a")}, "each of them once"),
        ({"mu_squared": Fraction(0)}, "mu above 0"),
        ({"failure": FAILURE}, "only then"),
        ({"categories": ("c",)}, "only then"),
        ({"weights": ()}, "weights"),
        ({"weights": (1, 0)}, "weights"),
        ({"known": {"a": (1e9, 1e9 + 1)}}, "well apart"),
        ({"known": {"a": (1.0, 0.0)}}, "well apart"),
        ({"known": {"a": (0.0, 5e-324)}}, "well apart"),
        ({"known": {"a": (math.nan, None)}}, "public ends"),
        ({"known": {"a": (0.0, math.nan)}}, "public ends"),
        ({"known": {"a": (None, math.inf)}}, "public ends"),
        ({"categories": tuple(f"c{i}" for i in range(1001)), "failure": FAILURE}, "at most 1000"),
    ],
)
def test_what_is_refused(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Looks(**{"numbers": ("a",), "categories": (), "mu_squared": SQUARE, **given})


def test_what_a_table_lacks_is_said_before_and_nothing_afterwards() -> None:
    looks = Looks(("a",), ("c",), SQUARE, FAILURE)
    with pytest.raises(TableError, match='no column "a"'):
        open_source(pl.DataFrame({"c": ["x"]})).check(looks.first)
    with pytest.raises(TypeError, match='"a" must hold numbers'):
        open_source(pl.DataFrame({"a": [date(2020, 1, 1)], "c": ["x"]})).check(looks.first)
    open_source(pl.DataFrame({"a": [1.0], "c": ["x"]})).check(looks.first)
    with pytest.raises(PrivateComputationError):
        looks.draw(opened(open_source(pl.DataFrame({"c": ["x"]}))), Simulation(1))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_heavy_column_is_paid_for(relation: Neighbours) -> None:
    """In deviations of their own noise the counts of all columns move by no more than mu, first and in a zoom."""
    looks = looks_at(3, 1, relation, heavy="x1")
    moved = 1 if relation is ADD else 2
    for look, names in ((0, looks.numbers), (1, looks.numbers), (2, ("x1",)), (2, ("x0", "x2"))):
        sigmas = looks.sigmas(look, names)
        others = 0 if look else 1 / float(looks.law(0, 6).sigma) ** 2  # the category
        assert moved * (np.sum(1 / sigmas**2) + others) <= float(looks.shares[look]) * (1 + 1e-12)
    noise = Recorded()
    looks.draw(table([(1.0, 2.0, 3.0, "a")], 3, 1), noise)
    assert [len(values) for values, _ in noise.seen] == [164, 2 * 164 + 1]
    assert noise.seen[0][1] ** 2 * 3 >= noise.seen[1][1] ** 2 * (1 - Fraction(1, 10**9))
