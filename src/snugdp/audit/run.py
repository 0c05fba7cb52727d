"""The whole audit: every registered mechanism through every layer, and what stands behind them all.

>>> from snugdp import Cost
>>> from snugdp.audit import Case, audit, released_by
>>> from snugdp.noise import Laplace
>>> claim = Cost(epsilon=1)
>>> count = released_by(lambda rows, noise: noise.add(rows.map(len), Laplace(1)), claim)
>>> report = audit(Case("a count", count, claim, worst=lambda: [([1, 2], [1])]), layers="N")
>>> report.passed, report.findings[0].layer
(True, 'N')
"""

from __future__ import annotations

import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from multiprocessing import get_context
from typing import Any, TypeVar

from snugdp.audit import registry
from snugdp.audit.effort import FULL, QUICK, Effort
from snugdp.audit.finding import LAYERS, Case, Finding
from snugdp.audit.jobs import Done, Job, jobs_of_cases, jobs_of_the_library, perform
from snugdp.numerics.threads import one_blas_thread

T = TypeVar("T")
Progress = Callable[[int, int, str], None]
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_VERSIONS = ("snugdp", "numpy", "scipy", "scikit-learn", "python-flint")


@dataclass(frozen=True)
class Report:
    """Everything that an audit found.

    Parameters
    ----------
    findings : tuple of Finding
        Every claim with its measurement.
    seconds : mapping of str to float
        Processor time by layer.
    elapsed : float
        Seconds from beginning to end.
    versions : mapping of str to str
        Versions of what computed it.
    effort : str
        "quick" or "full".
    groups : mapping of str to str
        The group of every case.

    Examples
    --------
    >>> from snugdp.audit import Finding
    >>> Report((Finding("E", "a count", "delta(1) <= 0.1", "at least 0.02", True),)).passed
    True
    """

    findings: tuple[Finding, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    effort: str = "quick"
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether something was looked at and every claim held."""
        return bool(self.findings) and not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The claims that did not hold, or that were not looked at closely enough."""
        return tuple(finding for finding in self.findings if not finding.passed)

    def _repr_html_(self) -> str:
        page: str = import_module("snugdp.report.notebook").audit_html(self)  # above this package
        return page

    def __str__(self) -> str:
        shown = self.failures or self.findings[:20]
        held = f"{len(self.findings) - len(self.failures)} of {len(self.findings)} claims hold"
        more = len(self.findings) - len(shown)
        return "\n".join([*map(str, shown), f"{held}{f'; {more} not shown' if more and not self.failures else ''}"])


def audit(
    cases: Iterable[Case[Any]] | Case[Any] | None = None,
    *,
    quick: bool = True,
    layers: Iterable[str] | None = None,
    progress: Progress | None = None,
    processes: int = 1,
    seed: int = 0,
    times: int = 1,
) -> Report:
    """Audit the given cases, or all registered ones, and what the library's own are built on.

    Guarantee: a correct library fails a quick audit with probability below 1e-4. Passing is not a proof.

    Parameters
    ----------
    cases : Case or iterable of Case, optional
        What to audit.
    quick : bool, default=True
        Minutes; otherwise an hour.
    layers : iterable of str, optional
        Letters of ``LAYERS``; all by default.
    progress : callable, optional
        Called after every piece with how many are done, how many there are, and which it was.
    processes : int, default=1
        For registered cases; a program that asks for several must be guarded by ``if __name__ == "__main__"``.
    seed : int, default=0
        The seed of the runs; the source of noise itself is always tested with real entropy.
    times : int, default=1
        How often to run, with this seed and the next ones, to count false alarms.

    Returns
    -------
    Report
        The findings.

    Examples
    --------
    >>> from snugdp import Cost
    >>> from snugdp.audit import Case, audit, released_by
    >>> from snugdp.noise import Laplace
    >>> def draw(data, noise):
    ...     return noise.add(data.map(len), Laplace(2), grid=-10)
    >>> claim = Cost(epsilon=0.5)
    >>> case = Case("a count", released_by(draw, claim), claim, worst=lambda: [([0, 1], [0])])
    >>> report = audit(case, layers="D")
    >>> report.passed, report.findings[0].layer
    (True, 'D')
    """
    effort, wanted = QUICK if quick else FULL, _letters(layers)
    chosen = _chosen(cases)
    jobs = jobs_of_cases(chosen, wanted)
    if cases is None:
        jobs = jobs_of_the_library(wanted, effort.full) + jobs
    if not jobs:
        missing = "" if registry.library() is not None else f". {registry.INSTALL}"
        raise ValueError(f"there is nothing to audit: give cases, or layers that say something about them{missing}")
    start = time.perf_counter()
    done: list[Done] = []
    for count, piece in enumerate(_performed(jobs, chosen, effort, range(seed, seed + times), processes), 1):
        done.append(piece)
        if progress is not None:
            progress(count, len(jobs) * times, str(piece.job))
    order = {job: number for number, job in enumerate(jobs)}
    done.sort(key=lambda piece: (piece.seed, order[piece.job]))
    seconds: defaultdict[str, float] = defaultdict(float)
    for layer, spent in (part for piece in done for part in piece.seconds):
        seconds[layer] += spent
    return Report(
        tuple(finding for piece in done for finding in piece.findings if finding.layer in wanted),
        dict(seconds),
        time.perf_counter() - start,
        versions(),
        effort.name,
        {case.name: case.group or "others" for case in chosen},
    )


def versions() -> dict[str, str]:
    """Of this package, of Python, and of what computes."""
    found = {"Python": platform.python_version()}
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _letters(layers: Iterable[str] | None) -> tuple[str, ...]:
    if layers is None:
        return tuple(LAYERS)
    found = tuple(layer.strip().upper() for layer in layers if layer.strip(", "))
    unknown = [layer for layer in found if layer not in LAYERS]
    if unknown or not found:
        raise ValueError(f"there is no layer {', '.join(unknown) or 'given'}; there are {', '.join(LAYERS)}")
    return found


def _chosen(cases: Iterable[Case[Any]] | Case[Any] | None) -> tuple[Case[Any], ...]:
    if cases is None:
        return registry.registered()
    found = (cases,) if isinstance(cases, Case) else tuple(cases)
    for case in found:
        if not isinstance(case, Case):
            raise TypeError("cases are snugdp.audit.Case: how to run the mechanism, what it claims, and worst pairs")
    names = [case.name for case in found]
    if len(set(names)) < len(names):
        raise ValueError("two cases have the same name: give every case its own")
    return found


def _performed(
    jobs: list[Job], cases: tuple[Case[Any], ...], effort: Effort, seeds: range, processes: int
) -> Iterator[Done]:
    own = {case.name: case for case in cases}
    away = [job for job in jobs if processes > 1 and _can_travel(job, own)]
    here = [job for job in jobs if job not in set(away)]
    for batch in _batches(away):
        yield from _in_processes((partial(perform, job, effort, seed) for job in batch for seed in seeds), processes)
    with one_blas_thread():
        for job, seed in product(here, seeds):
            yield perform(job, effort, seed, own.get(job.name) if job.kind == "case" else None)


def _can_travel(job: Job, own: Mapping[str, Case[Any]]) -> bool:
    """Functions of others do not travel to another process; ours are made again there."""
    return job.kind != "case" or registry.is_ours(own[job.name])


def _batches(jobs: list[Job]) -> list[list[Job]]:
    """What is no case, then a few groups at a time, each batch in new processes, which make no more groups than that.

    What takes longest comes first, so that no processor waits for another at the end.
    """
    found: list[list[Job]] = [[], [], []]
    for job in jobs:
        found[0 if job.kind != "case" else 1 if job.group in ("linear", "glm", "sparse") else 2].append(job)
    long = ["entry point", "law", "inside", "linear", "glm", "sparse", "selection", "pca", "pate"]
    order = {name: place for place, name in enumerate(long)}
    return [sorted(batch, key=lambda job: order.get(job.group or job.kind, len(long))) for batch in found if batch]


def _in_processes(work: Iterable[Callable[[], T]], processes: int) -> Iterator[T]:
    """What each piece returns, in the order in which they end. What is not begun when one fails is left."""
    with _single_threads(), ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(partial(_alone, piece)) for piece in work]
        try:
            yield from (piece.result() for piece in as_completed(waiting))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _alone(piece: Callable[[], T]) -> T:
    with one_blas_thread():
        return piece()


@contextmanager
def _single_threads() -> Iterator[None]:
    """For processes that start now."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
