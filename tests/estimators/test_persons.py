"""Estimators that protect persons: identifiers are no feature, one table for all passes, files and ledgers say so."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import snugdp
from snugdp import Budget, MemoryLedger, Simulation, Unit, UnitMismatchError
from snugdp.estimators.files.model_file import as_dict, from_dict
from snugdp.estimators.persons import _column
from snugdp.noise.recording import Witness, private_inputs
from snugdp.report.model import render
from snugdp.tables.persons.images import person_image
from tests.effort import often, repeated, sampled

PERSONS = 300
WHO = np.repeat(np.arange(PERSONS), 1 + np.arange(PERSONS) % 4)
RNG = np.random.default_rng(7)
X = RNG.uniform(-0.5, 0.5, (len(WHO), 2))
Y = X[:, 0] - 0.5 * X[:, 1] + RNG.normal(0, 0.05, len(WHO))
SCHEMA = snugdp.Schema({"a": snugdp.Number(-1, 1), "b": snugdp.Number(-1, 1), "y": snugdp.Number(-2, 2)}, "y")
QUERIES = pl.DataFrame({"a": X[:20, 0], "b": X[:20, 1]})


def table() -> pl.DataFrame:
    return pl.DataFrame({"a": X[:, 0], "who": [f"p{who}" for who in WHO], "b": X[:, 1], "y": Y})


def fitted(model: Any, *given: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*given, **more)


MODELS: dict[str, Callable[..., Any]] = {
    "linear": lambda **how: snugdp.LinearRegression(epsilon=4, x_norm=1, y_bound=1, **how),
    "adassp": lambda **how: snugdp.LinearRegression(epsilon=4, x_norm=1, y_bound=1, method="adassp", **how),
    "logistic": lambda **how: snugdp.LogisticRegression(epsilon=4, x_norm=1, classes=[False, True], **how),
    "sparse": lambda **how: snugdp.SparseLinearRegression(1, epsilon=4, y_bound=1, method="adassp", **how),
    "pca": lambda **how: snugdp.PCA(1, epsilon=4, x_norm=1, **how),
    "open": lambda **how: snugdp.LinearRegression(epsilon=8, **how),
    "scaler": lambda **how: snugdp.StandardScaler(epsilon=4, **how),
}


WEIGHTED = ("linear", "logistic", "open")


def target(name: str) -> Any:
    return Y > 0 if name == "logistic" else Y


@pytest.mark.slow
@sampled(9)
@pytest.mark.parametrize("name", MODELS)
def test_arrays_with_groups_and_tables_with_a_column_are_the_same(name: str) -> None:
    rehearsed = {"noise": Simulation(1)}
    arrays = fitted(MODELS[name](**rehearsed), X, target(name), groups=[f"p{who}" for who in WHO])
    frame = table().drop("y")
    kinds = (frame, frame.to_pandas()) if name in ("adassp", "pca") else (frame,)
    tables = [fitted(MODELS[name](person="who", **rehearsed), rows, target(name)) for rows in kinds]
    for model in (arrays, *tables):
        assert model.plan_.unit is model.outcome_.unit is Unit.PERSON
        assert model.n_features_in_ == 2
    assert [list(model.feature_names_in_) for model in tables] == [["a", "b"]] * len(kinds)
    rows = fitted(MODELS[name](**rehearsed), X, target(name))
    assert rows.plan_.unit is Unit.ROW
    if name != "open":  # columns of a table have no declared type
        assert {model.cost_ for model in tables} == {arrays.cost_}
    assert (rows.cost_ == arrays.cost_) is (name not in WEIGHTED)
    assert ("all rows of each person are used" in str(arrays.plan_)) is (name in WEIGHTED)


def test_predictions_take_rows_with_and_without_the_identifiers() -> None:
    frame = table().drop("y")
    for name in ("linear", "sparse", "pca", "scaler"):
        model = fitted(MODELS[name](person="who", noise=Simulation(1)), frame, Y)
        ask = model.predict if hasattr(model, "predict") else model.transform
        assert np.array_equal(ask(frame), ask(frame.drop("who")))
        model = fitted(MODELS[name](person="who", noise=Simulation(1)), frame.to_pandas(), Y)
        ask = model.predict if hasattr(model, "predict") else model.transform
        assert np.array_equal(ask(frame.to_pandas()), ask(frame.drop("who").to_pandas()))


@sampled(3)
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_identifiers_of_an_undeclared_table_are_no_feature(tmp_path: Path, kind: str) -> None:
    """Named so that nothing but ``person`` says what it is: a number that would be a feature."""
    frame = table().with_columns(who=pl.Series(WHO)).rename({"who": "amount"})
    file = tmp_path / f"orders.{kind}"
    if kind != "frame":
        frame.write_csv(file) if kind == "csv" else frame.write_parquet(file)
    data: Any = frame if kind == "frame" else str(file)
    model = fitted(snugdp.LinearRegression(epsilon=20, person="amount", noise=Simulation(1)), data, "y")
    assert sorted(model.feature_names_in_) == ["a", "b"]
    prepared = fitted(snugdp.Prepare(epsilon=20, person="amount", noise=Simulation(1)), data)
    assert "amount" not in prepared.feature_names_in_


@pytest.mark.slow
def test_the_same_rows_of_each_person_wherever_the_table_is(tmp_path: Path) -> None:
    """Persons are spread over files, batches and row groups; sorted or not: one key, one table, one fit."""
    frame = table()[np.random.default_rng(2).permutation(len(WHO))]
    schema = snugdp.Schema(SCHEMA.columns, "y", person="who")
    (tmp_path / "parts").mkdir()
    for part in range(3):
        frame[part::3].write_parquet(tmp_path / "parts" / f"{part}.parquet", row_group_size=50)
    frame.write_csv(tmp_path / "whole.csv")
    tables = {
        "polars": frame,
        "lazy": frame.sort("who").lazy(),
        "pandas": frame.to_pandas(),
        "arrow": frame.to_arrow(),
        "dictionary": frame.with_columns(pl.col("who").cast(pl.Categorical)).to_arrow(),
        "csv": str(tmp_path / "whole.csv"),
        "files": str(tmp_path / "parts" / "*.parquet"),
    }
    how: dict[str, Any] = {"epsilon": 4, "schema": schema, "method": "adassp", "noise": Simulation(3)}
    for most in (1, 2):
        found = {name: fitted(snugdp.LinearRegression(max_rows=most, **how), data) for name, data in tables.items()}
        for model in found.values():
            assert np.array_equal(model.coef_, found["polars"].coef_)


@repeated
def test_looks_and_fit_read_the_same_rows() -> None:
    """One key for a release in stages: a second one would keep other rows."""
    for name in ("open", "linear", "sparse"):
        witness = Witness(3)
        model = MODELS[name](person="who", noise=witness)
        if name == "open":
            model.set_params(epsilon=often(9, 8))  # beyond 8 one row of each person, which is quick to calibrate
        fitted(model, table().drop("y"), Y)
        assert [lot.number("parts") for lot in witness.transcript().lots] == [1 << 32]


def test_a_person_with_all_rows_moves_no_other() -> None:
    """The kept rows of others are the same with and without somebody: sums of squares differ by those of one row."""
    frame, sums = table(), []
    for rows in (frame, frame.filter(pl.col("who") != "p299")):
        witness = Witness(5)
        fitted(snugdp.LinearRegression(epsilon=1e6, schema=SCHEMA, method="adassp", person="who", noise=witness), rows)
        found = [private_inputs(site)[0] for site in witness.transcript() if site.step == "gram"]
        sums.append(np.array(found[1], dtype=np.float64))  # the diagonal; a constant comes last
    moved = sums[0] - sums[1]
    assert sums[0][-1] == PERSONS * moved[-1]
    assert (moved >= 0).all()
    assert moved[:2].max() <= moved[-1]


LINE: dict[str, Any] = {"epsilon": 4, "x_norm": 1, "y_bound": 1}
FEW: dict[str, Any] = {"epsilon": 4, "y_bound": 1, "row_norm": 1}
LABELS: dict[str, Any] = {"epsilon": 4, "classes": [False, True]}
PUBLIC = (X[:30], Y[:30])
SEVERAL: dict[str, Callable[..., Any]] = {
    "adassp": MODELS["adassp"],
    "pca": MODELS["pca"],
    "scaler": MODELS["scaler"],
    "sparse": MODELS["sparse"],
    "sufficient": lambda **how: snugdp.LinearRegression(**LINE, method="sufficient", **how),
    "descent": lambda **how: snugdp.LinearRegression(**LINE, method="descent", rows=600, **how),
    "output": lambda **how: snugdp.LinearRegression(**LINE, method="output", **how),
    "grid": lambda **how: snugdp.LinearRegression(
        **LINE, method="output", proposals={"ridge": [9, 90]}, validation=PUBLIC, **how
    ),
    "logistic output": lambda **how: snugdp.LogisticRegression(**LABELS, x_norm=1, method="output", **how),
    "logistic shaped": lambda **how: snugdp.LogisticRegression(
        **LABELS, x_norm=1, method="output", proposals={"shape": "hessian"}, **how
    ),
    "projector": lambda **how: snugdp.PCA("auto", epsilon=4, x_norm=1, method="projector", **how),
    "dual": lambda **how: snugdp.PCA(1, epsilon=4, x_norm=1, method="dual", **how),
    "gaussian": lambda **how: snugdp.SparseLinearRegression(1, **FEW, selection="gaussian", method="adassp", **how),
    "votes": lambda **how: snugdp.SparseLinearRegression(1, **FEW, selection="votes", method="output", **how),
    "labels": lambda **how: snugdp.SparseLogisticRegression(1, **LABELS, method="output", **how),
}


@sampled(5)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_rows_of_a_person(name: str) -> None:
    """A plan spends the budget of a person, and what is drawn is charged as it was planned."""
    model = SEVERAL[name](person="who", max_rows=3, noise=Simulation(1))
    plan = model.plan(n_features=2)
    assert plan.unit is Unit.PERSON
    assert plan.cost.fits(Budget(4, 1e-6))
    assert not plan.cost.fits(Budget("3.9", 1e-6))
    labels = Y > 0 if name.startswith(("logistic", "labels")) else Y
    fit = fitted(model, table().drop("y"), labels)
    assert fit.cost_ == plan.cost
    assert fit.plan_.unit is fit.outcome_.unit is Unit.PERSON
    assert str(fit.plan_).count("at most 3 rows of each person") == 1


@pytest.mark.slow
@sampled(9)
@pytest.mark.parametrize("name", WEIGHTED)
def test_perturbed_objectives_use_all_rows(name: str) -> None:
    """With weights: the plan says how much they may weigh, and so does what was released."""
    frame = table().drop("y")
    for most in (2, "private"):
        model = MODELS[name](person="who", max_rows=most, noise=Simulation(1))
        plan = model.plan(n_features=2)
        fit = fitted(model, frame, target(name))
        assert fit.cost_ == fit.plan_.cost
        assert (fit.cost_ == plan.cost) is (name != "open")  # columns of a table have no declared type
        assert fit.outcome_.unit is plan.unit is Unit.PERSON
        assert plan.cost.fits(Budget(model.epsilon, 1e-6))
        assert not plan.cost.fits(Budget(0.9 * model.epsilon, 1e-6))
        if most == "private":
            assert fit.details_["max_rows"] == fit.certificate_.weight in (1, 2, 4, 8, 16)
            assert "one of 1, 2, 4, 8, 16" in str(plan)
        else:
            assert fit.details_["max_rows"] == 2
            assert "together they count as at most 2 rows" in str(plan)


@pytest.mark.slow
def test_a_weight_that_was_found_is_kept_in_files() -> None:
    ledger = MemoryLedger(4, 1e-6, unit="person", composition="tight")
    model = fitted(MODELS["linear"](person="who", max_rows="private", ledger=ledger), table().drop("y"), Y)
    assert ledger.spent == model.cost_
    again = from_dict(json.loads(json.dumps(as_dict(model))))
    assert (again.max_rows, again.certificate_, again.plan_) == ("private", model.certificate_, model.plan_)
    frame = table().select("a", "b")
    assert np.array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match='is for method="auto"'):
        snugdp.LinearRegression(person="who", max_rows="private", method="adassp", x_norm=1, y_bound=1).plan(2)


@pytest.mark.slow
@repeated
def test_a_very_large_epsilon_keeps_one_row() -> None:
    """Up to 8 all rows of a person count as one; beyond, one of them is kept: less ridge."""
    plans = [
        snugdp.LinearRegression(epsilon=epsilon, x_norm=1, y_bound=1, person="who").plan(2)
        for epsilon in (often(4, 8), 8.1)
    ]
    assert ["all rows" in str(plan) for plan in plans] == [True, False]
    assert all(plan.unit is Unit.PERSON for plan in plans)


def test_one_row_of_each_person_works_also_where_it_alone_is_proved() -> None:
    for proposal in ({"rule": "two_stage"}, {"loss": "huber"}, {"general": True}):
        model = MODELS["linear"](person="who", method="objective", proposals=proposal, noise=Simulation(1))
        fit = fitted(model, table().drop("y"), Y)
        assert fit.plan_.unit is Unit.PERSON
        assert "max_rows" not in fit.details_
        with pytest.raises(ValueError, match="for one row of each person"):
            model.set_params(max_rows=2).plan(n_features=2)


def test_several_rows_and_a_ledger() -> None:
    """Released, not rehearsed: the ledgers of runs know persons; groups beside an array are the same thing."""
    ledger = MemoryLedger(9, 1e-5, unit="person", composition="tight")
    for model in (SEVERAL["grid"](max_rows=2), SEVERAL["projector"](max_rows=2), SEVERAL["sparse"](max_rows=2)):
        before = ledger.spent
        fit = fitted(model.set_params(ledger=ledger, epsilon=2), X, Y, groups=WHO)
        assert fit.outcome_.unit is Unit.PERSON
        assert before + fit.cost_ == ledger.spent


def test_what_is_not_proved_of_several_rows_is_refused() -> None:
    make = partial(snugdp.LinearRegression, **LINE, method="posterior")
    with pytest.raises(ValueError, match="Use max_rows=1, which always works"):
        make(person="who", max_rows=2).plan(n_features=2)
    with pytest.raises(ValueError, match="Use max_rows=1, which always works"):
        fitted(make(person="who", max_rows=2), table().drop("y"), Y)


def test_a_schema_names_the_persons_and_a_file_keeps_it() -> None:
    schema = snugdp.Schema(SCHEMA.columns, "y", person="who")
    model = fitted(snugdp.LinearRegression(epsilon=4, schema=schema, method="adassp"), table())
    whole = json.loads(json.dumps(as_dict(model)))
    assert (whole["unit"], whole["schema"]["person"]) == ("person", "who")
    assert "with the rows of one person more or less in the table" in whole["guarantee"]["words"]
    again = from_dict(whole)
    assert again.plan_.unit is Unit.PERSON
    assert str(again.guarantee_) == str(model.guarantee_)
    assert "of persons, whatever the number of their rows" in str(again.guarantee_)
    assert np.array_equal(again.predict(table()), model.predict(table()))
    page = render(model)
    assert "one person more or less, whatever the number of rows" in page
    assert "if any one person, with all their rows, had not been in the table" in page


def test_parameters_of_rows_are_written_as_before() -> None:
    model = fitted(MODELS["adassp"](), X, Y)
    assert not {"person", "max_rows"} & as_dict(model)["parameters"].keys()
    several = fitted(MODELS["adassp"](person="who", max_rows=2), table().drop("y"), Y)
    again = from_dict(json.loads(json.dumps(as_dict(several))))
    assert (again.person, again.max_rows, again.plan_.cost) == ("who", 2, several.cost_)
    assert clone(again).get_params()["person"] == "who"


@pytest.mark.slow
def test_bounds_that_were_found_for_persons_are_used_for_persons() -> None:
    schema = snugdp.Schema({"a": snugdp.Number(), "b": snugdp.Number(), "y": snugdp.Number(-2, 2)}, "y", person="who")
    first = fitted(snugdp.LinearRegression(epsilon=20, schema=schema, noise=Simulation(1)), table())
    second = snugdp.LinearRegression(epsilon=20, bounds=first.bounds_)
    assert second.plan().unit is Unit.PERSON


def test_ledgers_are_asked_before_rows_are_read() -> None:
    for ledger, given in (
        (MemoryLedger(9, 1e-5, composition="tight"), {"person": "who"}),
        (MemoryLedger(9, 1e-5, unit="person", composition="tight"), {}),
    ):
        with pytest.raises(UnitMismatchError, match="nothing was drawn"):
            fitted(MODELS["adassp"](ledger=ledger, **given), table().drop("y"), Y)
        assert ledger.spent.epsilon == ledger.spent.mu == 0
    paid = MemoryLedger(9, 1e-5, unit="person", composition="tight")
    assert fitted(MODELS["adassp"](ledger=paid, person="who"), table().drop("y"), Y).cost_ == paid.spent


def test_teachers_protect_persons() -> None:
    how: dict[str, Any] = {"classes": [False, True], "queries": QUERIES, "test": "none", "noise": Simulation(1)}
    model = snugdp.PATEClassifier(GaussianNB(), GaussianNB(), 30, 8, person="who", **how)
    assert model.plan().unit is Unit.PERSON
    by_column = fitted(model, table().select("a", "who", "b"), Y > 0)
    beside = fitted(clone(model).set_params(person=None), table().select("a", "b"), Y > 0, groups=table()["who"])
    assert np.array_equal(by_column.labels_, beside.labels_)
    assert by_column.plan_.unit is beside.plan_.unit is Unit.PERSON
    assert np.array_equal(by_column.predict(table().select("a", "who", "b")), beside.predict(table().select("a", "b")))
    with pytest.raises(ValueError, match="leave out max_rows"):
        snugdp.PATEClassifier(person="who", max_rows=2, **how).plan()


@pytest.mark.slow
def test_what_is_wrong_is_said_in_public() -> None:
    given: dict[str, Any] = {"epsilon": 4, "x_norm": 1, "y_bound": 1, "method": "adassp"}
    for model, data, more, error, words in (
        (snugdp.LinearRegression(person="who", **given), (X, Y), {}, TypeError, "an array has none"),
        (snugdp.LinearRegression(**given), (table().drop("y"), Y), {"groups": WHO}, TypeError, "person=... names"),
        (snugdp.LinearRegression(person="nobody", **given), (table(), Y), {}, ValueError, 'no column "nobody"'),
        (snugdp.LinearRegression(**given), (X, Y), {"groups": WHO[:3]}, ValueError, "inconsistent numbers of rows"),
        (snugdp.LinearRegression(epsilon=9, schema=SCHEMA, person="a"), (table(),), {}, ValueError, "anything else"),
        (snugdp.LinearRegression(max_rows=2, **given), (X, Y), {}, ValueError, "max_rows needs person"),
    ):
        with pytest.raises(error, match=words):
            fitted(model, *data, **more)


def test_a_refusal_of_several_rows_offers_no_method_that_is_refused() -> None:
    for model, offered in (
        (snugdp.SparseLinearRegression(1, epsilon=4, y_bound=1, person="who", max_rows=2), '"sufficient", "adassp"'),
        (snugdp.SparseLogisticRegression(1, epsilon=4, classes=[0, 1], person="who", max_rows=2), '"output"'),
    ):
        with pytest.raises(ValueError, match=f"a method that takes several: {offered}") as refusal:
            model.plan(n_features=2)
        for name in str(refusal.value).rpartition(":")[2].replace('"', "").split(", "):
            clone(model).set_params(method=name.strip(), rows=1000).plan(n_features=2)


@pytest.mark.parametrize("odd", [None, 0.5, "x", 2**70])
def test_groups_of_guessed_types_tell_no_long_identifiers_apart(odd: Any) -> None:
    """One odd identifier changes the type of an array or a series, and moves nobody else; a list has no type."""
    large = [2**53 + 1 + number for number in range(6)]
    for loaded in (np.array, pd.Series, lambda ids: pd.Series(ids).astype("category"), lambda ids: np.array(ids, "O")):
        for ids in ([*large, 7], [*large, odd]):
            found = person_image(nw.from_native(_column(loaded(ids)), series_only=True))
            assert found.lost is not None
            assert found.lost[:6].all()
    for exact in (list, np.ma.array, pd.array, lambda ids: pl.Series(ids, dtype=pl.Int64)):
        found = person_image(nw.from_native(_column(exact(large)), series_only=True))
        assert found.text is not None
        assert found.text.to_list() == [*map(str, large)]


@pytest.mark.parametrize("odd", [None, float("nan"), "", "NaN", object, 2**60, [1], b"x", "x" * 1000, "\ud800"])
def test_no_identifier_raises_warns_or_moves_others(odd: Any) -> None:
    """A door: an odd identifier changes whose row it is, and nothing else."""
    who: list[Any] = [f"p{number}" for number in WHO]
    who[5] = odd() if odd is object else odd
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MODELS["adassp"](noise=Simulation(2)).fit(X, Y, groups=who)
    assert model.released_
    if isinstance(odd, str):  # as an array of text, which need not be UTF-8
        assert np.array_equal(MODELS["adassp"](noise=Simulation(2)).fit(X, Y, groups=np.array(who)).coef_, model.coef_)
