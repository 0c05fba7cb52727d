"""Queries without bounds beside the same with tight public bounds, and with bounds a hundred times too wide.

``python -m snugdp_studies.bench.statistics.no_bounds``: the median errors on made-up columns. Those of means and
deviations are in standard deviations of the column, those of quantiles in ranks. On these columns the parts of the
budget were chosen that looks get.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import snugdp
from snugdp import Simulation

Floats: TypeAlias = NDArray[np.float64]
Column: TypeAlias = Callable[[np.random.Generator, int], Floats]

COLUMNS: dict[str, Column] = {
    "normal, 50 +- 10": lambda rng, n: rng.normal(50, 10, n),
    "normal, 0 +- 0.001": lambda rng, n: rng.normal(0, 1e-3, n),
    "incomes": lambda rng, n: np.exp(rng.normal(10, 1, n)),
    "exponential": lambda rng, n: rng.exponential(1, n),
    "Student, 3": lambda rng, n: rng.standard_t(3, n),
    "years": lambda rng, n: rng.integers(1990, 2021, n).astype(float),
    "100,000 +- 30": lambda rng, n: rng.normal(1e5, 30, n),
    "ages": lambda rng, n: rng.integers(18, 90, n).astype(float),
    "six of ten are 0": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, np.exp(rng.normal(3, 1, n))),
    "Pareto, 1.5": lambda rng, n: rng.pareto(1.5, n) + 1,
}


def off_mean(x: Floats, answer: Any) -> float:
    """In standard deviations."""
    return float(abs(answer.value - x.mean()) / x.std())


def off_deviation(x: Floats, answer: Any) -> float:
    """In standard deviations."""
    return float(abs(answer.value - x.std()) / x.std())


def off_rank(q: float) -> Callable[[Floats, float], float]:
    """In ranks: 0 where the answer has the wanted one."""

    def off(x: Floats, answer: float) -> float:
        goal = q * len(x)
        return float(max(np.sum(x < answer) - goal, goal - np.sum(x <= answer), 0))

    return off


QUERIES: dict[str, tuple[Callable[..., Any], Callable[[Floats, Any], float]]] = {
    "mean": (snugdp.mean, off_mean),
    "standard deviation": (snugdp.standard_deviation, off_deviation),
    "median": (snugdp.median, off_rank(0.5)),
    "quantile 0.9": (lambda x, **given: snugdp.quantile(x, 0.9, **given), off_rank(0.9)),
}


def ways(x: Floats, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Public bounds, and none."""
    low, high = float(x.min()), float(x.max())
    middle, half = (low + high) / 2, max((high - low) / 2, 1e-9) * 1.0001
    clip: dict[str, Any] = {"clip": None} if name in ("mean", "standard deviation") else {}
    yield "tight", {"bounds": (middle - half, middle + half), **clip}
    yield "100 times too wide", {"bounds": (middle - 100 * half, middle + 100 * half)}
    yield "none", {}


def measured(name: str, column: str, rows: int, budget: dict[str, Any], runs: int) -> dict[str, list[float | None]]:
    """The errors of all runs by the way; None for a refusal."""
    ask, off = QUERIES[name]
    found: dict[str, list[float | None]] = {}
    for run in range(runs):
        x = COLUMNS[column](np.random.default_rng(run), rows)
        for way, given in ways(x, name):
            answer = ask(x, **given, **budget, noise=Simulation(run + 1)).value
            found.setdefault(way, []).append(None if answer is None else off(x, answer))
    return found


def shown(errors: list[float | None]) -> str:
    """The median error, and the share of refusals if there are any."""
    kept = [error for error in errors if error is not None]
    refused = 1 - len(kept) / len(errors)
    return f"{np.median(kept) if kept else np.nan:9.3g}" + (f" ({refused:4.0%} refused)" if refused else " " * 15)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=15)
    options.add_argument("--delta", default="0")
    asked = options.parse_args()
    print("query, epsilon, rows, column: median error with tight bounds | 100 times too wide | none")
    for name, epsilon, rows in product(QUERIES, (0.5, 1), (200, 1000, 10_000)):
        every: dict[str, list[float | None]] = {}
        for column in COLUMNS:
            found = measured(name, column, rows, {"epsilon": epsilon, "delta": asked.delta}, asked.runs)
            print(f"{name}, {epsilon}, {rows}, {column}:", " | ".join(map(shown, found.values())))
            for way, errors in found.items():
                every.setdefault(way, []).extend(errors)
        print(f"{name}, {epsilon}, {rows}, ALL:", " | ".join(map(shown, every.values())))


if __name__ == "__main__":
    main()
