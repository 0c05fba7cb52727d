"""Adapters for the vectors of keys: from the inputs of a case to what our functions answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]

from snugdp import Neighbours
from snugdp.mechanisms.keys import threshold
from snugdp.mechanisms.keys.optimal import key_table


def _typed(value: float) -> Fraction:
    return Fraction(str(value))


def _radius(eps: float, delta: float) -> int:
    """The product has no truncated Laplace law: its table is below the optimal one."""
    with mp.workdps(50):
        e, d = (mp.mpf(_typed(x).numerator) / _typed(x).denominator for x in (eps, delta))
        w = mp.exp(e)
        return int(mp.ceil(mp.log((w + 2 * d - 1) / ((w + 1) * d)) / e))


def _law(eps: float, delta: float) -> list[float]:
    table = key_table(eps, delta)
    return [float(Fraction(weight, table.law.total)) for weight in table.increments]


def _alone(sigma: float, tau: float, max_keys: int, eps: float) -> float:
    return threshold.delta(_typed(sigma), _typed(tau), max_keys, Neighbours.ADD_REMOVE, _typed(eps))


def _triple(sigma: float, tau: float, max_keys: int) -> list[float]:
    cost = threshold.triple(_typed(sigma), _typed(tau), max_keys, Neighbours.ADD_REMOVE)
    return [cost.mu, float(cost.delta)]


KEYS: Mapping[str, Callable[..., Any]] = {
    "key_table": lambda eps, delta, n: [float(key_table(eps, delta).chance(count)) for count in n],
    "key_table_first_certain": lambda eps, delta: key_table(eps, delta).certain,
    "truncated_laplace_radius": _radius,
    "key_noise_law": _law,
    "gaussian_keys_delta": _alone,
    "gaussian_keys_triple": _triple,
}
