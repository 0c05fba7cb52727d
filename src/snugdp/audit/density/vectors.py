"""The densities of the draws of whole vectors: a normal law around the solution of a system, a tilted minimiser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from snugdp.noise.exact.minimiser import Problem

_LOG_2_PI = math.log(2 * math.pi)
_LEVEL = 1  # at which gradients are read: far more digits than a float has
_STEP = Fraction(1, 2**20)  # of central differences: their error is that squared, times a third derivative


def posterior(
    theta: Sequence[Fraction],
    gram: Sequence[Sequence[int]],
    cross: Sequence[int],
    *,
    unit: Fraction,
    ridge: Fraction,
    precision: Fraction,
) -> float:
    """The log-density of N(A^-1 c, (precision A)^-1) at theta; A = unit gram + ridge I, c = unit cross.

    The residual A theta - c is exact; floats come after.
    """
    rows = [[unit * int(v) + (ridge if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(gram)]
    residual = [
        sum((a * t for a, t in zip(row, theta, strict=True)), Fraction(0)) - unit * int(c)
        for row, c in zip(rows, cross, strict=True)
    ]
    matrix = np.array([[float(value) for value in row] for row in rows])
    left = np.array([float(value) for value in residual])
    sign, logarithm = np.linalg.slogdet(matrix)
    square = float(precision) * float(left @ np.linalg.solve(matrix, left))
    if sign <= 0:
        return math.nan
    return (len(left) * (math.log(precision) - _LOG_2_PI) + float(logarithm) - square) / 2


def minimiser(theta: Sequence[Fraction], problem: Problem, sigma: Fraction) -> float:
    """The log-density at theta of the argmin of F + b . theta, with b of N(0, sigma**2 I).

    b is minus the gradient of F, and the Hessian turns the density of b into that of theta.
    """
    gradient, _ = problem.gradient(theta, _LEVEL)
    z = np.array([float(value / sigma) for value in gradient])
    sign, logarithm = np.linalg.slogdet(hessian(theta, problem) / float(sigma))
    if sign <= 0:
        return math.nan
    return float(logarithm) - len(z) * _LOG_2_PI / 2 - float(z @ z) / 2


def hessian(theta: Sequence[Fraction], problem: Problem) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """By central differences of the gradient, which is known to many digits."""
    columns = []
    for place in range(len(theta)):
        ends = []
        for sign in (1, -1):
            moved = list(theta)
            moved[place] += sign * _STEP
            ends.append(problem.gradient(moved, _LEVEL)[0])
        columns.append([float((up - down) / (2 * _STEP)) for up, down in zip(*ends, strict=True)])
    return np.array(columns).T.reshape(len(theta), len(theta))
