"""What the command line says of a ledger: totals in one epsilon and delta, the last entries, a page, a comparison."""

import json
from pathlib import Path

import pytest

import snugdp
from tests.cli.people import run

AGES = [20 + (i * 37) % 50 for i in range(3000)]


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with snugdp.Ledger.open("l.ledger", dataset="<survey>", budget=snugdp.Budget(2, 2e-6)) as ledger:
        snugdp.median(AGES, bounds=(0, 120), epsilon=0.5, ledger=ledger)
        for number in range(30):
            ledger.charge(snugdp.Cost(epsilon="0.01"), f"<b>{number}</b>", key=f"k{number}")
    return tmp_path


def test_show(book: Path) -> None:
    shown = run("ledger", "show", "l.ledger").stdout
    assert "spent      epsilon 0.8 and delta 0, in 31 entries" in shown
    assert "left       epsilon 1.2 and delta 2e-06" in shown
    assert "The last 20 of 31 entries" in shown
    assert "Cost(" not in shown
    assert " or epsilon " not in shown
    assert shown.count("\n") < 35
    assert "Median" in run("ledger", "show", "l.ledger", "--last", "31").stdout
    assert " or epsilon " in run("ledger", "show", "l.ledger", "--verbose").stdout
    told = json.loads(run("ledger", "show", "l.ledger", "--json", "--last", "2").stdout)
    assert (told["count"], len(told["entries"]), told["composition"]) == (31, 2, "addition")
    assert (told["spent"]["epsilon"], told["left"]["epsilon"]) == (0.8, 1.2)
    assert told["entries"][1]["epsilon"] == 0.01


def test_a_page_holds_everything_and_escapes_it(book: Path) -> None:
    assert "Wrote page.html" in run("ledger", "page", "l.ledger", "-o", "page.html").stdout
    text = (book / "page.html").read_text()
    assert "<svg" in text
    assert "&lt;b&gt;29&lt;/b&gt;" in text
    assert "<b>29</b>" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "40 % of epsilon is spent" in text
    with snugdp.Ledger.open("both.ledger", dataset="x", budget=snugdp.Budget(2, 1e-6), composition="both") as ledger:
        ledger.charge(snugdp.Cost(epsilon="1/1000"), "little")
    run("ledger", "page", "both.ledger", "-o", "both.html")
    assert "1 % of epsilon is spent" in (both := (book / "both.html").read_text())  # nothing rounds to 0
    assert "each with half of the delta" in both
    with snugdp.Ledger.open("l.ledger") as ledger:
        note = ledger._repr_html_()
    assert "&lt;b&gt;29&lt;/b&gt;" in note
    assert "The last 20 of 31 entries" in note
    assert "left" in snugdp.MemoryLedger(1)._repr_html_()


def test_plans_are_compared(book: Path) -> None:
    (book / "both.toml").write_text("[[release]]\nepsilon = 1\ndelta = 1e-6\n[[release]]\nname='b'\nmu = 0.1\n")
    (book / "more.json").write_text('[{"epsilon": "0.5"}]')
    told = run("ledger", "plan", "both.toml", "more.json", "--epsilon", "2", "--delta", "2e-6").stdout
    assert "addition  takes all 3 and leaves epsilon 0.02" in told
    assert "both      takes the first 1 of 3" in told
    whole = json.loads(run("ledger", "plan", "both.toml", "--ledger", "l.ledger", "--json").stdout)
    assert [one["composition"] for one in whole] == ["addition", "tight", "both"]
    assert whole[0]["taken"] == 1
    assert "epsilon = 0.5" in run("ledger", "plan", "l.ledger.anchor", "--epsilon", "1", code=1).output


def test_a_comparison_leaves_what_the_ledger_would_leave(book: Path) -> None:
    """By its own way: small pure releases as Gaussian ones, and reservations with their own cost."""
    (book / "one.json").write_text('[{"epsilon": "0.01"}]')
    one = snugdp.Cost(epsilon="0.01")
    for reserves in (False, True):
        place, budget = f"{reserves}.ledger", snugdp.Budget(1, 1e-6)
        with snugdp.Ledger.open(place, dataset="x", budget=budget, composition="both") as ledger:
            ledger.charge(one, "little")
            if reserves:
                ledger.reserve(one, "later")
            left = ledger.remaining_after(one)
        told = json.loads(run("ledger", "plan", "one.json", "--ledger", place, "--json").stdout)
        assert left is not None
        assert told[2]["left"]["exact"] == left.as_dict()


def test_a_plan_counts_with_what_it_keeps(book: Path) -> None:
    """One whose cost is more than what it announces counts as in a ledger: with its own."""
    false = {"cost": {"exact": {"epsilon": "1"}}, "budget": {"epsilon": "1/10", "delta": "0"}}
    (book / "false.json").write_text(json.dumps(false))
    told = run("ledger", "plan", "false.json", "--epsilon", "0.5").stdout
    assert told.count("takes the first 0 of 1") == 3
    (book / "half.json").write_text(json.dumps(false | {"budget": {"epsilon": "1"}}))
    assert "planned releases are" in run("ledger", "plan", "half.json", "--epsilon", "1", code=1).output


class Untouchable:
    """Data that must not be looked at."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"{name} was looked at")


def test_another_relation_is_refused_before_anything_is_read(book: Path) -> None:
    with snugdp.Ledger.open("l.ledger") as ledger:
        before = ledger.spent
        for account in (ledger, ledger.once("k"), "l.ledger", snugdp.MemoryLedger(9, 1e-3)):
            with pytest.raises(snugdp.RelationMismatchError, match="--neighbours replace"):
                snugdp.TrimmedMean(bounds=(0, 100), epsilon=1, delta=1e-6).release(Untouchable(), ledger=account)
        assert ledger.spent == before
    (book / "people.csv").write_text("age\n30\n")
    told = run(
        "query", "trimmed-mean", "people.csv", "--column", "age", "--lower", "0", "--upper", "100", "--epsilon", "1",
        "--delta", "1e-6", "--ledger", "l.ledger", "--plan", code=1,
    )  # fmt: skip
    assert "--neighbours replace" in told.output
