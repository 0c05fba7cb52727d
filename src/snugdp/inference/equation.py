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
_CLEAR = 3.0  # deviations of noise
_USUAL_ALPHA = 0.05
_NORMAL_NOISE = 0.6  # deviations of noise that a variance with normal noise is worth more than one of chi-square's law
_MIN_LOG_ALPHA, _HALVINGS = -650.0, 60  # of the search for a p-value


@dataclass(frozen=True)
class ContrastEstimate:
    """An estimate of a linear function of the parameters.

    ``standard_error``: of sampling and of privacy noise together. ``degrees``: of freedom of Student's law, which are
    few where noise hides the variance of sampling. ``lower`` and ``upper`` are infinite where the data say nothing
    about it at this budget.
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

    @staticmethod
    def degrees(ratio: float) -> float:
        """Of freedom of Student's law, where a variance is this many times the deviation of the noise in it.

        Satterthwaite's are 2 ratio^2, for a variance with a chi-square law. Normal noise has shorter tails, and the
        part of the variance that is public is a floor: with these, intervals of 90 % and more fall short by no more
        than .1 %, whatever both parts are; with his, 95 % intervals cover in 82 to 99.9 %.

        >>> NoisyEquation.degrees(2.4)
        18.0
        """
        return 2 * (ratio + _NORMAL_NOISE) ** 2

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
            return ContrastEstimate(given, math.inf, -math.inf, math.inf, 1.0, self.degrees(0.0))
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
        spread = self.score_noise * square
        degrees = self.degrees(sampled / spread) if spread else math.inf
        estimate = float(weights @ (self.base + u))
        return _Contrast(a, u, k, sampled, degrees, estimate, self.matrix_noise**2 / 2)

    def joint_test(self, contrasts: ArrayLike, null: ArrayLike | None = None) -> tuple[float, int, float]:
        """Wald's test that several linear functions have the values ``null``: chi-square, its degrees, the p-value.

        The covariance of the scores is known up to its noise, like one from a small sample: the p-value is that of
        Fisher's law, as for a single function, after the chi-square is divided by what that noise adds to it across
        the functions. Where one of them has no bounded interval, nothing can be said: chi-square 0 and p-value 1.
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
        if not self.score_noise:
            return found, number, float(chdtrc(number, found))
        degrees, across = self._joint_law(inverse @ rows.T)
        return found, number, float(fdtrc(number, degrees, found / (number * across)))

    def _is_bounded(self, weights: Floats) -> bool:
        at = self._at(weights)
        return at is not None and math.isfinite(at.interval(_USUAL_ALPHA)[0])

    def _joint_law(self, functions: Floats) -> tuple[float, float]:
        """Degrees of freedom, for columns a; and by what factor the noise across them makes a chi-square larger.

        With the covariance I + r W of q functions, W the noise: x'(I + r W)^-1 x is about |x|^2 / (1 + r g), as for
        one function, times 1 + r^2 (q - 1) / 2. Directions in which noise hides the covariance count half: what is
        0 there has no noise, but which directions these are is noise.
        """
        values, vectors = self._spectrum
        seen = vectors[:, values > 0].T @ functions
        count = (functions.shape[1] + min(seen.shape)) / 2
        covariance = functions.T @ (self._sampling @ functions + self.noise_variance * functions)
        noisy = (functions.T @ functions + seen.T @ seen) / 2
        usual = float(np.trace(np.linalg.pinv(covariance, hermitian=True) @ noisy)) / len(covariance)
        degrees = self.degrees(1 / (self.score_noise * usual))
        return degrees, 1 + max(count - 1, 0.0) / degrees

    def _covariance(self, u: Floats) -> Floats:
        """That of e at a solution: of sampling, of the noise of the vector, and of the noise of the matrix."""
        unit, c = np.eye(len(u)), self.matrix_noise**2 / 2
        covariance: Floats = self._sampling + self.noise_variance * unit + matrix_noise_covariance(u, math.sqrt(2 * c))
        return covariance

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues and vectors of the covariance of the scores: none below 0, and their sum as released."""
        values, vectors = np.linalg.eigh(self.scores)
        return np.maximum(values - _excess(values), 0.0), np.asarray(vectors, dtype=np.float64)

    @cached_property
    def _sampling(self) -> Floats:
        """The covariance of the scores: the nearest one to what was released, with the same trace."""
        values, vectors = self._spectrum
        sampling: Floats = (vectors * values) @ vectors.T
        return sampling


def _excess(values: Floats) -> float:
    """What is taken from all of these numbers, none becoming less than 0, so that their sum stays the same.

    >>> _excess(np.array([-1.0, 2.0, 5.0]))
    0.5
    """
    falling = np.sort(values)[::-1]
    taken = (np.cumsum(falling) - max(float(falling.sum()), 0.0)) / np.arange(1, len(values) + 1)
    return float(taken[np.flatnonzero(falling > taken).max(initial=0)])


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
