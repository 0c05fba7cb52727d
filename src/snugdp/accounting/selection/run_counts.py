"""Laws of the hidden number of runs K, as far as accounting needs them. Drawing K is the business of ``noise/``.

f is the generating function of K and z = 1 - x. Each formula is written once and read twice: in floats, where nothing
is promised, and in balls, where the result encloses the exact value. Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.numerics import balls
from snugdp.numerics.rationals import rational

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


class Law(Protocol):
    """A law of K. ``share(z)`` is f'(1 - z)/f'(1); ``rho(ratio(z, b))`` is f'(1 - z)/f'(1 - b).

    ``ratio`` is monotone in z along every line b = s z + c, and ``rho`` is nondecreasing.
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def mean_in(self, k: Arithmetic) -> Any:
        """E K = f'(1)."""
        ...

    def generating(self, z: Any, k: Arithmetic) -> Any:
        """f(1 - z)."""
        ...

    def share(self, z: Any, k: Arithmetic) -> Any:
        """f'(1 - z)/f'(1)."""
        ...

    def ratio(self, z: Any, b: Any, k: Arithmetic) -> Any:
        """What rho is a function of."""
        ...

    def rho(self, ratio: Any, k: Arithmetic) -> Any:
        """f'(1 - z)/f'(1 - b) from the ratio."""
        ...

    def missed(self, k: Arithmetic) -> Any:
        """The integral of f over [0, 1]: one minus the expected quantile of the winner."""
        ...

    def masses(self) -> Iterator[arb]:
        """P[K = 0], P[K = 1], ... as balls."""
        ...

    def grid(self, count: int) -> Floats:
        """Points z between 0 and 1 at which ln f' moves evenly."""
        ...


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
