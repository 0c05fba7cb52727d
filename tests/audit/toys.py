"""Small mechanisms with one thing wrong or nothing: what an audit must tell apart."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp.audit.finding import Case
from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Outcome
from snugdp.noise import Gaussian, Laplace, Noise, Simulation
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome
from tests.plans import plan_of

Rows = list[float]
Walk = Callable[[Secret[Rows], Noise], Any]
PAIRS = [([1.0] * 5, [1.0] * 4)]


def clipped(rows: Rows) -> int:
    return sum(round(1024 * min(max(row, 0.0), 1.0)) for row in rows if not math.isnan(row))


def neighbours(generator: np.random.Generator) -> tuple[Rows, Rows]:
    rows = [float(value) for value in generator.choice([0, 0.3, 1, 7, -2, np.nan, np.inf], size=generator.integers(9))]
    return [*rows, float(generator.choice([0, 0.5, 1, 9, np.nan]))], rows


def case(walk: Walk, cost: Cost, **more: Any) -> Case[Rows]:
    """A case whose walk returns what is released; None is a refusal."""
    plan = plan_of("a toy", cost)

    def run(rows: Rows, noise: Noise) -> Outcome[Any]:
        def drawn(noise: Noise, _: object) -> StoredOutcome:
            value = walk(Secret(rows), noise.at("release"))
            return StoredOutcome(refused=value is None, value=value)

        return ReleaseContext(noise).pay(plan, drawn)

    given: dict[str, Any] = {"worst": lambda: PAIRS, "random": neighbours, **more}
    return Case("toy", run, cost, **given)


def peeked(data: Secret[Rows]) -> int:
    """How many rows there are, told past the noise."""
    seen: list[int] = []
    data.map(lambda rows: seen.append(len(rows)))
    return seen[0]


def gaussian_sum(scale: int = 1, total: Callable[[Rows], int] = clipped) -> Walk:
    """A sum of numbers between 0 and 1 with noise of deviation ``scale``."""
    law = Gaussian(1024 * scale)
    return lambda data, noise: float(noise.add_integers(data.map(lambda rows: [total(rows)]), law)[0])


def laplace_sum(scale: int = 1) -> Walk:
    law = Laplace(scale)
    return lambda data, noise: float(noise.add(data.map(lambda rows: Fraction(clipped(rows), 1024)), law, grid=-12))


def checked_sum(threshold: int = 3) -> Walk:
    """A test, then a sum."""

    def walk(data: Secret[Rows], noise: Noise) -> Any:
        if not noise.at_least(data.map(len), Laplace(1), threshold):
            return None
        return gaussian_sum()(data, noise)

    return walk


class Cached(Simulation):
    """The same vector for every call of one length."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._kept: dict[int, Any] = {}

    def _many(self, law: Any, n: int) -> Any:
        z = self._kept.setdefault(n, super()._many(Gaussian(1), n))
        return z * float(getattr(law, "sigma", getattr(law, "scale", 1)))
