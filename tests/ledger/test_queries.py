"""Queries paid from a ledger that outlives the process: one key, one charge, one output, whatever happens between."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import snugdp
from snugdp.mechanisms.selection.select import Selected
from tests.effort import sampled
from tests.ledger.conftest import Where, made
from tests.serial.test_codec import Whole, same

BUDGET = snugdp.Budget(50, 1e-2)
AGES = [30 + i % 7 for i in range(5000)]
VOTES = [[10, 280, 10], [290, 5, 5]] * 3


def recipe(ledger: Any) -> snugdp.Outcome[float]:
    total: snugdp.Statistic[list[float]] = snugdp.Statistic("total", sum, 1, "upper", (0, 1000))
    algorithm = snugdp.from_statistics(
        loss=lambda total: 0.1, statistics=(total,), draw=lambda data, noise: 0.25, budget=snugdp.Budget(1, 1e-6)
    )
    return algorithm([1.0] * 50, ledger=ledger)


def selection(ledger: Any) -> snugdp.Outcome[Selected[float]]:
    def run(outside: float, budget: snugdp.Budget, own: Any) -> Any:
        return snugdp.private_bounds(AGES, epsilon=budget.epsilon, outside=outside, ledger=own)

    return snugdp.select(
        [0.01, 0.1], run, lambda outcome: 1.0, budget=snugdp.Budget(1, 1e-6), ledger=ledger, progress=False
    )


QUERIES: dict[str, Callable[[Any], snugdp.Outcome[Any]]] = {
    "median": lambda ledger: snugdp.median(AGES, bounds=(0, 100), epsilon=1, delta=1e-6, ledger=ledger),
    "tested median": lambda ledger: snugdp.median(
        AGES, bounds=(0, 100), epsilon=1, delta=1e-6, method="test", ledger=ledger
    ),
    "quantiles": lambda ledger: snugdp.quantiles(AGES, [0.2, 0.5, 0.9], bounds=(0, 100), epsilon=1, ledger=ledger),
    "quantile": lambda ledger: snugdp.quantile(AGES, 0.25, bounds=(0, 100), epsilon=1, delta=1e-6, ledger=ledger),
    "trimmed_mean": lambda ledger: snugdp.trimmed_mean(AGES, bounds=(0, 100), epsilon=1, delta=1e-6, ledger=ledger),
    "mode": lambda ledger: snugdp.mode(AGES, categories=[30, 31], epsilon=1, delta=1e-6, ledger=ledger),
    "vote": lambda ledger: snugdp.vote(AGES, candidates=[30, 31], epsilon=0.01, ledger=ledger),
    "bounds": lambda ledger: snugdp.private_bounds(AGES, epsilon=1, ledger=ledger),
    "labels": lambda ledger: snugdp.pate.label(
        VOTES, snugdp.Budget(1, 1e-5), test="none", classes=["a", "b", "c"], ledger=ledger
    ),
    "tested labels": lambda ledger: snugdp.pate.label(VOTES, snugdp.Budget(4, 1e-5), gap=250, ledger=ledger),
    "recipe": recipe,
    "selection": selection,
}


def vote(ledger: Any, data: Any = (1, 2)) -> snugdp.Outcome[Any]:
    """A coin: 60 calls agree with probability 2**-59."""
    return snugdp.vote(data, candidates=[1, 2], epsilon=0.001, ledger=ledger)


@sampled(5)
@pytest.mark.parametrize("query", QUERIES)
def test_a_retry_is_not_charged_and_shows_the_same_outcome(where: Where, query: str) -> None:
    neighbours = "replace" if query == "trimmed_mean" else "add_remove"
    with made(where, snugdp.Budget(50, 1e-2, neighbours)) as ledger:
        first = QUERIES[query](ledger.once("nightly"))
        again = [QUERIES[query](ledger.once("nightly")) for _ in range(2)]
        assert all(same(outcome, first) for outcome in again)
        (entry,) = ledger.entries()
        assert (entry.key, entry.state) == ("nightly", "refused" if first.refused else "released")
        assert ledger.spent == first.cost == first.receipt.cost  # type: ignore[union-attr]
        ledger.verify([first.receipt])  # type: ignore[union-attr]


def test_one_key_is_one_output_and_no_key_is_many(ledger: snugdp.Ledger) -> None:
    assert len({vote(ledger.once("k")).value for _ in range(20)}) == 1
    assert len({vote(ledger).value for _ in range(60)}) == 2
    assert len(ledger.entries()) == 61
    assert ledger.spent == snugdp.Cost(epsilon="0.061")


def test_a_refusal_is_kept_too(ledger: snugdp.Ledger) -> None:
    for _ in range(2):
        outcome = snugdp.mode([1, 2], categories=[1, 2], epsilon=1, delta=1e-6, ledger=ledger.once("tie"))
        assert isinstance(outcome, snugdp.Refused)
    assert [entry.state for entry in ledger.entries()] == ["refused"]


def test_a_ledger_by_its_path_or_url(where: Where) -> None:
    made(where, BUDGET).close()
    places: list[Any] = [where.address, Path(where.address)] if where.kind == "sqlite" else [where.address]
    for place in places:
        assert isinstance(QUERIES["bounds"](place), snugdp.Released)
    with snugdp.Ledger.open(where.address) as ledger:
        assert len(ledger.entries()) == len(places)
        assert ledger.spent.epsilon == len(places)


class Rows(list[float]):
    """Rows that must not be looked at."""

    def __iter__(self) -> Iterator[float]:
        raise AssertionError("read")


@pytest.mark.parametrize("path", ["nothing.ledger", "no/such/folder/x.ledger", ""])
def test_what_is_no_ledger_is_said_before_a_row_is_read(path: str, tmp_path: Path) -> None:
    there = str(tmp_path / path) if path else ""
    with pytest.raises((snugdp.LedgerError, ValueError, OSError)) as error:
        snugdp.median(Rows([1.0]), bounds=(0, 1), epsilon=1, delta=1e-6, ledger=there)
    assert "ledger" in str(error.value)
    assert not list(tmp_path.rglob("*"))  # no lock either


def test_a_rehearsal_touches_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NOT PRIVATE"):
        snugdp.vote([1], candidates=[1, 2], epsilon=1, ledger=tmp_path / "none", noise=snugdp.Simulation(1))


def test_a_short_budget_stops_a_query_and_not_a_retry(where: Where) -> None:
    with made(where, snugdp.Budget("0.001")) as ledger:
        first = vote(ledger.once("k"))
        with pytest.raises(snugdp.BudgetExceededError):
            vote(ledger)
        assert same(vote(ledger.once("k")), first)


def test_a_winner_that_cannot_be_written_down_is_shown_once(ledger: snugdp.Ledger) -> None:
    def run(proposal: int, budget: snugdp.Budget, own: Any) -> Any:
        return snugdp.vote([1], candidates=[1, 2], epsilon=budget.epsilon, ledger=own)

    def choice() -> snugdp.Selection[int]:
        return snugdp.Selection(
            [Whole(1), Whole(2)], run, lambda release: 1.0, budget=snugdp.Budget(1), route="compose"
        )

    outcome = choice().release(ledger=ledger.once("k"), progress=False)
    assert isinstance(outcome, snugdp.Released)
    assert type(outcome.value.proposal) is Whole
    with pytest.raises(snugdp.KeyConflictError, match="consumed"):
        choice().release(ledger=ledger.once("k"), progress=False)


def test_parts_and_reservations(ledger: snugdp.Ledger) -> None:
    table = pl.DataFrame({"said": [1, 2] * 2, "region": ["north"] * 2 + ["south"] * 2})
    ledger.partition("region", ["north", "south"])
    for part in ("north", "south"):
        first = vote(ledger.part("region", part).once(part), table)
        assert same(vote(ledger.part("region", part).once(part), table), first)
    assert ledger.spent == snugdp.Cost(epsilon="0.001")
    held = ledger.reserve(snugdp.Cost(epsilon="0.002"), "long work", key="work")
    first = vote(held.once("one"))
    assert same(vote(ledger.reserve(snugdp.Cost(epsilon="0.002"), "long work", key="work").once("one")), first)
    vote(held)
    with pytest.raises(snugdp.BudgetExceededError):
        vote(held)
    assert ledger.spent == snugdp.Cost(epsilon="0.003")
