"""Two published ways to a private line, written from their papers, for rows of norm at most 1. NOT PRIVATE: floats.

Noise is simulated, and what a paper fixes is kept as its authors fix it; targets are in units of their public bound.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from snugdp.accounting import gaussian
from snugdp.noise import Simulation
from snugdp_studies.bench.contest.tables import Floats
from snugdp_studies.paper.linear import not_private_normals

_ROUNDS = 100
_DOUBT = 0.05  # the ridge hides the least eigenvalue but for this chance
_LOWERED = 2.6  # deviations that the released eigenvalue is lowered by
_SKETCHES = 3
_ROWS_OF_SKETCH = 6  # times the number of columns, or the logarithm that stands for a small failure
_FAILURE_SHARE = 0.1  # of delta: a sketch that is too small
_ORDERS = 1 + np.geomspace(1e-3, 1e5, 4000)


def boosted_adassp(X: Floats, y: Floats, epsilon: float, delta: float, noise: Simulation) -> Floats:
    """Boosted AdaSSP (Tang and others 2023, arXiv 2303.03451), with the accounting of one Gaussian release.

    One noisy Gram matrix, then 100 rounds of noisy correlations with what is left, clipped to the bound on targets,
    each with a ridge that follows the released least eigenvalue. A third of the squared mu each: the eigenvalue, the
    matrix, and all rounds together. A row changes the upper triangle of the matrix, a released eigenvalue and a
    correlation by at most 1.
    """
    each, width = gaussian.mu(epsilon, delta) / math.sqrt(3), X.shape[1]
    gram = X.T @ X
    square = np.triu(not_private_normals(noise, width * width).reshape(width, width)) / each
    least = np.linalg.eigvalsh(gram)[0] + (not_private_normals(noise, 1)[0] - _LOWERED) / each
    ridge = max(0.0, math.sqrt(width * math.log(2 * width**2 / _DOUBT)) / each - max(least, 0.0))
    noisy = gram + square + np.triu(square, 1).T + ridge * np.eye(width)
    line, deviation = np.zeros(width), math.sqrt(_ROUNDS) / each
    for drawn in not_private_normals(noise, _ROUNDS * width).reshape(_ROUNDS, width):
        line = line + np.linalg.solve(noisy, X.T @ np.clip(y - X @ line, -1, 1) + deviation * drawn)
    return line


def hessian_mixing(X: Floats, y: Floats, epsilon: float, delta: float, noise: Simulation) -> Floats:
    """Iterative Hessian Mixing (Lev and others 2026, arXiv 2601.07545), in three steps.

    Each is a step of Newton's method: with a Gaussian sketch of the rows, blurred as far as their least eigenvalue does
    not hide a row already, and a noisy correlation with what is left, clipped to the bound on targets. Half of epsilon
    is for the sketches and the eigenvalue, half for the correlations. A sketch times itself has the law of Wishart, so
    its rows are drawn from their covariance.
    """
    width, failing = X.shape[1], _FAILURE_SHARE * delta
    size = _ROWS_OF_SKETCH * int(max(width, math.log(4 * _SKETCHES / failing)))
    hidden = _hiding_eigenvalue(epsilon / 2, delta / 4, size)
    surely = math.sqrt(2 * math.log(4 / failing))
    gram = X.T @ X
    least = np.linalg.eigvalsh(gram)[0] - hidden / math.sqrt(size) * (surely - not_private_normals(noise, 1)[0])
    blurred = np.linalg.cholesky(gram + max(hidden - max(least, 0.0), 1e-9) * np.eye(width))
    deviation, line = math.sqrt(_SKETCHES) / gaussian.mu(epsilon / 2, delta / 4), np.zeros(width)
    for _ in range(_SKETCHES):
        sketch = not_private_normals(noise, size * width).reshape(size, width) @ blurred.T
        right = X.T @ np.clip(y - X @ line, -1, 1) + deviation * not_private_normals(noise, width)
        line = line + np.linalg.solve(sketch.T @ sketch / size, right)
    return line


@lru_cache(maxsize=64)
def _hiding_eigenvalue(epsilon: float, delta: float, size: int) -> float:
    """The least eigenvalue of rows and blur together at which all sketches have this epsilon and delta.

    Their Rényi divergences, composed and converted at the best order, and the release of the eigenvalue.
    """
    released = math.sqrt(2 * math.log(1.25 / delta) * size)

    def spent(level: float) -> float:
        orders = _ORDERS[level * (1 - 1e-9) > _ORDERS]
        beyond = orders - 1
        sketches = _SKETCHES * size / (2 * beyond) * (orders * np.log1p(-1 / level) - np.log1p(-orders / level))
        converted = (math.log(1 / delta) + beyond * np.log1p(-1 / orders) - np.log(orders)) / beyond
        return float(np.min(sketches + converted) + released / level)

    low, high = 2.0, 1e8
    for _ in range(100):
        level = math.sqrt(low * high)
        low, high = (low, level) if spent(level) <= epsilon else (level, high)
    return high
