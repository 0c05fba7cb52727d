"""--report on every command that releases: one page a run, released or refused, and nothing private on it."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import snugdp
from tests.cli import people
from tests.cli.people import run
from tests.report.test_model import Page

ROWS = 3187  # a number that nothing else is


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people.write(tmp_path, ROWS)
    table = people.table(ROWS).with_columns(bonus=pl.Series([0.0, 5000.0] * ROWS)[:ROWS])
    table.write_parquet("people.parquet")
    people.table(ROWS + 200)[ROWS:].write_csv("public.csv")
    return tmp_path


def page(*words: object, code: int = 0) -> str:
    """The text of the report of a command."""
    done = run(*words, "--report", "r.html", code=code)
    assert "r.html" in done.output
    text = Page(Path("r.html").read_text(encoding="utf-8")).text
    before, _, rest = text.partition("What was released")  # then noisy numbers, of which one may look like this
    after = rest.partition("What the best attack could do")[2]
    assert after
    after = re.sub(r"number of rows, with noise [\d,]+", "", after)  # released too
    assert not re.search(r"(?<![\d.,])3,?187(?![\d.,])", f"{before} {after}")
    Path("r.html").unlink()
    return text


def test_queries() -> None:
    known = ("people.parquet", "--schema", "people.toml", "--epsilon", 4)
    text = page("query", "median", *known, "-c", "age", "--beta", 2)
    assert text.startswith("Median of age Privacy report Median of age The promise: what it reveals about one person")
    assert "without noise, 19 of 20" in text
    assert "bounds 0 to 120" in text
    assert "No ledger was given" in text
    assert "vote of city" in page("query", "vote", *known, "-c", "city").lower()
    told = run("query", "trimmed-mean", *known, "-c", "income", "--report", "r.html", "--json")
    assert json.loads(told.stdout)["files"] == {"report": "r.html"}
    assert "Trimmed mean of income" in Path("r.html").read_text()
    assert "3,187" in Path("r.html").read_text()  # public under replace


def test_a_refused_query_says_what_to_do() -> None:
    bounds = ("--lower", 0, "--upper", 10_000, "--beta", 100, "--epsilon", 1, "--delta", 1e-9)
    text = page("query", "median", "people.parquet", "-c", "bonus", *bounds, code=3)
    assert "REFUSED" in text
    assert "What to do now" in text
    assert "released in 19 of 20 cases if at least 47 rows would have to change" in text
    assert "Answer" not in text


@pytest.mark.slow
def test_labels_and_a_student() -> None:
    np.save("v.npy", [[290, 5, 5], [5, 5, 290]] * 20)
    text = page("pate", "label", "v.npy", "--classes", "b,c,a", "--epsilon", 8, "-o", "labels.csv")
    assert "b 20 c 0 a 20" in text
    assert "the votes of one teacher" in text
    np.save("torn.npy", np.tile([201, 199], (300, 1)))
    torn = ("pate", "label", "torn.npy", "--epsilon", 1, "--delta", 1e-9, "--gap", 390, "--sigma", 10)
    assert "REFUSED" in page(*torn, code=3)
    start = people.SCHEMA.index("[columns.city]")
    Path("small.toml").write_text(people.SCHEMA[:start] + people.SCHEMA[people.SCHEMA.index("[columns.member]") :])
    words = ("pate", "train", "people.parquet", "small.toml", "--target", "member", "--queries", "public.csv")
    text = page(*words, "--epsilon", 8, "--teachers", 30, "--test", "none", "-o", "student.json")
    assert "A student of private teachers: member" in text
    assert "Coefficients of the student" in text


@pytest.mark.slow
def test_a_selection_and_a_fit() -> None:
    known = ("people.parquet", "people.toml", "--method", "adassp", "--epsilon", 3)
    grid = ("--validation", "public.csv", "--grid", "ridge=1,400", "--mean-runs", 2, "-o", "m.json")
    assert "the best of several runs" in page("select", "linear", *known, *grid)
    assert "What each step cost" in page("fit", "linear", *known)


def test_a_key_is_good_for_one_column_alone() -> None:
    with snugdp.Ledger.open("t.ledger", dataset="t", budget=snugdp.Budget(9, 1e-5)) as book:
        words = ("--lower", 0, "--upper", 200, "--beta", 5, "--epsilon", 1, "--ledger", "t.ledger", "--key", "k")
        run("query", "median", "people.parquet", "-c", "age", *words)
        run("query", "median", "people.parquet", "-c", "age", *words)
        assert "key" in run("query", "median", "people.parquet", "-c", "visits", *words, code=1).stderr
        assert len(book.entries()) == 1


def test_what_cannot_be_written_is_missed_before_the_charge() -> None:
    with snugdp.Ledger.open("t.ledger", dataset="t", budget=snugdp.Budget(9, 1e-5)) as book:
        known = ("people.parquet", "-c", "age", "--schema", "people.toml", "--epsilon", 1, "--ledger", "t.ledger")
        assert "cannot write" in run("query", "median", *known, "--report", "none/r.html", code=1).stderr
        assert not book.entries()


def test_a_report_for_machines() -> None:
    run("fit", "linear", "people.parquet", "people.toml", "--method", "output", "--epsilon", 1, "-o", "m.json")
    told = json.loads(run("report", "m.json", "-o", "r.html", "--json").stdout)
    assert told["title"] == "Linear regression of income"
    assert told["outcome"] == "released"
    assert told["files"] == {"report": "r.html"}
    assert sum(step["mu"] ** 2 for step in told["steps"]) ** 0.5 == pytest.approx(0.2355, abs=1e-3)
    steps = json.loads(Path("m.json").read_text())["steps"]
    assert [step["id"] for step in steps] == ["test-curvature", "test-residual", "release"]
    assert Path("r.html").exists()


def test_whose_data_what_for_and_of_when() -> None:
    """As the schema says in [about], unless options say otherwise; without a report they are refused."""
    told = '\n[about]\nowner = "The <shop>"\npurpose = "a yearly figure"\nperiod = "last spring"\n'
    Path("about.toml").write_text(Path("people.toml").read_text() + told)
    known = ("people.parquet", "--schema", "about.toml", "--epsilon", 4)
    text = page("query", "median", *known, "-c", "age", "--period", "2026", "--contact", "ann@shop.example")
    for said in ("The <shop>", "a yearly figure", "2026", "ann@shop.example"):
        assert said in text
    assert "last spring" not in text
    text = page("fit", "linear", "people.parquet", "about.toml", "--epsilon", 4, "--delta", 1e-6, "-o", "m.json")
    assert "a yearly figure" in text
    run("report", "m.json", "-o", "again.html", "--schema", "about.toml", "--owner", "Somebody else")
    text = Page(Path("again.html").read_text()).text
    assert "Somebody else" in text
    assert "a yearly figure" in text
    assert "The <shop>" not in text
    assert "--owner is for the report" in run("query", "median", *known, "-c", "age", "--owner", "x", code=1).output


@pytest.mark.parametrize(
    ("lines", "why"),
    [("[about]\nowners = 'x'", 'unknown key "owners"'), ("[about]\nperiod = 2025", "about.period must be text")],
)
def test_what_about_cannot_say_is_refused_before_the_charge(lines: str, why: str) -> None:
    Path("about.toml").write_text(Path("people.toml").read_text() + "\n" + lines + "\n")
    known = ("people.parquet", "--schema", "about.toml", "--epsilon", 4, "-c", "age")
    run("ledger", "create", "l", "--dataset", "p", "--epsilon", 5)
    for more in ((), ("--report", "r.html")):
        assert why in run("query", "median", *known, "--ledger", "l", *more, code=1).output
    assert "Nothing was charged yet" in run("ledger", "show", "l").output


def test_a_report_without_a_ledger_says_so() -> None:
    known = ("query", "median", "people.parquet", "-c", "age", "--lower", 0, "--upper", 120, "--epsilon", 4)
    text = page(*known, "--owner", "The shop")
    assert "none: not counted against any budget" in text
    run("ledger", "create", "l", "--dataset", "p-2026", "--epsilon", 5)
    text = page(*known, "--owner", "The shop", "--ledger", "l")
    assert "p-2026" in text
    assert "none: not counted" not in text
