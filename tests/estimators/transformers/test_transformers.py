"""Transformers that pay: what they find, what comes out, in which company, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

import snugdp
from snugdp import (
    Boolean,
    Category,
    Date,
    LinearRegression,
    MemoryLedger,
    Number,
    OneHotEncoder,
    Prepare,
    Schema,
    Simulation,
    StandardScaler,
    check_pipeline,
)
from snugdp.tables.found import Flag, FoundBounds
from snugdp.tables.layouts.standardised import StandardisedLayout
from tests.effort import sampled
from tests.estimators.checks import no_warnings

N = 6_000
RNG = np.random.default_rng(22)
TABLE = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 5 == 0, np.nan, RNG.normal(40, 10, N)),
        "city": RNG.choice(["Oslo", "Rome"], N),
        "paid": RNG.random(N) < 0.3,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 700, N), unit="D"),
        "customer_id": range(N),
        "comment": ["…"] * N,
    }
)
NUMBERS = RNG.normal([5, -300], [2, 50], (N, 2))
Y = NUMBERS @ [3.0, 0.1] + RNG.normal(0, 1, N)


def test_a_table_of_all_kinds() -> None:
    model = Prepare(noise=Simulation(1)).fit(TABLE)
    assert model.get_feature_names_out().tolist() == ["age", "city=Oslo", "city=Rome", "paid", "since"]
    assert model.left_out_.keys() == {"customer_id", "comment"}
    found: Any = model.bounds_
    out = model.transform(TABLE)
    assert out.shape == (N, 5)
    assert found["age"].missing == pytest.approx(0.2, abs=0.05)
    age = TABLE["age"].to_numpy()
    clipped = (np.clip(age, found["age"].lower, found["age"].upper) - found["age"].centre) / found["age"].scale
    assert np.array_equal(out[:, 0], np.nan_to_num(clipped))
    assert np.array_equal(out[:, 2] > 0, TABLE["city"] == "Rome")
    assert np.array_equal(out[:, 3] > 0, TABLE["paid"])  # no type of a table in memory counts: 0 and 1 are numbers
    assert abs(out[:, 4].mean()) < 0.2


def test_rows_are_those_of_a_fit_bit_by_bit() -> None:
    model = Prepare(noise=Simulation(1), missing="indicator").fit(TABLE)
    layout = StandardisedLayout(model.bounds_, constant=False)
    frame = pl.from_pandas(TABLE)
    (rows,) = layout.predictors(snugdp.tables.sources.frames.nw.from_native(frame, eager_only=True))
    assert np.allclose(model.transform(frame), rows * model.bounds_.radius, rtol=1e-14, atol=0)
    assert np.array_equal(model.transform(frame), model.transform(TABLE))
    assert "age is missing" in model.get_feature_names_out()


def test_no_row_is_longer_than_the_public_norm() -> None:
    schema = Schema(
        {"age": Number(), "city": Category(), "paid": Boolean(), "since": Date(parts=["month", "weekday"])},
        missing={"city": "indicator", "since": "indicator"},
    )
    model = Prepare(schema=schema, noise=Simulation(2)).fit(TABLE)
    far = TABLE.assign(age=1e300, since=pd.Timestamp("2200-01-01"))
    lengths = np.linalg.norm(np.concatenate([model.transform(rows) for rows in (TABLE, far)]), axis=1)
    assert lengths.max() <= model.x_norm_ <= 1.5 * lengths.max()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_come_out_where_they_are_asked_for(kind: Any) -> None:
    model = Prepare(noise=Simulation(1)).set_output(transform=kind).fit(TABLE)
    out = model.transform(TABLE)
    assert list(out.columns) == model.get_feature_names_out().tolist()
    assert type(out).__module__.startswith(kind)


def test_inside_a_column_transformer() -> None:
    both = make_column_transformer(
        (StandardScaler(noise=Simulation(1)), ["age"]), (OneHotEncoder(noise=Simulation(2)), ["city", "paid"])
    )
    out = both.set_output(transform="pandas").fit_transform(TABLE)
    assert list(out.columns) == [
        "standardscaler__age",
        "onehotencoder__city=Oslo",
        "onehotencoder__city=Rome",
        "onehotencoder__paid=0",
        "onehotencoder__paid=1",
    ]


def test_in_front_of_a_private_model_nothing_is_warned_of() -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    pipeline = make_pipeline(
        Prepare(0.2, 1e-7, ledger=ledger), LinearRegression(0.8, 1e-7, ledger=ledger, y_bound=(-100, 100))
    )
    with no_warnings():
        assert check_pipeline(pipeline) == ()
        pipeline.fit(NUMBERS, Y)
    assert ledger.spent == pipeline[0].cost_ + pipeline[1].cost_


def test_a_step_that_does_not_pay_in_front_of_one_that_does_is_warned_of() -> None:
    from sklearn.preprocessing import MinMaxScaler

    with pytest.warns(snugdp.PrivacyWarning, match="minmaxscaler"):
        make_pipeline(MinMaxScaler(), Prepare(noise=Simulation(1))).fit(NUMBERS)


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("as_frame", [False, True])
def test_a_model_takes_what_was_found_and_its_own_target(as_frame: bool, tmp_path: Any) -> None:
    X: Any = pd.DataFrame(NUMBERS, columns=["a", "y"]) if as_frame else NUMBERS
    found = Prepare(noise=Simulation(1)).fit(X).bounds_
    model = LinearRegression(bounds=found, y_bound=(-60, 40), noise=Simulation(2)).fit(X, Y)
    assert model.score(X, Y) > 0.9
    target: Any = model.bounds_[str(model.bounds_.declared.target)]
    assert target.upper == 40
    assert model.cost_ == LinearRegression(bounds=found, y_bound=(-60, 40)).plan().cost
    snugdp.save(model, tmp_path / "model.json")
    assert np.array_equal(snugdp.load(tmp_path / "model.json").predict(X), model.predict(X))
    with pytest.raises(ValueError, match="say nothing of the target"):
        LinearRegression(bounds=found).fit(X, Y)
    with pytest.raises(ValueError, match="requires y"):
        LinearRegression(bounds=found, y_bound=1).fit(X)


def test_labels_with_bounds_of_another_target() -> None:
    found = Prepare(noise=Simulation(1)).fit(NUMBERS).bounds_
    labels = (np.median(Y) < Y).astype(int)
    model = snugdp.LogisticRegression(bounds=found, classes=[0, 1], noise=Simulation(2)).fit(NUMBERS, labels)
    assert model.score(NUMBERS, labels) > 0.8


def test_what_is_known_costs_nothing() -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    found = Prepare(ledger=ledger, epsilon=0.5, delta=5e-7).fit(NUMBERS).bounds_
    spent = ledger.spent
    again = Prepare(bounds=found, ledger=ledger).fit(NUMBERS)
    listed = OneHotEncoder(delta=0, categories=[["Rome", "Oslo"]], ledger=ledger).fit(TABLE[["city"]])
    public = Prepare(schema=Schema({"age": Number(0, 120), "y": Boolean()}, target="y"), ledger=ledger).fit(TABLE)
    assert ledger.spent == spent
    assert again.bounds_ == found
    assert isinstance(public.bounds_, FoundBounds)
    assert listed.transform([["Oslo"], ["Paris"], [None]]).tolist() == [[0, 1], [0, 0], [0, 0]]
    assert public.transform(TABLE[["age"]]).shape == (N, 1)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("X", [NUMBERS, TABLE])
def test_a_fit_spends_the_budget_on_looks_alone(X: Any, relation: str) -> None:
    model = Prepare(1, 1e-6, noise=Simulation(1), neighbours=relation).fit(X)
    assert model.cost_.neighbours.value == relation
    assert model.cost_.fits(snugdp.Budget(1, 1e-6, relation))
    assert not model.cost_.fits(snugdp.Budget("0.995", 1e-6, relation))
    assert "preparation/1" in str(model.plan_)


def test_a_scaler_has_what_scikit_learns_has() -> None:
    model = StandardScaler(noise=Simulation(1)).fit(NUMBERS)
    assert model.mean_ == pytest.approx([5, -300], abs=5)
    assert model.scale_ == pytest.approx([2, 50], rel=0.2)
    assert np.array_equal(model.var_, model.scale_**2)
    assert model.n_samples_seen_ == pytest.approx(N, rel=0.1)
    assert model.inverse_transform(model.transform(NUMBERS)) == pytest.approx(NUMBERS)
    assert model.get_feature_names_out(["u", "v"]).tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="2 columns"):
        model.inverse_transform([[1.0]])


@pytest.mark.parametrize(
    "rows",
    [
        [["Oslo", 1], ["Rome", 2]] * 300,
        np.array([["Oslo", 1], ["Rome", 2]] * 300, dtype=object),
        np.array([["Oslo", 1], ["Rome", 2]] * 300),
        pd.DataFrame({"x0": ["Oslo", "Rome"] * 300, "x1": [1, 2] * 300}),
        pl.DataFrame({"x0": ["Oslo", "Rome"] * 300, "x1": [1.0, 2.0] * 300}),
    ],
)
def test_labels_are_the_same_in_every_container(rows: Any) -> None:
    model = OneHotEncoder(noise=Simulation(3)).fit(rows)
    assert [levels.tolist() for levels in model.categories_] == [["Oslo", "Rome"], [1, 2]]
    assert model.transform(rows)[:2].tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]
    assert model.get_feature_names_out().tolist() == ["x0=Oslo", "x0=Rome", "x1=1", "x1=2"]


def test_a_rare_level_stays_unknown() -> None:
    rows = [["Oslo"]] * 500 + [["a hamlet"]]
    model = OneHotEncoder().fit(rows)
    assert [levels.tolist() for levels in model.categories_] == [["Oslo"]]
    assert model.transform([["a hamlet"]]).tolist() == [[0.0]]


def test_only_some_levels_are_listed() -> None:
    model = OneHotEncoder(categories=[None, ["b", "a"]], noise=Simulation(1)).fit([["u", "a"]] * 500)
    assert [levels.tolist() for levels in model.categories_] == [["u"], ["b", "a"]]


@pytest.mark.parametrize(
    ("model", "X", "error", "words"),
    [
        (Prepare(missing="drop"), TABLE, ValueError, "keeps every row"),
        (Prepare(schema=Schema({"age": Number()}, missing="drop")), TABLE, ValueError, "keeps every row"),
        (Prepare(delta=0), TABLE, ValueError, "delta > 0"),
        (Prepare(bounds=(0, 1)), TABLE, TypeError, "bounds must be"),  # type: ignore[arg-type]
        (Prepare(schema={}), TABLE, TypeError, "snugdp.Schema"),  # type: ignore[arg-type]
        (StandardScaler(), TABLE[["age", "since"]], TypeError, "since"),
        (StandardScaler(schema=Schema({"city": Category()})), TABLE, TypeError, "for numbers"),
        (OneHotEncoder(schema=Schema({"age": Number()})), TABLE, TypeError, "for categories"),
        (OneHotEncoder(categories="all"), TABLE, ValueError, "auto"),
        (OneHotEncoder(categories=[["a"]]), [["a", "b"]], ValueError, "every column"),
        (OneHotEncoder(categories=[["a"], ["b"]]), [["a"]], ValueError, "every column"),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(model: Any, X: Any, error: Any, words: str) -> None:
    ledger = MemoryLedger(9, 1e-5, composition="tight")
    with pytest.raises(error, match=words):
        model.set_params(ledger=ledger).fit(X)
    assert ledger.spent == snugdp.Cost()


def test_a_column_of_which_nothing_can_be_told_is_not_found() -> None:
    model = Prepare().fit(pd.DataFrame({"a": pd.Series([None] * 9, dtype=object)}))
    assert model.receipt_ is not None
    assert model.bounds_["a"].flag is Flag.NOT_FOUND
    assert model.transform(pd.DataFrame({"a": [1]})).tolist() == [[0.0]]


def test_rows_of_another_shape_are_refused() -> None:
    model = Prepare(noise=Simulation(1)).fit(TABLE)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(TABLE.drop(columns="city"))
    with pytest.raises(TypeError, match="named columns"):
        Prepare(noise=Simulation(1)).fit(pl.from_pandas(TABLE)).transform(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        model.get_feature_names_out(["a"] * 6)
    with pytest.raises(ValueError, match="length equal"):
        StandardScaler(noise=Simulation(1)).fit(NUMBERS).get_feature_names_out(["a"])
