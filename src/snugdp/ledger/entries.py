"""What a ledger shows of itself: entries, a verdict, a table for people, JSON and CSV for machines. All public."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.ledger.anchors.anchor import Mark
from snugdp.ledger.composition.filter import Composition, Spent, is_pure
from snugdp.ledger.composition.limits import Remaining
from snugdp.ledger.errors import TamperedLedgerError
from snugdp.ledger.history.records import Record, Row
from snugdp.ledger.history.state import Adoption, State, adoption_to_json, charge_in
from snugdp.ledger.history.voids import Void
from snugdp.ledger.stores.store import Transaction
from snugdp.numerics.printed import printed_up
from snugdp.numerics.rationals import written_up
from snugdp.serial import costs
from snugdp.serial.files import without_formula

LAST = 20  # entries that are shown if nobody asks for more
_BLOCK = 256  # records that are read at once, from the end
_COLUMNS = (
    "sequence", "kind", "state", "key", "what", "title", "partition", "part", "within",
    "mu_squared", "epsilon", "delta", "variation", "atoms", "time", "user",
    "announced_epsilon", "announced_delta", "hash",
)  # fmt: skip
_UNITS = {
    "row": "one row",
    "one row": "one row",
    "person": "one person, whatever the number of rows",
    "teacher": "one teacher, with all its votes",
}
_WAYS = {
    Composition.ADDITION: "what releases announce is added up",
    Composition.TIGHT: "costs are composed tightly",
    Composition.BOTH: "by addition or by tight composition, each with half of delta",
}


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
    user: str | None = None  # the account that made it
    announced: Cost | None = None  # its epsilon and delta
    title: str = ""  # what was asked, with the column or target where it has a name
    composed_as: Cost | None = None  # the Gaussian cost by which a pure one is composed

    @property
    def composed(self) -> Cost:
        """The cost by which it is composed."""
        return self.cost if self.composed_as is None else self.composed_as

    @property
    def pair(self) -> tuple[Fraction, Fraction] | None:
        """The epsilon and the delta that it announced, or of a cost that has no other part; else None."""
        cost = self.cost if self.announced is None else self.announced
        return (cost.epsilon, cost.delta) if is_pure(cost) else None


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


def entries_of(state: State, rows: Transaction, last: int | None = None) -> list[Entry]:
    """Every charge and reservation, or the last of them, in order. Their records must lead to the newest one."""
    start = 0 if last is None else max(0, state.seq + 1 - _BLOCK)
    while True:
        found = _entries(state, rows, start)
        if last is None or len(found) >= last or not start:
            return found if last is None else found[len(found) - min(last, len(found)) :]
        start = max(0, start - 4 * (state.seq + 1 - start))


def _entries(state: State, rows: Transaction, start: int) -> list[Entry]:
    entries: dict[int, Entry] = {}
    start = start if (void := state.voids.at(start)) is None else void.first
    prev = "" if not start else None
    for record in state.voids.records(rows.rows(start - 1), start, prev):
        if record.kind in ("charge", "reserve"):
            entries[record.seq] = _entry(record, state)
        elif record.kind == "outcome" and record.fields["of"] in entries:
            of = record.fields["of"]
            entries[of] = replace(entries[of], state=record.fields["state"])
        prev = record.hash
    if prev != state.head:
        raise TamperedLedgerError("the records of the ledger do not lead to its newest one: its history was rewritten")
    return list(entries.values())


def _entry(record: Record, state: State) -> Entry:
    charge, fields = charge_in(record, state.born.neighbours), record.fields
    return Entry(
        record.seq, record.kind, charge.key, charge.what, charge.cost, charge.part, charge.within, "open",
        fields["time"], record.hash, fields.get("user"), charge.announced, charge.title,
        charge.composed_as,
    )  # fmt: skip


@dataclass(frozen=True)
class Overview:
    """What a ledger says of itself at one moment: whose data, what may be spent, what was, what is left.

    ``epsilon`` and ``delta`` are all that was spent, as one pair that is never rounded down; where costs are composed
    tightly, the epsilon at the delta of the budget. ``entries``: the last ones; ``count``: of all.
    ``adoptions``: by whom and why a copy was made the ledger; ``voids``: which records count for nothing.
    """

    address: str
    dataset: str
    unit: str
    neighbours: Neighbours
    composition: Composition
    budget: Budget | Cost
    spent: Cost
    left: Remaining
    epsilon: Fraction | None  # None with caps on the parts of a cost
    delta: Fraction | None
    count: int
    entries: tuple[Entry, ...]
    adoptions: tuple[Adoption, ...] = ()
    voids: tuple[Void, ...] = ()
    divided: bool = False  # whether anything was charged for a part of the table

    @property
    def facts(self) -> list[tuple[str, str]]:
        """In words: who is protected, what may be spent, what was, and what is left."""
        parts = "; of disjoint parts the largest counts" if self.divided else ""
        releases = f"in {self.count:,} {'entry' if self.count == 1 else 'entries'}{parts}"
        return [
            ("ledger", self.address),
            ("data set", f"{self.dataset} (protects {self.protects}; {self.neighbours.value})"),
            ("budget", f"{self.budget_words} ({_WAYS[self.composition]})"),
            ("spent", f"{self.spent_words}, {releases}" if self.count else "nothing yet"),
            ("left", str(self.left)),
            *(("adopted", one.words) for one in self.adoptions),
            *(("void", one.words) for one in self.voids),
        ]

    @property
    def protects(self) -> str:
        """Whom it protects."""
        return _UNITS.get(self.unit) or f'one row, called "{self.unit}"'

    @property
    def budget_words(self) -> str:
        """What may be spent in all."""
        return self.budget.words if isinstance(self.budget, Cost) else pair_words(self.budget)

    @property
    def spent_words(self) -> str:
        """What was spent, as one epsilon and one delta."""
        if self.epsilon is None or self.delta is None:
            return self.spent.words
        return f"epsilon {printed_up(self.epsilon)} and delta {printed_up(self.delta)}"

    @property
    def next(self) -> str:
        """What will still be accepted, as a sentence."""
        if not self.left.together[0]:
            return "No epsilon is left: nothing more that has one can be released."
        if self.composition is Composition.ADDITION:
            return f"Further releases are accepted, in any order, while they add up to at most {self.left}."
        return f"One further release of {self.left} would be accepted; several Gaussian ones may come to more."

    def table(self, verbose: bool = False) -> str:
        """For people: the facts, and one line for each release."""
        costly = [("cost", repr(self.spent)), ("alone", self.left.alone)] if verbose else []
        lines = [f"{name:<9}  {_plain(value)}" for name, value in (*self.facts, *costly)]
        if not self.count:
            return "\n".join([*lines, "", "Nothing was charged yet."])
        lines += ["", self.next, ""]
        if len(self.entries) < self.count:
            lines += [f"The last {len(self.entries)} of {self.count:,} entries; --last {self.count} shows all:"]
        head = ("#", "when", "who", "what", "epsilon", "delta", "outcome", *(["key", "cost"] if verbose else []))
        return "\n".join(lines + _aligned([head, *(cells(entry, verbose) for entry in self.entries)]))

    def as_dict(self) -> dict[str, object]:
        """For JSON: amounts in plain numbers, rounded against us, and exactly."""
        pair = {"epsilon": self.epsilon, "delta": self.delta}
        return {
            "ledger": self.address,
            "dataset": self.dataset,
            "unit": self.unit,
            "neighbours": self.neighbours.value,
            "composition": self.composition.value,
            "budget": costs.budget_to_json(self.budget),
            "spent": {name: None if value is None else written_up(value) for name, value in pair.items()}
            | {"exact": costs.cost_to_json(self.spent), "words": self.spent_words},
            "left": {"epsilon": self.left.epsilon, "delta": self.left.delta, "words": str(self.left)}
            | {"exact": self.left.as_dict()},
            "count": self.count,
            "adoptions": [adoption_to_json(one) for one in self.adoptions],
            "voids": [one.to_json() for one in self.voids],
            "entries": [_as_dict(entry) for entry in self.entries],
        }

    def to_html(self) -> str:
        """For notebooks: the facts and the entries as tables, everything escaped."""

        def row(values: Iterable[str], tag: str = "td") -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(_plain(value))}</{tag}>" for value in values) + "</tr>"

        head = row(("#", "when", "who", "what", "epsilon", "delta", "outcome"), "th")
        listed = "".join(row(cells(entry, False)) for entry in self.entries)
        facts = "".join(row(fact) for fact in self.facts)
        more = (
            "" if len(self.entries) == self.count else f"<p>The last {len(self.entries)} of {self.count:,} entries.</p>"
        )
        return f"<table>{facts}</table>" + (f"{more}<table>{head}{listed}</table>" if self.entries else "")


def overview(state: State, rows: Transaction, address: str, last: int | None) -> Overview:
    """The state of a ledger, and its last entries."""
    born, spent = state.born, state.spent
    epsilon, delta = pair_of(state.total, born.budget, born.composition)
    return Overview(
        address, born.dataset, born.unit, born.neighbours, born.composition, born.budget, spent, state.remaining,
        epsilon, delta, state.count, tuple(entries_of(state, rows, last)) if state.count else (),
        tuple(state.adoptions), tuple(state.voids), bool(state.composed.parts or state.announced.parts),
    )  # fmt: skip


def pair_of(total: Spent, budget: Budget | Cost, composition: Composition) -> tuple[Fraction | None, Fraction | None]:
    """All that was spent as one epsilon and one delta; by the way that says less, where there are two."""
    composed = as_pair(total.composed, budget)
    added = (total.announced.epsilon, total.announced.delta)
    if not composition.composes:
        return added
    both = composition.adds and isinstance(budget, Budget) and added[1] <= budget.delta / 2
    return added if both and composed[0] is not None and added[0] <= composed[0] else composed


def as_pair(spent: Cost, budget: Budget | Cost) -> tuple[Fraction | None, Fraction | None]:
    """What was spent, as one epsilon and one delta; nothing for caps on the parts of a cost."""
    if isinstance(budget, Cost):
        return None, None
    if is_pure(spent):
        return spent.epsilon, spent.delta
    return Fraction(spent.epsilon_at(budget.delta)), budget.delta


def pair_words(cost: Budget | Cost) -> str:
    """An epsilon and a delta for people."""
    return f"epsilon {printed_up(cost.epsilon)} and delta {printed_up(cost.delta)}"


def _as_dict(entry: Entry) -> dict[str, object]:
    epsilon, delta = (None, None) if entry.pair is None else map(written_up, entry.pair)
    names = ("sequence", "kind", "time", "user", "title", "what", "key", "part", "within", "state", "hash")
    shown: dict[str, object] = {name: getattr(entry, name) for name in names}
    return shown | {"epsilon": epsilon, "delta": delta, "cost": costs.cost_to_json(entry.cost)}


def cells(entry: Entry, verbose: bool) -> tuple[str, ...]:
    """One line of a table: number, when, who, what, epsilon, delta, outcome; and key and cost."""
    where = f" [{'/'.join(entry.part)}]" if entry.part else ""
    paid = f" [within {entry.within}]" if entry.within is not None else ""
    pair = entry.pair
    amounts = ("", "") if pair is None else (printed_up(pair[0]), printed_up(pair[1]))
    if pair is None:
        amounts = (entry.cost.words, "")
    outcome = "reserved" if entry.kind == "reserve" else entry.state
    when = entry.time[:16].replace("T", " ")
    more = (entry.key, entry.cost.words) if verbose else ()
    return (str(entry.sequence), when, entry.user or "", entry.title + where + paid, *amounts, outcome, *more)


def as_json(state: State, rows: Sequence[Row], mark: Mark) -> str:
    """Everything: each record as it was hashed, so that the chain can be computed again without this library.

    ``hash`` is the SHA-256 of ``record``; the ``prev`` in a record is the hash before it; the ``body`` in an outcome's
    record is the SHA-256 of the body.
    """
    whole = {
        "ledger": state.born.dataset,
        "head": {"sequence": state.seq, "hash": state.head},
        "anchor": {"sequence": mark.seq, "hash": mark.hash},
        "composition": state.born.composition.value,
        "spent": costs.cost_to_json(state.spent),
        "left": state.remaining.as_dict(),
        "records": [row._asdict() for row in rows],
    }
    return json.dumps(whole, indent=1)


def as_csv(state: State, rows: Transaction, raw_text: bool = False) -> str:
    """One line for every charge; amounts are exact fractions, and no text is a formula unless it is wanted raw."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    lines = map(_line, entries_of(state, rows))
    safe = ({name: without_formula(cell) for name, cell in line.items()} for line in lines)
    writer.writerows(lines if raw_text else safe)
    return text.getvalue()


def _line(entry: Entry) -> Mapping[str, object]:
    line: dict[str, object] = {name: getattr(entry.cost, name) for name in costs.PARTS}
    partition, part = entry.part or ("", "")
    line |= {"partition": partition, "part": part, "atoms": len(entry.cost.atoms)}
    line |= {"within": "" if entry.within is None else entry.within, "user": entry.user or ""}
    epsilon, delta = ("", "") if entry.pair is None else map(str, entry.pair)
    line |= {"announced_epsilon": epsilon, "announced_delta": delta}
    return line | {name: getattr(entry, name) for name in _COLUMNS if name not in line}


def _plain(cell: str) -> str:
    """Without what a terminal would obey or could not print."""
    return "".join(letter if letter.isprintable() else " " for letter in cell)


def _aligned(cells: Iterable[tuple[str, ...]]) -> list[str]:
    rows = [tuple(" ".join(_plain(cell).split()) for cell in row) for row in cells]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
