"""What a worker process asks: few imports, because every worker makes them."""

from typing import Any

import snugdp
from snugdp.ledger.question import question


def by_name(rows: Any) -> float:
    """A function that stands for itself by its name."""
    return float(len(rows))


def said() -> str:
    """A question with sets, whose order differs from process to process."""
    return question("x", classes={"c", "a", "b"}, how=by_name, given={"p": 1, "q": {"r", "s"}}, kind=snugdp.Vote).digest


def voted(path: str, candidates: Any) -> tuple[str, Any]:
    """A release under the key "k" of this ledger: a coin."""
    with snugdp.Ledger.open(path) as ledger:
        outcome = snugdp.vote([0, 1], candidates=candidates, epsilon=0.001, ledger=ledger.once("k"))
        return said(), outcome
