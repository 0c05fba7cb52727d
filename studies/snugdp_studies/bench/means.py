"""How often intervals for the population cover: of means, proportions, quantiles and differences of groups.

Rows are made up, anew in every run, from populations with a known truth. Noise is that of a rehearsal with a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

import snugdp

Floats: TypeAlias = NDArray[np.float64]
Generator: TypeAlias = np.random.Generator
NORMAL = 1.959964
_POPULATIONS: Mapping[str, tuple[Callable[[Generator, int], Floats], float]] = {  # numbers from 0 to 100, and the mean
    "even": (lambda draw, n: draw.uniform(0, 100, n), 50.0),
    "a tenth of the bounds": (lambda draw, n: draw.uniform(45, 55, n), 50.0),
    "skewed": (lambda draw, n: 100 * draw.beta(1, 8, n), 100 / 9),
    "lognormal": (lambda draw, n: 2 * draw.lognormal(0, 0.8, n), 2 * math.exp(0.32)),
}
_LARGEST = 200  # of the bounds: twice what is needed


@dataclass(frozen=True)
class PopulationDesign:
    """What is asked, of which population. ``level``: of a quantile, or the share of a proportion."""

    asked: str
    population: str
    rows: int
    epsilon: float
    level: float = 0.5
    clip: str | None = None

    def truth(self) -> float:
        """Of the population."""
        if self.asked == "quantile":
            return 100 * self.level
        if self.asked == "proportion":
            return self.level
        return 0.0 if self.asked == "difference of groups" else _POPULATIONS[self.population][1]

    def once(self, seed: int) -> tuple[float, float, float]:
        """Both ends of an interval, and the width of the one without privacy."""
        draw, noise = np.random.default_rng([seed, self.rows]), snugdp.Simulation(seed)
        x = _POPULATIONS.get(self.population, _POPULATIONS["even"])[0](draw, self.rows)
        given: dict[str, Any] = {"epsilon": self.epsilon, "noise": noise}
        n, q = self.rows, self.level
        if self.asked == "proportion":
            found: Any = snugdp.proportion(draw.random(n) < q, inference=True, **given).value
            return *found.conf_int(), 2 * NORMAL * math.sqrt(q * (1 - q) / n)
        if self.asked == "quantile":
            low, high = snugdp.quantile_interval(x, q, bounds=(0, _LARGEST), **given).value or (0.0, 0.0)
            return low, high, 200 * NORMAL * math.sqrt(q * (1 - q) / n)
        plain = 2 * NORMAL * float(np.std(x)) / math.sqrt(n)
        if self.asked == "mean":
            given |= {"bounds": (0, _LARGEST), "clip": self.clip}
            found = snugdp.mean(x, inference=True, **given).value
            return *found.conf_int(), plain
        table = pl.DataFrame({"x": x, "group": np.where(draw.random(n) < 0.3, "a", "b")})
        given |= {"statistics": {"x": "mean"}, "bounds": {"x": (0, _LARGEST)}, "keys": ["a", "b"], "inference": True}
        groups: Any = snugdp.group_by(table, "group", **given).value
        apart = groups.estimate("x_mean", group="a").difference(groups.estimate("x_mean", group="b"))
        return apart.lower, apart.upper, plain / math.sqrt(0.3 * 0.7)


@dataclass(frozen=True)
class PopulationCoverage:
    """What was seen. ``width``: the median over that without privacy."""

    design: PopulationDesign
    covered: float
    width: float


DESIGNS = (
    *(PopulationDesign("mean", name, rows, 1.0) for name in _POPULATIONS for rows in (500, 5000)),
    *(PopulationDesign("mean", name, 5000, 1.0, clip="private") for name in _POPULATIONS),
    PopulationDesign("mean", "even", 5000, 0.5),
    *(PopulationDesign("proportion", "", rows, 0.5, share) for rows in (500, 5000) for share in (0.01, 0.1, 0.5)),
    *(PopulationDesign("quantile", "even", rows, 0.5, level) for rows in (500, 5000) for level in (0.5, 0.9, 0.95)),
    *(PopulationDesign("difference of groups", name, 5000, 1.0) for name in _POPULATIONS),
)


def run(repeats: int, designs: tuple[PopulationDesign, ...] = DESIGNS) -> Iterator[PopulationCoverage]:
    """Each design in turn."""
    for design in designs:
        found = np.array([design.once(seed) for seed in range(repeats)])
        covered = (found[:, 0] <= design.truth()) & (design.truth() <= found[:, 1])
        width = np.median((found[:, 1] - found[:, 0]) / found[:, 2])
        yield PopulationCoverage(design, float(covered.mean()), float(width))
