"""After the charge nothing escapes: whatever is raised, at whatever line, one key is drawn from once."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import snugdp
from snugdp import Budget, Cost, Exact, Ledger, LedgerError, MemoryLedger, Refused, Released, Simulation
from snugdp.audit import registry
from snugdp.audit.finding import Case
from snugdp.certify.statistics import Statistic
from snugdp.noise import Laplace
from snugdp.numerics.threads import one_blas_thread
from snugdp.recipe import PrivateAlgorithm, from_distance, from_statistics
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome
from snugdp_studies.audit.side_channels.entry_points import entry_point_names, entry_points, plain_input, rehearsed
from tests.effort import often, repeated, sampled
from tests.plans import plan_of
from tests.release.escapes import CANARY, KINDS, Counting, Shelf, Watch, attack, ended, lines, shown, tidy

BUDGET = Budget(2, 1e-2)
PLAN = plan_of("a count", Cost(epsilon=1))


class Panic(BaseException):
    """As native libraries raise it."""


TROUBLES: tuple[Any, ...] = (
    ValueError, SystemExit, GeneratorExit, KeyboardInterrupt, MemoryError, RecursionError, StopIteration, LedgerError,
    Panic,
)  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "people.ledger", dataset="people", budget=Budget(1000, 0.5)) as opened:
        yield opened


class Draws:
    """A draw of one's own that goes wrong after its noise, with the noisy value in its mouth."""

    def __init__(self, trouble: Callable[[float], Any]) -> None:
        self.trouble, self.seen = trouble, list[float]()

    def __call__(self, data: Secret[list[int]], noise: Any) -> Any:
        value = float(noise.add(data.map(len), Laplace(1), grid=-10))
        self.seen.append(value)
        return self.trouble(value)


def raising(kind: Any) -> Callable[[float], Any]:
    def trouble(value: float) -> Any:
        raise kind(f"{CANARY} {value}")

    return trouble


def made(draw: Any) -> PrivateAlgorithm[Any, Any]:
    return from_distance(distance=lambda rows: 1000, draw=draw, budget=BUDGET)


# ---- what was found


@pytest.mark.parametrize("kind", TROUBLES)
def test_a_draw_that_raises_has_bought_a_refusal(kind: Any, ledger: Ledger) -> None:
    """The same key drew again and again, and said every time what it had drawn."""
    draws = Draws(raising(kind))
    outcome, error = ended(lambda: made(draws)([1] * 50, ledger=ledger.once("k")))
    if kind is KeyboardInterrupt:
        assert type(error) is KeyboardInterrupt
        assert (error.args, error.__cause__, error.__context__) == ((), None, None)
    else:
        assert error is None
        assert isinstance(outcome, Refused)
    assert CANARY not in shown(error)
    for _ in range(3):
        assert isinstance(made(draws)([1] * 50, ledger=ledger.once("k")), Refused)
    assert len(draws.seen) == 1
    assert [entry.state for entry in ledger.entries()] == ["refused"]
    assert ledger.spent == made(draws).plan.cost


def test_a_logarithm_of_something_below_zero(ledger: Ledger) -> None:
    draws = Draws(lambda value: math.log(-abs(value)))
    for _ in range(30):
        assert isinstance(made(draws)([1] * 1234, ledger=ledger.once("k")), Refused)
    assert len(draws.seen) == 1


def test_a_statistic_beyond_the_floats(ledger: Ledger) -> None:
    """Its noisy bound may be no float: that was an OverflowError, after the draw and with the charge left open."""
    statistic: Statistic[list[int]] = Statistic("size", lambda rows: 1.0, 10**320, "lower", (0, math.inf))
    algorithm = from_statistics(loss=lambda size: 0.0, statistics=(statistic,), draw=Draws(float), budget=BUDGET)
    shown = {str(algorithm([1], ledger=ledger.once("k"))) for _ in range(5)}
    assert len(shown) == 1
    assert [entry.state for entry in ledger.entries()] in (["refused"], ["released"])


def test_a_rehearsal_shows_the_mistake() -> None:
    for kind in TROUBLES:
        with pytest.raises(kind):
            made(Draws(raising(kind)))([1], noise=Simulation(1))


def later(data: Secret[list[int]], noise: Any) -> Iterator[float]:
    while True:
        yield float(noise.add(data.map(len), Laplace(1), grid=-20))


def awaited(data: Secret[list[int]], noise: Any) -> Any:
    async def add() -> Any:
        return noise.add(data.map(len), Laplace(1))

    found = add()
    found.close()
    return found


async def generated(data: Secret[list[int]], noise: Any) -> Any:
    yield noise.add(data.map(len), Laplace(1))


@pytest.mark.parametrize(
    "draw",
    [
        later,
        awaited,
        generated,
        lambda data, noise: map(float, later(data, noise)),
        lambda data, noise: lambda: later(data, noise),
        lambda data, noise: partial(noise.add, data.map(len), Laplace(1)),
        lambda data, noise: Draws,
    ],
)
def test_what_would_draw_after_the_outcome_is_not_shown(draw: Any, ledger: Ledger) -> None:
    assert isinstance(made(draw)([1], ledger=ledger.once("k")), Refused)
    with pytest.raises(TypeError, match="could draw later"):
        made(draw)([1], noise=Simulation(1))


def test_without_keys_it_is_a_refusal_as_well() -> None:
    ledger, draws = MemoryLedger(10, 0.1, composition="tight"), Draws(raising(OSError))
    assert isinstance(made(draws)([1], ledger=ledger), Refused)
    assert ledger.spent == made(draws).plan.cost


# ---- at every line, of every mechanism


def named(case: Case[Any]) -> Callable[[Any], Any]:
    data = next(iter(case.worst()))[0]
    return lambda noise: case.run(data, noise)


def some_lines(run: Callable[[Any], Any], number: int, name: str) -> None:
    """The last line before the outcome is stored, and one in between; the exceptions take turns."""
    inside = [line for line, phase in lines(run).items() if phase == "walk"]
    for turn, index in enumerate((number * 37 % len(inside), len(inside) - 1)):
        assert attack(run, inside[index], KINDS[(number + turn) % len(KINDS)]) == "walk", name


@sampled(24)
@pytest.mark.parametrize(("number", "name"), list(enumerate(entry_point_names())), ids=entry_point_names())
@pytest.mark.filterwarnings("ignore")
def test_some_lines_of_every_entry_point(number: int, name: str) -> None:
    source: dict[str, Any] = {}
    (one,) = entry_points(names=[name], how=lambda: source or rehearsed())

    def run(noise: Any) -> Any:
        source["noise"] = noise
        released = one.release(plain_input(one.takes))
        return getattr(released, "outcome_", released)

    with one_blas_thread():
        some_lines(run, number, name)


@pytest.mark.slow
@pytest.mark.parametrize("group", registry.groups())
@pytest.mark.filterwarnings("ignore")
def test_some_lines_of_every_mechanism(group: str) -> None:
    with one_blas_thread():
        for number, case in enumerate(registry.registered(group)):
            some_lines(named(case), number, case.name)


@pytest.mark.nightly
@pytest.mark.parametrize("group", registry.groups())
@pytest.mark.filterwarnings("ignore")
def test_all_lines_of_every_mechanism(group: str) -> None:
    """Each line that no other mechanism of the group has reached: by an interrupt, and by another exception."""
    known: set[Any] = set()
    with one_blas_thread():
        for case in registry.registered(group):
            run = named(case)
            for number, (line, phase) in enumerate(lines(run).items()):
                if (line, phase) not in known:
                    known.add((line, phase))
                    for kind in (KeyboardInterrupt, [one for one in KINDS if one is not KeyboardInterrupt][number % 4]):
                        assert attack(run, line, kind) == phase, (case.name, line)


@sampled(5)
@repeated
@pytest.mark.parametrize(("turn", "kind"), list(enumerate(KINDS)))
def test_all_lines_of_a_small_mechanism(turn: int, kind: type[BaseException]) -> None:
    """Those of the charge and of the storing among them; in make test at every other line, each kind at its own."""
    run, every = named(registry.case("framework: from_distance", "framework")), often(2, 1)
    phases = {attack(run, line, kind) for line in list(lines(run))[turn % every :: every]}
    assert phases == {"charged", "walk", "stored"}


@sampled(2)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_another_exception_is_handled(kind: type[BaseException]) -> None:
    """Two at a time: at every line between a walk that failed and its refusal."""

    def failing(shelf: Shelf) -> tuple[Any, BaseException | None]:
        noise: Any = Counting(shelf)
        trouble = raising(ValueError)
        return ended(
            lambda: ReleaseContext(noise, shelf).pay(PLAN, lambda *_: trouble(noise.add(Secret(5), Laplace(1))))
        )

    shelf = Shelf()
    watch = Watch(shelf)
    failing(shelf)
    watch.stop()
    assert watch.count > 40
    for number in range(1, watch.count + 1):
        shelf = Shelf()
        watch = Watch(shelf, at=number, kind=kind, said=())
        _, error = failing(shelf)
        watch.stop()
        assert watch.raised
        assert CANARY not in shown(error)
        outcome, error = failing(shelf)
        assert error is None
        assert outcome.refused
        assert shelf.draws <= 1


# ---- two at a time


def counted(noise: Any) -> Callable[..., StoredOutcome]:
    return lambda *_: StoredOutcome(refused=False, value=float(noise.add(Secret(5), Laplace(1), grid=-20)))


def test_threads_with_one_key_share_one_draw(ledger: Ledger) -> None:
    inside, go_on, draws, shown_to = threading.Event(), threading.Event(), list[int](), list[Any]()

    def slowly(data: Secret[Any], noise: Any) -> float:
        draws.append(1)
        inside.set()
        go_on.wait(10)
        return float(noise.add(data.map(len), Laplace(1), grid=-20))

    def ask() -> None:
        shown_to.append(made(slowly)([1] * 50, ledger=ledger.once("k")))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert inside.wait(10)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(draws) == 1
    assert len({outcome.value for outcome in shown_to}) == 1
    assert len(shown_to) == 4


def test_a_draw_that_asks_under_its_own_key(ledger: Ledger) -> None:
    """It is told off, and with that its own draw has failed; nobody waits for himself."""
    told: list[str] = []

    def again(data: Secret[Any], noise: Any) -> Any:
        value = float(noise.add(data.map(len), Laplace(1), grid=-20))
        try:
            inner = algorithm([1] * 50, ledger=ledger.once("k"))
        except LedgerError as error:
            told.append(str(error))
            raise
        return value, inner.value

    algorithm = made(again)
    assert isinstance(algorithm([1] * 50, ledger=ledger.once("k")), Refused)
    assert len(told) == 1
    assert "under way" in told[0]
    assert isinstance(algorithm([1] * 50, ledger=ledger.once("k")), Refused)


class Full(Shelf):
    """A ledger that quotes what it cannot store."""

    full, trouble = True, OSError

    def settle(self, receipt: Any, body: str | None) -> str | None:
        if self.full:
            raise self.trouble(f"no space left for {body}")
        return super().settle(receipt, body)


@pytest.mark.parametrize("trouble", [OSError, SystemExit, LedgerError])
def test_what_cannot_be_stored_is_not_said_either(trouble: Any) -> None:
    shelf, noise = Full(), Exact()
    shelf.trouble = trouble
    drawn: list[Any] = []

    def walk(*_: object) -> StoredOutcome:
        drawn.append(counted(noise)(None).value)
        return StoredOutcome(refused=False, value=drawn[0])

    for _ in range(2):  # the second call holds what the first one has drawn
        _, error = ended(lambda: ReleaseContext(noise, shelf).pay(PLAN, walk))
        assert type(error) is LedgerError
        assert str(drawn[0]) not in shown(error)
        assert (error.__cause__, error.__context__) == (None, None)
    shelf.full = False
    outcome = ReleaseContext(noise, shelf).pay(PLAN, walk)
    assert outcome.value == drawn[0]
    assert len(drawn) == 1


class StubbornError(OSError):
    """It raises another one of its kind when it is asked what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise StubbornError(*self.args)


@pytest.mark.parametrize("trouble", [OSError, StubbornError])
def test_a_process_that_cannot_import_any_more_says_nothing_either(
    trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With too many open files neither the storing nor an import in its handler succeeds."""
    drawn: list[Any] = []

    class Exhausted(Full):
        def settle(self, receipt: Any, body: str | None) -> str | None:
            for name in ("book", "view"):
                monkeypatch.setitem(sys.modules, f"snugdp.ledger.{name}", None)
            return super().settle(receipt, body)

    shelf, noise = Exhausted(), Exact()
    shelf.trouble = trouble

    def walk(*_: object) -> StoredOutcome:
        drawn.append(counted(noise)(None).value)
        return StoredOutcome(refused=False, value=drawn[0])

    _, error = ended(lambda: ReleaseContext(noise, shelf).pay(PLAN, walk))
    assert type(error) is LedgerError
    assert (error.__cause__, error.__context__) == (None, None)
    assert len(drawn) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_does_not_draw_what_its_parent_has_drawn() -> None:
    shelf = Full()
    ended(lambda: ReleaseContext(Counting(shelf), shelf).pay(PLAN, counted(Counting(shelf))))
    assert shelf.draws == 1
    shelf.full = False
    child = os.fork()
    if child == 0:
        os._exit(
            0 if ReleaseContext(Counting(shelf), shelf).pay(PLAN, counted(Counting(shelf))) and shelf.draws == 1 else 1
        )
    assert os.waitpid(child, 0)[1] == 0


# ---- teachers


class Teacher(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Raises, with a row in its mouth, where it sees the private rows."""

    def __init__(self, kind: Any = None, when: str = "fit") -> None:
        self.kind, self.when = kind, when

    def fit(self, X: Any, y: Any) -> Teacher:
        self.classes_, self.mine_ = np.unique(y), bool((X[:, 0] > 100).any())
        self._maybe("fit", X)
        return self

    def predict(self, X: Any) -> Any:
        self._maybe("predict", X)
        return np.full(len(X), self.classes_[0])

    def _maybe(self, when: str, X: Any) -> None:
        if self.mine_ and self.when == when:
            raise self.kind(f"{CANARY} {X[0]}")


@sampled(4)
@pytest.mark.parametrize("when", ["fit", "predict"])
@pytest.mark.parametrize("kind", TROUBLES)
def test_a_teacher_that_raises_abstains(kind: Any, when: str) -> None:
    """Whatever it raises: only an interrupt ends the fit, bare and before the charge."""
    X, y = np.full((300, 1), 1000.0), np.arange(300) % 2
    ledger = MemoryLedger(10, 0.1, composition="tight")
    model = snugdp.PATEClassifier(
        Teacher(kind, when), n_teachers=20, epsilon=2, classes=[0, 1], queries=np.zeros((4, 1)), ledger=ledger,
        test="none",
    )  # fmt: skip
    fitted, error = ended(lambda: model.fit(X, y))
    assert CANARY not in shown(error)
    if kind is KeyboardInterrupt:
        assert type(error) is KeyboardInterrupt
        assert (error.args, error.__cause__, error.__context__) == ((), None, None)
        assert ledger.spent == Cost()
    else:
        assert error is None
        assert isinstance(fitted.outcome_, Released)
        assert ledger.spent == fitted.cost_


def test_labels_and_groups_that_raise() -> None:
    """Cells may be objects, and comparing them may raise anything."""

    class Loud:
        def __hash__(self) -> int:
            raise SystemExit(CANARY)

        __eq__ = None  # type: ignore[assignment]

    tidy()
    model = snugdp.PATEClassifier(n_teachers=5, epsilon=2, classes=["a", "b"], queries=np.zeros((4, 1)), test="none")
    assert model.fit(np.zeros((6, 1)), ["a", "b", Loud()] * 2, groups=[1, 2, Loud(), 3, 4, 5]).released_
    assert snugdp.vote(["a", Loud(), "b"], candidates=["a", "b"], epsilon=1)
