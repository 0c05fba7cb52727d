"""Laws of the hidden number of runs K, made from their mean, and what they say about the winner.

f is the generating function of K and z = 1 - x. Each formula is written once and read twice: in floats, where nothing
is promised, and in balls, where the result encloses the exact value. Of every law: ``mean_in`` is E K = f'(1),
``generating(z)`` is f(1 - z), ``share(z)`` is f'(1 - z)/f'(1) and ``rho(ratio(z, b))`` is f'(1 - z)/f'(1 - b), where
``ratio`` is monotone in z along every line b = s z + c and ``rho`` is nondecreasing. ``missed`` is the integral of f
over [0, 1], one minus the expected quantile of the winner; ``masses`` are P[K = 0], P[K = 1], ... as balls; ``grid``
are points z between 0 and 1 at which ln f' moves evenly. Drawing K is the business of ``noise/``. Statements and
proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, TypeAlias, get_args

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.accounting.gaussian import positive
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, rational

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arithmetic:
    """Floats or balls: how a rational is written, and the functions that differ."""

    of: Callable[[Fraction], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    power: Callable[[Any, Fraction], Any]


def _power(x: arb, exponent: Fraction) -> arb:
    if exponent.denominator == 1:
        return x**exponent.numerator
    return balls.exp(balls.ball(exponent) * x.log())


FLOATS = Arithmetic(float, np.exp, np.log, lambda x, exponent: x ** float(exponent))
BALLS = Arithmetic(balls.ball, balls.exp, lambda x: x.log(), _power)


@dataclass(frozen=True)
class NegativeBinomial:
    """The truncated negative binomial law (K >= 1): eta = 1 is geometric, eta = 0 logarithmic.

    >>> NegativeBinomial(Fraction(1), Fraction(1, 30)).mean_in(FLOATS)
    30.0
    """

    eta: Fraction
    gamma: Fraction

    def __post_init__(self) -> None:
        for name in ("eta", "gamma"):
            object.__setattr__(self, name, rational(getattr(self, name), name))
        if self.eta <= -1:
            raise ValueError("eta must be above -1")
        if not 0 < self.gamma < 1:
            raise ValueError("gamma must be above 0 and below 1; the geometric law of mean m has gamma = 1/m")

    @property
    def name(self) -> str:
        """What people call it."""
        return {Fraction(1): "geometric", Fraction(0): "logarithmic"}.get(self.eta, f"TNB({float(self.eta):g})")

    def mean_in(self, k: Arithmetic) -> Any:
        """E K = f'(1)."""
        if self.eta == 1:
            return k.of(1 / self.gamma)
        if self.eta == 0:
            return k.of((self.gamma - 1) / self.gamma) / k.log(k.of(self.gamma))
        return k.of(self.eta * (1 - self.gamma) / self.gamma) / (1 - k.power(k.of(self.gamma), self.eta))

    @cached_property
    def _rest(self) -> Fraction:
        return 1 - self.gamma

    @cached_property
    def _exponent(self) -> Fraction:
        return self.eta + 1

    def _inside(self, z: Any, k: Arithmetic) -> Any:
        return k.of(self.gamma) + k.of(self._rest) * z

    def generating(self, z: Any, k: Arithmetic) -> Any:
        """f(1 - z)."""
        inside, gamma = self._inside(z, k), k.of(self.gamma)
        if self.eta == 0:
            return k.log(inside) / k.log(gamma)
        return (k.power(inside, -self.eta) - 1) / (k.power(gamma, -self.eta) - 1)

    def share(self, z: Any, k: Arithmetic) -> Any:
        """f'(1 - z)/f'(1) = (gamma/(gamma + (1 - gamma) z))^(eta + 1)."""
        return k.power(k.of(self.gamma) / self._inside(z, k), self._exponent)

    def ratio(self, z: Any, b: Any, k: Arithmetic) -> Any:
        """(gamma + (1 - gamma) b)/(gamma + (1 - gamma) z)."""
        return self._inside(b, k) / self._inside(z, k)

    def rho(self, ratio: Any, k: Arithmetic) -> Any:
        """ratio^(eta + 1)."""
        return k.power(ratio, self._exponent)

    def missed(self, k: Arithmetic) -> Any:
        """The integral of f over [0, 1]."""
        g, eta = self.gamma, self.eta
        log = -k.log(k.of(g))
        if eta == 1:
            return k.of(g / (1 - g) ** 2) * log - k.of(g / (1 - g))
        if eta == 0:
            return 1 / log - k.of(g / (1 - g))
        area = (1 - k.power(k.of(g), 1 - eta)) / k.of((1 - g) * (1 - eta))
        return (area - 1) / (k.power(k.of(g), -eta) - 1)

    def masses(self) -> Iterator[arb]:
        """P[K = 0], P[K = 1], ... as balls."""
        yield arb(0)
        mass, run = self.mean_in(BALLS) * self.share(arb(1), BALLS), 1
        while True:
            yield mass
            mass *= balls.ball((1 - self.gamma) * (run + self.eta) / (run + 1))
            run += 1

    def grid(self, count: int) -> Floats:
        """Points z with ln(gamma + (1 - gamma) z) evenly spaced."""
        gamma = float(self.gamma)
        inside: Floats = np.exp(np.linspace(math.log(gamma), 0.0, count))
        return np.clip((inside - gamma) / (1 - gamma), 0.0, 1.0)


@dataclass(frozen=True)
class Poisson:
    """The Poisson law; K = 0 is possible, and then nothing is released."""

    runs: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", rational(self.runs, "runs"))
        if self.runs <= 0:
            raise ValueError("the mean of a Poisson law must be above 0")

    @property
    def name(self) -> str:
        """What people call it."""
        return "Poisson"

    def mean_in(self, k: Arithmetic) -> Any:
        """E K = f'(1)."""
        return k.of(self.runs)

    def generating(self, z: Any, k: Arithmetic) -> Any:
        """f(1 - z) = exp(-m z)."""
        return k.exp(-k.of(self.runs) * z)

    def share(self, z: Any, k: Arithmetic) -> Any:
        """f'(1 - z)/f'(1) = exp(-m z)."""
        return self.generating(z, k)

    def ratio(self, z: Any, b: Any, k: Arithmetic) -> Any:
        """B - z."""
        return b - z

    def rho(self, ratio: Any, k: Arithmetic) -> Any:
        """exp(m ratio)."""
        return k.exp(k.of(self.runs) * ratio)

    def missed(self, k: Arithmetic) -> Any:
        """The integral of f over [0, 1]."""
        return (1 - k.exp(-k.of(self.runs))) / k.of(self.runs)

    def masses(self) -> Iterator[arb]:
        """P[K = 0], P[K = 1], ... as balls."""
        mass, run = balls.exp(-balls.ball(self.runs)), 0
        while True:
            yield mass
            run += 1
            mass *= balls.ball(self.runs / run)

    def grid(self, count: int) -> Floats:
        """Points z evenly spaced."""
        return np.linspace(0.0, 1.0, count)


@dataclass(frozen=True)
class Binomial:
    """The binomial law of n trials; K = 0 is possible, and then nothing is released."""

    n: int
    p: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", rational(self.p, "p"))
        if isinstance(self.n, bool) or not isinstance(self.n, int):
            raise TypeError("n, the number of trials of a binomial law, must be a whole number")
        if self.n < 1 or not 0 < self.p < 1:
            raise ValueError("a binomial law needs n >= 1 and 0 < p < 1")

    @property
    def name(self) -> str:
        """What people call it."""
        return "binomial"

    def mean_in(self, k: Arithmetic) -> Any:
        """E K = f'(1)."""
        return k.of(self.n * self.p)

    def generating(self, z: Any, k: Arithmetic) -> Any:
        """f(1 - z) = (1 - p z)^n."""
        return k.power(1 - k.of(self.p) * z, Fraction(self.n))

    def share(self, z: Any, k: Arithmetic) -> Any:
        """f'(1 - z)/f'(1) = (1 - p z)^(n - 1)."""
        return k.power(1 - k.of(self.p) * z, Fraction(self.n - 1))

    def ratio(self, z: Any, b: Any, k: Arithmetic) -> Any:
        """(1 - p z)/(1 - p b)."""
        return (1 - k.of(self.p) * z) / (1 - k.of(self.p) * b)

    def rho(self, ratio: Any, k: Arithmetic) -> Any:
        """ratio^(n - 1)."""
        return k.power(ratio, Fraction(self.n - 1))

    def missed(self, k: Arithmetic) -> Any:
        """The integral of f over [0, 1]."""
        return (1 - k.power(k.of(1 - self.p), Fraction(self.n + 1))) / k.of((self.n + 1) * self.p)

    def masses(self) -> Iterator[arb]:
        """P[K = 0], P[K = 1], ... as balls."""
        mass = balls.ball(1 - self.p) ** self.n
        for run in range(self.n + 1):
            yield mass
            mass *= balls.ball(self.p / (1 - self.p) * Fraction(self.n - run, run + 1))

    def grid(self, count: int) -> Floats:
        """Points z evenly spaced."""
        return np.linspace(0.0, 1.0, count)


Law: TypeAlias = NegativeBinomial | Poisson | Binomial  # the table of selection.proof.md, Theorem 3


def geometric(mean_runs: Real) -> NegativeBinomial:
    """The geometric law of this mean, above 1: the usual choice."""
    return NegativeBinomial(Fraction(1), 1 / _more_than_one(mean_runs))


def logarithmic(mean_runs: Real) -> NegativeBinomial:
    """The logarithmic law of this mean: a little cheaper than the geometric, and more often a single run."""
    return truncated_negative_binomial(0, mean_runs)


def truncated_negative_binomial(eta: Real, mean_runs: Real) -> NegativeBinomial:
    """The law TNB(eta) whose mean is this one, up to the rounding of gamma to a float.

    >>> law = truncated_negative_binomial("-0.5", 30)
    >>> round(mean(law), 9)
    30.0
    """
    shape, goal = rational(eta, "eta"), float(_more_than_one(mean_runs))
    if shape == 1:
        return geometric(mean_runs)

    def too_many(log: float) -> bool:
        return bool(NegativeBinomial(shape, Fraction(math.exp(log))).mean_in(FLOATS) > goal)

    _, high = roots.bisect(too_many, -700.0, -1e-12)
    return NegativeBinomial(shape, Fraction(repr(math.exp(high))))


def poisson(mean_runs: Real) -> Poisson:
    """The Poisson law of this mean."""
    return Poisson(positive(mean_runs, "mean_runs"))


def binomial(mean_runs: Real, n: int | None = None) -> Binomial:
    """The binomial law of this mean; n is twice the mean if not given."""
    runs = positive(mean_runs, "mean_runs")
    trials = math.ceil(2 * runs) if n is None else n
    return Binomial(trials, runs / trials)


NAMES: dict[str, Callable[[Real], Law]] = {
    "geometric": geometric,
    "logarithmic": logarithmic,
    "poisson": poisson,
    "binomial": binomial,
}


def check_law(law: object) -> None:
    """Refuse what is no law of ours, a subclass too: that its shares are those of its masses is proved of no other.

    A selection is paid by ``share``, ``ratio`` and ``rho`` and drawn by ``masses``; nothing short of a proof shows that
    the functions of somebody else's law speak of the same number of runs everywhere.
    """
    if type(law) not in get_args(Law):
        raise TypeError(
            "the law must be one of snugdp.accounting.selection, such as geometric(30), poisson(30), binomial(30) or "
            "truncated_negative_binomial(0.5, 30): what a selection costs is proved for these"
        )


def mean(law: Law) -> float:
    """E K, to a float's accuracy."""
    return _value(lambda: law.mean_in(BALLS))


def pgf(law: Law, x: Real) -> float:
    """f(x) = E x^K, to a float's accuracy."""
    z = 1 - rational(x, "x")
    return _value(lambda: law.generating(balls.ball(z), BALLS))


def pgf_slope(law: Law, x: Real) -> float:
    """f'(x), to a float's accuracy."""
    z = 1 - rational(x, "x")
    return _value(lambda: law.mean_in(BALLS) * law.share(balls.ball(z), BALLS))


def expected_quantile(law: Law) -> float:
    """The quantile of the winner among all runs with continuous scores, on average; no run counts as 0.

    >>> round(expected_quantile(geometric(300)), 4)
    0.9842
    """
    return _value(lambda: 1 - law.missed(BALLS))


def best_tried(law: Law, candidates: int) -> float:
    """The probability that the best of so many candidates, drawn evenly, is tried at all.

    >>> round(best_tried(geometric(30), 30), 4)
    0.5085
    """
    return _value(lambda: 1 - law.generating(balls.ball(Fraction(1, candidates)), BALLS))


def beyond(law: Law, most: int) -> float:
    """P[K > most], rounded up: how often a cut at ``most`` ends without a release."""
    if most < 0:
        raise ValueError("the largest number of runs must be at least 0")
    if isinstance(law, NegativeBinomial) and law.eta == 1:
        return balls.above(lambda: balls.ball(1 - law.gamma) ** most)
    if isinstance(law, Binomial) and most >= law.n:
        return 0.0

    def rest() -> arb:
        masses = law.masses()
        return 1 - sum((next(masses) for _ in range(most + 1)), arb(0))

    return max(0.0, balls.upper(balls.enclose(rest, bits=20)))


def winner(law: Law, p: Sequence[Real], score: Sequence[float]) -> list[float]:
    """The law of the best of K runs with outcomes of probabilities p; the largest score wins, ties at random.

    What is missing to the sum 1 is K = 0.

    >>> winner(geometric(2), ["1/2", "1/2"], [0, 1])
    [0.333333333333..., 0.666666666666...]
    """
    masses = [rational(value, "a probability") for value in p]
    if len(masses) != len(score):
        raise ValueError("there must be one score for every outcome")
    found = []
    for mass, value in zip(masses, score, strict=True):
        level = sum((m for m, s in zip(masses, score, strict=True) if s == value), Fraction(0))
        above = sum((m for m, s in zip(masses, score, strict=True) if s > value), Fraction(0))
        found.append(_value(partial(_winning, law, mass, level, above)) if mass else 0.0)
    return found


def _winning(law: Law, mass: Fraction, level: Fraction, above: Fraction) -> arb:
    """The share of one outcome in the probability that its score wins."""
    reached: arb = law.generating(balls.ball(above), BALLS) - law.generating(balls.ball(above + level), BALLS)
    return balls.ball(mass / level) * reached


def _value(function: balls.Function) -> float:
    return float(balls.enclose(function).mid())


def _more_than_one(mean_runs: Real) -> Fraction:
    runs = rational(mean_runs, "mean_runs")
    if runs <= 1:
        raise ValueError("mean_runs must be above 1 for a law that always runs at least once")
    return runs
