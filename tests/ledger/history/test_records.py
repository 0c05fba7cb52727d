"""Records: one text for one meaning, chained; amounts are exact and stay short."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp import Budget, Cost, Neighbours
from snugdp.accounting.composition import Atom, Branch
from snugdp.ledger.errors import TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history.records import Row
from snugdp.serial import costs as amounts

STAMP = {"time": "2026-01-01T00:00:00+00:00", "software": "snugdp"}
parts = st.builds(Fraction, st.integers(0, 10**12), st.sampled_from([1, 3, 7**9, 10**20, 2**60]))
SIDES = (
    (Branch(Fraction(1, 3), Fraction(2)),),
    (Branch(Fraction(0), Fraction(1, 7)), Branch(Fraction(2), Fraction(0))),
)
ATOMS = [Atom(SIDES[0], SIDES[1]), Atom(SIDES[1], SIDES[0]), Atom(SIDES[0], SIDES[0])]
costs = st.builds(
    lambda m, e, d, v, a: Cost(mu_squared=m, epsilon=e, delta=d, variation=v, atoms=tuple(a)),
    *(parts, parts, parts, parts, st.lists(st.sampled_from(ATOMS), max_size=4)),
)


@given(costs)
def test_a_cost_is_read_as_it_was_written(cost: Cost) -> None:
    text = records.canonical({"cost": amounts.cost_to_json(cost)})
    assert amounts.cost_from_json(json.loads(text)["cost"], Neighbours.ADD_REMOVE) == cost


@given(costs, costs)
def test_the_fast_sum_is_the_sum(one: Cost, other: Cost) -> None:
    assert amounts.added(one, other) == one + other


@given(st.lists(costs, min_size=1, max_size=3))
def test_the_largest_dominates_each_and_is_no_larger_than_needed(several: list[Cost]) -> None:
    top = amounts.largest(several)
    for name in amounts.PARTS:
        assert getattr(top, name) == max(getattr(cost, name) for cost in several)
    for atom in set(top.atoms):
        assert top.atoms.count(atom) == max(cost.atoms.count(atom) for cost in several)
    assert set(top.atoms) == {atom for cost in several for atom in cost.atoms}


@given(st.fractions(min_value=0, max_value=10**6))
def test_a_long_amount_is_rounded_up_and_a_short_one_is_not(value: Fraction) -> None:
    assert amounts.short(value) == value or amounts.bits(value) > amounts.MAX_AMOUNT_BITS
    odd = value + Fraction(1, 3**400)
    up = amounts.short(odd)
    assert 0 < up - odd < Fraction(1, 10**76)
    assert amounts.bits(up) <= amounts.MAX_AMOUNT_BITS


def test_ten_thousand_different_denominators_stay_short_and_never_below_the_sum() -> None:
    total, exact = Cost(), 0.0
    for n in range(1, 3000):
        total = amounts.added(total, Cost(epsilon=Fraction(1, 1000 + n)))
        exact += 1 / (1000 + n)
    assert amounts.bits(total.epsilon) <= amounts.MAX_AMOUNT_BITS
    assert float(total.epsilon) == pytest.approx(exact, rel=1e-12)


def test_a_tenth_and_a_fifth_are_three_tenths() -> None:
    assert amounts.added(Cost(epsilon=0.1), Cost(epsilon=0.2)).epsilon == Fraction(3, 10)


def test_a_number_beyond_all_budgets_is_refused() -> None:
    with pytest.raises(ValueError, match="far larger"):
        amounts.recorded(Cost(epsilon=Fraction(10) ** 300 + Fraction(1, 3**300)))
    assert amounts.recorded(Cost(delta="1e-400")).delta == Fraction(1, 2**256)


@pytest.mark.parametrize(
    "text",
    ["", "1/0", "-1", "+1", "01", "1/1", "2/4", "0/5", "1.5", "1e3", " 1", "1 ", "１", "nan", "1_0", None, 1, 0.5],
)
def test_only_what_would_be_written_is_read(text: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        amounts.amount(text)


@pytest.mark.parametrize(
    "written",
    [{"epsilon": "0"}, {"eps": "1"}, {"atoms": []}, {"atoms": [[[["1", "1", "1"]], []]]}, [], "1", None, {"mu": "1"}],
)
def test_a_cost_of_another_form_is_refused(written: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        amounts.cost_from_json(written, Neighbours.ADD_REMOVE)


@pytest.mark.parametrize("budget", [Budget(0.3, 1e-6), Budget("1/3"), Cost(mu=1, delta=0.1), Cost()])
def test_a_budget_is_read_as_it_was_written(budget: Budget | Cost) -> None:
    assert amounts.budget_from_json(amounts.budget_to_json(budget), Neighbours.ADD_REMOVE) == budget


def chain() -> tuple[records.Record, records.Record]:
    first = records.write("", 0, "partition", {"name": "a", "parts": ["b"], **STAMP})
    return first, records.write(first.hash, 1, "outcome", {"of": 1, "state": "released", "body": None, **STAMP})


def test_a_chain_is_read_as_it_was_written() -> None:
    first, second = chain()
    assert records.read(first.row(), "", 0) == first
    assert records.read(second.row(), first.hash, 1) == second
    assert json.loads(second.text)["prev"] == first.hash


def test_every_changed_character_is_noticed() -> None:
    _, second = chain()
    prev = json.loads(second.text)["prev"]
    for i, character in enumerate(second.text):
        changed = second.text[:i] + ("0" if character != "0" else "1") + second.text[i + 1 :]
        with pytest.raises(TamperedLedgerError, match="changed"):
            records.read(Row(1, changed, None, second.hash), prev, 1)
        with pytest.raises(TamperedLedgerError):  # and a hash that was made to fit does not help against the chain
            records.read(Row(1, changed, None, records.digest(changed)), prev[:-1] + "x", 1)


def test_swapped_renumbered_and_foreign_records_are_noticed() -> None:
    first, second = chain()
    with pytest.raises(TamperedLedgerError, match="missing"):
        records.read(second.row(), "", 0)
    with pytest.raises(TamperedLedgerError, match="does not follow"):
        records.read(second.row()._replace(seq=2), first.hash, 2)
    with pytest.raises(TamperedLedgerError, match="does not follow"):
        records.read(second.row(), second.hash, 1)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", '{"a": 1}', '{"a":1,"a":1}', '{"b":1,"a":1}', "{" * 100_000, "[" * 100_000, '{"a":"é"}'],
)
def test_what_is_not_canonical_is_refused(text: str) -> None:
    with pytest.raises(TamperedLedgerError):
        records.read(Row(0, text, None, records.digest(text)), "", 0)


@pytest.mark.parametrize(
    "row",
    [
        Row(0, b"{}", None, "x"),  # type: ignore[arg-type]
        Row(0, "{}", None, None),  # type: ignore[arg-type]
        Row("0", "{}", None, "x"),  # type: ignore[arg-type]
        Row(None, None, None, None),  # type: ignore[arg-type]
        Row(False, "{}", None, "x"),
    ],
)
def test_cells_of_other_types_are_refused(row: Row) -> None:
    with pytest.raises(TamperedLedgerError):
        records.read(row, "", 0)


def test_fields_are_neither_missing_nor_added() -> None:
    good = {"of": 1, "state": "released", "body": None, **STAMP}
    assert records.read(records.write("", 0, "outcome", good).row(), "", 0)
    for bad in ({**good, "more": 1}, {k: v for k, v in good.items() if k != "of"}, {**good, "time": 1}):
        with pytest.raises(TamperedLedgerError, match="unknown form"):
            records.read(records.write("", 0, "outcome", bad).row(), "", 0)
    with pytest.raises(TamperedLedgerError, match="unknown form"):
        records.read(records.write("", 0, "gift", good).row(), "", 0)


def test_a_newer_format_is_refused_with_the_way_out() -> None:
    newer = records.write("", 0, "genesis", {"format": records.FORMAT + 1, "anything": 1})
    with pytest.raises(TamperedLedgerError, match="upgrade snugdp"):
        records.read(newer.row(), "", 0)


def test_a_body_belongs_to_its_record() -> None:
    record = records.write("", 0, "outcome", {"of": 1, "state": "released", "body": records.digest("7"), **STAMP})
    assert records.read(record.row("7"), "", 0) == record
    for body in ("8", None, "", b"7"):
        with pytest.raises(TamperedLedgerError, match="output"):
            records.read(record.row(body), "", 0)  # type: ignore[arg-type]
    plain = records.write("", 0, "partition", {"name": "a", "parts": ["b"], **STAMP})
    with pytest.raises(TamperedLedgerError, match="output"):
        records.read(plain.row("7"), "", 0)
