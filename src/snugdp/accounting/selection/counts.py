"""The Poisson and the binomial law of the number of runs. Statements and proofs: selection.proof.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from snugdp.accounting.selection.run_counts import Arithmetic, Floats
from snugdp.numerics import balls
from snugdp.numerics.rationals import rational


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
