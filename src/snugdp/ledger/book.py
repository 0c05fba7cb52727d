"""The ledger: a budget that outlives the process, and that no race, crash, copy or rewriting of history gets around.

The protocol is in ``handle``, the rules are in ``state``, the promises in book.proof.md.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Callable, Iterable, Sequence

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Receipt, Unit
from snugdp.ledger import entries, requests
from snugdp.ledger.anchors.anchor import Mark
from snugdp.ledger.anchors.recognition import check_file_system
from snugdp.ledger.composition.filter import Composition
from snugdp.ledger.composition.limits import Remaining
from snugdp.ledger.entries import LAST, Entry, Overview, Verification
from snugdp.ledger.errors import KeyConflictError, LedgerError, LedgerWriteError, TamperedLedgerError
from snugdp.ledger.handle import Handle, New, OpenLedger
from snugdp.ledger.history import records
from snugdp.ledger.history.state import Adoption, Charge, State
from snugdp.ledger.history.voids import Void
from snugdp.ledger.question import Question
from snugdp.ledger.requests import Announced, Costly
from snugdp.ledger.stores.store import Store, Transaction, store_at
from snugdp.ledger.view import View
from snugdp.numerics.rationals import Real, rational


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

    def __init__(self, store: Store, anchor: str | None, network_allowed: bool = False) -> None:
        self._handle, self._anchor_given = Handle(store, network_allowed), anchor

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
        composition: Composition | str | None = None,
        users: bool | None = None,
        network_file_system: bool = False,
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
            Whom it protects; a row by default. Releases that protect somebody else are refused.
        anchor : str or path, optional
            Where its newest head is remembered; better on another disk or account.
        keep : bool, default=True
            Whether outputs are stored, so that a retry with the same key shows them again.
        receipts : iterable of Receipt
            Receipts from elsewhere; each must be in the history.
        composition : {"addition", "tight", "both"}, optional
            How releases add up, for good. "addition", the default of a new ledger: each counts with the epsilon and
            delta that its plan announces, in any order. "tight": Gaussian parts add in squares, for many releases of
            one kind. "both": a release is taken if either way takes it, each with half of the delta.
        users : bool, optional
            Whether charges record the name of the account that made them; True for a new ledger.
        network_file_system : bool, default=False
            Accept a file on a file system whose locks may hold on one machine only, such as NFS: for good, and for the
            record. Say so only if one machine alone ever uses it.
        """
        given = None if anchor is None else os.path.abspath(os.fspath(anchor))
        store = store_at(where, dataset, given)
        name = store.dataset if dataset is None else dataset
        wanted = requests.genesis(name, budget, unit, keep, composition=composition, users=users)
        ledger = cls(store, given, network_file_system)
        try:
            if not (wanted.makes or store.exists() or store.anchor.exists()):
                wanted.fields(store.address, "")  # says what is missing, and leaves no lock behind
            with store.creating():
                if not store.exists():
                    check_file_system(store, None, network_file_system)
                    _create(store, wanted)
            ledger._load(wanted, receipts)
            if network_file_system:
                ledger._handle.record_file_system(_user())
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def adopt(
        cls,
        where: str | os.PathLike[str],
        *,
        reason: str,
        by: str | None = None,
        lost_epsilon: Real | None = None,
        lost_delta: Real = 0,
        anchor: str | os.PathLike[str] | None = None,
        network_file_system: bool = False,
    ) -> Ledger:
        """Open a copy that was moved, restored or has lost its anchor, and make it the ledger from now on.

        The history is checked as ever. Who adopted it, when, why, and which records were seen before and are lost, is
        written into it, and what was spent on those is charged again. Where there is nothing to adopt, a ValueError
        says so.

        Parameters
        ----------
        where : str or path
            The path or URL of the copy.
        reason : str
            Why, for the record.
        by : str, optional
            Who, for the record; by default the user's name and the machine's.
        lost_epsilon, lost_delta : Real, optional
            What was spent on releases that are missing in this copy. It must be said if any are known to be missing.
        anchor : str or path, optional
            Where its newest head is remembered.
        network_file_system : bool, default=False
            As in ``open``.

        Examples
        --------
        >>> import shutil, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(folder.name + "/a.ledger", dataset="people", budget=Budget(1, 1e-6))
        >>> ledger.close()
        >>> for end in ("", ".anchor"):
        ...     _ = shutil.copy(folder.name + "/a.ledger" + end, folder.name + "/b.ledger" + end)
        >>> Ledger.open(folder.name + "/b.ledger")
        Traceback (most recent call last):
            ...
        snugdp.ledger.errors.TamperedLedgerError: ...b.ledger is a copy: this user knows the ledger at ...a.ledger...
        >>> with Ledger.adopt(folder.name + "/b.ledger", reason="the disk of a is to be replaced") as moved:
        ...     print(moved.adoptions[0].reason)
        the disk of a is to be replaced
        >>> folder.cleanup()
        """
        lost = lost_epsilon, lost_delta
        return cls._mended(
            where, Handle.adopt, reason=reason, by=by, lost=lost, anchor=anchor, network_file_system=network_file_system
        )

    @classmethod
    def void(
        cls,
        where: str | os.PathLike[str],
        *,
        reason: str,
        by: str | None = None,
        lost_epsilon: Real | None = None,
        lost_delta: Real = 0,
        anchor: str | os.PathLike[str] | None = None,
    ) -> Ledger:
        """Open a ledger that is stopped by records which mean nothing, and write into it that they count for nothing.

        Only what this version refuses as a record can become void, and only at the end of a history that is otherwise
        whole: nothing was ever released for it (``book.proof.md``, Lemma 5). In PostgreSQL only the owner of the tables
        may. Where there is nothing to void, a ValueError says so.

        Parameters
        ----------
        where : str or path
            The path or URL of the ledger.
        reason : str
            Why, for the record.
        by : str, optional
            Who, for the record; by default the user's name and the machine's.
        lost_epsilon, lost_delta : Real, optional
            What may have been spent by them. It must be said if a newer version of snugdp may have written them.
        anchor : str or path, optional
            Where its newest head is remembered.
        """
        lost = lost_epsilon, lost_delta
        return cls._mended(where, Handle.void, reason=reason, by=by, lost=lost, anchor=anchor)

    @classmethod
    def _mended(
        cls,
        where: str | os.PathLike[str],
        mend: Callable[[Handle, str, str, Callable[[State], Charge | None]], None],
        *,
        reason: str,
        by: str | None,
        lost: tuple[Real | None, Real],
        anchor: str | os.PathLike[str] | None,
        network_file_system: bool = False,
    ) -> Ledger:
        """A ledger that is opened after it was adopted, or after records in it were made void."""
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError("say why: the reason is kept in the history of the ledger")
        given = None if anchor is None else os.path.abspath(os.fspath(anchor))
        store = store_at(where, None, given)
        ledger = cls(store, given, network_file_system)
        epsilon, delta = lost
        if epsilon is None and rational(delta, "lost_delta") != 0:
            raise ValueError("lost_delta needs lost_epsilon too (--lost-epsilon), which may be 0")

        def charge(state: State) -> Charge | None:
            if epsilon is None:
                return None
            cost = Cost(epsilon=epsilon, delta=delta, neighbours=state.born.neighbours)
            return requests.charge(cost, "what was spent on records that are lost", None, "")

        try:
            with store.creating():
                store.connect()
                mend(ledger._handle, _user() if by is None else by, reason, charge)
            ledger._load(requests.genesis(None, None, None, True), ())
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

    @property
    def identity(self) -> str:
        """The ledger's own random name, which every copy of it has; anchors are named by it."""
        return self._handle.state.born.id

    @property
    def adoptions(self) -> tuple[Adoption, ...]:
        """Who has made a copy the ledger, when and why."""
        return self._handle.look(lambda state, _: tuple(state.adoptions))

    @property
    def voids(self) -> tuple[Void, ...]:
        """Who has said of which records that they count for nothing, when and why."""
        return self._handle.look(lambda state, _: state.voids)

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

    def payable(self, costs: Sequence[Costly]) -> int:
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
        epsilon 0.75 and delta 0
        >>> ledger.remaining_after(Cost(epsilon=2)) is None, ledger.spent
        (True, Cost(neighbours='add_remove'))
        >>> ledger.close(); folder.cleanup()
        """
        return View(self).remaining_after(cost)

    def entries(self) -> tuple[Entry, ...]:
        """Every charge and reservation."""
        return self._handle.look(lambda state, rows: tuple(entries.entries_of(state, rows)))

    # -- spending

    def charge(
        self,
        cost: Cost,
        what: str,
        *,
        key: str | None = None,
        plan: str = "",
        question: Question | None = None,
        announced: Announced = None,
    ) -> Receipt:
        """Write a cost down before anything is drawn; durable when it returns.

        ``announced``: the epsilon and delta that the release satisfies, as a ``Budget``, by which a ledger that adds up
        counts it; the cost must satisfy them. Without it a pure cost counts with its own, another one with its epsilon
        at a hundredth of the ledger's delta.

        The same ``key`` with the same cost and ``question``, or without one the same ``what`` and ``plan``, gives the
        old receipt and is not charged again.
        """
        return View(self).charge(cost, what, key=key, plan=plan, question=question, announced=announced)

    def knows(
        self,
        cost: Cost,
        what: str,
        *,
        key: str | None = None,
        plan: str = "",
        question: Question | None = None,
        announced: Announced = None,
    ) -> bool:
        """Whether this very charge was made before. A key of another one is refused. Nothing is charged.

        For work that takes long before it is charged: what would be refused then is refused before it begins.
        """
        return View(self, key).knows(cost, what, plan=plan, question=question, announced=announced)

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
            if state.settled_at(of) is not None:
                return _stored(state, rows, of), None
            kept = body if state.born.keep else None
            digest = None if kept is None else records.digest(kept)
            fields = {"of": of, "state": "consumed" if kept is None else name, "body": digest}
            return kept, New(state.draft("outcome", fields, records.stamp()), kept)

        try:
            return self._handle.within(decide, writes=True)
        except LedgerWriteError as error:
            raise LedgerWriteError(
                f"{error}. The charge stands and the output is not shown: a retry with the key {receipt.key!r} is not "
                "charged again"
            ) from None

    def once(self, key: str) -> View:
        """The ledger under one key: good for one release, however often it is retried in other processes."""
        return View(self, requests.key(key))

    # -- parts and reservations

    def partition(self, column: str, parts: Sequence[str | int] | int) -> None:
        """Declare disjoint parts of the table, for good: releases on different parts do not add up, the largest counts.

        ``parts``: public values of the column, or a number of parts into which rows go by a keyed hash of their cell. A
        row whose cell is none of the values is in no part. In a ledger for persons it is a hash of the identifier, so
        that all rows of a person are in one part.
        """
        made = requests.partition(column, parts)

        def decide(state: State, _: Transaction) -> tuple[None, New | None]:
            old = state.partitions.get(column)
            if old is None:
                fields = {"name": column, "parts": list(made.parts), "column": column, "hash_key": made.key}
                return None, New(state.draft("partition", fields, records.stamp()))
            if old.column is None or (old.parts, old.key is None) != (made.parts, made.key is None):
                raise KeyConflictError(
                    f"the partition {column!r} is declared for good, and differently: by {old.words}"
                )
            return None, None

        self._handle.within(decide)

    def part_names(self, column: str) -> tuple[str, ...]:
        """The parts that were declared by this column; none if there are none."""

        def see(state: State, _: Transaction) -> tuple[str, ...]:
            return state.partitions[column].parts if column in state.partitions else ()

        return self._handle.look(see)

    def part(self, column: str, part: str | int) -> View:
        """The ledger for one part of the table: what is released for it reads the rows of that part alone.

        Guarantee: releases of this library on different parts cost the largest of them, and not their sum, for one row
        or person (``release/parts.proof.md``). What you charge by ``charge`` is released by you: there it is up to you
        to read no other rows.

        Examples
        --------
        >>> import polars as pl, tempfile, snugdp
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(folder.name + "/people.ledger", dataset="people", budget=Budget(1))
        >>> ledger.partition("region", ["north", "south"])
        >>> table = pl.DataFrame({"region": ["north", "south", "south"]})
        >>> for region in ("north", "south"):
        ...     _ = snugdp.count(table, epsilon=1, ledger=ledger.part("region", region))
        >>> ledger.spent
        Cost(epsilon=1, neighbours='add_remove')
        >>> ledger.close(); folder.cleanup()
        """
        one = (column, str(part))
        self._handle.look(lambda state, _: state.check_part(one))
        return View(self, part=one)

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
            again = State(whole=True)
            self._handle.store.check()
            again.read_all(rows.rows(-1))
            again.require_legal(self.address)
            if (again.seq, again.head, again.total) != (state.seq, state.head, state.total):
                raise TamperedLedgerError("the history is not the one that was opened: it was rewritten")
            for sequence, seen in marks:
                self._handle.check_mark(sequence, seen)
            return Verification(again.seq + 1, again.count, again.head, self._handle.anchored_in, again.spent)

        return self._handle.look(read_again)

    def overview(self, last: int | None = LAST) -> Overview:
        """Budget, what is spent, what is left, and the last entries, as data; None: all entries."""
        if last is not None and last < 1:
            raise ValueError("last is the number of entries to show, at least 1")
        return self._handle.look(lambda state, rows: entries.overview(state, rows, self.address, last))

    def show(self, last: int | None = LAST, *, verbose: bool = False) -> str:
        """The budget, what is spent, what is left, and a line for each of the last releases; None: for all of them.

        ``verbose``: with keys, whole costs, and what is left in each kind alone.
        """
        return self.overview(last).table(verbose)

    def _repr_html_(self) -> str:
        return self.overview().to_html()

    def export(self, format: str = "json", *, raw_text: bool = False) -> str:
        """Everything, as "json" (every record as it was hashed) or "csv" (a line for every charge).

        In CSV, text that a spreadsheet would compute has an apostrophe before it, unless ``raw_text`` is asked for.
        """
        if format not in ("json", "csv"):
            raise ValueError('format must be "json" or "csv"')
        if format == "csv":
            return self._handle.look(lambda state, rows: entries.as_csv(state, rows, raw_text))
        return self._handle.look(lambda state, rows: entries.as_json(state, list(rows.rows(-1)), self._handle.anchored))

    # -- the steps behind them

    def _charge_of(self, receipt: Receipt) -> int:
        seq, state = receipt.sequence, self._handle.state
        if receipt.ledger != self.label or not receipt.hash or state.hash_at(seq) != receipt.hash:
            raise ValueError("this receipt was not given by this ledger for a release")
        charge = state.charge_at(seq)
        if charge is None or charge.reserve:
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


def _user() -> str:
    """Who does this, for the record."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError, ImportError):  # a process whose user has no name
        return "somebody"


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
    settled = state.settled_at(of)
    if settled is None:
        return None
    if settled.state == "consumed":
        charge = state.charge_at(of)
        key = None if charge is None else charge.key
        raise KeyConflictError(
            f"the output of the key {key!r} was consumed: it was shown once and is not kept. Use another key and pay "
            "again"
        )
    row = rows.row(settled.seq)
    if row is None or row.hash != state.hash_at(settled.seq):
        raise TamperedLedgerError(f"record {settled.seq} of the ledger was changed or lost")
    records.read(row, None, settled.seq)
    return row.body
