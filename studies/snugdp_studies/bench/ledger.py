"""What a charge costs, beside the one thing that it cannot do without: a bare fsync of one page on the same disk."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger.book import Ledger

_PAGE = 4096


@dataclass(frozen=True)
class Row:
    """Times of one kind of work, in milliseconds, and the ratio of the median to that of the bare fsync."""

    name: str
    p50_ms: float
    p99_ms: float
    relative: float | None


def run(charges: int = 300, folder: str | None = None, url: str | None = None) -> list[Row]:
    """Bare fsyncs, charges and stored outcomes in turn, so that a busy disk is busy for all of them.

    ``folder``: on the disk to be measured. ``url``: a PostgreSQL database where a ledger may be made.
    """
    with tempfile.TemporaryDirectory(dir=folder) as place:
        rows = _times(charges, str(Path(place) / "bench.ledger"), Path(place) / "bare", "SQLite")
        if url is not None:
            rows += _times(charges, url, Path(place) / "bare", "PostgreSQL", Path(place) / "anchor")[1:]
        return [*rows, *_opening(Path(place))]


def _times(charges: int, where: str, bare: Path, name: str, anchor: Path | None = None) -> list[Row]:
    budget, cost = Budget(4, 1e-6), Cost(mu="0.001")
    times: dict[str, list[float]] = {"bare fsync": [], f"{name}: charge": [], f"{name}: charge and outcome": []}
    dataset = f"bench-{os.getpid()}-{time.monotonic_ns()}"
    with Ledger.open(where, dataset=dataset, budget=budget, anchor=anchor) as ledger, _page(bare) as sync:

        def release() -> None:
            ledger.settle(ledger.charge(cost, "a release"), "42")

        work: dict[str, Callable[[], object]] = {
            "bare fsync": sync,
            f"{name}: charge": lambda: ledger.charge(cost, "a charge"),
            f"{name}: charge and outcome": release,
        }
        for _ in range(charges):
            for kind, once in work.items():
                start = time.perf_counter()
                once()
                times[kind].append((time.perf_counter() - start) * 1e3)
    base = _quantile(times["bare fsync"], 0.5)
    return [Row(kind, _quantile(t, 0.5), _quantile(t, 0.99), _quantile(t, 0.5) / base) for kind, t in times.items()]


def _opening(place: Path, entries: int = 2000) -> list[Row]:
    """Opening verifies the whole history."""
    where = place / "long.ledger"
    with Ledger.open(where, dataset="long", budget=Budget(4, 1e-6)) as ledger:
        for _ in range(entries):
            ledger.charge(Cost(epsilon="0.001"), "a charge")
    start = time.perf_counter()
    Ledger.open(where).close()
    spent = (time.perf_counter() - start) * 1e3
    return [Row(f"opening {entries:,} entries, all checked", spent, spent, None)]


@contextmanager
def _page(path: Path) -> Iterator[Callable[[], object]]:
    """Write one page and wait for the disk."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    page = bytes(_PAGE)

    def sync() -> None:
        os.pwrite(handle, page, 0)
        os.fdatasync(handle)

    sync()
    try:
        yield sync
    finally:
        os.close(handle)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
