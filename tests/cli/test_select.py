"""``snugdp select``: a grid of proposals, public rows to choose on, one charge."""

import json
from pathlib import Path
from typing import Any

import pytest

import snugdp
from tests.cli import people
from tests.cli.people import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people.write(tmp_path, 2000)
    people.table(2300)[2000:].write_csv("public.csv")
    return tmp_path


def ask(words: str, *more: str, code: int = 0) -> Any:
    return run("select", *words.split(), *more, code=code)


@pytest.mark.slow
def test_the_best_of_a_grid_for_one_price(folder: Path) -> None:
    with snugdp.Ledger.open("t.ledger", dataset="t", budget=snugdp.Budget(4, 1e-5)) as book:
        words = "linear people.parquet people.toml --validation public.csv --epsilon 3 --method adassp"
        more = ("--grid", "ridge=1,20,400", "--mean-runs", "3", "--rows", "2000", "--ledger", "t.ledger")
        planned = json.loads(ask(words, *more, "--plan", "--json").stdout)
        assert "The best of 3 proposals" in planned["plan"]
        assert not book.entries()
        shown = ask(words, *more, "-o", "model.json").stdout
        assert "the best of the grid: ridge = " in shown
        assert len(book.entries()) == 1
        assert snugdp.load("model.json").best_proposal_["ridge"] in (1, 20, 400)
        run("predict", "model.json", "people.parquet", "-o", "guesses.csv")
        assert "does not cover" in ask(words, *more, code=4).stderr


@pytest.mark.slow
def test_a_grid_of_classifiers(folder: Path) -> None:
    words = "logistic people.csv people.toml --target member --validation public.csv --epsilon 4 --rows 2000 --json"
    told = json.loads(ask(words, "--grid", "ridge=10,100").stdout)
    assert told["outcome"] == "released"
    assert told["model"]["kind"] == "logistic-regression/1"


def test_mistakes(folder: Path) -> None:
    for words, said in (
        ("linear people.parquet people.toml --grid rigde=1,2", "no proposal"),
        ("linear people.parquet people.toml --grid ridge", "NAME=VALUE"),
        ("linear people.parquet people.toml --target nobody", "nobody"),
        ("linear none.parquet people.toml", "no file"),
        ("linear people.parquet people.toml -o none/model.json", "cannot write"),
    ):
        assert said in ask(words, "--validation", "public.csv", "--epsilon", "1", code=1).stderr, words
