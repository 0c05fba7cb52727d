"""How many keys that nobody listed are shown, beside thresholds of plain noise at the same epsilon and delta."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

import snugdp
from snugdp.accounting import gaussian
from snugdp.mechanisms.keys.optimal import key_table
from snugdp.noise import Simulation

ROWS, KEYS, POWER = 100_000, 200_000, 1.1
BUDGETS = ((1, 0.3, 1e-6), (1, 1.0, 1e-6), (1, 3.0, 1e-6), (1, 1.0, 1e-9), (4, 1.0, 1e-6), (16, 1.0, 1e-6))


@dataclass(frozen=True)
class KeysShown:
    """For so many keys a row and a budget: keys that were shown, and those expected of others, by name."""

    keys: int
    epsilon: float
    delta: float
    shown: float
    expected: dict[str, float]


def zipf(keys: int, rows: int = ROWS) -> NDArray[np.int64]:
    """The keys of every row, distinct in a row as far as draws are."""
    weights = np.arange(1, KEYS + 1) ** -POWER
    generator = np.random.default_rng([53, keys])
    return generator.choice(KEYS, size=(rows, keys), p=weights / weights.sum())


def run(runs: int, rows: int = ROWS) -> Iterator[KeysShown]:
    """Every budget on one made-up table."""
    for keys, epsilon, delta in BUDGETS:
        drawn = zipf(keys, rows)
        counts = _counts(drawn)
        query = snugdp.GroupBy(by="key", epsilon=epsilon, delta=delta, max_keys=keys)
        table, noise = _table(drawn), Simulation(59)
        shown = [len(query.release(table, noise=noise).value or ()) for _ in range(runs)]
        yield KeysShown(keys, epsilon, delta, float(np.mean(shown)), _expected(counts, keys, epsilon, delta))


def _table(drawn: NDArray[np.int64]) -> Any:
    import polars as pl

    return pl.DataFrame({"key": drawn[:, 0] if drawn.shape[1] == 1 else drawn.tolist()})


def _counts(drawn: NDArray[np.int64]) -> dict[int, int]:
    """How many keys have how many rows; a key counts once a row."""
    rows = np.repeat(np.arange(len(drawn)), drawn.shape[1])
    pairs = np.unique(np.stack([rows, drawn.ravel()], axis=1), axis=0)
    sizes, many = np.unique(np.unique(pairs[:, 1], return_counts=True)[1], return_counts=True)
    return dict(zip(sizes.tolist(), many.tolist(), strict=True))


def _expected(counts: dict[int, int], keys: int, epsilon: float, delta: float) -> dict[str, float]:
    table = key_table(Fraction(str(epsilon)) / keys, Fraction(str(delta)) / keys)
    chances = {
        "optimal for one key": lambda n: float(table.chance(min(n, table.certain))),
        "Laplace threshold": lambda n: _laplace(n, epsilon / keys, delta / keys),
        "Gaussian threshold": _gaussian(keys, epsilon, delta),
    }
    return {name: sum(many * chance(n) for n, many in counts.items()) for name, chance in chances.items()}


def _laplace(n: int, epsilon: float, delta: float) -> float:
    """The chance that Laplace noise lifts a count of n to a threshold that a count of 1 reaches with chance delta."""
    gap = 1 + math.log(1 / (2 * delta)) / epsilon - n
    return 1 - math.exp(gap * epsilon) / 2 if gap < 0 else math.exp(-gap * epsilon) / 2


def _gaussian(keys: int, epsilon: float, delta: float) -> Any:
    """As is usual: half of delta for the noise, half for keys of one row."""
    sigma = math.sqrt(keys) / float(gaussian.mu(epsilon, delta / 2))
    threshold = 1 - sigma * NormalDist().inv_cdf(delta / (2 * keys))
    return lambda n: NormalDist().cdf((n - threshold) / sigma)
