"""Adapters for the vectors of scores, and of intervals of means and proportions, by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from snugdp import Cost
from snugdp.mechanisms.scores.curves import Placement, ScoreBins
from snugdp.mechanisms.scores.images import CELLS
from snugdp.mechanisms.scores.intervals import NoisyMean, proportion_interval
from snugdp.mechanisms.scores.parts import bounded, counts
from snugdp.mechanisms.scores.result import ModelScores
from snugdp.mechanisms.statistics.joint import deviation
from snugdp.noise import DiscreteLaplace
from snugdp.scores.holdout import covered_share


def _bins(positives: list[int], negatives: list[int], noise: float = 1.0) -> ScoreBins:
    return ScoreBins(tuple(positives), tuple(negatives), noise)


def _area(positives: list[int], negatives: list[int], slope: bool) -> float:
    return _bins(positives, negatives).area(slopes=slope)


def _area_interval(positives: list[int], negatives: list[int], noise_variance: float, alpha: float) -> dict[str, Any]:
    made = _bins(positives, negatives, noise_variance)
    low, high = made.area_interval(alpha=alpha)
    sampling, noise = made.area_variances()
    return {"auc": made.area(), "sampling_variance": sampling, "noise_variance": noise, "low": low, "high": high}


def _placement(sum_f: float, sum_1_minus_f: float, epsilon: float) -> dict[str, float]:
    """The file has the variance of Laplace noise on real numbers: 2/epsilon**2."""
    made = Placement((1000,), sum_f, sum_1_minus_f, 2 / epsilon**2, 1.0, 0.0)
    return {"auc": made.area, "noise_sd": made.noise_deviation}


def _discrete_laplace(epsilon: float) -> dict[str, float]:
    law = DiscreteLaplace(1 / Fraction(str(epsilon)))
    q = math.exp(-epsilon)
    tail = next(t for t in range(10_000) if 2 * q ** (t + 1) / (1 + q) <= 0.05)
    return {"variance": deviation(law) ** 2, "tail_95": tail}


def _sensitivity(relation: str, statistic: str) -> dict[str, float | None]:
    """By brute force over what rows may add, in units of a row's largest."""
    t = np.linspace(0, 1, 41)
    rows = {
        "cells": np.eye(3),
        "pair": np.stack([t, 1 - t], axis=1),
        "bounded_sum": t[:, None],
        "triple": np.stack([t, 1 - t, math.sqrt(8) * t * (1 - t)], axis=1),
        "placement": np.stack([t, 1 - t], axis=1),
        "quadruple": np.array([[a, 1 - a, math.sqrt(8) * a * (1 - a), q] for a, q in product(t, (0.0, 1.0))]),
    }[statistic]
    changes = rows if relation == "add_remove" else (rows[:, None] - rows[None]).reshape(-1, rows.shape[1])
    ours = {"cells": counts("x", 3), "triple": bounded("x")}.get(statistic)
    factor = 1 if relation == "add_remove" else 2
    if ours is not None:  # what our parts are charged for is not less
        unit = 1 if statistic == "cells" else CELLS
        assert float(ours.reach[False]) * factor / unit**2 >= (changes**2).sum(axis=1).max() - 1e-9
    l1 = None if statistic in ("triple", "quadruple") else np.abs(changes).sum(axis=1).max()  # Gaussian noise alone
    return {"l1": l1, "l2": math.sqrt((changes**2).sum(axis=1).max())}


def _bounded(sum_s: float, sum_1_minus_s: float, cap: float, noise_variance: float) -> dict[str, float]:
    made = NoisyMean(sum_s, sum_1_minus_s, 0.0, math.sqrt(noise_variance), 1.0)
    return {"score": cap * made.mean, "noise_sd": cap * made.noise_deviation}


def _explained(cap: float, range: float, **sums_given: float) -> dict[str, float]:
    """The file has sqrt(8) for the factor of the spread, and ours is 14/5."""
    t, rest, spread, q = (sums_given[name] for name in ("sum_t", "sum_1_minus_t", "sum_third", "sum_q"))
    sums = (t * CELLS, rest * CELLS, spread / math.sqrt(8) * 14 / 5 * CELLS**2, q * CELLS, 0.0)
    made = ModelScores("number", ("r2", "mse"), {"r2": sums}, {"r2": 1.0}, False, 0, (), 0.01, (0.0, range), cap)  # type: ignore[dict-item]
    mse, r2 = made["mse"].value, made["r2"].value
    return {"mse": mse, "variance": mse / (1 - r2), "r2": r2}


def _table(positives: list[int], negatives: list[int], threshold: int, noise_variance: float) -> dict[str, Any]:
    made = _bins(positives, negatives, noise_variance)
    tp, fp, fn, tn = made.table(threshold)
    accuracy = (tp + tn) / (tp + fp + fn + tn)
    noise = list(made.table_noise(threshold))
    return {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "accuracy": accuracy, "noise_variance_cells": noise}


def _calibration(positives: list[int], negatives: list[int], noise_variance: float, alpha: float) -> list[list[float]]:
    made = _bins(positives, negatives, noise_variance).calibration(alpha=alpha)
    return [list(each.interval) for each in made]


def _either(mu_fit: float, mu_score: float, mu_other: float, part_fit: float, epsilon: float) -> dict[str, float]:
    """The larger of both, beside others: what a hold-out costs if the score has a mu of its own."""
    fit, score, other = (Cost(mu=mu) for mu in (mu_fit, mu_score, mu_other))
    one, two = ((each + other).delta_at(epsilon) for each in (fit, score))
    assert covered_share(fit).cost.delta_at(epsilon) <= fit.delta_at(epsilon)
    mixture = part_fit * one + (1 - part_fit) * two
    return {"either": max(one, two), "mixture": mixture, "sequential": (fit + score + other).delta_at(epsilon)}


def _proportion(yes: int, no: int, noise_variance: float, alpha: float) -> list[float]:
    return list(proportion_interval(yes, no, (noise_variance, noise_variance), alpha=alpha))


def _mean(**given: float) -> dict[str, float]:
    first, second = given["sum_t"], given["sum_1_minus_t"]
    made = NoisyMean(first, second, given["sum_third"], given["sd"], math.sqrt(8))
    low, high = given["low"], given["high"]
    ends = [low + (high - low) * end for end in made.interval(alpha=given["alpha"])]
    mean = low + (high - low) * made.mean
    return {"mean": mean, "variance": made.variance * (high - low) ** 2, "low": ends[0], "high": ends[1]}


SCORES: Mapping[str, Callable[..., Any]] = {
    "auc_from_counts": _area,
    "auc_interval": _area_interval,
    "auc_placement": _placement,
    "discrete_laplace": _discrete_laplace,
    "sensitivity": _sensitivity,
    "bounded_mean_score": _bounded,
    "r_squared": _explained,
    "confusion_from_counts": _table,
    "calibration_intervals": _calibration,
    "either_delta": _either,
    "accuracy_interval": _proportion,
}
MEANS: Mapping[str, Callable[..., Any]] = {"proportion_interval": _proportion, "mean_interval": _mean}
