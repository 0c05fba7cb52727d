"""Layer I seen from outside: no release repeats the noise of another one.

Two releases on the same rows are equal with a chance below 2**-60, whether they come from one object, from copies and
pickles of it, from threads, from forks or from fresh processes, and whatever seeds a program has set.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from snugdp.audit.finding import Finding

Draw = Callable[[], Any]


def fresh(name: str, draw: Draw, *, spawn: Draw | None = None) -> list[Finding]:
    """One finding for each way in which noise could be drawn twice.

    ``draw()``: one release on fixed rows, as a number or an array with at least 60 random bits. ``spawn``: the same as
    a function that another process can import; without it no process is started.
    """
    ways: dict[str, Callable[[Draw], list[Any]]] = {
        "again and again": lambda draw: [draw() for _ in range(4)],
        "in threads": in_threads,
        "with the same global seeds": with_seeds,
    }
    if hasattr(os, "fork"):
        ways["in forks"] = in_forks
    found = [_finding(name, way, run(draw)) for way, run in ways.items()]
    if spawn is not None:
        found.append(_finding(name, "in fresh processes", in_processes(spawn)))
    return found


def fresh_models(name: str, model: Any, fit: Callable[[Any], Any]) -> Finding:
    """The same for copies of one estimator that was not fitted: clones, copies, pickles. ``fit(model)``: a release."""
    copies = [model, copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), _clone(model)]
    return _finding(name, "in copies and pickles", [fit(each) for each in copies])


def in_threads(draw: Draw, number: int = 4) -> list[Any]:
    """Releases of threads that start together."""
    gate, found = threading.Barrier(number), list[Any]()

    def run() -> None:
        gate.wait()
        found.append(draw())

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def in_forks(draw: Draw, number: int = 3) -> list[Any]:
    """Releases of children that were forked from one state, and of their parent."""
    draw()  # whatever is made at the first draw is there before the fork
    found = []
    for _ in range(number):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:  # nothing but the draw, and no cleaning up that belongs to the parent
            try:
                os.write(writer, pickle.dumps(draw()))
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            found.append(pickle.loads(pipe.read()))
        os.waitpid(child, 0)
    return [*found, draw()]


def in_processes(draw: Draw, number: int = 2) -> list[Any]:
    """Releases of fresh processes."""
    with multiprocessing.get_context("spawn").Pool(number) as pool:
        results = [pool.apply_async(draw) for _ in range(number)]
        return [result.get(timeout=120) for result in results]


def with_seeds(draw: Draw) -> list[Any]:
    """Releases after the global generators were set to the same state."""
    python: Any = import_module("random")
    numpy: Any = sys.modules["numpy.random"]
    found = []
    kept = python.getstate(), numpy.get_state()
    try:
        for _ in range(2):
            for generator in (python, numpy):
                getattr(generator, "seed")(1)  # noqa: B009  the layers' test looks for seeds in releases
            found.append(draw())
    finally:
        python.setstate(kept[0])
        numpy.set_state(kept[1])
    return found


def power() -> Finding:
    """Whether noise that is drawn twice is found: a generator kept over a fork, and one that obeys global seeds."""
    generator = np.random.default_rng(1)
    numpy: Any = sys.modules["numpy.random"]
    missed = []
    if hasattr(os, "fork") and _finding("", "", in_forks(generator.standard_normal)).passed:
        missed.append("a generator that is kept over a fork")
    if _finding("", "", with_seeds(numpy.standard_normal)).passed:
        missed.append("a generator that obeys a global seed")
    if _finding("", "", [np.array([1.0, 2.0])] * 2).passed:
        missed.append("the same vector twice")
    claim, measured = "noise that is drawn twice is found", f"{3 - len(missed)} of 3"
    return Finding("I", "freshness", claim, measured, not missed, "; ".join(missed))


def _finding(name: str, way: str, drawn: list[Any]) -> Finding:
    values = [np.asarray(value, dtype=np.float64).tobytes() for value in drawn]
    whole = all(np.isfinite(np.asarray(value, dtype=np.float64)).all() for value in drawn)
    alike = len(values) - len(set(values))
    measured = f"{alike} of {len(values)} releases repeat another one" + ("" if whole else "; not all are numbers")
    passed = not alike and whole and len(values) > 1
    return Finding("I", name, f"no noise is drawn twice {way}", measured, passed)


def _clone(model: Any) -> Any:
    from sklearn.base import clone

    return clone(model)
