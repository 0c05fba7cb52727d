"""What a ledger shows of itself: entries, a verdict, a table for people, JSON and CSV for machines. All public."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from snugdp.core.guarantee import Cost
from snugdp.ledger.anchor import Mark
from snugdp.ledger.records import Row
from snugdp.ledger.state import State
from snugdp.serial import costs

_COLUMNS = (
    "sequence", "kind", "state", "key", "what", "partition", "part", "within",
    "mu_squared", "epsilon", "delta", "variation", "atoms", "time", "hash",
)  # fmt: skip
_UNITS = {"person": "one person, whatever the number of rows", "teacher": "one teacher, with all its votes"}


@dataclass(frozen=True)
class Entry:
    """One charge or reservation."""

    sequence: int
    kind: str  # "charge" or "reserve"
    key: str
    what: str
    cost: Cost
    part: tuple[str, str] | None
    within: int | None  # the reservation that paid for it
    state: str  # "released", "refused", "consumed", or "open": no output was stored
    time: str
    hash: str


@dataclass(frozen=True)
class Verification:
    """A history that was read from the start and found whole."""

    entries: int  # records, of every kind
    charges: int
    head: str
    anchor: str
    spent: Cost

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        shown: dict[str, object] = {"entries": self.entries, "charges": self.charges, "head": self.head}
        return shown | {"anchor": self.anchor, "spent": costs.cost_to_json(self.spent)}

    def __str__(self) -> str:
        return (
            f"whole: {self.entries} records, {self.charges} charges, spent {self.spent!r}, head {self.head[:16]}, "
            f"anchor {self.anchor}"
        )


def entries_of(state: State) -> Iterator[Entry]:
    """Every charge and reservation, in order."""
    for seq, charge in state.charges.items():
        settled = state.settled.get(seq)
        yield Entry(
            seq, "reserve" if charge.reserve else "charge", charge.key, charge.what, charge.cost, charge.part,
            charge.within, "open" if settled is None else settled.state, state.times[seq], state.hashes[seq],
        )  # fmt: skip


def table(state: State, address: str) -> str:
    """For people: who is protected, what may be spent, what was, and by which releases."""
    born = state.born
    lines = [
        f"ledger     {address}",
        f"data set   {born.dataset} (protects {_UNITS.get(born.unit, born.unit)}; {born.neighbours.value})",
        f"budget     {born.budget!r}",
        f"spent      {state.spent!r}",
        f"remaining  {state.remaining}",
        "",
    ]
    cells = [("#", "state", "cost", "what", "key")]
    for entry in entries_of(state):
        where = f" [{'/'.join(entry.part)}]" if entry.part else ""
        paid = f" [within {entry.within}]" if entry.within is not None else ""
        status = "reserved" if entry.kind == "reserve" else entry.state
        cells.append((str(entry.sequence), status, entry.cost.words, entry.what + where + paid, entry.key))
    return "\n".join(lines + (_aligned(cells) if len(cells) > 1 else ["nothing was charged yet"]))


def as_json(state: State, rows: Sequence[Row], mark: Mark) -> str:
    """Everything: each record as it was hashed, so that the chain can be computed again without this library.

    ``hash`` is the SHA-256 of ``record``; the ``prev`` in a record is the hash before it; the ``body`` in an outcome's
    record is the SHA-256 of the body.
    """
    whole = {
        "ledger": state.born.dataset,
        "head": {"sequence": state.seq, "hash": state.head},
        "anchor": {"sequence": mark.seq, "hash": mark.hash},
        "spent": costs.cost_to_json(state.spent),
        "left": state.remaining.as_dict(),
        "records": [row._asdict() for row in rows],
    }
    return json.dumps(whole, indent=1)


def as_csv(state: State) -> str:
    """One line for every charge; amounts are exact fractions."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_line(entry) for entry in entries_of(state))
    return text.getvalue()


def _line(entry: Entry) -> Mapping[str, object]:
    line: dict[str, object] = {name: getattr(entry.cost, name) for name in costs.PARTS}
    partition, part = entry.part or ("", "")
    line |= {"partition": partition, "part": part, "atoms": len(entry.cost.atoms)}
    line |= {"within": "" if entry.within is None else entry.within}
    return line | {name: getattr(entry, name) for name in _COLUMNS if name not in line}


def _plain(cell: str) -> str:
    """Without what a terminal would obey or could not print."""
    return "".join(letter if letter.isprintable() else " " for letter in cell)


def _aligned(cells: Iterable[tuple[str, ...]]) -> list[str]:
    rows = [tuple(" ".join(_plain(cell).split()) for cell in row) for row in cells]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
