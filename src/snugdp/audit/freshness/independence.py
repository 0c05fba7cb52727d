"""Layer I: noise that is new at every draw: in every lane, call, thread, fork and copy, and all along a walk.

Marginal laws say nothing about noise that is used twice. ``independence`` attacks a source; ``walks`` attacks a
mechanism: it records what every site drew, takes off what was private, and asks whether two residuals know each other.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from snugdp.audit.finding import Case, Finding
from snugdp.audit.laws.goodness import QUICK, LawEffort, cells_p, normal_p, size, verdict
from snugdp.audit.steps.residuals import fineness, residuals
from snugdp.noise import Exact, Gaussian, Gumbel, Laplace, Noise
from snugdp.noise.recording import Witness
from snugdp.secrecy.secret import Secret

Data = TypeVar("Data")
Floats = NDArray[np.float64]

_LAGS = (1, 2, 3, 64)
_LANES = 8  # of one site that are compared with all others
_COLUMNS = 48  # of a walk
_LEAST = 30  # runs in which two residuals must have met
_SHOWN = 64.0  # bits: two answers that show so many are never equal by chance
_SHARED = 0.9  # the planted correlation of a walk
_COINS = ("at_least", "reach", "chance")
_WAIT = 20.0  # seconds for a child


def independence(make: Callable[[], Noise] = Exact, effort: LawEffort = QUICK) -> list[Finding]:
    """Whether what a source draws is new every time. ``make`` gives a source; it is called several times."""
    noise = make()
    return [*lanes(noise, effort), *decisions(noise, effort), *equal_draws(make)]


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
    coins = np.array([noise.chance(Secret(Fraction(1, 2))) for _ in range(2 * n)], dtype=np.int64)
    yield _even("chance", np.bincount(coins[::2] * 2 + coins[1::2], minlength=4))
    reached = noise.reach(Secret(np.zeros(2 * n, dtype=np.int64)), laws[0], 0).astype(np.int64)
    yield _even("reach", np.bincount(reached[::2] * 2 + reached[1::2], minlength=4))


def equal_draws(make: Callable[[], Noise]) -> Iterator[Finding]:
    """Draws of 64 bits and more: no two are equal, whoever asks."""
    source = make()
    ways: dict[str, Callable[[], list[str]]] = {
        "calls": lambda: [fingerprint(source) for _ in range(50)],
        "sources": lambda: [fingerprint(make()) for _ in range(50)],
        "threads": lambda: in_threads(source),
        "forks": lambda: [part for _ in range(4) for part in (in_child(source), fingerprint(source))],
        "copies": lambda: [fingerprint(one) for one in _copies(source)],
    }
    for name, way in ways.items():
        drawn = way()
        silent = drawn.count("")
        parts = [part for one in drawn if one for part in one.split()]
        same = len(parts) - len(set(parts))
        passed = not same and not silent
        measured = f"{len(parts)} draws, {same} of them seen before"
        detail = "" if passed else ("a child gave no answer" if silent else "noise is used twice")
        yield Finding("I", f"equal draws, {name}", "no draw is seen twice", measured, passed, detail)


def walks(
    case: Case[Data], runs: int = 80, source: Callable[[], Noise] = Exact, data: Data | None = None
) -> list[Finding]:
    """Whether the noise of a mechanism is new at every site and in every run, on the first of its worst data sets."""
    table = next(iter(case.worst()))[0] if data is None else data
    columns: dict[tuple[Any, ...], dict[int, float]] = defaultdict(dict)
    answers: list[tuple[Any, ...]] = []
    for run in range(runs):
        witness = Witness(source=source())
        case.run(table, witness)
        shown: list[str] = []
        bits = 0.0
        for place, site in enumerate(witness.transcript()):
            wide = site.method in _COINS or fineness(site) > 0
            for lane, value in enumerate(residuals(site)[:_LANES].tolist() if wide else ()):
                columns[place, site.method, type(site.law).__name__, lane][run] = value
            if fineness(site):
                bits += fineness(site)
                shown.append(repr(site.answer))
        if bits >= _SHOWN:
            answers.append(tuple(shown))
    return [*_correlated(case.name, dict(list(columns.items())[:_COLUMNS])), *_repeated(case.name, answers)]


def correlation_p(x: Any, y: Any) -> float:
    """Two-sided p-value of the correlation of two samples, exact for normal ones; 0 where one of them never moves."""
    a, b = (np.asarray(one, dtype=np.float64) - float(np.mean(one)) for one in (x, y))
    length = math.sqrt(float(a @ a) * float(b @ b))
    if not length:
        return 0.0
    r, n = float(a @ b) / length, len(a)
    if abs(r) >= 1 - 1e-12:
        return 0.0
    t = r * math.sqrt((n - 2) / (1 - r * r))
    return normal_p(t) if n > 5000 else float(2 * stats.t.sf(abs(t), n - 2))


def fingerprint(noise: Noise) -> str:
    """Some draws, each of more bits than can agree by chance."""
    value = noise.add(Secret(0), Gaussian(10**6), grid=-60)
    posterior = noise.posterior(
        Secret([[4, 1], [1, 3]]),
        Secret([1, 2]),
        unit=Fraction(1),
        ridge=Fraction(1),
        precision=Fraction(1),
        grid=-60,
    )
    words = [noise.choice(1 << 62) << 62 | noise.choice(1 << 62)]
    many = [*noise.add_integers(Secret([0, 0, 0]), Laplace(1 << 80)), *noise.scatter(3, 1 << 61).tolist()]
    return " ".join(map(str, (value, *posterior, *words, *many)))


def in_threads(noise: Noise, count: int = 8) -> list[str]:
    """What so many threads draw from one source at once."""
    drawn: list[str] = []
    threads = [threading.Thread(target=lambda: drawn.append(fingerprint(noise))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return drawn


def in_child(noise: Noise) -> str:
    """What a forked child draws; nothing if it does not answer. Where there are no forks, a draw of our own."""
    if not hasattr(os, "fork"):
        return fingerprint(noise)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking with threads
        child = os.fork()
    if child == 0:
        try:
            os.write(write, fingerprint(noise).encode())
        finally:
            os._exit(0)
    os.close(write)
    deadline = time.monotonic() + _WAIT
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.005)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()


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


def _correlated(name: str, columns: dict[tuple[Any, ...], dict[int, float]]) -> Iterator[Finding]:
    """Every two residuals of a walk, and every one in two runs after each other."""
    clean: dict[str, float] = {}
    planted: dict[str, float] = {}
    checks = 0
    for one, other in combinations(columns.values(), 2):
        common = sorted(one.keys() & other.keys())
        x, y = np.array([one[run] for run in common]), np.array([other[run] for run in common])
        if _moves(x) and _moves(y):
            checks += 1
            clean["sites"] = min(clean.get("sites", 1.0), correlation_p(x, y))
            mixed = _SHARED * _unit(x) + math.sqrt(1 - _SHARED**2) * _unit(y)
            planted["shared noise"] = max(planted.get("shared noise", 0.0), correlation_p(x, mixed))
    for key, column in columns.items():
        z = np.array([column[run] for run in sorted(column)])
        if _moves(z):
            checks += 1
            clean["runs"] = min(clean.get("runs", 1.0), correlation_p(z[1:], z[:-1]))
        elif len(z) >= _LEAST and key[1] not in _COINS and not _varies(z):
            checks += 1
            clean["runs"] = 0.0  # noise that never moves is none
    if not checks:
        return
    clean = {kind: min(1.0, p * checks) for kind, p in clean.items()}
    planted = {kind: min(1.0, p * checks) for kind, p in planted.items()}
    yield verdict("I", name, f"no two of {len(columns)} residuals are correlated", clean, planted)


def _repeated(name: str, answers: list[tuple[Any, ...]]) -> Iterator[Finding]:
    """Runs that show many bits are never the same."""
    if answers:
        same = len(answers) - len(set(answers))
        measured = f"{same} of {len(answers)} runs seen before"
        yield Finding("I", name, "no run repeats another", measured, not same, "noise is used twice" * bool(same))


def _moves(z: Floats) -> bool:
    """Whether there is something to correlate: what is hardly ever anything else than 0 is far from normal."""
    return len(z) >= _LEAST and _varies(z) and float(np.count_nonzero(z)) > len(z) / 2


def _varies(z: Floats) -> bool:
    """Noise wider than its grid is the same in so many runs with a probability below 1e-10."""
    return float(np.ptp(z)) > 1e-9


def _unit(z: Floats) -> Floats:
    found: Floats = (z - z.mean()) / z.std()
    return found
