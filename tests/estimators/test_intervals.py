"""Standard errors, intervals and tests of released models, in the user's units."""

import math
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp import (
    Boolean,
    Category,
    LinearRegression,
    LogisticRegression,
    MemoryLedger,
    Number,
    PoissonRegression,
    Refused,
    Schema,
    Simulation,
)  # fmt: skip
from snugdp.estimators.intervals import display_map, identified_basis
from snugdp.inference.equation import NoisyEquation
from snugdp.report.model import render
from tests.effort import sampled

COLUMNS: dict[str, Any] = {"age": Number(0, 120), "city": Category(["Oslo", "Rome", "Lima"])}
BUDGET: dict[str, Any] = {"epsilon": 2, "delta": 1e-6}


def table(n: int = 4000) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    age, city = rng.uniform(18, 80, n), rng.choice(["Oslo", "Rome", "Lima"], n, p=[0.5, 0.3, 0.2])
    linear = 0.5 * age + 5 * (city == "Rome") - 3 * (city == "Lima")
    income = 20 + linear + rng.normal(0, 6, n)
    bought = rng.random(n) < 1 / (1 + np.exp((27 - linear) / 5))
    visits = rng.poisson(np.exp((linear - 25) / 15)).clip(0, 12)
    return pl.DataFrame({"age": age, "city": city, "income": income, "bought": bought, "visits": visits})


TABLE = table()
TRUTH = {"age": 0.5, "city=Rome": 5.0, "city=Lima": -3.0, "intercept": 20.0}


def model(seed: int | None = 1, **given: Any) -> Any:
    schema = Schema({**COLUMNS, "income": Number(0, 200)}, target="income")
    noise = None if seed is None else Simulation(seed)
    return LinearRegression(**{**BUDGET, "schema": schema, "inference": True, "noise": noise, **given})


@pytest.fixture(scope="module")
def fitted() -> Any:
    return model().fit(TABLE)


@pytest.mark.slow
def test_a_summary_has_the_shape_that_statisticians_know(fitted: Any) -> None:
    found = fitted.summary()
    assert found.names == ("age", "city=Rome", "city=Lima", "intercept")
    for name, each in zip(found.names, found.estimates, strict=True):
        assert abs(each.estimate - TRUTH[name]) < 5 * each.standard_error
        assert each.lower < each.estimate < each.upper
    assert str(found).splitlines()[0].split() == ["estimate", "std.", "error", "z", "p", "0.025", "0.975"]
    assert found.frame.columns == ["name", "estimate", "std. error", "z", "p", "lower", "upper"]
    assert "<td>age</td>" in found._repr_html_()
    assert "robust line" in str(found)
    assert fitted.conf_int(0.05).tolist() == [[each.lower, each.upper] for each in found.estimates]
    assert (np.diff(fitted.conf_int(0.5)) < np.diff(fitted.conf_int(0.05))).all()
    assert fitted.standard_errors_.tolist() == [each.standard_error for each in found.estimates[:-1]]
    with pytest.raises(ValueError, match="alpha"):
        fitted.summary(0)


def test_contrasts_and_joint_tests(fitted: Any) -> None:
    found = fitted.contrast({"city=Rome": 1, "city=Lima": -1}, null=8)
    assert found.lower < 8 < found.upper
    assert found.p_value > 0.01
    ends = fitted.contrast({"age": 1}, alpha=0.2)
    assert fitted.contrast({"age": 1}, null=ends.lower).p_value == pytest.approx(0.2, rel=1e-5)
    answer = fitted.contrast({"intercept": 1, "age": 50, "city=Rome": 1})
    assert answer.estimate == pytest.approx(50, abs=5 * answer.standard_error)
    together = fitted.joint_test(["city=Rome", "city=Lima"])
    assert (together.degrees, together.p_value < 1e-6) == (2, True)
    apart = fitted.joint_test([{"city=Rome": 1, "city=Lima": -1}, "age"], null=[8, 0.5])
    assert (apart.degrees, apart.p_value > 0.01) == (2, True)
    for null in ([1], [1, math.nan]):
        with pytest.raises(ValueError, match="one for each of the names"):
            fitted.joint_test(["city=Rome", "city=Lima"], null)
    for wrong in ({"Rome": 1}, {"city=(none)": 1}):
        with pytest.raises(ValueError, match="there is no coefficient"):
            fitted.contrast(wrong)
    for weights in ({}, {"age": 0}, {"age": math.nan}, {"age": math.inf}):
        with pytest.raises(ValueError, match="give finite weights, not all of them 0, of age"):
            fitted.contrast(weights)
    for given in ({"alpha": 0}, {"alpha": 1}, {"null": math.nan}):
        with pytest.raises(ValueError, match="alpha must be"):
            fitted.contrast({"age": 1}, **given)
    for names in (list[str](), "age"):
        with pytest.raises(ValueError, match="give a list of names to test, of age"):
            fitted.joint_test(names)


def test_a_small_p_value_is_text_in_a_page(fitted: Any) -> None:
    assert "<td>&lt;1e-10</td>" in fitted.summary()._repr_html_()


def test_the_model_predicts_and_its_numbers_are_one_release(fitted: Any) -> None:
    answers = fitted.predict(TABLE.head(50))
    assert np.abs(answers - (TABLE.head(50)["income"].to_numpy())).mean() < 8
    assert fitted.plan_.theorem.id == "linear-inference/1"
    assert [step.id for step in fitted.plan_.steps] == ["centre", "sizes", "gram", "radius", "release", "errors"]
    assert fitted.plan_.cost == fitted.cost_
    estimates = [each.estimate for each in fitted.summary().estimates]
    assert fitted.coef_[:3] == pytest.approx(estimates[:3], rel=0.2)


@pytest.mark.slow
def test_it_is_paid_stored_and_read_again(tmp_path: Any) -> None:
    ledger = MemoryLedger(2, 1e-6, composition="tight")
    released = model(None, ledger=ledger).fit(TABLE)
    assert released.receipt_ is not None
    path = tmp_path / "model.json"
    snugdp.save(released, path)
    again = snugdp.load(path)
    assert again.conf_int() == pytest.approx(released.conf_int(), rel=1e-12)
    assert "95 % confidence interval" in render(again)
    with pytest.raises(snugdp.BudgetExceededError):
        model(None, ledger=ledger).fit(TABLE)


@sampled(3)
@pytest.mark.parametrize("of", ["income", "bought", "visits"])
def test_without_bounds(of: str) -> None:
    given = {**BUDGET, "inference": True, "noise": Simulation(2)}
    others = TABLE.select("age", "city", of)
    kinds: dict[str, Any] = {
        "income": LinearRegression(**given),
        "bought": LogisticRegression(**given, classes=[False, True]),
        "visits": PoissonRegression(**given, y_max=12),
    }
    found = kinds[of].fit(others, of).summary()
    scale = {"income": 1.0, "bought": 5.0, "visits": 15.0}[of]
    truth = {"age": 0.5 / scale, "city=Oslo": 3 / scale, "city=Rome": 8 / scale}
    assert {"log-odds": "bought", "line": "income", "log-rate": "visits"}[found.estimand] == of
    for name, each in zip(found.names, found.estimates, strict=True):
        if name in truth:
            assert abs(each.estimate - truth[name]) < 6 * each.standard_error, name


@pytest.mark.slow
def test_schemas_of_labels_and_counts() -> None:
    for target, kind in (("bought", Boolean()), ("visits", Number(0, 12))):
        schema = Schema({**COLUMNS, target: kind}, target=target)
        made = LogisticRegression if target == "bought" else PoissonRegression
        found = made(**BUDGET, schema=schema, inference=True, noise=Simulation(4)).fit(TABLE).summary()
        assert found.names == ("age", "city=Rome", "city=Lima", "intercept")
        age = found.estimates[0]
        assert abs(age.estimate - (0.1 if target == "bought" else 1 / 30)) < 6 * age.standard_error


@pytest.mark.slow
def test_where_the_data_say_nothing_the_interval_is_the_whole_line() -> None:
    found = model().fit(TABLE.head(12)).summary()
    assert all((each.lower, each.upper) == (-math.inf, math.inf) for each in found.estimates[:3])
    assert "say nothing about age, city=Rome" in str(found)
    assert "∞" in str(found)


def test_what_is_not_identified_has_no_part_in_it() -> None:
    schema = Schema({**COLUMNS, "income": Number(0, 200)}, target="income")
    shown_as = display_map(schema)
    assert shown_as.names == ("age", "city=Rome", "city=Lima", "city=(none)", "intercept")
    basis = np.array(identified_basis(shown_as))
    assert basis.shape == (5, 4), "three levels and a constant have three directions"
    assert basis.T @ basis == pytest.approx(np.eye(4), abs=1e-12)
    ((rows, _),) = schema.blocks(nw.from_native(TABLE.head(99), eager_only=True))
    assert rows @ basis @ basis.T == pytest.approx(rows), "a row in one of the levels lies in what they span"


def test_wrong_uses_are_told_before_anything_is_charged() -> None:
    rows, labels = [[0.1], [0.2]], [0.0, 1.0]
    bounds: dict[str, Any] = {"x_norm": 1, "y_bound": 1}
    with pytest.raises(ValueError, match="leave out method"):
        LinearRegression(inference=True, method="adassp", **bounds).fit(rows, labels)
    with pytest.raises(ValueError, match="leave out max_rows"):
        LinearRegression(**bounds, inference=True, max_rows=2, person="age").plan(n_features=1)
    with pytest.raises(ValueError, match='target="mean" has a method of its own'):
        LinearRegression(target="mean", method="adassp", **bounds).fit(rows, labels)
    wrong_targets: list[Any] = ["income", None, ["mean"], np.array(["mean", "robust"])]
    for wrong in wrong_targets:
        with pytest.raises(ValueError, match='must be "robust" or "mean"'):
            LinearRegression(target=wrong, **bounds).fit(rows, labels)
    with pytest.raises(TypeError, match="True or False"):
        LinearRegression(**{**bounds, "inference": "yes"}).fit(rows, labels)
    with pytest.raises(ValueError, match="two classes and for counts"):
        LogisticRegression(inference=True, classes=[0, 1, 2], x_norm=1).fit(rows, labels)
    with pytest.raises(ValueError, match="known without the data: give them"):
        PoissonRegression(inference=True).fit(TABLE.select("age", "visits"), "visits")
    plain = LinearRegression(**bounds, noise=Simulation(1)).fit([[0.5]] * 50, [0.5] * 50)
    with pytest.raises(ValueError, match="fit again with inference=True"):
        plain.summary()
    assert not hasattr(plain, "standard_errors_")


@pytest.mark.slow
def test_a_failure_after_the_charge_is_a_stored_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("4242")

    monkeypatch.setattr("snugdp.mechanisms.inference.whitening.radius_from_counts", broken)
    ledger = MemoryLedger(2, 1e-6, composition="tight")
    refused = model(None, ledger=ledger).fit(TABLE)
    assert isinstance(refused.outcome_, Refused)
    assert ledger.spent == model().plan().cost


def test_released_numbers_are_all_there_is() -> None:
    one = model().fit(TABLE)._fit
    assert isinstance(one.equation, NoisyEquation)
    assert one.directions @ one.equation.base == pytest.approx(one.theta)


def test_the_conditional_mean_has_intervals_without_being_asked(tmp_path: Any) -> None:
    released = model(None, inference=False, target="mean", ledger=MemoryLedger(2, 1e-6)).fit(TABLE)
    found = released.summary()
    assert released.plan_.theorem.id == "linear-mean/1"
    assert (found.estimand, found.dispersion) == ("mean", None)
    assert "conditional mean" in str(found)
    for name, each in zip(found.names, found.estimates, strict=True):
        assert abs(each.estimate - TRUTH[name]) < 8 * each.standard_error
    snugdp.save(released, tmp_path / "model.json")
    again = snugdp.load(tmp_path / "model.json")
    assert again.target == "mean"
    assert again.conf_int() == pytest.approx(released.conf_int(), rel=1e-12)
    assert "95 % confidence interval" in render(again)


def test_residuals_of_counts_are_compared_with_the_model() -> None:
    schema = Schema({**COLUMNS, "bought": Boolean()}, target="bought")
    found = LogisticRegression(**BUDGET, schema=schema, inference=True, noise=Simulation(4)).fit(TABLE).summary()
    assert found.dispersion is not None
    ratio, noise = found.dispersion
    assert abs(ratio - 1) < 3 * noise + 0.1
    assert "Residuals" in str(found)
