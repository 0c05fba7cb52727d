"""Small self-contained numerics for the errata: hockey sticks, Renyi divergences, noisy votes, logistic fits.

Nothing here comes from the library under test: the evidence has to stand by itself.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]


def phi_cdf(x: float) -> float:
    """Standard normal distribution function."""
    return float(special.ndtr(x))


def phi_inv(p: float) -> float:
    """Standard normal quantile."""
    return float(special.ndtri(p))


def root(f: Callable[[float], float], lo: float, hi: float) -> float:
    """Root of f in [lo, hi]."""
    return float(optimize.brentq(f, lo, hi, xtol=1e-14, rtol=1e-14, maxiter=500))


def gdp_delta(mu: float, eps: float) -> float:
    """Exact delta at eps of N(mu,1) against N(0,1), any real eps."""
    if mu == 0:
        return max(0.0, 1 - math.exp(eps))
    second = math.exp(eps + float(special.log_ndtr(-mu / 2 - eps / mu)))
    return max(0.0, phi_cdf(mu / 2 - eps / mu) - second)


def gdp_mu(eps: float, delta: float) -> float:
    """The mu whose Gaussian profile passes through (eps, delta)."""
    return root(lambda m: gdp_delta(m, eps) - delta, 1e-6, 50.0)


def normal_pair_delta(m1: float, s1: float, m2: float, s2: float, eps: float) -> float:
    """Exact delta at eps of N(m1,s1^2) against N(m2,s2^2)."""
    m, s = abs(m2 - m1) / s1, s2 / s1
    if abs(s - 1) < 1e-14:
        return gdp_delta(m, eps)
    a, b, c = (1 / s**2 - 1) / 2, -m / s**2, m**2 / (2 * s**2) + math.log(s) - eps
    disc = b * b - 4 * a * c
    floor = max(0.0, 1 - math.exp(eps))
    if disc <= 0:
        return floor
    q = (-b + math.sqrt(disc)) / 2
    t1, t2 = sorted((q / a, c / q))

    def tails(lo: float, hi: float) -> float:
        return phi_cdf(lo) + phi_cdf(-hi)

    def middle(lo: float, hi: float) -> float:
        return phi_cdf(-lo) - phi_cdf(-hi) if lo > 0 else phi_cdf(hi) - phi_cdf(lo)

    region = tails if s < 1 else middle
    return max(floor, region(t1, t2) - math.exp(eps) * region((t1 - m) / s, (t2 - m) / s))


def normal_pair_eps(m1: float, s1: float, m2: float, s2: float, delta: float) -> float:
    """The eps at which the exact delta of two normals equals delta."""
    return root(lambda e: normal_pair_delta(m1, s1, m2, s2, e) - delta, 0.0, 200.0)


def hockey(p: Array, q: Array, eps: float) -> float:
    """Hockey stick of two finite laws at eps."""
    return float(np.maximum(p - math.exp(eps) * q, 0).sum())


def renyi(log_p: Array, log_q: Array, alpha: float) -> float:
    """Renyi divergence of two finite laws given by their logarithms."""
    return float(special.logsumexp(alpha * log_p + (1 - alpha) * log_q)) / (alpha - 1)


def cks(alpha: float, delta: float) -> float:
    """What an order-alpha Renyi bound costs when turned into (eps, delta)."""
    return (math.log(1 / delta) + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)) / (alpha - 1)


def laplace_tail(tau: float, eps: float) -> float:
    """Pr[Lap(1/eps) > tau]."""
    return 0.5 * math.exp(-eps * tau) if tau >= 0 else 1 - 0.5 * math.exp(eps * tau)


# ---------------------------------------------------------------- binary vote with Laplace noise


def lose(u: float) -> float:
    """Probability that the class that leads by u noise scales loses (u may be negative)."""
    return (2 + u) * math.exp(-u) / 4 if u >= 0 else 1 - (2 - u) * math.exp(u) / 4


def vote_loss(t: int, eps: float, delta: float, step: int = 1) -> float:
    """Two-sided data-dependent eps of the noisy vote at gap t; step 1 = add/remove, 2 = replace."""
    worst = 0.0
    for other in (t - step, t + step):
        p, pp, r, rr = lose(eps * t), lose(eps * other), lose(-eps * t), lose(-eps * other)
        for a, b in ((p, pp), (pp, p), (r, rr), (rr, r)):
            if a > delta and b > 0:
                worst = max(worst, math.log((a - delta) / b))
    return worst


# ---------------------------------------------------------------- one-dimensional logistic regression


def sigmoid(u: float) -> float:
    """Logistic function."""
    return float(special.expit(u))


def logistic_fit(positive: float, negative: float, lam: float) -> tuple[float, float]:
    """Minimiser and Hessian (with lam) for points x=1 with the given label counts."""

    def grad(th: float) -> float:
        return -positive * sigmoid(-th) + negative * sigmoid(th) + lam * th

    th = root(grad, -60.0, 60.0)
    return th, (positive + negative) * sigmoid(th) * sigmoid(-th) + lam


# ---------------------------------------------------------------- noisy votes with Gaussian noise (PATE)


def log_q(votes: Sequence[int], sigma: float) -> float:
    """Logarithm of the union bound on the probability that the label is not the plurality."""
    n = np.sort(np.asarray(votes, dtype=np.float64))[::-1]
    gaps = n[0] - n[1:]
    value = float(special.logsumexp(special.log_ndtr(-gaps / (math.sqrt(2) * sigma))))
    return min(value, math.log1p(-1 / n.size))


def theorem6(lq: float, sigma: float, alpha: float, sigma2: float | None = None, check: bool = True) -> float | None:
    """Data-dependent RDP of one noisy vote. None when its conditions fail.

    ``sigma2`` replaces sigma in eps_2 (the misprint); ``check=False`` tests only the two printed conditions.
    """
    mu2 = sigma * math.sqrt(-lq)
    mu1 = mu2 + 1
    e1, e2 = mu1 / sigma**2, mu2 / (sigma if sigma2 is None else sigma2) ** 2
    if alpha > mu1:
        return None
    if check and not (mu2 > 1 and -lq > e2):
        return None
    if mu2 <= 1 or lq > (mu2 - 1) * e2 - mu2 * math.log(mu1 / (mu1 - 1) * mu2 / (mu2 - 1)):
        return None
    q = math.exp(lq)
    inner = math.exp((lq + e2) * (mu2 - 1) / mu2)
    if inner >= 1:
        return math.nan
    log_a = math.log1p(-q) - math.log1p(-inner)
    log_b = e1 - lq / (mu1 - 1)
    x, y = math.log1p(-q) + (alpha - 1) * log_a, lq + (alpha - 1) * log_b
    if max(x, y) > 30:
        return float(np.logaddexp(x, y)) / (alpha - 1)
    return math.log1p(math.expm1(x) + math.exp(y)) / (alpha - 1)


def gnss_rdp(alpha: float, beta: float, s: float) -> float:
    """Exact worst-case RDP of f + SS*N(0,s^2) when SS is beta-smooth."""
    if alpha * (1 - math.exp(-2 * beta)) >= 1:
        return math.inf
    first = alpha / (2 * s**2 * (1 - (alpha - 1) * math.expm1(2 * beta)))
    return first + (-2 * alpha * beta - math.log(1 - alpha * (1 - math.exp(-2 * beta)))) / (2 * (alpha - 1))
