"""Adapters for the vectors of PATE: from the inputs of a case to what our public functions answer."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian, renyi
from snugdp.mechanisms.teachers import loss
from snugdp.mechanisms.teachers import smooth_test as smooth
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.confident import ORDERS
from snugdp.mechanisms.teachers.smooth_test import conversion
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian
from snugdp_studies.paper.pate import renyi as tails
from snugdp_studies.paper.pate.renyi import log_saturation, saturated, theorem6
from tests.mechanisms.noisy_votes import largest_loss, log_probabilities
from tests.mechanisms.teachers.test_loss import tight

Adapter = Callable[..., Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HERE = Path(__file__).parent
TEACHERS = 400
# The histograms that cases name: distinct rows and how often each occurs, in this order.
SURROGATE: Mapping[str, list[tuple[list[int], int]]] = json.loads(
    (HERE / "data" / "pate_surrogate_votes.json").read_text()
)
assert json.loads((HERE / "pate.json").read_text())["alpha_grid"] == list(ORDERS)


@dataclass(frozen=True)
class Within:
    """A number that a case wants within its own tolerances, or at least one and at most the other."""

    value: float
    below: float = 1e-9
    above: float = 1e-9
    absolute: float = 0.0

    def agrees(self, expected: float) -> bool:
        size = abs(expected)
        low, high = expected - self.below * size - self.absolute, expected + self.above * size + self.absolute
        return low <= self.value <= high


@dataclass(frozen=True)
class Peak:
    """The logarithm of q*: to 1e-9, or by its normal quantile where it is below every rounding error.

    The vectors were found by a bisection that loses digits there: gnmax-29 is off by 2e-8 of its -6e-267.
    """

    value: float

    def agrees(self, expected: float) -> bool:
        if expected < -1e-200:
            return Within(self.value).agrees(expected)
        return abs(_tail_quantile(self.value) - _tail_quantile(expected)) < 1e-9


def _tail_quantile(log_q: float) -> float:
    from scipy.special import ndtri_exp

    return float(ndtri_exp(math.log(-log_q))) if log_q < 0 else -40.0


def histograms(votes: str | list[int]) -> Integers:
    """The rows that a case means."""
    if isinstance(votes, str):
        return np.array([row for row, count in SURROGATE[votes] for _ in range(count)], dtype=np.int64)
    return np.array([votes], dtype=np.int64)


def _law(kind: str, scale: float) -> tails.TestLaw:
    exactly = Fraction(repr(scale))
    laws: dict[str, tails.TestLaw] = {"gauss": Gaussian(exactly), "dgauss": DiscreteGaussian(exactly**2)}
    return laws[kind] if kind in laws else DiscreteLaplace(exactly)


def _tails(kind: str, scale: float, t: float, most: int = TEACHERS + 1) -> tails.Tails:
    """The cases pass above t, we pass from the threshold on."""
    return tails.tails(_law(kind, scale), t if kind == "gauss" else t + 1, most)


def _gnmax(votes: list[int], sigma: float, alpha: float) -> dict[str, Any]:
    rows = histograms(votes)
    leads = gaps(rows)
    log_q = log_miss(leads, sigma)[0]
    there, back = largest_loss(votes, sigma, alpha)
    cells = {n: float(tight(log_q, sigma, alpha, n)) for n in (400, 4000)}
    closed = float(loss.closed(log_q, sigma, alpha))
    return {
        "logq": float(log_q),
        "logq_ball": {str(d): float(log_miss(leads, sigma, d)[0]) for d in (0, 1, 3, 10, 40)},
        "thm6": float(theorem6(log_q, sigma, alpha)),
        "J_closed": Within(closed, absolute=1e-290),
        "log_qstar": Peak(float(loss.log_peak(sigma, alpha))),
        "J_lower_4000": Within(min(*cells.values(), closed), above=1e300, absolute=1e-290),
        "J_upper_400": Within(cells[400], 1e-6, 1e-6, 1e-290),
        "J_upper_4000": Within(cells[4000], 1e-6, 1e-6, 1e-290),
        "exact": Within(there, 1e-6, 1e-6, 1e-28),
        "exact_reverse": Within(back, 1e-6, 1e-6, 1e-28),
        "exact_log_probs": log_probabilities(votes, sigma).tolist(),
    }


def _smooth(votes: str, sigma: float, alpha: float, beta: float, phi: str) -> dict[str, Any]:
    rows, kind = histograms(votes), loss.closed if phi == "J_closed" else saturated
    each = kind(log_miss(gaps(rows), sigma), sigma, alpha)
    sums = smooth.local_sums(rows, sigma, alpha, TEACHERS, kind)
    peak = int(np.argmax(np.exp(-beta * np.arange(len(sums))) * sums))
    return {
        "f": float(each.sum()),
        "ls_sum": {str(d): Within(float(value), 1e-3, 0.03) for d, value in enumerate(sums)},
        "ss": Within(float(smooth.smooth_sensitivity(sums, beta)), 1e-3, 0.03),
        "argmax_d": Within(peak, absolute=2),
        "logq0": None if kind is loss.closed else log_saturation(sigma, alpha),
    }


def _noise(kind: str, scale: float, delta: float) -> dict[str, Any]:
    law = _law(kind, scale)
    t = gaussian.threshold(scale, delta) if isinstance(law, Gaussian) else tails.threshold_for(law, 1, delta) - 1
    known = _tails(kind, scale, t)
    logs = {name: getattr(known, name) for name in ("log_pass", "log_fail")}
    return {
        "t": t,
        **{k: {str(d): Within(float(v), absolute=1e-15) for d, v in enumerate(logs[k])} for k in logs},
        "D90": known.distance_for(0.9),
    }


@lru_cache(maxsize=8)
def _totals(votes: str, sigma: float) -> Floats:
    """The closed form summed over the queries: distances, then orders."""
    rows, counts = np.unique(histograms(votes), axis=0, return_counts=True)
    logs = log_miss(gaps(rows), sigma, np.arange(TEACHERS + 1))
    distinct, back = np.unique(logs, return_inverse=True)
    each = loss.closed(distinct[:, None], sigma, ORDERS)[back.reshape(logs.shape)]
    return np.asarray(np.einsum("dro,r->do", each, counts))


def _distance(*, votes: str, sigma: float, delta: float, eps: float, **noise: Any) -> dict[str, Any]:
    known = _tails(**noise)
    levels = tails.epsilons(_totals(votes, sigma), ORDERS, known, delta)
    found = int(np.argmax(np.append(levels > eps, True)))
    fails = np.exp(known.log_fail[:2])
    return {
        "D": found,
        "D_note": None,
        "pass_prob": math.exp(known.log_pass[found]),
        "e_at": {str(d): value for d, value in enumerate(levels)},
        "second_condition": math.exp(known.log_pass[0]) + max(0.0, fails[0] - math.exp(eps) * fails[1]),
    }


def _table(votes: str, T: int, sigma: float, delta: float) -> dict[str, Any]:
    logs = log_miss(gaps(histograms(votes)), sigma)[:, None]
    added = np.maximum(conversion(ORDERS, delta), 0.0)
    totals = _totals(votes, sigma)
    answer: dict[str, Any] = {
        "ind_gdp": gaussian.epsilon(math.sqrt(2 * T) / sigma, delta),
        "ind_rdp_cks": float((T * loss.ceiling(sigma, ORDERS) + added).min()),
        "dep_thm6": float((theorem6(logs, sigma, ORDERS).sum(axis=0) + added).min()),
        "dep_Jclosed": float((totals[0] + added).min()),
    }
    for scale in (6, 8):
        law = DiscreteGaussian(scale**2)
        known = tails.tails(law, tails.threshold_for(law, 1, delta), TEACHERS + 1)
        answer[f"D90_{scale}"] = known.distance_for(0.9)
        needed = tails.epsilons(totals[known.distance_for(0.9) - 1], ORDERS, known, delta)
        answer[f"dist_dgauss{scale}_Jclosed"] = float(needed)
    return answer


PATE: Mapping[str, Adapter] = {
    "conversion": lambda alpha, delta: {"cks": float(conversion(alpha, delta))},
    "gdp_eps": lambda mu, delta: {"eps": gaussian.epsilon(mu, delta)},
    "gnmax": _gnmax,
    "gnss": lambda alpha, beta, sigma_s: {"rdp": renyi.smooth_gaussian(alpha, beta, sigma_s)},
    "smooth": _smooth,
    "noise": _noise,
    "ptr_rdp": lambda kind, scale, t, Dmax, alpha, tau: {
        "rdp": float(tails.divergence_behind_test(alpha, tau, _tails(kind, scale, t, Dmax)))
    },
    "distance": _distance,
    "eps_table": _table,
}
