"""Layer I: noise that is new at every site of a walk, and in every run.

Marginal laws say nothing about noise that is used twice. ``walks`` records what every site of a mechanism drew, takes
off what was private, and asks whether two residuals know each other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from snugdp.audit.density.laws import reaching, scale_of
from snugdp.audit.density.tail import system
from snugdp.audit.finding import Case, Finding
from snugdp.audit.laws.goodness import normal_p, verdict
from snugdp.audit.laws.low_bits import cells_in_noise, gridded
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Exact, Law, Noise
from snugdp.noise.recording import Site, Witness, private_inputs

Data = TypeVar("Data")
Floats = NDArray[np.float64]

_LANES = 8  # of one site that are compared with all others
_COLUMNS = 48  # of a walk
_MIN_COMMON_RUNS = 30  # runs in which two residuals must have met
_SHOWN = 64.0  # bits: two answers that show so many are never equal by chance
_SHARED = 0.9  # the planted correlation of a walk
_COINS = ("at_least", "reach", "chance")
_LEVEL = 1  # at which gradients are read
_MIN_COIN_CHANCE = 0.1  # a coin that falls so seldom says little, and is far from normal
_EXTREME = 1e-15


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
        for index, site in enumerate(witness.transcript()):
            fine = fineness(site)
            for lane, value in enumerate(residuals(site)[:_LANES].tolist() if fine or site.method in _COINS else ()):
                columns[index, site.method, type(site.law).__name__, lane][run] = value
            if fine:
                bits += fine
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
            mixed = _SHARED * _unit(x) + math.sqrt(1 - _SHARED**2) * _unit(_without(y, x))
            planted["shared noise"] = max(planted.get("shared noise", 0.0), correlation_p(x, mixed))
    for key, column in columns.items():
        z = np.array([column[run] for run in sorted(column)])
        if _moves(z):
            checks += 1
            clean["runs"] = min(clean.get("runs", 1.0), correlation_p(z[1:], z[:-1]))
        elif len(z) >= _MIN_COMMON_RUNS and key[1] not in _COINS and not _varies(z):
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
    return len(z) >= _MIN_COMMON_RUNS and _varies(z) and float(np.count_nonzero(z)) > len(z) / 2


def _varies(z: Floats) -> bool:
    """Noise wider than its grid is the same in so many runs with a probability below 1e-10."""
    return float(np.ptp(z)) > 1e-9


def _without(y: Floats, x: Floats) -> Floats:
    """What is left of one residual without its part along another: then a planted correlation is what it says."""
    part: Floats = y - float(_unit(x) @ _unit(y)) / len(x) * float(y.std()) * _unit(x)
    return part


def _unit(z: Floats) -> Floats:
    found: Floats = (z - z.mean()) / z.std()
    return found


def residuals(site: Site) -> Floats:
    """One number for every draw at this site, about standard normal if its law is right; none where nothing is seen."""
    inside = private_inputs(site)
    if site.method == "add":
        factor = Fraction(inside[1]) if len(inside) > 1 else Fraction(1)
        return _normal(site.law, [float((site.answer - inside[0]) / factor)]) if factor else np.empty(0)
    if site.method == "add_integers":
        return _normal(site.law, [float(int(a) - int(b)) for a, b in zip(site.answer, inside[0], strict=True)])
    if site.method in _COINS:
        return _coins(site, inside[0])
    if site.method == "posterior":
        return _white(site)
    if site.method == "minimiser" and site.law is not None:
        gradient, _ = inside[0].gradient(site.answer, _LEVEL)
        return np.array([float(-value) for value in gradient]) / float(scale_of(site.law))
    return np.empty(0)


def fineness(site: Site) -> float:
    """About how many random bits the answer shows."""
    cells = cells_in_noise(site)
    return len(gridded(site)) * math.log2(cells) if cells > 1 else 0.0


def _normal(law: Law | None, values: Sequence[float]) -> Floats:
    """Residuals as the normal numbers of the same probability; whole ones by their size alone."""
    assert law is not None
    x = np.asarray(values, dtype=np.float64)
    if isinstance(law, DiscreteLaplace | DiscreteGaussian):
        spread = float(scale_of(law)) * (math.sqrt(2) if isinstance(law, DiscreteLaplace) else 1)
        return np.clip(x / spread, -6, 6)
    below = [math.exp(reaching(law, Fraction(value), False)) for value in values]
    return np.asarray(special.ndtri(np.clip(below, _EXTREME, 1 - _EXTREME)))


def _coins(site: Site, inside: Any) -> Floats:
    """Decisions that could have gone either way: one or zero, less their chance, over its deviation."""
    answers = np.atleast_1d(np.asarray(site.answer, dtype=np.float64))
    if site.method == "chance":
        chances = np.array([min(max(float(inside), 0.0), 1.0)])
    else:
        assert site.law is not None
        law, at = site.law, site.number("threshold")
        values = inside.tolist() if isinstance(inside, np.ndarray) else [inside]
        chances = np.array([_reaching(law, at, value) for value in values])
    open_ = (chances > _MIN_COIN_CHANCE) & (chances < 1 - _MIN_COIN_CHANCE)
    p = np.where(open_, chances, 0.5)
    return np.where(open_, (answers - p) / np.sqrt(p * (1 - p)), 0.0)


def _reaching(law: Law, at: Fraction, value: int | Fraction | float) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        return 1.0 if value > 0 else 0.0
    return math.exp(reaching(law, at - Fraction(value), True))


def _white(site: Site) -> Floats:
    matrix, right = system(site)
    theta = np.array([float(value) for value in site.answer])
    factor = np.linalg.cholesky(float(site.number("precision")) * matrix)
    white: Floats = factor.T @ (theta - np.linalg.solve(matrix, right))
    return white
