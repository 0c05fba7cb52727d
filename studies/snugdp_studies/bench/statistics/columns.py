"""Made-up columns: skewed, even, heaped, heavy-tailed and small ones, with public bounds from outside the data."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
_SEED = 20_261_117


@dataclass(frozen=True)
class MadeUp:
    """A column. ``step``: the public spacing of its values, or 0."""

    name: str
    values: Floats
    lower: float
    upper: float
    step: float = 0

    @property
    def bounds(self) -> tuple[float, float]:
        """Public bounds."""
        return self.lower, self.upper


def _generator(place: int) -> np.random.Generator:
    return np.random.default_rng([_SEED, place])


def lognormal(rows: int = 20_000) -> MadeUp:
    """Such as incomes."""
    return MadeUp(f"lognormal {rows:,}", np.exp(_generator(1).normal(10.3, 0.7, rows)), 0, 10**6)


def normal(rows: int) -> MadeUp:
    """Such as measurements."""
    return MadeUp(f"normal {rows:,}", _generator(2).normal(50_000, 10_000, rows), 0, 10**5)


def ages(rows: int = 20_000) -> MadeUp:
    """Whole years: hundreds of rows share a value."""
    years = np.floor(np.clip(_generator(3).gamma(9, 4.7, rows), 0, 119))
    return MadeUp(f"ages {rows:,}", years, 0, 120, 1)


def pareto(rows: int, power: float = 1.5, upper: float = 10**7) -> MadeUp:
    """With a heavy tail."""
    return MadeUp(f"Pareto({power:g}) {rows:,}", 1 + _generator(4).pareto(power, rows), 0, upper)
