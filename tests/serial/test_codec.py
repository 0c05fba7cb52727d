"""Outcomes as text: bit by bit the same again, nothing but plain values, and one outcome for every charge."""

import importlib
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from snugdp import (
    Budget,
    Cost,
    Exact,
    Neighbours,
    NotPrivate,
    Number,
    Receipt,
    Refused,
    Released,
    Schema,
    Selected,
    Selection,
    Simulation,
    median,
)
from snugdp.core.outcome import Outcome
from snugdp.ledger.errors import KeyConflictError, LedgerError, LedgerWriteError
from snugdp.mechanisms.components.base import Components, Start
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.objective.robust import ObjectivePerturbation
from snugdp.pate.labelling import Labels
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release, release, release_or_refuse
from snugdp.release.stages import TwoStages
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.serial.codec import StoredOutcome, UnreadableError, decode, dumps, encode, loads
from snugdp.tables.passes.base import row_map
from tests.plans import plan_of


def same(a: Any, b: Any) -> bool:
    """Equal in type and in every bit, arrays in their order in memory too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        in_order = [x.flags.c_contiguous + 2 * x.flags.f_contiguous for x in (a, b)]
        if a.dtype != b.dtype or a.shape != b.shape or (all(in_order) and in_order[0] != in_order[1]):
            return False
        if a.dtype.kind == "O":
            return all(map(same, a.ravel().tolist(), b.ravel().tolist()))
        return bool(a.tobytes() == b.tobytes())
    if isinstance(a, np.generic):
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if is_dataclass(a) and not isinstance(a, Enum):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in fields(a))
    return bool(a == b)


COST = Cost(mu=0.1, epsilon=Fraction(1, 3), delta=1e-9, variation=Fraction(1, 7), neighbours="replace")
RECEIPT = Receipt("one run of a selection", 3, "a run", COST, "key", "hash")
EVERYTHING: list[Any] = [
    None, True, False, 0, -1, 2**53, 2**53 + 1, -(2**80), 10**5000, 0.1, -0.0, 5e-324, 1.7e308, 1e16, 2.0**60,
    float("inf"), -float("inf"), float("nan"), -float("nan"), struct.unpack(">d", bytes.fromhex("7ff0000000000123"))[0],
    "", "é\ud800\0\"\\", b"", b"\0\xff", Fraction(-2, 3), Fraction(10) ** 3000 + Fraction(1, 3), Decimal("1.50"),
    Decimal("-0"), Decimal("sNaN12"), (), (1, (2.0, [3])), [], [None, [True]], {}, {"a": 1, "int": 2},
    {1: "a", 1.5: "b", None: 3, (1, "x"): 4, False: 5, b"x": 6}, {"array": {"record": ["os:system", {}]}},
    np.float64(0.1), np.float64("nan"), np.float32(0.1), np.float16(0.1), np.int64(-3), np.int8(1),
    np.uint64(2**64 - 1), np.bool_(True), np.str_("abc"), np.bytes_(b"abc"),
    np.datetime64("2020-02-02T02:02"), np.timedelta64(3, "s"),
    np.complex128(1 + 2j), np.arange(6), np.array(1.5), np.zeros((0, 3)), np.zeros((2, 0), order="F"),
    np.array([], dtype=object),
    np.arange(12.0).reshape(3, 4), np.asfortranarray(np.arange(12.0).reshape(3, 4)), np.arange(24.0).reshape(2, 3, 4).T,
    np.arange(36.0).reshape(6, 6)[::2, 1::2], np.array([np.nan, -0.0, np.inf]), np.array([True, False]),
    np.array(["a", "bcd"]), np.array(["a", 1, 2.5, None, (1, 2), Fraction(1, 2)], dtype=object)[:, None],
    np.array([b"a"]), np.array(["2020-01-01"], dtype="M8[ns]"), np.arange(3, dtype=np.int8),
    Neighbours.REPLACE, Budget(0.3, 1e-6), COST, RECEIPT,
    Fit(np.array([1.0, -0.0]), None, {"ridge": np.float64(3)}), Fit(np.eye(2), 0.5),
    Components(np.eye(2), np.ones(2), np.ones(2), 0.1, 2.0, Start(5.0, None), "gauss", {}),
    Labels(np.array(["a", "b"]), np.array([True, False])),
    Selected({"ridge": 1.0, "clip": Decimal("0.1")}, Released(Fit(np.ones(3)), COST, RECEIPT, {"a": 1.0}), -np.inf),
    Selected(("any", 1), Refused(COST, RECEIPT), 2.0),
    Released(3.5, COST, RECEIPT, None), Refused(COST, RECEIPT), NotPrivate(1, False, COST),
]  # fmt: skip


@pytest.mark.parametrize("value", EVERYTHING, ids=lambda value: type(value).__name__)
def test_what_is_kept_comes_back_bit_by_bit(value: Any) -> None:
    for refused, kept, certificate in ((False, value, None), (False, [value, {"x": value}], value)):
        body = dumps(StoredOutcome(refused, kept, certificate))
        assert body is not None
        assert body.isascii()
        again = loads(body)
        assert (again.refused, same(again.value, kept), same(again.certificate, certificate)) == (False, True, True)
        assert dumps(again) == body
    tree = json.loads(json.dumps(encode(value), allow_nan=False))
    assert same(decode(tree), value)


def test_costs_with_atoms_are_kept() -> None:
    layout = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y")
    cost = ObjectivePerturbation(Design(row_map(layout)), Budget(1, 1e-6)).plan().cost
    assert cost.atoms
    body = dumps(StoredOutcome(False, cost))
    assert body is not None
    assert loads(body).value == cost


def trees(rng: np.random.Generator, depth: int) -> Any:
    """A random value of random shape."""
    kind = rng.integers(0, 12 if depth else 8)
    bits = rng.bytes(8)
    if kind < 8:
        makers: tuple[Callable[[], Any], ...] = (
            lambda: struct.unpack("<d", bits)[0],
            lambda: np.frombuffer(bits, dtype=np.float64)[0],
            lambda: int.from_bytes(bits, signed=True) ** int(rng.integers(1, 9)),
            lambda: "".join(map(chr, rng.integers(0, 0x11000, 4).tolist())),
            lambda: Fraction(int.from_bytes(bits[:3]), 1 + bits[3]),
            lambda: np.frombuffer(rng.bytes(96), dtype=np.float64).reshape(3, 4)[:, :: int(rng.integers(1, 3))].copy(),
            lambda: np.asfortranarray(np.frombuffer(rng.bytes(12), dtype=np.int16).reshape(2, 3)),
            lambda: Cost(mu_squared=Fraction(bits[0], 1 + bits[1]), epsilon=Fraction(bits[2])),
        )
        return makers[kind]()
    inner = [trees(rng, depth - 1) for _ in range(rng.integers(0, 4))]
    if kind == 8:
        return inner
    if kind == 9:
        return tuple(inner)
    if kind == 10:
        return dict(zip(range(len(inner)), inner, strict=True))
    return Selected(inner, tuple(inner), 1.0)


def test_random_values_come_back() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        value = trees(rng, 4)
        body = dumps(StoredOutcome(False, value))
        assert body is not None, value
        assert same(loads(body).value, value), value


class Whole(int):
    """A number that is more than a number."""


@dataclass(frozen=True)
class Mine:
    """A dataclass of somebody else."""

    x: int = 1


class Matrix(np.ndarray):
    """An array that is more than an array."""


def cycle() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


UNKEPT: list[Any] = [
    object(), len, lambda: 1, Whole(3), Mine(), Mine, {1, 2}, frozenset(), range(3), Secret(1), [Secret(1)],
    np.arange(3).view(Matrix), np.ma.array([1, 2]), np.zeros(2, dtype=[("a", "f8")]), np.longdouble(1), np.dtype("f8"),
    np.array([object()]), pd.Series([1]), pd.Timestamp("2020-01-01"), Exact(), Simulation(1), cycle(), 1j, Fit, np,
    Fit(np.ones(1), 0.5, {"x": object()}), Fit("no array"), Fit(np.ones(1), "no"),  # type: ignore[arg-type,dict-item]
    Selected(Mine(), 1, 2.0), type("Fit", (), {"__module__": "snugdp.mechanisms.linear.base"})(),
]  # fmt: skip


@pytest.mark.parametrize("value", UNKEPT, ids=lambda value: type(value).__name__)
def test_what_cannot_be_kept_exactly_is_not_kept(value: Any) -> None:
    assert dumps(StoredOutcome(False, value)) is None
    assert dumps(StoredOutcome(False, 1, certificate=[value])) is None
    with pytest.raises(TypeError, match="not made of numbers"):
        encode(value)


def body(value: Any, **other: Any) -> str:
    return json.dumps({"snugdp outcome": 2, "refused": False, "value": value, "certificate": None, **other})


FIT = "fit/1"
THETA = {"array": {"shape": [1], "dtype": "<f8", "data": "AAAAAAAA8D8="}}
NONSENSE: list[Any] = [
    {"record": ["os:system", {}]}, {"record": ["builtins:eval", {}]}, {"record": ["snugdp.cli.main:main", {}]},
    {"record": ["snugdp.mechanisms.linear.base:Fit", {"theta": THETA, "noise": None, "released": {"dict": []}}]},
    {"record": ["linear-regression/1", {}]}, {"record": ["fit/2", {}]}, {"record": ["fit", {}]},
    {"record": ["snugdp.guarantee:Budgets", {"epsilon": 1}]}, {"record": ["snugdp.ptr.propose:Plan", {}]},
    {"record": ["snugdp.ledger:MemoryLedger", {}]}, {"record": [["fit/1"], {}]}, {"record": [None, {}]},
    {"record": ["snugdp.noise.simulation:Simulation", {"seed": 1}]}, {"record": [FIT]}, {"record": {}},
    {"record": [FIT, {"theta": "text", "noise": None, "released": {"dict": []}}]},
    {"record": [FIT, {"theta": THETA, "noise": "text", "released": {"dict": []}}]},
    {"record": [FIT, {"theta": THETA, "noise": None, "released": 5}]},
    {"record": [FIT, {"theta": THETA, "noise": None}]},
    {"record": [FIT, {"theta": THETA, "noise": None, "released": {"dict": []}, "more": 1}]},
    {"record": ["budget/1", {"epsilon": {"fraction": "-1/1"}, "delta": 0, "neighbours": "replace"}]},
    {"record": ["budget/1", {"epsilon": 0.1, "delta": 0, "neighbours": "replace"}]},
    {"record": ["snugdp.guarantee:Budget", {"epsilon": 0.1, "delta": 0, "neighbours": "replace"}]},
    {"record": ["neighbours/1", {"value": "replace"}]}, {"enum": ["neighbours/2", "REPLACE"]},
    {"enum": ["neighbours/1", "NOBODY"]}, {"enum": ["budget/1", "epsilon"]},
    {"array": {"shape": [10**11], "dtype": "<U0", "data": ""}}, {"array": {"shape": [1], "dtype": "|S0", "data": ""}},
    {"array": {"shape": [0, 10**11], "dtype": "<f8", "data": ""}}, {"objects": {"shape": [10**11, 0], "items": []}},
    {"array": {"shape": [True], "dtype": "<f8", "data": "AAAAAAAA8D8="}}, {"floats": [1, [2]]}, {"floats": ["1"]},
    {"array": {"shape": [-1, -1], "dtype": "<f8", "data": "AAAAAAAA8D8="}}, {"floats": []}, {"floats": None},
    {"ratio": "1/0"}, {"ratio": "a/b"}, {"ratio": 5},
    {"enum": ["enum:Enum", "x"]}, {"array": {"shape": [2], "dtype": "<f8", "data": "AAAAAAAA8D8="}},
    {"array": {"shape": [1], "dtype": "|O", "data": "AAAAAAAA8D8="}},
    {"array": {"shape": [-1], "dtype": "<f8", "data": ""}},
    {"array": {"shape": [1], "dtype": ">f8", "data": "AAAAAAAA8D8="}},
    {"array": {"shape": [1], "dtype": "f8,f8", "data": ""}},
    {"array": {"shape": [1], "dtype": "<f8", "data": "not base64"}}, {"objects": {"shape": [3], "items": [1]}},
    {"fraction": "1/0"}, {"fraction": "x"}, {"int": "0x"}, {"float": "00"}, {"bytes": "*"}, {"decimal": "one"}, {},
    {"unknown": 1}, {"int": "1", "float": "2"}, {"dict": [[[], 1]]}, {"dict": 5}, {"tuple": 5}, {"scalar": 5},
]  # fmt: skip


@pytest.mark.parametrize("value", NONSENSE, ids=str)
def test_nonsense_is_refused_and_loads_nothing(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def only_ours(name: str, package: str | None = None) -> Any:
        assert name.startswith("snugdp.")
        assert not name.startswith(("snugdp.cli", "snugdp.ledger"))
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", only_ours)
    with pytest.raises(UnreadableError):
        loads(body(value))
    with pytest.raises(UnreadableError):
        decode(value)


@pytest.mark.parametrize(
    "text",
    [
        "", "no json", "[]", "{}", "5", "null", body(1, **{"snugdp outcome": 3}), body(1, refused="no"),
        '{"snugdp outcome":2,"refused":false,"value":1}', "[" * 100_000, body(1)[:-1],
    ],
)  # fmt: skip
def test_texts_that_are_no_outcomes(text: str) -> None:
    with pytest.raises(UnreadableError):
        loads(text)


# One outcome for every charge.

PLAN = plan_of("a test of keeping", {"test": Cost(epsilon=1), "release": Cost()})


class Shelf:
    """An account with one key, which keeps its outcome. ``fails``: cannot store."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stored: list[str | None] = []
        self.fails = False

    def charge(self, cost: Cost, what: str, *, plan: str = "", question: Any = None) -> Receipt:
        self.lines.append("charge")
        self.plan = plan
        return Receipt("shelf", 1, what, cost, "key")

    def recall(self, receipt: Receipt) -> str | None:
        self.lines.append("recall")
        if self.stored == [None]:
            raise KeyConflictError("the output was consumed")
        return self.stored[0] if self.stored else None

    def settle(self, receipt: Receipt, body: str | None) -> str | None:
        self.lines.append("settle")
        if self.fails:
            raise LedgerWriteError("disk full")
        if not self.stored:
            self.stored.append(body)
        return self.stored[0]


class Draws:
    """A test, a certifier and a mechanism; every draw is another number. ``passing``: or a refusal."""

    def __init__(self, shelf: Shelf, passing: bool = True, breaks: bool = False, value: Any = None) -> None:
        self.shelf, self.passing, self.breaks, self.value, self.count = shelf, passing, breaks, value, 0

    def passes(self, data: Secret[int], noise: Any) -> bool:
        self.shelf.lines.append("test")
        return self.passing

    def certify(self, data: Secret[int], noise: Any) -> float:
        self.shelf.lines.append("certify")
        return 2.5

    def draw(self, data: Secret[int], *certificate_and_noise: Any) -> Any:
        self.shelf.lines.append("draw")
        self.count += 1
        if self.breaks:
            data.map(lambda number: 1 / number)
        return (np.float64(self.count) if self.value is None else self.value) if self.passing else None

    def fit(self, data: Secret[int], found: float, context: ReleaseContext) -> Outcome[Any]:
        return certify_and_release(PLAN, self, self, data, context)


class Twice(Draws):
    """Certifies with ``None`` for a refusal."""

    def certify(self, data: Secret[int], noise: Any) -> Any:
        return 2.5 if self.passing else None


def plainly(draws: Draws, context: ReleaseContext) -> Outcome[Any]:
    return release(PLAN, draws, Secret(0), context)


def refusing(draws: Draws, context: ReleaseContext) -> Outcome[Any]:
    return release_or_refuse(PLAN, draws, draws, Secret(0), context)


def calibrating(draws: Draws, context: ReleaseContext) -> Outcome[Any]:
    return certify_and_release(PLAN, draws, draws, Secret(0), context)


def staged(draws: Draws, context: ReleaseContext) -> Outcome[Any]:
    return TwoStages(PLAN, Twice(draws.shelf, draws.passing), draws.fit, Cost(epsilon=1)).release(Secret(0), context)


def selected(draws: Draws, context: ReleaseContext) -> Outcome[Any]:
    def run(proposal: float, budget: Budget, ledger: Any) -> Outcome[Any]:
        plan = plan_of("a run", Cost(epsilon=budget.epsilon))
        return certify_and_release(plan, draws, draws, Secret(0), ReleaseContext(None, ledger))

    choice = Selection([1.5, 2.5], run, lambda outcome: float(outcome.value), budget=Budget(1), route="compose")
    return choice.paid_from(context, False)


FORMS = [plainly, refusing, calibrating, staged, selected]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["released", "refused", "failed"])
def test_a_retry_shows_the_stored_outcome_and_draws_nothing(form: Any, how: str, shelf: Shelf) -> None:
    if how == "refused" and form is plainly:
        return  # it has no test
    draws = Draws(shelf, passing=how != "refused", breaks=how == "failed")
    first = form(draws, ReleaseContext(Exact(), shelf))
    assert shelf.lines[:2] == ["charge", "recall"]
    assert shelf.lines[-1] == "settle"
    assert shelf.plan.startswith("Plan: ")
    shelf.lines.clear()
    again = form(draws, ReleaseContext(Exact(), shelf))
    assert shelf.lines == ["charge", "recall"]
    assert first.refused is (how != "released")
    assert json.loads(str(shelf.stored[0]))["refused"] is first.refused
    assert isinstance(again, Refused if first.refused else Released)
    assert same(again, first)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("passing", [True, False])
def test_who_loses_a_race_shows_what_the_winner_stored(form: Any, passing: bool, shelf: Shelf) -> None:
    theirs = dumps(StoredOutcome(False, "theirs", "certificate")) if passing else dumps(StoredOutcome(True))
    recall = shelf.recall
    shelf.stored.append(theirs)
    shelf.recall = lambda receipt: (recall(receipt), None)[1]  # type: ignore[method-assign]
    outcome = form(Draws(shelf), ReleaseContext(Exact(), shelf))
    assert "draw" in shelf.lines
    assert (outcome.value, outcome.certificate) == (("theirs", "certificate") if passing else (None, None))


@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_be_kept_is_shown_once(form: Any, shelf: Shelf) -> None:
    draws = Draws(shelf, value=Whole(7))
    assert form(draws, ReleaseContext(Exact(), shelf)).value is not None
    assert shelf.stored == [None]
    drawn = draws.count
    with pytest.raises(KeyConflictError, match="consumed"):
        form(draws, ReleaseContext(Exact(), shelf))
    assert draws.count == drawn


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_shown_that_could_not_be_stored_and_a_retry_stores_what_was_drawn(form: Any, shelf: Shelf) -> None:
    draws, shelf.fails = Draws(shelf), True
    for _ in range(2):
        with pytest.raises(LedgerError, match="could not be stored"):  # what a ledger of one's own says is not shown
            form(draws, ReleaseContext(Exact(), shelf))
        assert shelf.stored == []
    drawn, shelf.fails = draws.count, False
    assert form(draws, ReleaseContext(Exact(), shelf)).value is not None
    assert draws.count == drawn


@pytest.mark.parametrize("form", FORMS)
def test_an_outcome_of_another_version_is_not_drawn_again(form: Any, shelf: Shelf) -> None:
    shelf.stored.append('{"snugdp outcome":99}')
    with pytest.raises(LedgerError, match="cannot read") as error:
        form(Draws(shelf), ReleaseContext(Exact(), shelf))
    assert error.value.__suppress_context__ or error.value.__context__ is None
    assert shelf.lines == ["charge", "recall"]


@pytest.mark.parametrize("form", FORMS[:4])
def test_a_rehearsal_stores_nothing(form: Any, shelf: Shelf) -> None:
    assert isinstance(form(Draws(shelf), ReleaseContext(Simulation(1))), NotPrivate)
    assert not {"charge", "recall", "settle"} & set(shelf.lines)
    with pytest.raises(PrivateComputationError):
        form(Draws(shelf, breaks=True), ReleaseContext(Simulation(1)))


@pytest.mark.parametrize("wrong", [5, Budget(1), Shelf, b"path"])
def test_what_is_no_ledger_is_refused_before_anything_is_read(wrong: Any) -> None:
    class Rows(list[float]):
        def __iter__(self) -> Iterator[float]:
            raise AssertionError("read")

    with pytest.raises(TypeError, match="must be a ledger"):
        median(Rows([1.0]), bounds=(0, 1), epsilon=1, delta=1e-6, ledger=wrong)
