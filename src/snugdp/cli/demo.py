"""The demonstration: a made-up table, one budget, five questions, one refusal, and a line."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from statistics import NormalDist
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from snugdp.accounting.rational import Real
from snugdp.cli.demo_line import show_line
from snugdp.guarantee import Neighbours
from snugdp.ledger import MemoryLedger
from snugdp.outcome import Outcome
from snugdp.queries.bounds import private_bounds
from snugdp.queries.labels import Mode, Vote
from snugdp.queries.robust import Median, Quantile, RobustQuery, TrimmedMean

_ROWS = 100_000
_WAYS = ("car", "train", "bicycle", "on foot")
_SHARES = (9, 15, 18, 20)  # of twenty people, running total


def incomes() -> list[float]:
    """100,000 made-up yearly incomes, log-normal around 33,000."""
    normal = NormalDist(10.4, 0.5)
    return [round(math.exp(normal.inv_cdf((i + 0.5) / _ROWS)), 2) for i in range(_ROWS)]


def ways_to_work() -> list[str]:
    """100,000 made-up answers to "how do you get to work?"."""
    twenty = [next(way for way, share in zip(_WAYS, _SHARES, strict=True) if i < share) for i in range(20)]
    return twenty * (_ROWS // 20)


def estimated(rows: list[float], budget: MemoryLedger) -> tuple[Real, Real]:
    """Private bounds on the incomes, from one streamed pass over a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        pl.DataFrame({"income": rows}).write_parquet(file)
        outcome = private_bounds(file, columns=["income"], epsilon=0.2, neighbours="replace", ledger=budget)
    assert outcome.value is not None  # this release has no test
    found = outcome.value["income"]
    return found.lower, found.upper


def show(console: Console) -> None:
    """Estimate bounds, print a plan, then spend the rest of the budget."""
    relation, budget = Neighbours.REPLACE, MemoryLedger(2, 1e-6, Neighbours.REPLACE, label="demonstration")
    rows, ways = incomes(), ways_to_work()
    _say(console, f"A made-up table of {_ROWS:,} people. Budget for all questions: epsilon 2, delta 1e-6.\n")
    bounds = estimated(rows, budget)
    low, high = (f"{float(bound):,g}" for bound in bounds)
    _say(console, f"Bounds on the incomes, estimated privately for epsilon 0.2: {low} to {high}.\n")

    common: dict[str, Any] = {"bounds": bounds, "epsilon": 0.4, "neighbours": relation, "rows": _ROWS}
    questions: list[tuple[str, RobustQuery]] = [
        ("median income", Median(delta=2e-7, beta=100, **common)),
        ("90 % quantile of income", Quantile(q=0.9, delta=2e-7, beta=300, **common)),
        ("mean income without the outer tenths", TrimmedMean(delta=2e-7, **common)),
    ]
    _say(console, f"Propose: a plan is public and free.\n\n{questions[0][1].plan()}\n")

    answers = Table("question", "released", "true", "epsilon", title="Test and release", title_justify="left")
    middle = rows[_ROWS // 10 : -_ROWS // 10]  # the made-up incomes are in order
    truths = (rows[_ROWS // 2 - 1], rows[_ROWS * 9 // 10 - 1], sum(middle) / len(middle))
    for (name, query), truth in zip(questions, truths, strict=True):
        answers.add_row(name, _money(query.release(rows, ledger=budget)), f"{truth:,.0f}", "0.4")
    mode = Mode(categories=_WAYS, epsilon=0.3, delta=2e-7, neighbours=relation)
    answers.add_row("most common way to work", str(mode.release(ways, ledger=budget).value), _WAYS[0], "0.3")
    vote = Vote(candidates=_WAYS, epsilon=0.2, neighbours=relation)
    answers.add_row("the same, by noisy vote", str(vote.release(ways, ledger=budget).value), _WAYS[0], "0.2")
    console.print(answers)

    torn = [0.0] * 50 + [500_000.0] * 50
    query = Median(bounds=(0, 500_000), epsilon=0.1, delta=2e-7, neighbours=relation, beta=50)
    _say(
        console,
        "\nA hundred people, half with nothing and half with everything: "
        f"{_money(query.release(torn, ledger=budget))}.\n"
        "One of them could move that median by 500,000. The test noticed; it gives no reason, and it costs the same.\n",
    )
    spent = budget.spent
    _say(console, f"Spent: epsilon {float(spent.epsilon):g} of 2, delta {float(spent.delta):g} of 1e-06.")
    show_line(console)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _money(outcome: Outcome[float]) -> str:
    return "refused" if outcome.value is None else f"{outcome.value:,.0f}"
