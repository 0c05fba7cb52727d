"""``snugdp pate``: votes in every form of file, and a student that is saved, loaded and asked."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from tests.cli.people import run

_SCHEMA = """
target = "risk"
[columns.age]
type = "number"
lower = 0
upper = 100
[columns.income]
type = "number"
lower = 0
upper = 500000
[columns.member]
type = "boolean"
[columns.risk]
type = "category"
values = ["low", "high"]
"""


def ask(words: str, *more: str, code: int = 0) -> Any:
    return run("pate", *words.split(), *more, code=code)


@pytest.fixture
def votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Histograms of 400 teachers who nearly agree, in every form of file."""
    monkeypatch.chdir(tmp_path)
    found = np.roll(np.array([[396, 2, 2]]), 1, axis=1)[:, (np.arange(60)[:, None] + np.arange(3)) % 3][0]
    names = ["cat", "dog", "cow"]
    np.save("v.npy", found)
    np.savez("v.npz", votes=found)
    pl.DataFrame(found, schema=names).write_csv("v.csv")
    pl.DataFrame(found, schema=names).write_parquet("v.parquet")
    return np.asarray(found)


@pytest.mark.parametrize("file", ["v.npy", "v.npz", "v.csv", "v.parquet"])
def test_labels_of_files(votes: np.ndarray, file: str) -> None:
    told = json.loads(ask(f"label {file} --classes 3 --epsilon 8 --test none --json").stdout)
    assert told["outcome"] == "released"
    assert told["labels"] == votes.argmax(axis=1).tolist()


def test_labels_with_names_behind_a_test(votes: np.ndarray) -> None:
    named = ask("label v.csv --classes cat,dog,cow --epsilon 8 -o labels.csv")
    assert "Released: labels of 60 of 60 queries" in named.stdout
    labels = pl.read_csv("labels.csv")
    assert labels["query"].to_list() == list(range(60))
    assert labels["label"].to_list() == [("cat", "dog", "cow")[place] for place in votes.argmax(axis=1)]


@pytest.mark.slow
def test_labels_of_teachers_and_output_on_the_terminal(votes: np.ndarray) -> None:
    ballots = [["no"] * 300, ["yes"] * 300]
    pl.DataFrame({f"t{teacher}": [row[teacher] for row in ballots] for teacher in range(300)}).write_csv("b.csv")
    done = ask("label b.csv --form queries --classes no,yes --epsilon 8 --test none")
    assert done.stdout == "query,label\n0,no\n1,yes\n"
    assert "Plan: Labels of 2 queries by 300 teachers" in done.stderr


@pytest.mark.slow
def test_labels_are_charged_and_refused(votes: np.ndarray) -> None:
    with snugdp.Ledger.open("t.ledger", dataset="t", budget=snugdp.Budget(2, 1e-5)) as book:
        torn = np.tile([201, 199], (300, 1))
        np.save("torn.npy", torn)
        words = "label torn.npy --epsilon 1 --delta 1e-9 --gap 390 --sigma 10 --ledger t.ledger"
        assert "Plan: Labels" in ask(words, "--plan").stdout
        assert not book.entries()
        refused = ask(words, "-o", "none.csv", code=3)
        assert "Refused" in refused.stderr
        assert not Path("none.csv").exists()
        assert [entry.state for entry in book.entries()] == ["refused"]
        assert ask("label v.npy --epsilon 5 --ledger t.ledger", code=4).stdout == ""


def test_mistakes_of_labels(votes: np.ndarray) -> None:
    np.savez("two.npz", a=votes, b=votes)
    np.save("objects.npy", np.array([["a", None]], dtype=object), allow_pickle=True)
    for words, said in (
        ("label none.npy", "no file"),
        ("label two.npz", "2 arrays"),
        ("label objects.npy", "not a whole file"),
        ("label v.npy --classes 4", "3 columns"),
        ("label v.npy --gap many", "--gap"),
        ("label v.npy -o labels.txt", ".csv"),
        ("label v.npy --test perhaps", "test must be"),
    ):
        assert said in ask(words, "--epsilon", "1", code=1).stderr, words


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    age, income, member = rng.uniform(0, 100, 6000), rng.uniform(0, 500_000, 6000), rng.random(6000) < 0.5
    high = age / 100 + income / 500_000 + 0.2 * member + rng.normal(0, 0.05, 6000) > 1.1
    table = pl.DataFrame({"age": age, "income": income, "member": member, "risk": np.where(high, "high", "low")})
    table[1000:].write_parquet("t.parquet")
    table[:200].drop("risk").write_csv("public.csv")
    table[200:1000].write_parquet("new.parquet")
    (tmp_path / "t.toml").write_text(_SCHEMA)
    return table[200:1000]


@pytest.mark.slow
def test_a_student_is_trained_saved_and_asked(people: pl.DataFrame) -> None:
    words = "train t.parquet t.toml --queries public.csv --epsilon 8 --teachers 60 --test none -o model.json"
    assert "Plan: Labels of 200 queries by 60 teachers" in ask(words, "--plan").stdout
    assert not Path("model.json").exists()
    assert "Released: a student of 200 labels" in ask(words).stdout
    run("predict", "model.json", "new.parquet", "--keep", "risk", "-o", "guesses.csv")
    guesses = pl.read_csv("guesses.csv")
    assert (guesses["risk"] == guesses["prediction"]).mean() > 0.8  # type: ignore[operator]
    assert snugdp.load("model.json").guarantee_.epsilon == 8


def test_mistakes_of_training(people: pl.DataFrame) -> None:
    text = Path("t.toml").read_text()
    Path("category.toml").write_text(text.replace('type = "boolean"', 'type = "category"\nvalues = ["a", "b"]'))
    Path("aimless.toml").write_text(text.replace('target = "risk"', ""))
    for words, said in (
        ("t.parquet category.toml", "is a category"),
        ("t.parquet aimless.toml", "has no target"),
        ("t.parquet t.toml --target age", "must be a category"),
        ("public.csv t.toml", "no column"),
    ):
        done = ask(f"train {words} --queries public.csv --epsilon 1 -o model.json", code=1)
        assert said in done.stderr, words
