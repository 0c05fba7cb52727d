"""Adapters for the vectors of intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from snugdp.accounting import gaussian
from snugdp.inference.equation import NoisyEquation, matrix_noise_covariance
from snugdp.mechanisms.inference.mean import clip_from_counts
from snugdp.mechanisms.inference.whitening import radius_from_counts
from snugdp.mechanisms.order_statistics.interval import rank_offset
from snugdp.tables.schema.contrasts import identified
from snugdp.tables.schema.kinds import Category
from snugdp.tables.schema.schema import Coefficients

Adapter = Callable[..., Any]


class _Satterthwaite(NoisyEquation):
    """With the degrees of freedom of the vectors; why ours are others: docs/decisions.md."""

    @staticmethod
    def degrees(ratio: float) -> float:
        return max(3.0, 2 * ratio**2)


def _equation(given: Mapping[str, Any]) -> NoisyEquation:
    G, h, S, base = (np.array(given[name]) for name in ("G", "h", "S", "base"))
    return _Satterthwaite(G, h, S, given["noise_variance"], given["sd_G"], given["sd_S"], base)


def _interval(contrast: list[float], alpha: float, **given: Any) -> dict[str, float]:
    found = _equation(given).contrast(contrast, alpha)
    variance = found.standard_error**2
    return {
        "estimate": found.estimate, "variance": variance, "df": found.degrees, "low": found.lower, "high": found.upper,
    }  # fmt: skip


def _p_value(contrast: list[float], null: float, **given: Any) -> float:
    return _equation(given).contrast(contrast, null=null).p_value


def _debias(theta: list[float], centre: list[float], ridge: float, H: list[list[float]]) -> list[float]:
    base, d = np.array(theta), len(theta)
    equation = NoisyEquation(np.array(H), ridge * (base - np.array(centre)), np.eye(d), 1.0, 0.0, 0.0, base)
    return list(equation.solution)


def _level_contrasts(coef: list[float], intercept: float, reference: int) -> dict[str, Any]:
    names = [f"l{place}" for place in range(len(coef))]
    given = Coefficients(tuple(f"c={name}" for name in names), np.array(coef), intercept)
    shown = identified(given, {"c": Category(names, reference=names[reference])})
    effects = dict(zip(shown.names, shown.values.tolist(), strict=True))
    return {"effects": [effects.get(f"c={name}", 0.0) for name in names], "intercept": shown.intercept}


def _shares(epsilon: float, delta: float, factor: int, shares: list[float]) -> dict[str, Any]:
    M = gaussian.mu(epsilon, delta / factor)
    return {"M": M, "parts": [M * math.sqrt(share) for share in shares]}


def _radius(counts: list[float], mu: float, **given: Any) -> float:
    return radius_from_counts(counts, mu, **given)


def _joint_sensitivity(loss: str, alpha: float, row_norm: float) -> float:
    p = np.linspace(0.0, 1.0, 100_001)
    curvature = p * (1 - p) if loss == "logistic" else 1 - p**2
    return float(row_norm**2 * np.sqrt((alpha * curvature) ** 2 + p**4).max())


def _quantile_offset(level: float, rows: float, epsilon_each: float, alpha: float) -> dict[str, Any]:
    found = rank_offset(level, rows, 2 * max(level, 1 - level) / epsilon_each, alpha)
    return {"offset": found.ranks, "lower_open": found.lower_open, "upper_open": found.upper_open}


INFERENCE: dict[str, Adapter] = {
    "noisy_equation_interval": _interval,
    "p_value": _p_value,
    "matrix_noise_covariance": lambda u, sd: matrix_noise_covariance(u, sd).tolist(),
    "debias": _debias,
    "quantile_offset": _quantile_offset,
    "level_contrasts": _level_contrasts,
    "shares": _shares,
    "radius_from_counts": _radius,
    "clip_from_counts": clip_from_counts,
    "joint_sensitivity": _joint_sensitivity,
}
