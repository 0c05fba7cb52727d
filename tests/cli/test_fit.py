"""snugdp fit: the plan first, then the charge, then the model; exit codes; nothing private is printed."""

import json
import sys
from pathlib import Path

import pytest

import snugdp
from snugdp.cli import releases
from tests.cli import people
from tests.cli.people import charges, new_ledger, run
from tests.effort import sampled

QUICK = ("--method", "adassp", "--epsilon", 1, "--delta", 1e-7)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people.write(tmp_path)
    return tmp_path


def test_the_walk_from_a_table_to_a_model(folder: Path) -> None:
    new_ledger()
    result = run("fit", "linear", "people.parquet", "people.toml", *QUICK, "--ledger", "people.ledger", "-o", "m.json")
    assert (
        result.output.index("Plan:") < result.output.index("coefficient") < result.output.index("Released: (1, 1e-07)")
    )
    assert "Receipt 1 of" in result.output
    assert "4,000" not in result.output.replace("with 4,000 rows", "")
    model = snugdp.load(folder / "m.json")
    assert model.released_
    assert model.receipt_.ledger == "people"
    assert charges() == 1


def test_a_fit_is_scored_on_rows_that_were_held_out_for_one_charge(folder: Path) -> None:
    new_ledger()
    asked = ("fit", "linear", "people.parquet", "people.toml", *QUICK, "--holdout", 0.25, "--ledger", "people.ledger")
    result = run(*asked, "-o", "m.json", "--report", "m.html")
    parts = ("0.25 of the rows are held out", "On the rows that were held out:", "mean squared error:", "Released:")
    places = [result.output.index(part) for part in parts]
    assert places == sorted(places)
    assert "mse" in snugdp.load(folder / "m.json").holdout_score_.values
    assert "held out" in (folder / "m.html").read_text(encoding="utf-8")
    assert charges() == 1


@pytest.mark.parametrize(("model", "share"), [("pca", 0.2), ("linear", 1.0), ("linear", 0)])
def test_what_cannot_be_held_out_is_said_before_anything_is_charged(model: str, share: float) -> None:
    new_ledger()
    asked = ("fit", model, "people.parquet", "people.toml", "--epsilon", 1, "--holdout", share)
    result = run(*asked, "--ledger", "people.ledger", code=1)
    assert "holdout is" in result.output
    assert charges() == 0


@sampled(9)
@pytest.mark.parametrize(
    "words",
    [
        ("logistic", "--target", "member"),
        ("logistic", "--target", "city"),
        ("poisson", "--target", "visits"),
        ("sparse", "--features", "2", "--method", "adassp"),
        ("sparse", "--features", "2", "--target", "member"),
        ("pca", "--components", "2"),
        ("pca", "--target", "income", "--components", "0.9"),
    ],
    ids=" ".join,
)
def test_every_model_is_fitted_and_saved(words: tuple[str, ...]) -> None:
    kind, *options = words
    result = run("fit", kind, "people.csv", "people.toml", "--epsilon", 2, *options, "-o", "m.json")
    assert "Released" in result.output
    assert "not counted against any budget" in result.stderr
    assert snugdp.load("m.json").released_


def test_one_object_for_machines() -> None:
    new_ledger()
    result = run("fit", "linear", "people.parquet", "people.toml", *QUICK, "--ledger", "people.ledger", "--json")
    whole = json.loads(result.stdout)
    assert whole["model"]["kind"] == "linear-regression/1"
    assert 0 < whole["ledger"]["left"]["epsilon"] < 2
    alone = run("fit", "linear", "people.parquet", "people.toml", *QUICK, "--json")
    assert json.loads(alone.stdout)["ledger"] is None
    assert "not counted against any budget" in alone.stderr


def test_a_key_is_charged_once_and_shows_the_same() -> None:
    new_ledger()
    words = ("fit", "linear", "people.parquet", "people.toml", *QUICK, "--ledger", "people.ledger", "--key", "first")
    one, two = (json.loads(run(*words, "--json").stdout) for _ in range(2))
    assert one["model"]["released"] == two["model"]["released"]
    assert one["ledger"] == two["ledger"]
    other = run(*words, "--target", "age", code=1)  # which would have the same plan, but for what it is of
    assert "key" in other.stderr


def test_a_refusal_ends_with_3_and_is_paid_for(folder: Path) -> None:
    new_ledger(4)
    people.table(20).write_parquet(folder / "few.parquet")
    words = ("--method", "posterior", "--param", "gamma=1e6", "--param", "ridge=0.001", "--epsilon", 1)
    result = run(
        "fit", "linear", "few.parquet", "people.toml", *words, "--ledger", "people.ledger", "-o", "m.json", code=3
    )
    assert result.stderr.strip().count("\n") == 0
    assert result.stderr.startswith("Refused: ")
    assert not snugdp.load("m.json").released_
    assert charges() == 1
    run("predict", "m.json", "few.parquet", code=3)
    again = run("fit", "linear", "few.parquet", "people.toml", *words, "--json", code=3)
    assert json.loads(again.stdout)["model"]["outcome"] == "refused"


def test_a_budget_that_is_too_small_ends_with_4_and_charges_nothing(folder: Path) -> None:
    new_ledger(0.5)
    words = ("fit", "linear", "people.parquet", "people.toml", *QUICK, "--ledger", "people.ledger", "-o", "m.json")
    result = run(*words, code=4)
    assert "Nothing was charged" in result.stderr
    assert not (folder / "m.json").exists()
    assert charges() == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("linear", "none.parquet", "people.toml"), "there is no file"),
        (("linear", "people.parquet", "none.toml"), "cannot read the schema"),
        (("linear", "people.parquet", "people.toml", "--target", "height"), "not one of the columns"),
        (("linear", "people.parquet", "people.toml", "--method", "magic"), "method must be one of"),
        (("linear", "people.parquet", "people.toml", "--param", "ridge"), "NAME=VALUE"),
        (("linear", "people.parquet", "people.toml", "--propose", "ridge"), "NAME=VALUE"),
        (("linear", "people.parquet", "people.toml", "--features", "2"), "for sparse models"),
        (("linear", "people.parquet", "people.toml", "--components", "2"), "for pca"),
        (("pca", "people.parquet", "people.toml", "--param", "a=1"), "has no parameters"),
        (("linear", "people.parquet", "people.toml", "--key", "a"), "give --ledger too"),
        (("linear", "people.parquet", "people.toml", "-o", "none/m.json"), "no such folder"),
        (("linear", "people.parquet", "people.toml", "--ledger", "none.ledger"), "none.ledger"),
        (("linear", "people.parquet", "people.toml", "--neighbours", "twins"), "add_remove"),
    ],
    ids=lambda value: " ".join(value[3:]) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said_in_a_sentence_before_the_charge(words: tuple[str, ...], says: str) -> None:
    result = run("fit", *words, "--epsilon", 1, code=1)
    assert says in result.stderr
    assert result.stderr.count("Error") == 1
    assert "Released" not in result.stdout


def test_a_target_must_be_named() -> None:
    Path("people.toml").write_text(people.SCHEMA.removeprefix('target = "income"\n'))
    assert "give --target" in run("fit", "linear", "people.parquet", "people.toml", "--epsilon", 1, code=1).stderr


def test_wrong_words_end_with_2() -> None:
    run("fit", "cubic", "people.parquet", "people.toml", "--epsilon", 1, code=2)
    run("fit", "linear", "people.parquet", "people.toml", code=2)


def test_at_a_terminal_nothing_is_charged_without_a_yes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "is_terminal", lambda: True)
    new_ledger()
    words = ("fit", "linear", "people.parquet", "people.toml", *QUICK, "--ledger", "people.ledger")
    assert "Nothing was charged" in run(*words, code=1, input="n\n").stderr
    assert charges() == 0
    run(*words, input="y\n")
    run(*words[:4], "--yes", *words[4:])


def test_a_report_is_written_beside_the_model(folder: Path) -> None:
    run("fit", "linear", "people.parquet", "people.toml", *QUICK, "-o", "m.json", "--report", "r.html")
    page = (folder / "r.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "city=Oslo" in page


def test_a_report_that_cannot_be_made_is_missed_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    new_ledger()
    monkeypatch.setitem(sys.modules, "snugdp.report.model", None)
    words = ("fit", "linear", "people.parquet", "people.toml", *QUICK, "--ledger", "people.ledger")
    assert "snugdp.report.model" in run(*words, "--report", "r.html", code=1).stderr
    assert charges() == 0
