"""PATE with a test, as the paper prints it: formulas that are NOT PRIVATE, and what is wrong with each.

Labels such as T4 are those of ``docs/errata.md``, where the corrected statements are; ``snugdp.pate`` uses none of
these formulas. They are in floats, take votes as they are, and exist to draw the paper's figure and to be compared.

``sigma`` is the paper's sigma_1, the noise on the votes; histograms have one row for a query, one column for a class.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.loss import ceiling, log1mexp, log_sum
from snugdp.noise import Simulation
from snugdp_studies.paper.linear import not_private_normals
from snugdp_studies.paper.pate.renyi import log_saturation, saturated

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_BLOCK = 1 << 21  # entries of one temporary array
_FAR = 300.0  # exponents beyond this count as infinite


def not_private_label_loss(log_q: ArrayLike, sigma: float, order: float, *, sigma_2: float | None = None) -> Floats:
    """Theorem 6 as the appendix restates it, for a label that misses the plurality with probability q.

    NOT PRIVATE: with ``sigma_2``, as printed, the two noises are mixed and it is no bound: votes 208 : 192, sigma 1.5,
    sigma_2 = 15, order 1.05: it says 1.20e-12, exact is 2.04e-11. Without it the printed conditions are used, from
    which mu_2 > 1 is missing (T1). It bounds one of the two directions only (T2).
    """
    logs = np.asarray(log_q, dtype=np.float64)
    most = ceiling(sigma, order)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mu2 = sigma * np.sqrt(-logs)
        mu1 = mu2 + 1
        e1, e2 = mu1 / sigma**2, mu2 / (sigma if sigma_2 is None else sigma_2) ** 2
        room = (mu2 - 1) * e2 - mu2 * (np.log(mu1 / (mu1 - 1)) + np.log(mu2 / (mu2 - 1)))
        first = log1mexp(logs) - log1mexp(np.minimum((logs + e2) * (mu2 - 1) / mu2, 0.0))
        second = e1 - logs / (mu1 - 1)
        found = log_sum(log1mexp(logs) + (order - 1) * first, logs + (order - 1) * second) / (order - 1)
    valid = (order <= mu1) & (logs <= room)
    bounded: Floats = np.where(valid & (found < most), found, most)
    return bounded


@dataclass(frozen=True)
class NotPrivateParameters:
    """Line 2 of Algorithm ``alg: pate_ptr``: order, smoothness, and the two noises, which are equal."""

    epsilon: float
    order: float
    beta: float
    sigma: float


def not_private_parameters(epsilon: float, delta: float) -> NotPrivateParameters:
    """Line 2: everything from the epsilon of the test and delta.

    >>> found = not_private_parameters(0.58174, 1e-5)
    >>> round(found.sigma, 2), round(found.order, 2)
    (15.0, 42.96)
    """
    order = 2 * math.log(2 / delta) / epsilon + 1
    return NotPrivateParameters(epsilon, order, 0.2 / order, math.sqrt((3 * order + 2) / epsilon))


def not_private_parameters_of_the_experiment(delta: float, sigma: float = 15.0) -> NotPrivateParameters:
    """The parameters of the figure: sigma_s = sigma_2 = 15, and the epsilon with which line 2 gives that."""
    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if not_private_parameters(middle, delta).sigma < sigma else (middle, high)
    return not_private_parameters(high, delta)


def not_private_smooth_sensitivity(votes: Integers, sigma: float, order: float, beta: float, teachers: int) -> float:
    """Smooth sensitivity of the loss by Theorem 6, looking along votes that move towards the tie, and not elsewhere.

    NOT PRIVATE: it is beta-smooth only if the local sensitivity grows along that way, which fails for orders above
    about sigma: sigma 13.79, order 22: its logarithm moves by more than 10 beta between neighbours (C9).
    """
    rows, counts = np.unique(np.sort(votes, axis=-1), axis=0, return_counts=True)
    leads, classes = gaps(rows), votes.shape[-1]
    sums = np.empty(teachers + 1)
    step = max(1, _BLOCK // leads.size)
    for start in range(0, teachers + 1, step):
        moves = np.arange(start, min(start + step, teachers + 1))
        sums[moves] = _along(leads, moves, sigma, order, classes) @ counts
    return float((np.exp(-beta * np.arange(teachers + 1)) * sums).max())


def _along(leads: Integers, moves: Integers, sigma: float, order: float, classes: int) -> Floats:
    """The local sensitivity after every number of moves towards the end of the informative q, and there."""
    from scipy.special import log_ndtr, ndtri_exp

    end = log_saturation(sigma, order)
    start = log_miss(leads, sigma)
    quantile = ndtri_exp(np.minimum(start, -1e-9) - math.log(classes - 1)) - moves[:, None] * (math.sqrt(2) / sigma)
    down = np.maximum(log_ndtr(quantile) + math.log(classes - 1), end)
    return _local(np.where(start <= end, np.minimum(log_miss(leads, sigma, moves), end), down), sigma, order, classes)


def _local(log_q: Floats, sigma: float, order: float, classes: int) -> Floats:
    """The larger of what one moved vote adds to the loss, and of what it takes away."""
    from scipy.special import log_ndtr, ndtri_exp

    move, share = math.sqrt(2) / sigma, math.log(classes - 1)
    z = ndtri_exp(np.minimum(log_q - share, -1e-9))
    here, up, down = (
        saturated(np.minimum(logs, -1e-9), sigma, order)
        for logs in (log_q, log_ndtr(z + move) + share, log_ndtr(z - move) + share)
    )
    return np.maximum(up - here, here - down)


def not_private_upper_bound(
    loss: float, sensitivity: float, parameters: NotPrivateParameters, delta: float, noise: Simulation
) -> float:
    """Lines 6 and 7: one draw of the upper bound on the loss.

    NOT PRIVATE: its cost is as printed at one order only (T4), and the sensitivity has to be smooth, which that of the
    experiment is not (C9). The margin is larger than needed, and its proof lacks the weights (T5).
    """
    margin = math.sqrt(2 * math.log(2 / (delta / 2)))
    first, second = map(float, not_private_normals(noise, 2))
    shift = parameters.beta * parameters.sigma * (first + margin)
    return loss + sensitivity * parameters.sigma * (second + margin * math.exp(min(shift, _FAR)))


def not_private_conversion(loss: float, order: float, delta: float) -> float:
    """Lemma ``lem: rdp2dp``: from a Renyi loss to epsilon. True, and looser than need be."""
    return loss + math.log(1 / delta) / (order - 1)


def not_private_pate_ptr(
    votes: Integers,
    sigma: float,
    delta: float,
    *,
    teachers: int,
    noise: Simulation,
    parameters: NotPrivateParameters | None = None,
    draws: int = 10,
) -> float:
    """The lower edge of the region in the paper's figure: the mean over draws of epsilon_hat + epsilon_{sigma_1}.

    Theorem 6 is read as meant. NOT PRIVATE: a mean over draws on the votes is no proposal (C6), the smooth sensitivity
    is not smooth (C9), and the proof of the theorem adds three halves of delta (T6).
    """
    chosen = not_private_parameters_of_the_experiment(delta) if parameters is None else parameters
    loss = float(not_private_label_loss(log_miss(gaps(votes), sigma), sigma, chosen.order).sum())
    sensitivity = not_private_smooth_sensitivity(votes, sigma, chosen.order, chosen.beta, teachers)
    bounds = [not_private_upper_bound(loss, sensitivity, chosen, delta, noise) for _ in range(draws)]
    return chosen.epsilon + not_private_conversion(math.fsum(bounds) / draws, chosen.order, delta / 2)


def not_private_gaussian_epsilon(queries: int, sigma: float, delta: float) -> float:
    """The data-independent curve of the figure: 2 sqrt(T log(1/delta))/sigma + T/sigma^2.

    True for its T, and 18 % above the exact one; the figure says T = 200 and shows T = 100 (T8).

    >>> [round(not_private_gaussian_epsilon(queries, 13.7858, 1e-5), 3) for queries in (100, 200)]
    [5.449, 8.014]
    """
    return 2 * math.sqrt(queries * math.log(1 / delta)) / sigma + queries / sigma**2
