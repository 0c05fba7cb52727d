"""What commands that release have in common: the plan first, a question before the charge, and what is told after."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.errors import ERROR, REFUSED, fail
from snugdp.cli.terminal import is_terminal

if TYPE_CHECKING:
    from snugdp.guarantee import Cost
    from snugdp.ledger.book import Ledger
    from snugdp.outcome import Outcome
    from snugdp.ptr.propose import Plan

Data = Annotated[
    str, typer.Argument(help="A Parquet, CSV or Arrow file, a folder of them, or a pattern.", show_default=False)
]
Epsilon = Annotated[str, typer.Option(help="The privacy budget of this release, such as 0.5.", show_default=False)]
Delta = Annotated[str, typer.Option(help="The failure probability of this release.")]
Key = Annotated[
    str | None, typer.Option(help="A name for this release: a retry shows the same output and costs nothing more.")
]
OnlyPlan = Annotated[bool, typer.Option("--plan", help="Print the plan and stop: it is public and free.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the charge.")]

_NO_LEDGER = (
    "No --ledger: nothing is being summed up. Each release has a budget of its own, and adding them up is left to you."
)
_REFUSED = (
    "Refused: the test could not show that these data permit the proposal; the budget is spent, why is private, and "
    "--plan tells what would have been enough."
)


@dataclass(frozen=True)
class Till:
    """How one release is paid for and told: a ledger or none, a key or none, for people or for machines."""

    book: Ledger | None
    key: str | None
    only_plan: bool
    as_json: bool
    yes: bool

    @classmethod
    def of(cls, ledger: str | None, key: str | None, *, only_plan: bool, as_json: bool, yes: bool) -> Till:
        """The ledger must be there."""
        if ledger is None and key is not None:
            raise ValueError("--key names a release in a ledger: give --ledger too")
        return cls(models.opened(ledger), key, only_plan, as_json, yes)

    def agreed(self, plan: Plan, *, aside: bool = False) -> Any:
        """Show the plan and return what to charge; the command ends here if the plan is all that was asked for.

        ``aside``: on the error stream, because the output has a form of its own.
        """
        if self.only_plan:
            typer.echo(
                json.dumps(self._planned(plan), allow_nan=False) if self.as_json else f"{plan}{self._left(plan)}"
            )
            raise typer.Exit
        if not self.as_json:
            typer.echo(f"{plan}\n", err=aside)
        if self.book is None:
            typer.echo(_NO_LEDGER, err=True)
        account: Any = self.book if self.book is None or self.key is None else self.book.once(self.key)
        if self.book is not None and not account.affords(plan.cost):
            from snugdp.ledger.errors import BudgetExceededError

            raise BudgetExceededError(models.exceeded(self.book, plan))
        if not self.yes and is_terminal() and not typer.confirm("Charge this and release?", err=True):
            fail("Nothing was charged.", ERROR)
        return account

    def tell(self, outcome: Outcome[Any], plan: Plan, words: str | None, shown: dict[str, Any], **how: bool) -> None:
        """What came of it; a refusal ends the command with its exit code.

        ``words``: a released value for people; ``shown``: what machines get besides cost and receipt.
        """
        if self.as_json:
            typer.echo(json.dumps({**shown, **self._paid(outcome, plan)}, allow_nan=False))
        else:
            if not outcome.refused and words is not None:
                typer.echo(words, err=how.get("aside", False))
            if self.book is not None:
                receipt: Any = getattr(outcome, "receipt", None)
                typer.echo(
                    f"Receipt {receipt.sequence} of {self.book.address}; left: {self.book.remaining}",
                    err=how.get("aside", False),
                )
        if outcome.refused:
            fail(_REFUSED, REFUSED)

    def _planned(self, plan: Plan) -> dict[str, Any]:
        accepted = None if self.book is None else self.book.affords(plan.cost)
        found = None if self.book is None else {**self._found(self.book), "accepted": accepted}
        return {"plan": str(plan), "proof": plan.proof, "cost": _parts(plan.cost), "ledger": found}

    def _left(self, plan: Plan) -> str:
        if self.book is None:
            return ""
        after = "" if self.book.affords(plan.cost) else " It would not accept this."
        return f"\nLedger {self.book.address}: {self.book.remaining} left.{after}"

    def _paid(self, outcome: Outcome[Any], plan: Plan) -> dict[str, Any]:
        receipt: Any = getattr(outcome, "receipt", None)
        names = ("ledger", "sequence", "what", "key", "hash")
        return {
            "outcome": "refused" if outcome.refused else "released",
            "cost": _parts(outcome.cost),
            "plan": str(plan),
            "proof": plan.proof,
            "receipt": None if receipt is None else {name: getattr(receipt, name) for name in names},
            "ledger": None if self.book is None else self._found(self.book),
        }

    @staticmethod
    def _found(book: Ledger) -> dict[str, Any]:
        return {"address": book.address, "left": models.as_amounts(book.remaining)}


def _parts(cost: Cost) -> dict[str, Any]:
    parts = {"mu": cost.mu, "epsilon": float(cost.epsilon), "delta": float(cost.delta)}
    return {**parts, "neighbours": cost.neighbours.value, "words": repr(cost)}
