"""The demonstration: a made-up table, one budget, five questions, and one refusal."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

from rich.console import Console
from rich.table import Table

from snugdp.guarantee import Neighbours
from snugdp.ledger import MemoryLedger
from snugdp.outcome import Outcome
from snugdp.queries.labels import Mode, Vote
from snugdp.queries.robust import Median, Quantile, RobustQuery, TrimmedMean

_ROWS = 20_000
_WAYS = ("car", "train", "bicycle", "on foot")


def incomes() -> list[float]:
    """20,000 made-up yearly incomes, log-normal around 32,000."""
    normal = NormalDist(10.4, 0.5)
    return [round(2.718281828459045 ** normal.inv_cdf((i + 0.5) / _ROWS), 2) for i in range(_ROWS)]


def ways_to_work() -> list[str]:
    """20,000 made-up answers to "how do you get to work?"."""
    return [_WAYS[0 if i % 20 < 9 else 1 if i % 20 < 15 else 2 if i % 20 < 18 else 3] for i in range(_ROWS)]


def show(console: Console) -> None:
    """Print the plans, then spend the budget."""
    relation, budget = Neighbours.REPLACE, MemoryLedger(2, 1e-6, Neighbours.REPLACE, label="demonstration")
    common: dict[str, Any] = {"bounds": (0, 500_000), "epsilon": 0.4, "neighbours": relation, "rows": _ROWS}
    questions: list[tuple[str, RobustQuery]] = [
        ("median income", Median(delta=2e-7, **common)),
        ("90 % quantile of income", Quantile(q=0.9, delta=2e-7, **common)),
        ("mean income without the outer tenths", TrimmedMean(delta=2e-7, beta=8, **common)),
    ]
    console.print(f"A made-up table of {_ROWS:,} people. Budget for all questions: epsilon 2, delta 1e-6.\n")
    console.print("[bold]Propose[/bold]: a plan is public and free.", highlight=False)
    console.print(str(questions[0][1].plan()) + "\n", highlight=False)

    answers = Table("question", "released", "true", "epsilon", title="Test and release", title_justify="left")
    rows, ways = incomes(), ways_to_work()
    ordered = sorted(rows)
    truths = (ordered[_ROWS // 2 - 1], ordered[_ROWS * 9 // 10 - 1], sum(ordered[2000:-2000]) / 16_000)
    for (name, query), truth in zip(questions, truths, strict=True):
        answers.add_row(name, _money(query.release(rows, ledger=budget)), f"{truth:,.0f}", "0.4")
    mode = Mode(categories=_WAYS, epsilon=0.4, delta=2e-7, neighbours=relation)
    answers.add_row("most common way to work", str(mode.release(ways, ledger=budget).value), "car", "0.4")
    vote = Vote(candidates=_WAYS, epsilon=0.3, neighbours=relation)
    answers.add_row("the same, by noisy vote", str(vote.release(ways, ledger=budget).value), "car", "0.3")
    console.print(answers)

    torn = [0.0] * 50 + [500_000.0] * 50
    refused = Median(bounds=(0, 500_000), epsilon=0.1, delta=2e-7, neighbours=relation, beta=50).release(
        torn, ledger=budget
    )
    console.print(
        f"\nA hundred people, half with nothing and half with everything: {_money(refused)}.\n"
        "One person could move that median by 500,000; the test noticed, and gave no reason.\n"
    )
    spent = budget.spent
    console.print(f"Spent: epsilon {float(spent.epsilon):g} of 2, delta {float(spent.delta):g} of 1e-06.")


def _money(outcome: Outcome[float]) -> str:
    return "refused" if outcome.value is None else f"{outcome.value:,.0f}"
