"""Bounds found before a fit: what they cost, exactly, and that a fit on them costs what was planned."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import snugdp.mechanisms.bounds.preparation as preparation_module
from snugdp import (
    GLM,
    AdditiveClassifier,
    AdditiveRegressor,
    Boolean,
    Budget,
    Category,
    Cost,
    Date,
    LinearRegression,
    LogisticRegression,
    Number,
    PoissonRegression,
    Schema,
    Simulation,
)
from snugdp.estimators.open.fit import OpenFit
from snugdp.estimators.targets import OpenResponse
from snugdp.ledger.composition.limits import within
from snugdp.mechanisms.bounds.preparation import TablePreparation, known_columns, most_frequent
from snugdp.secrecy.secret import Secret, unwrap
from snugdp.tables.found import Flag, FoundBounds, FoundLevels, FoundNumber
from snugdp.tables.losses.losses import Huber, LogCosh, PseudoHuber, SoftHinge
from snugdp.tables.opened import OpenedTable
from snugdp.tables.sources import open_source
from tests.effort import sampled
from tests.mechanisms.scripted import Scripted

BUDGET = Budget(1, 1e-6)
COLUMNS: dict[str, Any] = {
    "a": Number(),
    "c": Category(),
    "d": Date(parts=["weekday"]),
    "b": Boolean(),
    "e": Category(),
    "y": Number(),
}
SCHEMA = Schema(COLUMNS, target="y", missing="indicator")


def with_target(target: Any) -> Schema:
    return replace(SCHEMA, columns={**COLUMNS, "y": target})


LABELS, CLASSES, COUNTS = with_target(Boolean()), with_target(Category(["u", "v", "w"])), with_target(Number(0, 20))
FOUND = with_target(Category())
LINEAR = ["auto", "objective", "sufficient", "adassp", "posterior", "ops_balanced", "adaops", "output", "descent"]
MODELS: dict[str, Any] = {
    **{f"linear {name}": (LinearRegression, SCHEMA, {"method": name}) for name in LINEAR},
    **{f"labels {name}": (LogisticRegression, LABELS, {"method": name}) for name in ("auto", "objective", "output")},
    **{f"classes {name}": (LogisticRegression, CLASSES, {"method": name}) for name in ("auto", "objective")},
    "one against the others": (LogisticRegression, CLASSES, {"multi_class": "ovr"}),
    "classes found": (LogisticRegression, FOUND, {}),
    "classes found, one against the others": (LogisticRegression, FOUND, {"multi_class": "ovr"}),
    "counts found": (PoissonRegression, with_target(Number(lower=0)), {}),
    **{f"counts {name}": (PoissonRegression, COUNTS, {"method": name}) for name in ("auto", "objective", "output")},
    **{type(loss).__name__: (GLM, SCHEMA, {"loss": loss}) for loss in (PseudoHuber(0.2), LogCosh(0.2), Huber(0.2))},
    "soft hinge": (GLM, CLASSES, {"loss": SoftHinge(0.5)}),
    "curves": (AdditiveRegressor, SCHEMA, {}),
    "curves, classes found": (AdditiveClassifier, FOUND, {}),
    "curves, two classes": (AdditiveClassifier, LABELS, {}),
}
OUTCOMES = [(0, 0.0, 1.0, 1e-9), (1, 0.1, 50.0, 3.0), (40, 0.9, 1e7, 1e9), (900, 0.2, 3e3, 2.0)]


def found_of(declared: Schema, levels: int, missing: float, rows: float, radius: float) -> FoundBounds:
    """What looks may find: so many levels, cells that are missing or not, any rows and any radius."""
    columns = known_columns(declared)
    for name in declared.open_columns:
        if isinstance(declared.columns[name], Category):
            shares = (1 / max(levels, 1),) * levels
            columns[name] = FoundLevels(tuple(range(levels)), shares, missing=missing)
        else:
            columns[name] = FoundNumber(-2, 3, 0.5, 1.0, Flag.FOUND, missing)
    return FoundBounds(declared, columns, rows, radius)


@sampled(28)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("intercept", [True, False])
def test_what_is_found_does_not_change_the_cost(name: str, intercept: bool) -> None:
    """Else the second stage would be stopped, and the whole be a refusal."""
    estimator, schema, options = MODELS[name]
    rows = 1000 if options.get("method") in ("ops_balanced", "descent") else None
    model = estimator(epsilon=1, delta=1e-6, schema=schema, fit_intercept=intercept, rows=rows, **options)
    fit = OpenFit.planned(model, None)
    planned = fit.method.plan()
    assert fit.plan(100).cost.fits(BUDGET)
    bounds = set()
    for outcome in OUTCOMES:
        found = found_of(fit.declared, *outcome)
        if isinstance(fit.response, OpenResponse):
            aimed = fit._preparation._aimed(replace(found, columns=fit._preparation._kept(found.columns)))  # type: ignore[union-attr]
            if aimed is None:
                continue
            found = aimed
        method: Any = fit._make(model._layout_of(found, fit.response), found.rows)
        assert method.plan().cost == planned.cost
        assert within(method.plan().cost, planned.cost)
        bounds.add((method.design.x_squared, method.design.y_bound, method.design.unit))
    assert len(bounds) == 1


def opened(columns: Any) -> Secret[OpenedTable]:
    return Secret(OpenedTable(open_source(pd.DataFrame(columns)), progress=False))


def table(rows: int, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(3, 2, rows)
    x[::9] = np.nan
    return {"x": x, "z": rng.exponential(50, rows), "y": 2 * x + rng.normal(size=rows)}


HOSTILE = [
    {"x": math.nan, "z": math.nan, "y": math.nan},
    {"x": 1e300, "z": -math.inf, "y": 5.0},
    {"x": 3.0, "z": 60.0, "y": math.nan},
    {"x": 3.1, "z": 40.0, "y": 6.0},
    {"x": -0.0, "z": 5e-324, "y": -1e300},
]


@sampled(16)
@pytest.mark.parametrize("row", HOSTILE, ids=str)
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("missing", ["centre", "drop", "indicator"])
def test_the_exact_cost_of_one_row(row: dict[str, float], joint: bool, missing: Any) -> None:
    """Whatever was released, the vectors that got noise are no further apart than the plan says."""
    declared = Schema({"x": Number(), "z": Number(), "y": Number()}, target="y", missing=missing)
    preparation = TablePreparation(declared, BUDGET, True, joint)
    without = table(3000)
    more = {name: np.append(values, row[name]) for name, values in without.items()}
    for seed in (1, 2):
        one = Scripted(seed=seed)
        found = preparation.certify(opened(without), one)
        other = Scripted(answers=one.said)
        assert preparation.certify(opened(more), other) == found
        assert len(one.seen) == len(other.seen) >= 3
        assert one.distance_squared(other) <= preparation.cost.mu_squared
    assert found is not None
    assert found["y"].flag is not Flag.NOT_FOUND


class Shown(Scripted):
    """A scripted source that also writes down which labels get noise, and what their counts are."""

    def keys_above(self, counts: Any, law: Any, threshold: int) -> list[tuple[Any, int]]:
        keys, numbers = unwrap(counts)
        self.labels = dict(zip([key for (key,) in keys], map(int, numbers), strict=True))
        self.sigma = law.sigma
        answer = (
            self.answers[len(self.said)] if self.answers is not None else super().keys_above(counts, law, threshold)
        )
        self.said.append(answer)
        return list(answer)


@sampled(2)
@pytest.mark.parametrize("label", ["yes", "never", None, "", 0.5, math.nan], ids=str)
def test_the_exact_cost_of_one_label(label: Any) -> None:
    """A row moves the count of its label, or of rows without one, and is dropped if its label is not shown."""
    preparation = TablePreparation(Schema({"x": Number(), "y": Category()}, target="y"), BUDGET, True, False)
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=2000), [("no", "yes")[row % 2] for row in range(2000)]
    one = Shown(seed=1)
    found = preparation.certify(opened({"x": x, "y": pd.Series(y, dtype=object)}), one)
    assert found is not None
    assert found["y"].values == ("no", "yes")  # type: ignore[union-attr]
    other = Shown(answers=one.said)
    more = {"x": np.append(x, 0.0), "y": pd.Series([*y, label], dtype=object)}
    assert preparation.certify(opened(more), other) == found
    moved = {name: other.labels.get(name, 0) - one.labels.get(name, 0) for name in {*one.labels, *other.labels}}
    known = Fraction(sum(value**2 for name, value in moved.items() if name in one.labels)) / one.sigma**2
    assert one.distance_squared(other) + known <= preparation.cost.mu_squared
    assert sorted(moved.values()) in ([0, 0], [0, 1], [0, 0, 1])  # a label of its own is shown with the failure alone
    assert preparation.cost.delta == BUDGET.delta / 20


@pytest.mark.parametrize("levels", [0, 1, 2, 7, 100, 150])
def test_classes_are_the_most_frequent_levels(levels: int) -> None:
    declared = Schema({"x": Number(), "c": Category(), "y": Category()}, target="y")
    preparation = TablePreparation(declared, BUDGET, True, False)
    listed = tuple(range(levels))
    shares = tuple((1 + place) / (levels * (levels + 1)) for place in listed)
    seen: Any = {"x": FoundNumber(-2, 3, 0.5, 1.0), "c": FoundLevels(("a",), (1.0,)), "y": FoundLevels(listed, shares)}
    found = preparation._aimed(FoundBounds(declared, preparation._kept(seen), 1.0, 1.0))
    if levels < 2:
        assert found is None
        return
    assert found is not None
    assert found.declared.columns["y"] == Category(listed[-100:])
    assert found["c"].values == ("a",)  # type: ignore[union-attr]
    text = FoundLevels((10, 2, "x"), (0.3, 0.3, 0.3))
    mixed = preparation._aimed(FoundBounds(declared, {**seen, "y": text}, 1.0, 1.0))
    assert mixed is not None
    assert mixed.declared.columns["y"] == Category(("10", "2", "x"))


@pytest.mark.parametrize(
    ("column", "most"),
    [
        (FoundNumber(0, 40, 3, 2, hull=(0, 9.3)), 10),
        (FoundNumber(0, 1e-7, 0, 1e-8, hull=(0, 1e-8)), 1),
        (FoundNumber(0, 1e12, 3, 2, hull=(0, 1e12)), 10**6),
    ],
)
def test_the_largest_count(column: FoundNumber, most: int) -> None:
    declared = Schema({"x": Boolean(), "y": Number(lower=0)}, target="y")
    preparation = TablePreparation(declared, BUDGET, True, False, counts=True)
    found = preparation._aimed(FoundBounds(declared, {"y": column}, 1.0, 1.0))
    assert found is not None
    assert found.declared.columns["y"] == Number(0, most)
    assert preparation.layout(found).target_units == (most / 2, most / 2)


def test_a_column_called_none_is_no_target() -> None:
    preparation = TablePreparation(Schema({"None": Number(), "x": Number()}), BUDGET, standardised=False, alone=True)
    found = preparation.certify(opened({"None": [math.nan] * 3000, "x": np.arange(3000.0)}), Simulation(1))
    assert found is not None
    assert found["None"].flag is Flag.NOT_FOUND


@pytest.mark.parametrize("categories", [0, 2])
def test_what_the_looks_cost(categories: int) -> None:
    columns: dict[str, Any] = {"x": Number(), "y": Number(), **{f"c{k}": Category() for k in range(categories)}}
    preparation = TablePreparation(Schema(columns, target="y"), BUDGET)
    cost = sum((step.cost for step in preparation.steps()), Cost())
    assert cost == preparation.cost
    assert preparation.cost.mu_squared < Fraction(3, 10) * preparation._square
    assert preparation.cost.delta == (BUDGET.delta / 20 if categories else 0)
    assert preparation.rows_needed > 50


def test_a_target_that_is_not_found_ends_it() -> None:
    declared = Schema({"x": Number(), "z": Number(), "y": Number()}, target="y")
    noise = Scripted(seed=1)
    assert TablePreparation(declared, BUDGET).certify(opened(table(2)), noise) is None
    assert len(noise.seen) <= 4  # the lengths are not looked at


def test_a_table_of_booleans_has_nothing_to_be_found_but_its_lengths() -> None:
    declared = Schema({"b": Boolean(), "y": Number(0, 1)}, target="y")
    preparation = TablePreparation(declared, BUDGET)
    assert [step.id for step in preparation.steps()] == ["length"]
    data = opened({"b": [True, False] * 500, "y": [1.0, 0.0] * 500})
    found = preparation.certify(data, Simulation(1))
    assert found is not None
    assert found.rows == pytest.approx(1000, abs=300)
    assert found.radius == pytest.approx(math.sqrt(2), rel=0.2)


@pytest.mark.parametrize(("constant", "joint", "left"), [(True, True, True), (True, False, True), (False, True, False)])
def test_with_no_entry_there_is_nothing_to_learn_from(constant: bool, joint: bool, left: bool) -> None:
    """A constant is enough for a fit."""
    declared = Schema({"name": Category(), "y": Number(0, 1)}, target="y", intercept=constant)
    data = opened({"name": [f"person {k}" for k in range(900)], "y": [0.5] * 900})
    found = TablePreparation(declared, BUDGET, constant, joint).certify(data, Simulation(1))
    assert (found is not None) is left
    if found is not None:
        assert found["name"] == FoundLevels((), (), Flag.NOT_FOUND, 0.0)


def test_the_most_frequent_levels_are_kept() -> None:
    seen: dict[str, Any] = {
        "city": FoundLevels(("a", "b", "c"), (0.1, 0.4, 0.2), missing=0.1),
        "age": FoundNumber(0, 1, 0.5, 1),
        "shop": FoundLevels((1, 2), (0.2, 0.9)),
    }
    kept = most_frequent(seen, 3)
    assert kept["city"] == FoundLevels(("b", "c"), (0.4, 0.2), missing=0.1)
    assert kept["shop"] == FoundLevels((2,), (0.9,))
    assert kept["age"] == seen["age"]
    assert list(kept) == list(seen)
    assert most_frequent(seen, 5) == seen
    assert all(not column.values for column in most_frequent(seen, 0).values() if isinstance(column, FoundLevels))


def test_levels_beyond_the_cap_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation_module, "_MOST_LEVELS", 3)
    cities = [name for name, count in zip("abcde", (900, 3000, 2000, 500, 1500), strict=True) for _ in range(count)]
    frame = pd.DataFrame({"city": cities, "y": np.linspace(0, 1, len(cities))})
    schema = Schema({"city": Category(), "y": Number(0, 1)}, target="y")
    model = LinearRegression(epsilon=1, delta=1e-6, schema=schema, noise=Simulation(1)).fit(frame)
    city = model.bounds_["city"]
    assert isinstance(city, FoundLevels)
    assert city.values == ("b", "c", "e")
    assert model.coef_names_ == ("city=c", "city=e", "city=(none)")  # relative to b


@pytest.mark.slow
def test_entries_are_counted_in_public() -> None:
    """Whatever is found, a row has no more entries than its grid can hold."""
    wide = {f"x{k}": Number() for k in range(5000)}
    preparation = TablePreparation(Schema({**wide, "c": Category(), "y": Number()}, target="y"), BUDGET)
    assert preparation.most_levels == 1024
    with pytest.raises(ValueError, match='leave out missing="indicator"'):
        TablePreparation(Schema({**wide, "c": Category(), "y": Number()}, target="y", missing="indicator"), BUDGET)
    wider = {f"x{k}": Number() for k in range(8000)}
    rest = TablePreparation(Schema({**wider, "c": Category(), "y": Number()}, target="y"), BUDGET).most_levels
    assert rest == 8192 - 8001
    most = found_of(Schema({**wider, "c": Category(), "y": Number()}, target="y"), rest, 0.0, 1.0, 1.0)
    assert len(TablePreparation(most.declared, BUDGET).layout(most).features) == 8192


@pytest.mark.parametrize(
    ("budget", "message"), [(Budget(1, 0), "delta > 0"), (Budget(1, 1e-6, "replace"), "add_remove")]
)
def test_budgets_that_no_theorem_speaks_of(budget: Budget, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TablePreparation(Schema({"x": Number(), "y": Number()}, target="y"), budget)


def centred(columns: int, rows: int, seed: int) -> Any:
    """Normal columns around 0, and a target that is their mean."""
    X = np.random.default_rng(seed).normal(size=(rows, columns))
    return {**{f"x{k}": column for k, column in enumerate(X.T)}, "y": X.mean(axis=1)}


def share_found(preparation: TablePreparation, rows: int) -> float:
    """Of the columns; 0 where the target was not found."""
    shares = []
    for seed in range(3):
        data = opened(centred(len(preparation.declared.columns) - 1, rows, seed))
        found = preparation.certify(data, Simulation(seed))
        flags = [] if found is None else [column.flag is not Flag.NOT_FOUND for column in found.columns.values()]
        shares.append(sum(flags) / len(preparation.declared.columns))
    return sum(shares) / len(shares)


@pytest.mark.slow
def test_forecasts_of_wide_tables_come_true() -> None:
    """So many rows find nearly all columns, fewer find some, and still fewer not even the target."""
    declared = Schema({**{f"x{k}": Number() for k in range(60)}, "y": Number()}, target="y")
    preparation = TablePreparation(declared, BUDGET)
    enough, target = preparation.enough_rows, preparation.looks.rows_around_zero(heavy=True)
    assert 2000 < enough < 2600
    assert preparation.shortfall(None) == preparation.shortfall(enough) == ()
    (fewer,), (least,) = preparation.shortfall(enough - 1), preparation.shortfall(target - 1)
    assert (fewer.code, least.code) == ("columns-not-found", "target-not-found")
    assert fewer.params == {"rows": enough - 1, "needed": enough}
    assert share_found(preparation, enough) > 0.75
    assert 0 < share_found(preparation, round(0.7 * enough)) < 0.6
    assert share_found(preparation, round(0.6 * target)) == 0


@pytest.mark.slow
def test_a_guess_of_few_rows_gives_looks_a_larger_share() -> None:
    declared = Schema({**{f"x{k}": Number() for k in range(60)}, "y": Number()}, target="y")
    usual, few = (TablePreparation(declared, BUDGET, rows=rows) for rows in (None, 1700))
    assert usual.cost.mu_squared < few.cost.mu_squared < Fraction(52, 100) * few._square
    assert few.enough_rows <= 1700 < usual.enough_rows
    assert share_found(few, 1700) > 0.75
    model = LinearRegression(epsilon=1, delta=1e-6, schema=declared, rows=1700)
    assert model.plan().cost.fits(BUDGET)


def test_a_guess_of_many_rows_gives_looks_a_smaller_share_that_tells_as_much() -> None:
    """A share goes down with the square of the rows, so that noise never is a larger part of them; and not to 0."""
    declared = Schema({**{f"x{k}": Number() for k in range(10)}, "y": Number()}, target="y")
    usual = TablePreparation(declared, BUDGET)
    guesses = [usual.enough_rows * times for times in (1, 4, 5, 8, 10**4)]
    told = [TablePreparation(declared, BUDGET, rows=rows) for rows in guesses]
    costs = [one.cost.mu_squared for one in told]
    assert costs[0] == costs[1] == usual.cost.mu_squared > costs[2] > costs[3] == costs[4] > usual.cost.mu_squared / 3
    noise = [float(one.looks.law(0, 11).sigma) / rows for one, rows in zip(told, guesses, strict=True)]
    assert noise == sorted(noise, reverse=True) or noise[2] <= noise[1] * (1 + 1e-9)
    assert all(one.shortfall(rows) == () for one, rows in zip(told, guesses, strict=True))


@pytest.mark.parametrize("rows", [50, 100_000])
@pytest.mark.parametrize("joint", [True, False])
def test_the_exact_cost_of_one_row_where_few_or_many_are_expected(joint: bool, rows: int) -> None:
    declared = Schema({"x": Number(), "z": Number(), "y": Number()}, target="y")
    preparation = TablePreparation(declared, BUDGET, True, joint, rows=rows)
    without = table(3000)
    more = {name: np.append(values, HOSTILE[1][name]) for name, values in without.items()}
    one = Scripted(seed=3)
    found = preparation.certify(opened(without), one)
    other = Scripted(answers=one.said)
    assert preparation.certify(opened(more), other) == found
    assert one.distance_squared(other) <= preparation.cost.mu_squared


def as_features(joint: bool, columns: dict[str, FoundNumber], **public: Number) -> dict[str, Any]:
    declared = Schema({name: public.get(name, Number()) for name in columns}, target="y")
    preparation = TablePreparation(declared, BUDGET, joint=joint)
    return preparation._as_features(FoundBounds(declared, columns, 1000.0, 1.0))


@pytest.mark.parametrize("joint", [True, False])
def test_how_features_are_read(joint: bool) -> None:
    rare = FoundNumber(-1, 4, 0.02, 0.1, Flag.FOUND, 0.0, (0.0, 1.0))
    heap = FoundNumber(-1, 1, 1e-9, 1e-8, Flag.CONSTANT, 0.0, (-2e-8, 2e-8))
    years = FoundNumber(1990, 2010, 2000.25, 0.5, Flag.CONSTANT, 0.0, (1999.5, 2001.0))
    zeros = FoundNumber(-1, 1, 1e-7, 1e-7, Flag.FOUND, 0.0, (0.0, 2e-7))
    both = FoundNumber(-9, 9, 0.0, 0.2, Flag.FOUND, 0.0, (-0.5, 0.5))
    debts = FoundNumber(-9, 9, -1.0, 0.2, Flag.FOUND, 0.0, (-2.0, 0.0))
    columns = {"rare": rare, "heap": heap, "years": years, "known": rare, "zeros": zeros, "both": both, "debts": debts}
    columns["y"] = rare
    read = as_features(joint, columns, known=Number(lower=0))
    wide = 4.0 if joint else 1.0  # long rows of a line are shortened together with their targets
    assert (read["both"].lower, read["both"].upper) == (-0.5 - wide, 0.5 + wide)
    assert (read["rare"].lower, read["rare"].upper) == (-0.25, 1 + wide), "codes such as -999 are no numbers"
    assert (read["debts"].lower, read["debts"].upper) == (-2 - 2 * wide, 0.5)
    assert (read["zeros"].lower, read["zeros"].upper) == (-2e-7, 4e-7), "nothing is known of other values"
    assert read["rare"].scale == (0.1 if joint else 0.98 / 3)  # rows of labels are shortened without them
    assert (read["heap"].centre, read["heap"].upper) == (0.0, 3 * 1e-8)  # so that what is not 0 has an entry of 3
    assert (read["years"].lower, read["years"].centre, read["years"].upper) == (1998.75, 2000.25, 2001.75)
    assert (read["known"].lower, read["known"].upper) == (0.0, 1 + wide)  # public ends win
    assert read["y"] == rare


def answers(centre: float, scale: float = 1.0, shift: float = 0.0, kind: Number | None = None) -> tuple[float, float]:
    declared = Schema({"x": Number(), "y": kind or Number()}, target="y")
    preparation = TablePreparation(declared, BUDGET)
    hull = (shift, 10.0 + shift)
    target = FoundNumber(-25, 25, centre + shift, scale, Flag.FOUND, 0.0, hull)
    ends = preparation_module._answers(preparation.looks, FoundBounds(declared, {"x": target, "y": target}, 1e9, 1.0))
    assert ends is not None
    return ends


def test_predictions_reach_further_on_the_longer_side_of_a_target() -> None:
    assert answers(5.0) == pytest.approx((0.0, 10.0), abs=1e-3)
    assert answers(2.0) == pytest.approx((0.0, 16.0), abs=1e-3)
    assert answers(9.0) == pytest.approx((-8.0, 10.0), abs=1e-3)


def test_predictions_do_not_pass_public_ends_nor_a_wall_at_zero() -> None:
    assert answers(2.0, scale=1.0)[0] < 0, "few targets are near 0"
    assert answers(2.0, scale=2.0)[0] == 0
    assert answers(2.0, scale=2.0, shift=1.0)[0] < 1, "what was seen does not end at 0"
    assert answers(8.0, scale=2.0, shift=-10.0)[1] == 0
    assert answers(9.0, kind=Number(lower=-3)) == pytest.approx((-3.0, 10.0), abs=1e-3)
    assert answers(2.0, scale=2.0, kind=Number(lower=-3))[0] < 0, "a public end is no wall at 0"
    assert answers(2.0, kind=Number(upper=12)) == pytest.approx((0.0, 12.0), abs=1e-3)


def test_features_between_public_bounds_are_looked_at_beside_open_ones() -> None:
    """How far their values are apart is not public, and bounds may be far too wide."""
    columns: dict[str, Any] = {
        "x": Number(-1000, 1000),
        "s": Number(0, 1),
        "d": Date("2000-01-01", "2030-01-01"),
        "y": Number(0, 9),
    }
    closed = Schema({**columns, "c": Category(["u", "v"])}, target="y")
    assert TablePreparation(closed, BUDGET)._looked_at == ()
    declared = Schema({**columns, "t": Number(1e9, 1e9 + 1), "z": Number()}, target="y")
    preparation = TablePreparation(declared, BUDGET)
    assert preparation.looks.numbers == ("x", "s", "d", "z")  # not the target, nor where floats are too coarse
    assert preparation.looks.known["x"] == (-1000.0, 1000.0)
    assert TablePreparation(declared, BUDGET, standardised=False).looks.numbers == ("z",)


def test_what_is_found_between_public_bounds_stays_between_them() -> None:
    rng = np.random.default_rng(5)
    held = {"x": rng.normal(3, 2, 4000), "s": rng.normal(0, 1, 4000), "y": rng.normal(size=4000)}
    declared = Schema({"x": Number(0, 1000), "s": Number(), "y": Number()}, target="y")
    found = TablePreparation(declared, BUDGET).certify(opened(held), Simulation(1))
    assert found is not None
    x = found["x"]
    assert isinstance(x, FoundNumber)
    assert x.flag is Flag.FOUND
    assert 0 <= x.lower < x.upper <= 1000
    assert x.scale == pytest.approx(2, rel=0.3)
    few = TablePreparation(declared, BUDGET).certify(opened({**held, "x": np.full(4000, np.nan)}), Simulation(1))
    assert few is not None
    assert few["x"].flag is Flag.PUBLIC  # it was not found: as its bounds say
    assert few["s"].flag is Flag.FOUND


@sampled(4)
@pytest.mark.parametrize("row", HOSTILE[:4], ids=str)
def test_the_exact_cost_of_one_row_between_public_bounds(row: dict[str, float]) -> None:
    """As above, where a column that is looked at has public bounds."""
    declared = Schema({"x": Number(-50, 500), "z": Number(), "y": Number()}, target="y")
    preparation = TablePreparation(declared, BUDGET)
    without = table(3000)
    more = {name: np.append(values, row[name]) for name, values in without.items()}
    one = Scripted(seed=1)
    found = preparation.certify(opened(without), one)
    other = Scripted(answers=one.said)
    assert found is not None
    assert preparation.certify(opened(more), other) == found
    assert one.distance_squared(other) <= preparation.cost.mu_squared
