"""The ledger: a budget that outlives the process, and that no race, crash, copy or rewriting of history gets around.

The protocol is in ``handle``, the rules are in ``state``, the promises in book.proof.md.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Receipt, Unit
from snugdp.ledger import entries, records, requests
from snugdp.ledger.anchor import Mark
from snugdp.ledger.entries import Entry, Verification
from snugdp.ledger.errors import KeyConflictError, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.handle import Handle, New, OpenLedger
from snugdp.ledger.limits import Remaining
from snugdp.ledger.question import Question
from snugdp.ledger.requests import Costly
from snugdp.ledger.state import State
from snugdp.ledger.store import Store, Transaction, store_at
from snugdp.ledger.view import View


class Ledger(OpenLedger):
    """A budget on disk, or on a PostgreSQL server. Open it with ``Ledger.open``.

    Threads may share it; a copy is the ledger itself; a pickle opens it again by its address, without a password.

    Guarantee (``book.proof.md``): a charge is durable before its receipt exists; over all processes the charges never
    exceed the limits; a key is charged once and shows one output; a history that was changed or set back is refused,
    and so is anything that cannot be read, checked or written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(folder.name + "/people.ledger", dataset="people", budget=Budget(1, 1e-6))
    >>> receipt = ledger.charge(Cost(epsilon=0.25), "a count", key="the first")
    >>> ledger.charge(Cost(epsilon=0.25), "a count", key="the first") == receipt  # a retry is not charged again
    True
    >>> ledger.spent
    Cost(epsilon=0.25, neighbours='add_remove')
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(self, store: Store, anchor: str | None) -> None:
        self._handle, self._anchor_given = Handle(store), anchor

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        dataset: str | None = None,
        budget: Budget | Cost | None = None,
        unit: Unit | str | None = None,
        anchor: str | os.PathLike[str] | None = None,
        keep: bool = True,
        receipts: Iterable[Receipt] = (),
    ) -> Ledger:
        """Open the ledger at a path or URL; create it if there is none and both ``dataset`` and ``budget`` are given.

        Parameters
        ----------
        where : str or path
            The path of a file, or postgresql://user@host/database.
        dataset : str, optional
            A public name for the data.
        budget : Budget or Cost, optional
            What may be spent in all; the parts of a ``Cost`` are separate caps.
        unit : {"row", "person", "teacher"}, optional
            Whom it protects; a row by default. Releases that protect somebody else are refused. Any other text, such
            as "one customer", is a name for a row.
        anchor : str or path, optional
            Where its newest head is remembered; better on another disk or account.
        keep : bool, default=True
            Whether outputs are stored, so that a retry with the same key shows them again.
        receipts : iterable of Receipt
            Receipts from elsewhere; each must be in the history.
        """
        given = None if anchor is None else os.path.abspath(os.fspath(anchor))
        store = store_at(where, dataset, given)
        name = store.dataset if dataset is None else dataset
        wanted = requests.genesis(name, budget, unit, keep)
        ledger = cls(store, given)
        try:
            if not (wanted.makes or store.exists() or store.anchor.exists()):
                wanted.fields(store.address, "")  # says what is missing, and leaves no lock behind
            with store.creating():
                if not store.exists():
                    _create(store, wanted)
            ledger._load(wanted, receipts)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _load(self, wanted: requests.Wanted, receipts: Iterable[Receipt]) -> None:
        self._handle.store.connect()
        born = self._handle.look(lambda state, _: state.born)
        wanted.check(born, self.address)
        for receipt in receipts:
            self._handle.check_mark(receipt.sequence, receipt.hash)

    # -- what it is

    dataset = OpenLedger.label

    @property
    def spent(self) -> Cost:
        """The composition of everything charged so far, by all processes."""
        return self._handle.look(lambda state, _: state.spent)

    @property
    def remaining(self) -> Remaining:
        """The largest further charges that would be accepted."""
        return self._handle.look(lambda state, _: state.remaining)

    def affords(self, cost: Costly | Sequence[Costly]) -> bool:
        """Whether this would be accepted now."""
        return View(self).affords(cost)

    def payable(self, costs: Sequence[Cost]) -> int:
        """How many of these charges would be accepted, one after the other, up to the first that is not. None is made.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(folder.name + "/people.ledger", dataset="people", budget=Budget(1))
        >>> ledger.payable([Cost(epsilon=0.25)] * 7)
        4
        >>> ledger.close(); folder.cleanup()
        """
        return View(self).payable(costs)

    def remaining_after(self, cost: Costly | Sequence[Costly]) -> Remaining | None:
        """What would remain after this charge; None if it would not be accepted. Nothing is charged.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(folder.name + "/people.ledger", dataset="people", budget=Budget(1))
        >>> print(ledger.remaining_after(Cost(epsilon=0.25)))
        mu 0 or epsilon 0.75 or delta 0
        >>> ledger.remaining_after(Cost(epsilon=2)) is None, ledger.spent
        (True, Cost(neighbours='add_remove'))
        >>> ledger.close(); folder.cleanup()
        """
        return View(self).remaining_after(cost)

    def entries(self) -> tuple[Entry, ...]:
        """Every charge and reservation."""
        return self._handle.look(lambda state, _: tuple(entries.entries_of(state)))

    # -- spending

    def charge(
        self, cost: Cost, what: str, *, key: str | None = None, plan: str = "", question: Question | None = None
    ) -> Receipt:
        """Write a cost down before anything is drawn; durable when it returns.

        The same ``key`` with the same cost and ``question``, or without one the same ``what`` and ``plan``, gives the
        old receipt and is not charged again.
        """
        return View(self).charge(cost, what, key=key, plan=plan, question=question)

    def knows(
        self, cost: Cost, what: str, *, key: str | None = None, plan: str = "", question: Question | None = None
    ) -> bool:
        """Whether this very charge was made before. A key of another one is refused. Nothing is charged.

        For work that takes long before it is charged: what would be refused then is refused before it begins.
        """
        return View(self, key).knows(cost, what, plan=plan, question=question)

    def recall(self, receipt: Receipt) -> str | None:
        """The output that was stored for this charge; None if there is none."""
        return self._handle.look(lambda state, rows: _stored(state, rows, self._charge_of(receipt)))

    def settle(self, receipt: Receipt, body: str | None) -> str | None:
        """Store an output before it is shown, and get the one to show: the first that was stored.

        ``None``, and any body in a ledger that keeps none, is noted as consumed: the first gets None and may show its
        output, everybody later a ``KeyConflictError``.
        """
        name = requests.outcome(body)

        def decide(state: State, rows: Transaction) -> tuple[str | None, New | None]:
            of = self._charge_of(receipt)
            if of in state.settled:
                return _stored(state, rows, of), None
            kept = body if state.born.keep else None
            digest = None if kept is None else records.digest(kept)
            fields = {"of": of, "state": "consumed" if kept is None else name, "body": digest}
            return kept, New(state.draft("outcome", fields, records.stamp()), kept)

        try:
            return self._handle.within(decide)
        except LedgerWriteError as error:
            raise LedgerWriteError(
                f"{error}. The charge stands and the output is not shown: a retry with the key {receipt.key!r} is not "
                "charged again"
            ) from None

    def once(self, key: str) -> View:
        """The ledger under one key: good for one release, however often it is retried in other processes."""
        return View(self, requests.key(key))

    # -- parts and reservations

    def partition(self, name: str, parts: Sequence[str]) -> None:
        """Declare disjoint parts of the data, by a public rule that looks at one row or person only; for good.

        Charges on different parts do not add up: the largest counts. A row must never be in two parts; in a ledger that
        protects persons, neither must the rows of a person.
        """
        fields = requests.partition(name, parts)

        def decide(state: State, _: Transaction) -> tuple[None, New | None]:
            old = state.partitions.get(name)
            if old == tuple(parts):
                return None, None
            if old is not None:
                raise KeyConflictError(f"the partition {name!r} was declared with other parts: {', '.join(old)}")
            return None, New(state.draft("partition", fields, records.stamp()))

        self._handle.within(decide)

    def part(self, name: str, part: str) -> View:
        """The ledger for one part of a declared partition."""
        self._handle.look(lambda state, _: state.check_part((name, part)))
        return View(self, part=(name, part))

    def reserve(self, cost: Costly | Sequence[Costly], what: str, *, key: str | None = None, plan: str = "") -> View:
        """Charge now for long work; the view takes charges within this cost, part by part, that are not added again.

        ``cost`` may be a plan, or a list of costs and plans. The same key finds the reservation again, with what was
        used of it; what is not used stays spent.
        """
        return View(self).reserve(cost, what, key=key, plan=plan)

    # -- looking back

    def verify(self, receipts: Iterable[Receipt] = (), *, heads: Iterable[tuple[int, str]] = ()) -> Verification:
        """Read everything again from the start: hashes, sums, limits, the anchor, and receipts held elsewhere."""
        marks = [*((receipt.sequence, receipt.hash) for receipt in receipts), *heads]

        def read_again(state: State, rows: Transaction) -> Verification:
            again = State()
            for row in rows.rows(-1):
                again.read(row)
            if again.hashes != state.hashes or again.spent != state.spent:
                raise TamperedLedgerError("the history is not the one that was opened: it was rewritten")
            for sequence, seen in marks:
                self._handle.check_mark(sequence, seen)
            place = self._handle.store.anchor.place
            return Verification(again.seq + 1, len(again.charges), again.head, place, again.spent)

        return self._handle.look(read_again)

    def show(self) -> str:
        """The budget, what is spent, what is left, and a table of the releases."""
        return self._handle.look(lambda state, _: entries.table(state, self.address))

    def export(self, format: str = "json") -> str:
        """Everything, as "json" (every record as it was hashed) or "csv" (a line for every charge)."""
        if format not in ("json", "csv"):
            raise ValueError('format must be "json" or "csv"')
        if format == "csv":
            return self._handle.look(lambda state, _: entries.as_csv(state))
        return self._handle.look(
            lambda state, rows: entries.as_json(state, list(rows.rows(-1)), self._handle.store.anchor.read())
        )

    # -- the steps behind them

    def _charge_of(self, receipt: Receipt) -> int:
        seq, state = receipt.sequence, self._handle.state
        charge = state.charges.get(seq)
        if charge is None or charge.reserve or receipt.ledger != self.label or state.hashes[seq] != receipt.hash:
            raise ValueError("this receipt was not given by this ledger for a release")
        return seq

    @property
    def usable(self) -> bool:
        """Whether it is open in this process and its address still leads to it."""
        return self._handle.usable

    # -- the end, and copies

    def close(self) -> None:
        """Let go of the file or the server. What was charged stays charged."""
        self._handle.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._handle.state
        return f"Ledger({self.address!r}, dataset={self.dataset!r}, budget={self.budget!r}, spent={state.spent!r})"

    def __reduce__(self) -> tuple[object, ...]:
        from snugdp.ledger.address import opened, without_password

        return opened, (without_password(self._handle.store.where), self._anchor_given)


def _create(store: Store, wanted: requests.Wanted) -> None:
    if store.anchor.exists():
        raise TamperedLedgerError(
            f"the ledger {store.address} is missing, but its anchor {store.anchor.place} is there: restore the ledger. "
            "It is not made again, for that would forget what was spent (if it was never finished, and nothing was "
            "ever charged, delete the anchor)"
        )
    judged = State().draft("genesis", wanted.fields(store.address, requests.fresh()), records.stamp())
    mark = Mark(judged.record.fields["id"], 0, judged.record.hash)
    store.anchor.create(mark)
    try:
        store.create(judged.record.row())
    except BaseException:
        with contextlib.suppress(LedgerError):
            if not store.exists():
                store.anchor.withdraw(mark)
        raise


def _stored(state: State, rows: Transaction, of: int) -> str | None:
    """The output of a charge, if it is what was hashed."""
    settled = state.settled.get(of)
    if settled is None:
        return None
    if settled.state == "consumed":
        raise KeyConflictError(
            f"the output of the key {state.charges[of].key!r} was consumed: it was shown once and is not kept. Use "
            "another key and pay again"
        )
    row = rows.row(settled.seq)
    if row is None or row.hash != state.hashes[settled.seq]:
        raise TamperedLedgerError(f"record {settled.seq} of the ledger was changed or lost")
    records.read(row, state.hashes[settled.seq - 1], settled.seq)
    return row.body
