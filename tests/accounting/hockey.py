"""Independent ways to compute what a pair leaks: exact sums and quadrature, none of the library's formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

NODES = np.linspace(-14.0, 14.0, 200_001)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.sqrt(2 * np.pi) * (NODES[1] - NODES[0])


def hockey_stick(p: Array, q: Array, epsilon: float) -> float:
    """The sum of the positive parts of p - exp(epsilon) q."""
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())


def from_loss(loss: Callable[[Array], Array], epsilon: float) -> float:
    """E(1 - exp(epsilon - loss(t)))_+ for a standard normal t, by the trapezoidal rule."""
    return float((WEIGHTS * np.maximum(0, -np.expm1(epsilon - loss(NODES)))).sum())


def gaussian_bins(mu: float, edges: Array) -> tuple[Array, Array]:
    """N(mu, 1) and N(0, 1), rounded into the cells between the edges: processing of a mu-Gaussian DP pair."""
    from scipy.stats import norm

    cuts = np.concatenate([[-np.inf], np.sort(edges), [np.inf]])
    return np.diff(norm.cdf(cuts - mu)), np.diff(norm.cdf(cuts))


def pure_pair(rng: np.random.Generator, epsilon: float, size: int) -> tuple[Array, Array]:
    """A random pair with every likelihood ratio within exp(+-epsilon), some of them at the ends."""
    while True:
        q = rng.dirichlet(np.ones(size))
        ends = rng.choice([-epsilon, epsilon], size)
        loss = np.where(rng.random(size) < 0.7, ends, rng.uniform(-epsilon, epsilon, size))
        p = q * np.exp(loss)
        high, low = loss > 0, loss <= 0
        if not high.any() or not low.any():
            continue
        # move mass between the two groups until p sums to one: ratios are unchanged
        a, b = p[high].sum() / q[high].sum(), p[low].sum() / q[low].sum()
        if not b < 1 < a:
            continue
        share = (1 - b) / (a - b)
        scale = np.where(high, share / q[high].sum(), (1 - share) / q[low].sum())
        return p * scale, q * scale
