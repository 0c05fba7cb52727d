"""A ledger protects one unit: rows, persons or teachers; releases for others are refused before anything is drawn."""

from pathlib import Path
from typing import Any

import pytest

import snugdp
from snugdp import Budget, Cost, Ledger, MemoryLedger, Unit, UnitMismatchError
from snugdp.ledger import requests
from snugdp.release.context import ReleaseContext

BUDGET = Budget(1, 1e-6)
LABELS = {
    None: Unit.ROW,
    "row": Unit.ROW,
    "one row": Unit.ROW,
    "person": Unit.PERSON,
    "teacher": Unit.TEACHER,
}


@pytest.mark.parametrize("label", LABELS)
def test_whom_a_ledger_protects(tmp_path: Path, label: str | None) -> None:
    where = tmp_path / "people.ledger"
    with Ledger.open(where, dataset="people", budget=BUDGET, unit=label) as ledger:
        assert ledger.unit == ("one row" if label in (None, "row") else label)
        assert Unit.of_label(ledger.unit) is LABELS[label]
        assert ledger.once("a key").unit == ledger.unit
    Ledger.open(where, unit=label).close()
    with pytest.raises(ValueError, match="has unit="):
        Ledger.open(where, unit="somebody else")


def test_a_label_that_nothing_checks_is_refused_and_read_in_old_ledgers(tmp_path: Path) -> None:
    """A customer has several orders: a ledger that counts rows does not protect "one customer"."""
    for label in ("one customer", "one person", "customers", "Person"):
        with pytest.raises(ValueError, match="unit says whom the ledger protects"):
            Ledger.open(tmp_path / "a.ledger", dataset="orders", budget=BUDGET, unit=label)
    assert not (tmp_path / "a.ledger").exists()
    with pytest.MonkeyPatch.context() as patched:  # as ledgers were made before
        patched.setattr(requests, "_unit_of_new", lambda label: label)
        Ledger.open(tmp_path / "a.ledger", dataset="orders", budget=BUDGET, unit="one customer").close()
    for said in (None, "one customer"):
        with Ledger.open(tmp_path / "a.ledger", unit=said) as ledger:
            assert Unit.of_label(ledger.unit) is Unit.ROW
            assert 'protects one row, called "one customer"' in ledger.show()


def test_a_unit_may_be_given_as_one(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", dataset="people", budget=BUDGET, unit=Unit.PERSON) as ledger:
        assert ledger.unit == MemoryLedger(1, unit=Unit.PERSON).unit == "person"
        assert "protects one person, whatever the number of rows" in ledger.show()
    with pytest.raises(ValueError, match='unit must be "row", "person" or "teacher"'):
        MemoryLedger(1, unit="one customer")


def test_releases_for_others_are_refused_and_cost_nothing(tmp_path: Path) -> None:
    rows: Any = {"who": ["a", "a", "b"], "value": [1.0, 2.0, 3.0]}
    import polars as pl

    table = pl.DataFrame(rows)
    given: Any
    for unit, given in (("person", {}), ("row", {"person": "who"})):
        with Ledger.open(tmp_path / f"{unit}.ledger", dataset="orders", budget=BUDGET, unit=unit) as ledger:
            for account in (ledger, ledger.once("a key"), str(tmp_path / f"{unit}.ledger")):
                with pytest.raises(UnitMismatchError, match="must not be added, and nothing was drawn"):
                    snugdp.count(table, epsilon=1, ledger=account, **given)
            assert ledger.spent == Cost()
            assert not ledger.entries()


def test_labels_of_teachers_are_taken_by_all_ledgers() -> None:
    for unit in Unit:
        ReleaseContext(ledger=MemoryLedger(1, unit=unit), unit=Unit.TEACHER)
    with pytest.raises(UnitMismatchError, match="protects teachers, but the release protects single rows"):
        ReleaseContext(ledger=MemoryLedger(1, unit="teacher"))


def test_an_account_that_knows_no_unit_takes_all() -> None:
    class Plain:
        def charge(self, cost: Cost, what: str) -> snugdp.Receipt:
            return snugdp.Receipt("plain", 1, what, cost)

    assert snugdp.count([1, 2], epsilon=1, ledger=Plain()).unit is Unit.ROW
    ReleaseContext(ledger=Plain(), unit=Unit.PERSON)


def test_plans_say_what_a_ledger_would_not_take(tmp_path: Path) -> None:
    """Before a row is read, with the way out: another relation, another unit."""
    quantile = snugdp.Quantile(q=0.5, bounds=(0, 9), beta=1, rows=99, epsilon=0.5, delta=1e-7, neighbours="replace")
    trimmed = snugdp.TrimmedMean(bounds=(0, 9), beta=1, rows=99, epsilon=0.5, delta=1e-7, neighbours="replace")
    counts: Any = snugdp.Count(epsilon=0.5, person="who")
    others: list[dict[str, Any]] = [{"neighbours": "replace"}, {"person": "who"}]
    line: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-7, "x_norm": 1, "y_bound": 1}
    with Ledger.open(tmp_path / "default.ledger", dataset="people", budget=BUDGET) as ledger:
        for account in (ledger, str(tmp_path / "default.ledger"), ledger.once("k"), MemoryLedger(1, 1e-6)):
            for query in (quantile, trimmed):
                with pytest.raises(snugdp.RelationMismatchError, match='neighbours="replace"'):
                    query.plan(ledger=account)
            with pytest.raises(UnitMismatchError, match="ledger for persons"):
                counts.plan(ledger=account)
            for given in others:
                for make in (snugdp.LinearRegression, snugdp.SparseLinearRegression):
                    model: Any = make(**line, **given, ledger=account)
                    with pytest.raises((snugdp.RelationMismatchError, UnitMismatchError)):
                        model.plan(2)
            assert snugdp.LinearRegression(**line, ledger=account).plan(2).cost.fits(Budget(0.5, 1e-7))
            assert quantile.plan() == quantile.plan(ledger=MemoryLedger(1, 1e-6, "replace"))
        assert not ledger.entries()
    with Ledger.open(tmp_path / "persons.ledger", dataset="people", budget=BUDGET, unit="person") as ledger:
        assert counts.plan(ledger=ledger) == counts.plan()
        with pytest.raises(UnitMismatchError, match="Name the column of identifiers"):
            snugdp.LinearRegression(**line, ledger=ledger).plan(2)
