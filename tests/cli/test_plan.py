"""snugdp plan: what would be charged and what to expect; the same numbers for people, machines and Python."""

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import snugdp
from snugdp.cli.terminal import bars
from snugdp.estimators.forecasts.forecast import forecast
from snugdp.serial.costs import cost_from_json
from tests.cli import people
from tests.cli.people import charges, new_ledger, run
from tests.effort import sampled


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(people.SCHEMA)
    return tmp_path


QUICK = ("people.toml", "--method", "adassp", "--epsilon", 1, "--delta", 1e-7, "--rows", 10_000)


def test_the_plan_its_picture_and_its_table() -> None:
    result = run("plan", "linear", *QUICK)
    assert result.output.startswith("With 10,000 rows and epsilon 1, privacy noise adds about ")
    assert "\nPlan: " in result.output
    assert "█" in result.output
    assert "\n> " in result.output
    assert "40,000 rows" in result.output
    assert "in units of income" in result.output
    assert "city=Oslo" in result.output


def test_the_numbers_are_those_of_python_and_of_the_plan() -> None:
    whole = json.loads(run("plan", "linear", *QUICK, "--json").stdout)
    model = snugdp.LinearRegression(1.0, 1e-7, method="adassp", schema=snugdp.Schema.from_toml(Path("people.toml")))
    found = forecast(model, 10_000)
    shown = [[(fit.epsilon, fit.rows, fit.error, dict(fit.noise)) for fit in line] for line in found.grid]
    given = [
        [tuple(fit[name] for name in ("epsilon", "rows", "error", "noise")) for fit in line]
        for line in whole["forecast"]["grid"]
    ]
    assert given == shown
    assert whole["forecast"]["asked"]["error"] == found.asked.error
    assert whole["forecast"]["error_of"] == "prediction"
    plan = str(model.plan(rows=10_000))
    assert whole["plan"] == plan
    assert f"{found.asked.noise['age']:.3g} (age)" in plan
    assert f"privacy noise adds about {found.asked.error:.3g} to the prediction error" in plan
    assert whole["ledger"] is None
    assert cost_from_json(whole["cost"]["exact"], snugdp.Neighbours.ADD_REMOVE) == model.plan().cost
    assert Fraction(repr(whole["cost"]["mu"])) ** 2 >= model.plan().cost.mu_squared


def test_more_epsilon_and_more_rows_bring_less_error() -> None:
    grid = json.loads(run("plan", "linear", *QUICK, "--json").stdout)["forecast"]["grid"]
    errors = [[each["error"] for each in line] for line in grid]
    assert [line[0]["epsilon"] for line in grid] == [0.25, 0.5, 1, 2, 4]
    assert [each["rows"] for each in grid[0]] == [10_000, 20_000, 40_000]
    assert all(one > two for line in errors for one, two in pairwise(line))
    columns = list(zip(*errors, strict=True))
    assert all(one > two for column in columns for one, two in pairwise(column))


@sampled(6)
@pytest.mark.parametrize(
    "words",
    [
        ("logistic", "--target", "member"),
        ("logistic", "--target", "city"),
        ("poisson", "--target", "visits"),
        ("sparse", "--features", "2", "--method", "adassp"),
        ("pca", "--components", "2"),
    ],
    ids=" ".join,
)
def test_every_model_has_a_forecast(words: tuple[str, ...]) -> None:
    kind, *options = words
    result = run("plan", kind, "people.toml", "--epsilon", 1, "--rows", 5000, *options, "--json")
    whole = json.loads(result.stdout)
    errors = [line[0]["error"] for line in whole["forecast"]["grid"]]
    assert all(one > two > 0 for one, two in pairwise(errors))
    assert whole["forecast"]["asked"]["noise"]


def test_what_the_ledger_would_have_left_is_what_it_has_left_afterwards(folder: Path) -> None:
    people.write(folder)
    new_ledger()
    whole = json.loads(run("plan", "linear", *QUICK, "--ledger", "people.ledger", "--json").stdout)["ledger"]
    assert whole["accepted"] is True
    assert whole["left"]["epsilon"] == 2
    done = run("fit", "linear", "people.parquet", *QUICK, "--ledger", "people.ledger", "--json")
    assert json.loads(done.stdout)["ledger"]["left"] == whole["left_after"]
    again = run("plan", "linear", *QUICK[:3], "--epsilon", 2, "--rows", 1000, "--ledger", "people.ledger")
    assert "would not accept this fit" in again.output
    assert charges() == 1


def test_forecasts_of_arrays_and_of_what_has_none() -> None:
    model = snugdp.LinearRegression(method="adassp", x_norm=1, y_bound=1)
    few = forecast(model, 1000, n_features=3, factors=(Fraction(1, 2),), more=(10,))
    assert [line[0].epsilon for line in few.grid] == [0.5, 1]
    assert [each.rows for each in few.grid[0]] == [1000, 10_000]
    wrong: Any
    for wrong in ({"n_features": None, "rows": 10}, {"n_features": 3, "rows": 0}):
        with pytest.raises(ValueError, match=r"n_features|rows"):
            forecast(model, **wrong)
    untold: Any = snugdp.PATEClassifier(classes=[0, 1])
    with pytest.raises(TypeError, match="look at plan"):
        forecast(untold, 10)


def test_bars_say_what_has_no_bound_and_do_without_blocks() -> None:
    lines = bars([("a", 2.0), ("b", 1.0), ("c", float("inf"))], width=4, plain=True)
    assert lines == ["  a  ####  2", "  b  ##    1", "  c        unbounded"]
    assert bars([]) == []
