"""Means with bounds that are right, ten and a hundred times too wide, beside plain noise on the count and the sum."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import snugdp
from snugdp.accounting import gaussian
from snugdp.noise import Simulation
from snugdp_studies.bench.statistics.columns import Floats, MadeUp, ages, lognormal, normal, pareto

EPSILON, DELTA = 1.0, 1e-6
LOOSE = (1, 10, 100)
_CAPS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)  # quantiles at which hindsight clips


@dataclass(frozen=True)
class MeanErrors:
    """Root mean square errors of a mean, by contender, for each width of the bounds; and with the best bound."""

    column: str
    means: dict[str, list[float]]
    hindsight: float


def tables() -> list[MadeUp]:
    """Those of the comparison."""
    return [lognormal(), normal(2_000), pareto(5_000, 2.5, 10**4), ages()]


def run(runs: int, columns: Sequence[MadeUp] | None = None) -> Iterator[MeanErrors]:
    """Every contender on every column; the lower bound is 0 throughout."""
    for column in tables() if columns is None else columns:
        truth = float(np.mean(column.values))
        means: dict[str, list[float]] = {}
        for times in LOOSE:
            bounds = (column.lower, times * column.upper)
            for name, answers in _contenders(column.values, bounds, runs).items():
                means.setdefault(name, []).append(_root(answers() - truth))
        yield MeanErrors(column.name, means, hindsight(column, runs))


def _contenders(values: Floats, bounds: tuple[float, float], runs: int) -> dict[str, Callable[[], Floats]]:
    def ours(**given: Any) -> Callable[[], Floats]:
        query, noise = snugdp.Mean(bounds=bounds, epsilon=EPSILON, **given), Simulation(41)
        return lambda: np.array([float(query.release(values, noise=noise).value or 0) for _ in range(runs)])

    return {
        "snugdp": ours(),
        "snugdp, clip=None": ours(clip=None),
        "Laplace, count and sum": lambda: _plain(values, bounds, runs, pure=True),
        "Gaussian, count and sum": lambda: _plain(values, bounds, runs, pure=False),
    }


def _plain(values: Floats, bounds: tuple[float, float], runs: int, *, pure: bool) -> Floats:
    """Textbook: half of the budget for the count and half for the sum, whose sensitivity is the farther bound."""
    generator = np.random.default_rng(43)
    most = max(abs(end) for end in bounds)
    total = float(np.clip(values, *bounds).sum())
    if pure:
        count, amount = generator.laplace(0, 2 / EPSILON, (2, runs))
    else:
        count, amount = generator.normal(0, 2**0.5 / float(gaussian.mu(EPSILON, DELTA)), (2, runs))
    found: Floats = np.clip((total + most * amount) / np.maximum(len(values) + count, 1), *bounds)
    return found


def hindsight(column: MadeUp, runs: int) -> float:
    """The error with the best upper bound among quantiles of the rows, for all of the budget. Not private."""
    truth, errors = float(np.mean(column.values)), []
    for q in _CAPS:
        bounds = (column.lower, float(np.quantile(column.values, q)))
        query, noise = snugdp.Mean(bounds=bounds, epsilon=EPSILON, clip=None), Simulation(47)
        answers = [float(query.release(column.values, noise=noise).value or 0) for _ in range(max(runs // 2, 1))]
        errors.append(_root(np.array(answers) - truth))
    return min(errors)


def _root(off: Floats) -> float:
    return float(np.sqrt(np.mean(off**2)))
