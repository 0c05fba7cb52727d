"""``snugdp query count`` and the other statistics: files in one pass, plans first, mistakes for free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_query import ask, folder, ledger, spent
from tests.effort import sampled

__all__ = ["folder"]
AGE = "-c age --schema t.toml"


def told(words: str, *more: str) -> Any:
    return json.loads(ask(words, *more, "--json").stdout)


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("file", ["t.parquet", "t.csv"])
def test_numbers_of_files(folder: Path, file: str) -> None:
    for words, low, high in (
        ("count FILE", 7900, 8100),
        ("count FILE -c age", 7900, 8100),
        (f"sum FILE {AGE}", 340_000, 370_000),
        (f"mean FILE {AGE}", 43, 46),
        (f"mean FILE {AGE} --clip none --rows 8000", 43, 46),
        ("mean FILE -c age --lower 0 --upper 100000 --clip private", 43, 46),
        (f"variance FILE {AGE}", 180, 230),
        (f"standard-deviation FILE {AGE} --delta 1e-6", 13, 16),
        ("covariance FILE -c age -c bonus --lower 0 --upper 120 --lower 0 --upper 5000", 900, 1600),
        ("correlation FILE -c age -c bonus --lower 0 --upper 120 --lower 0 --upper 5000", -0.2, 0.2),
        ("proportion FILE -c old", 0.24, 0.26),
        ("proportion FILE -c way --values car,moon", 0.74, 0.76),
    ):
        found = told(f"{words.replace('FILE', file)} --epsilon 4")
        assert low < found["value"] < high, words
        assert found["lower"] < found["value"] < found["upper"]
        assert found["outcome"] == "released"


@sampled(2)
@pytest.mark.parametrize("file", ["t.parquet", "t.csv"])
def test_histograms_of_files(folder: Path, file: str) -> None:
    for words, cells, first in (
        ("-c age --edges 0,30,120", [[0, 30], [30, 120]], 1600),
        ("-c age --bins 2 --schema t.toml", [[0, 60], [60, 120]], 6400),
        ("-c way --values train,car", ["train", "car"], 2000),
        ("-c way --schema t.toml", ["car", "train"], 4000),
    ):
        found = told(f"histogram {file} {words} --epsilon 2")
        assert found["cells"] == cells
        assert abs(found["counts"][0] - first) < 30
    assert "car: " in ask(f"histogram {file} -c way --values car --epsilon 2").stdout


def test_a_plan_is_free_a_release_is_charged_once_and_reported(folder: Path) -> None:
    ledger()
    words = f"mean t.parquet {AGE} --epsilon 1 --ledger t.ledger"
    assert "Plan: Mean" in ask(words, "--plan").stdout
    assert spent() == 0
    first = told(words, "--key", "june", "--report", "r.html")
    assert told(words, "--key", "june")["value"] == first["value"]
    assert spent() == 1
    page = Path("r.html").read_text()
    assert "Mean of age" in page
    assert "19 of 20" in page
    text = ask("histogram t.parquet -c age --edges 0,30,120 --epsilon 0.5 --ledger t.ledger --report h.html").stdout
    assert text.index("Plan: Histogram") < text.index("Released: histogram of age")
    assert "30 to 120" in Path("h.html").read_text()
    assert "does not cover" in ask(words, code=4).stderr


@pytest.mark.slow
def test_mistakes_cost_nothing(folder: Path) -> None:
    ledger()
    for words, said in (
        ("mean t.parquet -c age --lower 120 --upper 0", "lower bound must be less"),
        ("mean t.parquet -c way --lower 0 --upper 120", "numbers"),
        ("mean t.parquet -c way --schema t.toml", "not a number"),
        ("sum t.csv -c salary --lower 0 --upper 120", "no column"),
        ("count t.csv -c salary", "no column"),
        ("proportion t.parquet -c salary", "no column"),
        ("histogram t.parquet -c salary --edges 0,1", "no column"),
        ("histogram t.parquet -c age", "--edges"),
        ("histogram t.parquet -c age --edges 3,2", "ascending"),
        ("histogram t.parquet -c way --edges 0,1", "numbers"),
        ("correlation t.parquet -c age --lower 0 --upper 1", "two columns"),
        ("correlation t.parquet -c age -c bonus --lower 0 --upper 1", "both columns"),
        ("mean t.parquet -c age --schema t.toml --clip never", "clip must be"),
        ("mean t.parquet -c bonus --schema t.toml", "has no column"),
        ("count t.parquet --neighbours replace", "public when neighbours replace"),
    ):
        assert said in ask(words, "--epsilon", "1", "--ledger", "t.ledger", code=1).stderr, words
    assert spent() == 0


@pytest.mark.slow
def test_statistics_without_bounds(folder: Path) -> None:
    """With hardly any noise, so that bounds are surely found."""
    for words, low, high in (
        ("mean t.parquet -c age", 43, 46),
        ("sum t.parquet -c age --lower 0", 340_000, 375_000),
        ("standard-deviation t.csv -c age", 12, 17),
        ("variance t.parquet -c age --delta 1e-6", 150, 260),
        ("correlation t.parquet -c age -c bonus", -0.2, 0.2),
    ):
        told = json.loads(ask(words, "--epsilon", "500", "--json").stdout)
        assert low <= told["value"] <= high
        assert told["found"]
        assert [step["id"] for step in told["steps"]][:2] == ["grid", "zoom"] if "steps" in told else True
    text = ask("mean t.parquet -c age --epsilon 500", "--report", "r.html").output
    assert "Found privately: from" in text
    assert "no bounds are given" in text
    assert "found" in Path("r.html").read_text(encoding="utf-8")
    told = json.loads(ask("histogram t.parquet -c age --bins 4 --epsilon 500 --json").stdout)
    assert len(told["counts"]) == 4
    assert told["found"]["flag"] == "found"
    told = json.loads(ask("quantile-table t.parquet -c age --bins 3 --epsilon 500 --json").stdout)
    assert len(told["counts"]) == 3
    told = json.loads(ask("mean t.parquet -c age --by way --epsilon 500 --delta 1e-6 --json").stdout)
    assert told["found"]["lower"] < 20
    assert len(told["table"]["age_mean"]) == 3
