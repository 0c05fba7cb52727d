"""Layer I of the library: no source and no release repeats the noise of another one.

``lanes`` and ``decisions`` look for draws of a source that know each other, ``equal_draws`` and ``fresh`` for draws
that come twice: from one object or its copies, in threads, forks or fresh processes, and whatever seeds a program has
set. Two releases of 60 random bits are equal with a chance below 2**-60.
"""

import copy
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

import snugdp
from snugdp.audit.finding import Finding
from snugdp.audit.independence import correlation_p
from snugdp.audit.laws.goodness import cells_p, verdict
from snugdp.noise import Exact, Gaussian, Gumbel, Laplace, Noise
from snugdp.noise.exact.weighted import Groups
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws.samples import LawEffort, size
from snugdp_studies.audit.side_channels.entry_points import LEDGER

Draw = Callable[[], Any]
Floats = NDArray[np.float64]
_LAGS = (1, 2, 3, 64)
_WAIT = 20  # seconds for a child


def lanes(noise: Noise, effort: LawEffort) -> Iterator[Finding]:
    """Numbers beside each other, in one call and in two, of one law and of two; signs and sizes."""
    n = size(1, effort.many)
    planted_by = 1.2 * effort.many
    first, second = (_standard(noise, Gaussian(1 << 20), n) for _ in range(2))
    other = _standard(noise, Laplace(1 << 20), n)
    pairs = {f"lag {lag}": (first[lag:], first[:-lag]) for lag in (*_LAGS, n // 2)}
    pairs |= {
        "two calls": (first, second),
        "sizes of two calls": (np.abs(first), np.abs(second)),
        "two laws": (first, other),
        "sizes of two laws": (np.abs(first), np.abs(other)),
        "sign and size": (np.sign(first), np.abs(first)),
        "sign and size of the next": (np.sign(first[1:]), np.abs(first[:-1])),
        "sign and low bit": (np.sign(first), np.floor(np.abs(first) * 2**20) % 2),
    }
    clean = {name: correlation_p(*pair) for name, pair in pairs.items()}
    mixed = math.sqrt(1 - planted_by**2) * second + planted_by * first
    planted = {
        f"a correlation of {planted_by:.3g}": correlation_p(first, mixed),
        "one call twice": correlation_p(first, first),
    }
    yield verdict("I", "lanes", "no two draws of add_integers are correlated", clean, planted)
    few = size(1, 4 * effort.single) * 4
    for name, draw in _singles(noise).items():
        z = np.array([draw() for _ in range(few)])
        clean = {f"lag {lag}": correlation_p(z[lag:], z[:-lag]) for lag in (1, 2)}
        if len(np.unique(z)) > 2:  # the two sides of a coin are equally far from its mean, if as many fell on each
            clean["sizes"] = correlation_p(np.abs(z[1:] - z.mean()), np.abs(z[:-1] - z.mean()))
        planted = {"a correlation of 0.5": correlation_p(z[1:], z[:-1] + math.sqrt(3) * z[1:])}
        yield verdict("I", name, "one draw says nothing about the next", clean, planted)


def decisions(noise: Noise, effort: LawEffort) -> Iterator[Finding]:
    """Winners in rows beside each other, places of rows, coins, and lanes of one contest."""
    n = size(16, effort.many)
    laws = (Gaussian(1), Laplace(1), Gumbel(1))
    for law in laws:
        won = noise.argmaxes(Secret(np.zeros((3 * n, 3), dtype=np.int64)), law).reshape(-1, 3)
        yield _even("argmaxes", np.bincount(won @ [9, 3, 1], minlength=27))
    few = 6000
    one = np.array([noise.argmax(Secret([0, 0, 0]), laws[0]) for _ in range(few)])
    yield _even("argmax", np.bincount(one[::2] * 3 + one[1::2], minlength=9))
    places = noise.scatter(2 * n, 5)
    yield _even("scatter", np.bincount(places[::2] * 5 + places[1::2], minlength=25))
    choices = np.array([noise.choice(5) for _ in range(2 * n)])
    yield _even("choice", np.bincount(choices[::2] * 5 + choices[1::2], minlength=25))
    even = Secret(Groups(np.arange(5), np.ones(5, np.int64), np.zeros(5, np.int64), np.zeros(5, np.int64)))
    drawn = np.array([noise.weighted_choice(even, Fraction(1)) for _ in range(few)])
    yield _even("weighted_choice", np.bincount(drawn[::2] * 5 + drawn[1::2], minlength=25))
    coins = np.array([noise.chance(Secret(Fraction(1, 2))) for _ in range(2 * n)], dtype=np.int64)
    yield _even("chance", np.bincount(coins[::2] * 2 + coins[1::2], minlength=4))
    reached = noise.reach(Secret(np.zeros(2 * n, dtype=np.int64)), laws[0], 0).astype(np.int64)
    yield _even("reach", np.bincount(reached[::2] * 2 + reached[1::2], minlength=4))


def equal_draws(make: Callable[[], Noise] = Exact) -> Iterator[Finding]:
    """Draws of 64 bits and more: no two are equal, whoever asks."""
    source = make()
    draw = partial(fingerprint, source)
    ways: dict[str, Callable[[], list[Any]]] = {
        "calls": lambda: [draw() for _ in range(50)],
        "sources": lambda: [fingerprint(make()) for _ in range(50)],
        "threads": lambda: in_threads(draw, 8),
        "forks": lambda: in_forks(draw, 4),
        "copies": lambda: [fingerprint(one) for one in _copies(source)],
    }
    for name, way in ways.items():
        drawn = way()
        silent = drawn.count(None)
        parts = [part for one in drawn if one for part in one.split()]
        same = len(parts) - len(set(parts))
        passed = not same and not silent
        measured = f"{len(parts)} draws, {same} of them seen before"
        detail = "" if passed else ("a child gave no answer" if silent else "noise is used twice")
        yield Finding("I", f"equal draws, {name}", "no draw is seen twice", measured, passed, detail)


def fresh_library() -> list[Finding]:
    """Releases of a query, of regressions and of components; and the check that noise drawn twice would be found."""
    found = [power(), *fresh("trimmed_mean", example, spawn=example)]
    X, y = np.eye(3)[np.arange(30) % 3], np.arange(30) % 2
    line = snugdp.LinearRegression(method="adassp", x_norm=1, y_bound=1, ledger=LEDGER)
    odds = snugdp.LogisticRegression(method="objective", x_norm=1, classes=[0, 1], ledger=LEDGER)
    axes = snugdp.PCA(1, method="gauss", x_norm=1, ledger=LEDGER)
    models = {"LinearRegression": (line, "coef_"), "LogisticRegression": (odds, "coef_"), "PCA": (axes, "components_")}
    for name, (model, released) in models.items():

        def fit(model: Any, released: str = released) -> Any:
            return getattr(model.fit(X, y), released)

        found += fresh(name, lambda model=model, fit=fit: fit(copy.copy(model)))  # type: ignore[misc]
        found.append(fresh_models(name, model, fit))
    return found


def example() -> float:
    """A release of a number with many random bits, for processes that know nothing else."""
    outcome = snugdp.trimmed_mean([0.5] * 100, bounds=(0, 1), epsilon=1, ledger=LEDGER)
    return float(outcome.value) if outcome.value is not None else math.nan


def fresh(name: str, draw: Draw, *, spawn: Draw | None = None) -> list[Finding]:
    """One finding for each way in which noise could be drawn twice.

    ``draw()``: one release on fixed rows, as a number or an array with at least 60 random bits. ``spawn``: the same as
    a function that another process can import; without it no process is started.
    """
    ways: dict[str, Callable[[Draw], list[Any]]] = {
        "again and again": lambda draw: [draw() for _ in range(4)],
        "in threads": in_threads,
        "in forks": in_forks,
        "with the same global seeds": with_seeds,
    }
    found = [_finding(name, way, run(draw)) for way, run in ways.items()]
    if spawn is not None:
        found.append(_finding(name, "in fresh processes", in_processes(spawn)))
    return found


def fresh_models(name: str, model: Any, fit: Callable[[Any], Any]) -> Finding:
    """The same for copies of one estimator that was not fitted: clones, copies, pickles. ``fit(model)``: a release."""
    copies = [model, copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model)]
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
    """Releases of children that were forked from one state, and of their parent; None where a child gave no answer."""
    draw()  # whatever is made at the first draw is there before the fork
    return [*(_in_child(draw) for _ in range(number)), draw()]


def _in_child(draw: Draw) -> Any:
    if not hasattr(os, "fork"):
        return draw()
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking with threads
        child = os.fork()
    if child == 0:  # nothing but the draw, and no cleaning up that belongs to the parent
        try:
            signal.alarm(_WAIT)
            os.write(write, pickle.dumps(draw()))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(said) if said else None


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


def fingerprint(noise: Noise) -> str:
    """Some draws, each of more bits than can agree by chance."""
    value = noise.add(Secret(0), Gaussian(10**6), grid=-60)
    posterior = noise.posterior(
        Secret([[4, 1], [1, 3]]), Secret([1, 2]), unit=Fraction(1), ridge=Fraction(1), precision=Fraction(1), grid=-60
    )
    words = [noise.choice(1 << 62) << 62 | noise.choice(1 << 62)]
    many = [*noise.add_integers(Secret([0, 0, 0]), Laplace(1 << 80)), *noise.scatter(3, 1 << 61).tolist()]
    return " ".join(map(str, (value, *posterior, *words, *many)))


def _singles(noise: Noise) -> dict[str, Callable[[], float]]:
    def posterior() -> float:
        unit = Fraction(1)
        return float(noise.posterior(Secret([[3]]), Secret([0]), unit=unit, ridge=unit, precision=unit, grid=-30)[0])

    return {
        "add": lambda: float(noise.add(Secret(0), Gaussian(1), grid=-30)),
        "add, Laplace": lambda: float(noise.add(Secret(0), Laplace(1), grid=-30)),
        "add, Gumbel": lambda: float(noise.add(Secret(0), Gumbel(1), grid=-30)),
        "at_least": lambda: float(noise.at_least(Secret(0), Gaussian(1), 0)),
        "posterior": posterior,
    }


def _copies(noise: Noise) -> list[Noise]:
    made = [noise, copy.copy(noise), copy.deepcopy(noise)]
    with suppress(TypeError, AttributeError, pickle.PicklingError):  # then it cannot be used twice that way
        made.append(pickle.loads(pickle.dumps(noise)))
    return made if len({id(one) for one in made}) > 1 else [noise]


def _standard(noise: Noise, law: Gaussian | Laplace, n: int) -> Floats:
    spread = law.sigma if isinstance(law, Gaussian) else law.scale
    return np.array(noise.add_integers(Secret([0] * n), law), dtype=np.float64) / float(spread)


def _even(case: str, counts: NDArray[np.int64]) -> Finding:
    """Tuples of draws beside each other fall evenly; in the planted ones a tenth repeat the first."""
    n, places = int(counts.sum()), len(counts)
    even = np.full(places, 1 / places)
    alike = np.zeros(places)
    width = {27: 3, 25: 5, 9: 3, 4: 2}[places]
    depth = round(math.log(places, width))
    alike[[sum(k * width**level for level in range(depth)) for k in range(width)]] = n / width
    planted = {"a fifth of the draws repeated": cells_p(0.8 * counts + 0.2 * alike, even)}
    return verdict("I", case, "draws beside each other are independent", {"tuples": cells_p(counts, even)}, planted)
