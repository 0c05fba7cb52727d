"""What single operations cost: a vector of noise, a query on millions of rows, a charge, and an import."""

import importlib
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger import requests
from snugdp.ledger.anchors.anchor import Mark
from snugdp.ledger.anchors.recognition import VARIABLE, recognise
from snugdp.ledger.book import Ledger
from snugdp.ledger.history import records
from snugdp.ledger.history.state import State
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Laplace, Law, Simulation
from snugdp.queries import functions
from snugdp.secrecy.secret import Secret
from snugdp_studies.bench.contest.speed import Timing, timed

SIZE = 5050  # the distinct entries of a 100 x 100 Gram matrix
SCALE = 2**20
CATEGORIES = 20
IMPORT_GOAL = "Goal: at most 0.25 s for LinearRegression."
IMPORTED = ("Budget", "median", "LinearRegression", "LogisticRegression", "PCA", "PATEClassifier", "Ledger")
_IMPORT = """
import sys, time
import numpy, scipy, sklearn.base, sklearn.utils.validation
before, start = len(sys.modules), time.process_time()
from snugdp import {name}
spent = time.process_time() - start
print(spent, sum(module.partition(".")[0] == "snugdp" for module in sys.modules), len(sys.modules) - before)
"""
_ROW = 520  # characters of a charge and of its hash
_LOG = 4_200_000  # bytes after which SQLite begins its log again
_READ = 100_000  # entries that are read whole
_COST = Cost(epsilon="0.001")
_TOGETHER = 20_000  # rows of a transaction


def noise_times(repeats: int = 15) -> list[Timing]:
    """Exact draws, OpenDP's, and numpy's, which are not private: every sampler in turn, ``repeats`` times over.

    Raises an ImportError that says what to install if OpenDP is missing.
    """
    if repeats < 1:
        raise ValueError("repeats must be at least 1")
    return timed(f"{SIZE:,} draws", {**_samplers(), **_opendp()}, repeats)


def _samplers() -> dict[str, Callable[[], object]]:
    values = Secret([0] * SIZE)
    laws: dict[str, Law] = {
        "rounded Gaussian": Gaussian(SCALE),
        "rounded Laplace": Laplace(SCALE),
        "discrete Laplace": DiscreteLaplace(SCALE),
        "discrete Gaussian": DiscreteGaussian(SCALE**2),
    }
    exact, simulation = Exact(), Simulation(0)
    jobs: dict[str, Callable[[], object]] = {
        f"snugdp, exact {name}": partial(exact.add_integers, values, law) for name, law in laws.items()
    }
    jobs["numpy normals, not private"] = partial(simulation.add_integers, values, Gaussian(SCALE))
    return jobs


def _opendp() -> dict[str, Callable[[], object]]:
    try:
        dp: Any = importlib.import_module("opendp.prelude")
    except ImportError as missing:
        raise ImportError("this comparison needs OpenDP: pip install opendp") from missing
    dp.enable_features("contrib")
    whole = dp.vector_domain(dp.atom_domain(T=int), size=SIZE)
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=SIZE)
    l1, l2 = dp.l1_distance, dp.l2_distance
    mechanisms: dict[str, tuple[Any, list[Any]]] = {
        "OpenDP, integer Laplace": (dp.m.make_laplace(whole, l1(T=int), scale=SCALE), [0]),
        "OpenDP, integer Gaussian": (dp.m.make_gaussian(whole, l2(T=float), scale=SCALE), [0]),
        "OpenDP, float Laplace": (dp.m.make_laplace(real, l1(T=float), scale=SCALE), [0.0]),
        "OpenDP, float Gaussian": (dp.m.make_gaussian(real, l2(T=float), scale=SCALE), [0.0]),
        "OpenDP, float Gaussian on a grid of 2^-20": (dp.m.make_gaussian(real, l2(T=float), scale=SCALE, k=-20), [0.0]),
    }
    return {name: partial(mechanism, zero * SIZE) for name, (mechanism, zero) in mechanisms.items()}


def query_times(rows: int = 5_000_000, repeats: int = 5) -> list[Timing]:
    """Every query in turn beside the sort that any quantile needs, ``repeats`` times over, on one made-up column."""
    values = (np.arange(rows, dtype=np.float64) * 0.6180339887498949) % 1 * 100  # evenly spread, out of order
    chosen = (values * 7919).astype(np.int64) % CATEGORIES
    common: dict[str, Any] = {"bounds": (0, 100), "epsilon": 1, "delta": 1e-6, "neighbours": "replace"}
    listed: dict[str, Any] = {"epsilon": 1, "neighbours": "replace"}
    categories = list(range(CATEGORIES))
    jobs: dict[str, Callable[[], object]] = {
        "numpy.sort": lambda: np.sort(values),
        "median": lambda: functions.median(values, **common),
        "median, tested": lambda: functions.median(values, method="test", **common),
        "quantile": lambda: functions.quantile(values, 0.9, **common),
        "trimmed mean, beta given": lambda: functions.trimmed_mean(values, **common, beta=50 / rows),
        "mode": lambda: functions.mode(chosen, categories=categories, delta=1e-6, **listed),
        "vote": lambda: functions.vote(chosen, candidates=categories, **listed),
    }
    return timed(f"{rows:,} rows", jobs, repeats)


@dataclass(frozen=True)
class ChargeTime:
    """Times of one kind of work, in milliseconds, and the ratio of the median to that of the bare write.

    ``cpu_ms``: of this process, the median.
    """

    name: str
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    relative: float | None


def charge_times(
    charges: int = 300, folder: str | None = None, url: str | None = None, entries: Sequence[int] = (1000, 20_000)
) -> list[ChargeTime]:
    """Bare writes, SQLite's commits and charges in turn, so that a busy disk is busy for all of them; long histories.

    ``folder``: on the disk to be measured. ``url``: a PostgreSQL database where a ledger may be made. ``entries``: of
    the histories.
    """
    with tempfile.TemporaryDirectory(dir=folder) as name, _remembering(Path(name) / "state"), ExitStack() as opened:
        place = Path(name)
        work: dict[str, Callable[[], object]] = {
            "bare write: 520 bytes behind a file, fsync": opened.enter_context(_bare(place / "bare")),
            "SQLite alone: BEGIN IMMEDIATE, INSERT, COMMIT": opened.enter_context(_plain_table(place / "plain")),
            "the same with room in its log": opened.enter_context(_plain_table(place / "roomy", _LOG)),
        }
        reading = []
        for number in entries:
            where = place / f"{number}.ledger"
            first = _history(where, number)
            if number <= _READ:
                reading.append(first)
            ledger = opened.enter_context(Ledger.open(where))
            work[f"charge after {number:,} entries"] = partial(ledger.charge, _COST, "a charge")
        work["charge and outcome"] = partial(_release, ledger)
        if url is not None:
            dataset = f"bench-{os.getpid()}-{time.monotonic_ns()}"
            remote = Ledger.open(url, dataset=dataset, budget=Budget(10**6, 1e-6), anchor=place / "anchor")
            work["PostgreSQL: charge"] = partial(opened.enter_context(remote).charge, _COST, "a charge")
            work["PostgreSQL: charge and outcome"] = partial(_release, remote)
        charged = _in_turn(work, charges)
        shown = _in_turn({f"the last 20 of {number:,} entries": partial(ledger.show, 20)}, 5)
        opened.close()  # the last one who closes a ledger writes its log into the file
        once = {f"open {n:,} entries, charge, close": partial(_opened, place / f"{n}.ledger") for n in entries}
        return [*charged, *(replace(each, relative=None) for each in (*_in_turn(once, 20), *shown, *reading))]


def _release(ledger: Ledger) -> None:
    ledger.settle(ledger.charge(_COST, "a release"), "42")


def _opened(where: Path) -> None:
    with Ledger.open(where) as ledger:
        ledger.charge(_COST, "a charge")


def _history(where: Path, entries: int) -> ChargeTime:
    """Make a ledger of so many entries, and open it: as for the first time, or where it is too long, from its end."""
    ledger = Ledger.open(where, dataset="long", budget=Budget(10**6, 1e-6))
    ledger.close()
    seq, head = write_history(where, entries)
    if entries > _READ:
        for anchor in recognise(ledger._handle.store, ledger._handle.state):
            anchor.advance(Mark(ledger._handle.state.born.id, seq, head))
    first = {f"opening {entries:,} entries for the first time, all checked": lambda: Ledger.open(where).close()}
    return _in_turn(first, 1)[0]


@contextmanager
def _remembering(folder: Path) -> Iterator[None]:
    """What is seen here is remembered on the disk that is measured, and forgotten afterwards."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _in_turn(work: Mapping[str, Callable[[], object]], times: int) -> list[ChargeTime]:
    """Each kind of work so often; relative to the first one."""
    spent: dict[str, list[tuple[float, float]]] = {kind: [] for kind in work}
    for _ in range(times):
        # in any order: a disk that answers at fixed ticks favours whoever comes after the same other one
        for kind, once in random.sample(list(work.items()), len(work)):
            start, cpu = time.perf_counter(), time.process_time()
            once()
            spent[kind].append(((time.perf_counter() - start) * 1e3, (time.process_time() - cpu) * 1e3))
    walls = {kind: [wall for wall, _ in each] for kind, each in spent.items()}
    base = _quantile(next(iter(walls.values())), 0.5)
    return [
        ChargeTime(
            kind, _quantile(wall, 0.5), _quantile(wall, 0.99), _quantile([cpu for _, cpu in spent[kind]], 0.5),
            _quantile(wall, 0.5) / base,
        )
        for kind, wall in walls.items()
    ]  # fmt: skip


def write_history(where: Path, entries: int) -> tuple[int, str]:
    """Make a new ledger on disk longer, by its own rules and without waiting for the disk: its end, and the hash."""
    with closing(sqlite3.connect(where)) as base:
        base.execute("PRAGMA synchronous = OFF")
        state, stamp, rows = State(), records.stamp(), list[records.Row]()
        for row in base.execute("SELECT seq, record, body, hash FROM ledger ORDER BY seq"):
            state.read(records.Row._make(row))
        while state.seq < entries:
            charge = requests.charge(Cost(epsilon="0.001"), "Mean of age", None, "")
            due = state.due
            drafted = state.draft("checkpoint", state.summary(), stamp) if due else state.charged(charge, stamp)
            state.take(drafted)
            rows.append(drafted.record.row())
            if len(rows) == _TOGETHER or state.seq == entries:
                base.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", rows)
                base.commit()
                rows.clear()
        return state.seq, state.head


@contextmanager
def _bare(path: Path) -> Iterator[Callable[[], object]]:
    """Put as many bytes as a charge has behind a file, and wait for the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    row = b"x" * _ROW

    def sync() -> None:
        os.write(handle, row)
        os.fsync(handle)

    sync()
    try:
        yield sync
    finally:
        os.close(handle)


@contextmanager
def _plain_table(path: Path, room: int = 0) -> Iterator[Callable[[], object]]:
    """Add a row as long as a charge to a table of SQLite's, as durably. ``room``: bytes of its log from the start."""
    row = ("x" * (_ROW - 64), None, "0" * 64)
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
        base.execute("CREATE TABLE plain (seq INTEGER PRIMARY KEY, record TEXT, body TEXT, hash TEXT)")
        with open(f"{path}-wal", "ab") as log:
            log.write(bytes(room))

        def insert() -> None:
            base.execute("BEGIN IMMEDIATE")
            base.execute("INSERT INTO plain (record, body, hash) VALUES (?, ?, ?)", row)
            base.execute("COMMIT")

        insert()
        yield insert


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@dataclass(frozen=True)
class Import:
    """One name: processor seconds, modules of ours, and all modules that were loaded for it."""

    name: str
    min_s: float
    median_s: float
    own: int
    modules: int


def import_costs(names: Sequence[str] = IMPORTED, repeats: int = 5) -> list[Import]:
    """Processor time beyond that of numpy, scipy and scikit-learn, in processes of their own.

    Every import in turn, ``repeats`` times over, after one turn that writes byte code.
    """
    times: dict[str, list[float]] = {name: [] for name in names}
    counts: dict[str, tuple[int, int]] = {}
    for turn in range(repeats + 1):
        for name in names:
            printed = subprocess.check_output([sys.executable, "-c", _IMPORT.format(name=name)], text=True).split()
            counts[name] = int(printed[1]), int(printed[2])
            times[name] += [float(printed[0])] if turn else []
    return [Import(name, min(taken), median(taken), *counts[name]) for name, taken in times.items()]
