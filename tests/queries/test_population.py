"""Intervals for the population: of means, proportions and groups, in the user's units."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import snugdp
from snugdp import Simulation
from snugdp.cli.main import app
from snugdp.report.model import render
from tests.effort import often, repeated

RNG = np.random.default_rng(1)
AGES = RNG.normal(40, 10, 5000).clip(0, 100)
TABLE = pl.DataFrame({"city": RNG.choice(["Oslo", "Rome"], 5000), "age": AGES, "old": AGES > 45})
BOUNDS = {"age": (0, 100)}


def grouped(**given: Any) -> Any:
    asked: Any = {"age": ["mean"], "old": "proportion"}
    query = snugdp.GroupBy(by="city", statistics=asked, keys=["Oslo", "Rome"], bounds=BOUNDS, epsilon=1, **given)
    return query.release(TABLE, noise=Simulation(1)).value


@repeated
def test_intervals_cover_the_mean_of_the_population() -> None:
    """Of values that fill their bounds, or a tenth of them; skewed ones are clipped, and the interval knows."""
    assert snugdp.Mean(bounds=(0, 1000), epsilon=1, inference=True).clip is None
    laws: list[tuple[Any, float]] = [
        (lambda rng: rng.uniform(0, 100, 800), 50.0),
        (lambda rng: rng.uniform(45, 55, 800), 50.0),
        (lambda rng: 20 * rng.lognormal(0, 0.8, 800), 20 * math.exp(0.32)),
    ]
    runs = often(40, 120, 300)
    for law, truth in laws:
        for clip in ("auto", "private"):
            query, covered = snugdp.Mean(bounds=(0, 1000), clip=clip, epsilon=1, inference=True), 0
            for seed in range(runs):
                found: Any = query.release(law(np.random.default_rng(seed)), noise=Simulation(seed)).value
                low, high = found.conf_int()
                covered += low <= truth <= high
            assert covered >= {40: 34, 120: 106, 300: 270}[runs], (truth, clip, covered)


def test_a_mean_has_the_standard_error_of_sampling_and_noise() -> None:
    for given in ({"bounds": (0, 100)}, {"bounds": (0, 100), "clip": None, "delta": 1e-6}, {}):
        asked: Any = {"epsilon": 1, "inference": True, **given}
        found: Any = snugdp.mean(AGES, **asked, noise=Simulation(3)).value
        assert found.standard_error == pytest.approx(10 / math.sqrt(5000), rel=0.1)
        low, high = found.conf_int(clipping=False)
        assert low < found.value < high
        assert high - low == pytest.approx(2 * 1.96 * found.standard_error, rel=0.05)
        assert found.conf_int() == (low - (found.below or 0), high + (found.above or 0))
        assert "population" in str(found)
    few: Any = snugdp.mean([3.0], bounds=(0, 10), clip=None, epsilon=0.1, inference=True, noise=Simulation(3)).value
    assert few.conf_int() == (0.0, 10.0)
    plain: Any = snugdp.mean(AGES, bounds=(0, 100), epsilon=1, noise=Simulation(1)).value
    with pytest.raises(ValueError, match="inference=True"):
        plain.conf_int()


def test_the_plan_says_what_it_costs_and_its_cost_is_the_budget() -> None:
    for given in ({}, {"delta": 1e-6}):
        asked: Any = {"bounds": (0, 1), "epsilon": 1, "clip": None, **given}
        one, two = snugdp.Mean(**asked), snugdp.Mean(**asked, inference=True)
        assert one.plan().cost.epsilon == two.plan().cost.epsilon
        assert "confidence interval for the population" in str(two.plan())
        assert "population" not in str(one.plan())


def test_groups_are_compared() -> None:
    found = grouped(inference=True)
    city = {name: TABLE.filter(pl.col("city") == name) for name in ("Oslo", "Rome")}
    for name, rows in city.items():
        mean, share = found.estimate("age_mean", city=name), found.estimate("old_proportion", city=name)
        deviation: Any = rows["age"].std()
        assert 1 < mean.standard_error / (deviation / math.sqrt(len(rows))) < 1.4  # a third of the budget
        assert mean.conf_int()[0] < mean.value < mean.conf_int()[1]
        p: Any = rows["old"].mean()
        assert share.standard_error == pytest.approx(math.sqrt(p * (1 - p) / len(rows)), rel=0.15)
    one, two = (found.estimate("age_mean", city=name) for name in ("Oslo", "Rome"))
    apart = one.difference(two)
    assert apart.estimate == pytest.approx(one.value - two.value)
    assert apart.standard_error == pytest.approx(math.hypot(one.standard_error, two.standard_error))
    assert 1e-4 < apart.p_value <= 1
    assert one.difference(two, null=apart.estimate + 5).p_value < 1e-6
    with pytest.raises(KeyError, match="every key column"):
        found.estimate("age_mean")
    with pytest.raises(ValueError, match="both estimates"):
        grouped().estimate("age_mean", city="Oslo").difference(one)
    assert not any("population" in name for name in grouped().names)


def test_rows_of_one_person_are_not_independent() -> None:
    with pytest.raises(ValueError, match="leave out max_rows"):
        snugdp.Mean(bounds=(0, 1), epsilon=1, inference=True, person="who", max_rows=2, column="a")
    with pytest.raises(ValueError, match="leave out max_keys"):
        grouped(inference=True, max_keys=2)
    with pytest.raises(TypeError, match="True or False"):
        snugdp.Proportion(epsilon=1, inference="yes")  # type: ignore[arg-type]
    table = TABLE.with_columns(who=pl.int_range(5000) // 5)
    asked: Any = {"column": "age", "bounds": (0, 100), "epsilon": 2, "person": "who", "inference": True}
    found: Any = snugdp.mean(table, **asked, noise=Simulation(1)).value
    assert found.standard_error == pytest.approx(10 / math.sqrt(1000), rel=0.15)


def test_a_stored_answer_a_report_and_the_command_line_tell_it(tmp_path: Path) -> None:
    ledger = snugdp.Ledger.open(tmp_path / "l.db", dataset="people", budget=snugdp.Budget(5))
    query = snugdp.Mean(bounds=(0, 100), epsilon=1, inference=True)
    one = query.release(AGES, ledger=ledger.once("a"))
    assert query.release(AGES, ledger=ledger.once("a")).value == one.value
    with pytest.raises(snugdp.KeyConflictError):
        snugdp.Mean(bounds=(0, 100), epsilon=1).release(AGES, ledger=ledger.once("a"))
    assert "population, 95 % confidence interval" in render(one, plan=query.plan())
    TABLE.write_csv(tmp_path / "t.csv")
    for words in (["mean", "-c", "age", "--lower", "0", "--upper", "100"], ["proportion", "-c", "old"]):
        kind, *rest = words
        call = ["query", kind, str(tmp_path / "t.csv"), *rest, "--epsilon", "1", "--inference", "--yes", "--json"]
        said = CliRunner().invoke(app, call)
        assert said.exit_code == 0, said.output
        answer = json.loads(said.stdout)
        assert answer["conf_int"][0] < answer["value"] < answer["conf_int"][1]
    call = ["query", "group-by", str(tmp_path / "t.csv"), "--by", "city", "-s", "age=mean", "--bounds", "age=0,100"]
    said = CliRunner().invoke(app, [*call, "--epsilon", "1", "--inference", "--yes", "--json"])
    assert said.exit_code == 0, said.output
    assert "age_mean_population_lower" in json.loads(said.stdout)["table"]
