"""A linear equation with noise in its matrix: intervals and tests for linear functions of its solution.

Released are a symmetric matrix ``G + W``, W of independent normal entries (``matrix_noise`` on the diagonal, half of
that variance elsewhere), and a vector h such that ``(G + W) u = h + e`` for the unknown u = parameter - base. Here e is
normal with the covariance ``scores + noise_variance I`` and what W adds at u. Intervals are those of Fieller: the noise
of the matrix is taken at the value that is tested, so that where the matrix is hardly more than its noise the interval
is the whole line, as it must be: no bounded interval covers there.

All of it is a function of released numbers and costs nothing. Coverage is asymptotic, and no privacy claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, fdtrc, ndtri, stdtrit

Floats: TypeAlias = NDArray[np.float64]
_MIN_DEGREES = 3.0
_CLEAR = 3.0  # deviations of noise
_USUAL_ALPHA = 0.05
_MIN_LOG_ALPHA, _HALVINGS = -650.0, 60  # of the search for a p-value


@dataclass(frozen=True)
class ContrastEstimate:
    """An estimate of a linear function of the parameters.

    ``standard_error``: of sampling and of privacy noise together. ``degrees``: of freedom of Student's law, by
    Satterthwaite. ``lower`` and ``upper`` are infinite where the data say nothing about it at this budget.
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float
    p_value: float
    degrees: float

    @property
    def z(self) -> float:
        """The estimate over its standard error."""
        return self.estimate / self.standard_error

    @property
    def is_bounded(self) -> bool:
        """Whether the interval is finite."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)


@dataclass(frozen=True)
class NoisyEquation:
    """The equation, as it was released. ``score_noise``: of the diagonal of ``scores``, half the variance elsewhere."""

    matrix: Floats
    vector: Floats
    scores: Floats
    noise_variance: float
    matrix_noise: float
    score_noise: float
    base: Floats

    @cached_property
    def _inverse(self) -> Floats | None:
        if not np.isfinite(self.matrix).all() or np.linalg.matrix_rank(self.matrix) < len(self.matrix):
            return None
        inverse: Floats = np.asarray(np.linalg.inv(self.matrix), dtype=np.float64)
        return inverse

    @cached_property
    def solution(self) -> Floats:
        """The estimate of all parameters: the base where the matrix cannot be inverted."""
        return self.base if self._inverse is None else self.base + self._inverse @ self.vector

    @property
    def dispersion(self) -> tuple[float, float] | None:
        """The covariance of the scores over the matrix, in the mean, and how far noise moves that in 19 of 20 cases.

        Of labels and counts about 1 where the model is right. None where the matrix may be noise.
        """
        root = math.sqrt(len(self.matrix))
        whole, own = float(np.trace(self.matrix)), self.matrix_noise * root
        if not whole > _CLEAR * own:
            return None
        ratio = float(np.trace(self.scores)) / whole
        return ratio, -float(ndtri(0.025)) * math.hypot(self.score_noise * root, ratio * own) / whole

    def contrast(self, weights: ArrayLike, alpha: float = _USUAL_ALPHA, null: float = 0.0) -> ContrastEstimate:
        """The linear function with these weights: estimate, interval and the p-value of ``null``."""
        at = self._at(np.asarray(weights, dtype=np.float64))
        if at is None:
            given = float(np.dot(np.asarray(weights, dtype=np.float64), self.base))
            return ContrastEstimate(given, math.inf, -math.inf, math.inf, 1.0, _MIN_DEGREES)
        lower, upper = at.interval(alpha)
        return ContrastEstimate(at.estimate, at.standard_error, lower, upper, at.p_value(null), at.degrees)

    def _at(self, weights: Floats) -> _Contrast | None:
        inverse = self._inverse
        if inverse is None or not weights.any():
            return None
        a, u = inverse @ weights, inverse @ self.vector
        square = float(a @ a)
        sampled = max(float(a @ self.scores @ a), 0.0) + self.noise_variance * square
        k = inverse @ (self._sampling @ a + self.noise_variance * a)
        length = float(weights @ k)
        if not length > 0 or not sampled > 0:
            return None
        k = k / length
        spread = (self.score_noise * square) ** 2
        degrees = max(_MIN_DEGREES, 2 * sampled**2 / spread) if spread else math.inf
        estimate = float(weights @ (self.base + u))
        return _Contrast(a, u, k, sampled, degrees, estimate, self.matrix_noise**2 / 2)

    def joint_test(self, contrasts: ArrayLike, null: ArrayLike | None = None) -> tuple[float, int, float]:
        """Wald's test that several linear functions have the values ``null``: chi-square, its degrees, the p-value.

        The covariance of the scores is known up to its noise, like one from a small sample: the p-value is that of
        Hotelling's law, with Satterthwaite's degrees of freedom. Where those are too few, it is Bonferroni's of the
        single tests. Where one of the functions has no bounded interval, nothing can be said: chi-square 0 and p-value
        1.
        """
        rows = np.atleast_2d(np.asarray(contrasts, dtype=np.float64))
        values = np.zeros(len(rows)) if null is None else np.asarray(null, dtype=np.float64)
        number = int(np.linalg.matrix_rank(rows))
        if number < len(rows):
            raise ValueError("some of these contrasts follow from the others: leave those out")
        if not all(map(self._is_bounded, rows)):
            return 0.0, number, 1.0
        inverse = self._inverse
        assert inverse is not None
        covariance = rows @ inverse @ self._covariance(inverse @ self.vector) @ inverse @ rows.T
        apart = rows @ self.solution - values
        found = float(apart @ np.linalg.pinv(covariance, hermitian=True) @ apart)
        degrees = self._joint_degrees(inverse @ rows.T)
        if math.isinf(degrees):
            return found, number, float(chdtrc(number, found))
        if (rest := degrees - number + 1) >= _MIN_DEGREES:
            return found, number, float(fdtrc(number, rest, found * rest / (degrees * number)))
        each = [self.contrast(row, null=value).p_value for row, value in zip(rows, values.tolist(), strict=True)]
        return found, number, min(1.0, number * min(each))

    def _is_bounded(self, weights: Floats) -> bool:
        at = self._at(weights)
        return at is not None and math.isfinite(at.interval(_USUAL_ALPHA)[0])

    def _joint_degrees(self, functions: Floats) -> float:
        """Of freedom, for columns a: 2 v^2 over the variance of the noise of v = a'Va, as usual in their span."""
        if not self.score_noise:
            return math.inf
        covariance = functions.T @ (self._sampling @ functions + self.noise_variance * functions)
        usual = float(np.trace(np.linalg.pinv(covariance, hermitian=True) @ functions.T @ functions)) / len(covariance)
        return 2 / (self.score_noise * usual) ** 2

    def _covariance(self, u: Floats) -> Floats:
        """That of e at a solution: of sampling, of the noise of the vector, and of the noise of the matrix."""
        unit, c = np.eye(len(u)), self.matrix_noise**2 / 2
        covariance: Floats = self._sampling + self.noise_variance * unit + matrix_noise_covariance(u, math.sqrt(2 * c))
        return covariance

    @cached_property
    def _sampling(self) -> Floats:
        """The covariance of the scores, without what noise alone can have made: eigenvalues below 0."""
        values, vectors = np.linalg.eigh(self.scores)
        sampling: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return sampling


@dataclass(frozen=True)
class _Contrast:
    """One linear function: {t : delta^2 <= T^2 v0 + z^2 c (|a|^2 |u + k delta|^2 + (a.(u + k delta))^2)}."""

    a: Floats
    u: Floats
    k: Floats
    sampled: float
    degrees: float
    estimate: float
    c: float

    @property
    def standard_error(self) -> float:
        """Of sampling and of noise, at the estimate."""
        return math.sqrt(self.sampled + self.c * self._form(self.u, self.u))

    def _form(self, one: Floats, other: Floats) -> float:
        a = self.a
        return float((a @ a) * (one @ other) + (a @ one) * (a @ other))

    def _quantiles(self, alpha: float) -> tuple[float, float]:
        normal = -float(ndtri(alpha / 2))
        return normal, normal if math.isinf(self.degrees) else -float(stdtrit(self.degrees, alpha / 2))

    def interval(self, alpha: float) -> tuple[float, float]:
        """The solutions of a quadratic inequality; the whole line where it has no largest one."""
        normal, student = self._quantiles(alpha)
        c = normal**2 * self.c
        first = 1 - c * self._form(self.k, self.k)
        if first <= 0:
            return -math.inf, math.inf
        half = c * self._form(self.u, self.k)
        root = math.sqrt(half**2 + first * (student**2 * self.sampled + c * self._form(self.u, self.u)))
        return self.estimate + (half - root) / first, self.estimate + (half + root) / first

    def p_value(self, null: float) -> float:
        """The alpha at which ``null`` lies on the border of the interval."""
        delta = null - self.estimate
        moved = self.u + self.k * delta
        noise = self.c * self._form(moved, moved)

        def beyond(log_alpha: float) -> bool:
            normal, student = self._quantiles(math.exp(log_alpha))
            return delta**2 > student**2 * self.sampled + normal**2 * noise

        low, high = _MIN_LOG_ALPHA, 0.0
        if beyond(low):
            return math.exp(low)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if beyond(middle) else (middle, high)
        return math.exp(high)


def matrix_noise_covariance(u: ArrayLike, deviation: float) -> Floats:
    """The covariance of W u, for W as above with this deviation on its diagonal.

    >>> matrix_noise_covariance([1.0, 0.0], 2.0).tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    given = np.asarray(u, dtype=np.float64)
    covariance: Floats = deviation**2 / 2 * (given @ given * np.eye(len(given)) + np.outer(given, given))
    return covariance
