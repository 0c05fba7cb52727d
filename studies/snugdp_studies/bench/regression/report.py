"""What the scores of the regression benchmark say: means, who is best, and our methods over all tables."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from snugdp_studies.bench.regression.methods import CONTENDERS
from snugdp_studies.bench.regression.plan import Plan, Score

ABOUT = (
    "Rehearsals, NOT PRIVATE: seeded noise, and tables scaled with numbers taken from themselves. errors: mean squared "
    "errors on held-out rows, one for each split; seconds: the median of a fit"
)
_PACKAGES = ("snugdp", "numpy", "scipy", "scikit-learn", "diffprivlib")


@dataclass(frozen=True)
class Cell:
    """One method on one table at one epsilon, over all splits."""

    dataset: str
    epsilon: float
    factor: float
    method: str
    errors: tuple[float, ...]
    seconds: float
    refused: int

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(np.mean(self.errors))

    @property
    def deviation(self) -> float:
        """The standard error of the mean; 0 for one split."""
        if len(self.errors) < 2:
            return 0.0
        if not np.isfinite(self.mean):
            return np.inf
        return float(np.std(self.errors, ddof=1) / len(self.errors) ** 0.5)

    @property
    def ranked(self) -> bool:
        """Whether it can be the best: private, and without public rows."""
        return CONTENDERS[self.method].ranked


@dataclass(frozen=True)
class Summary:
    """One method over all tables and epsilons.

    ``near``: the share of cells where it is the best ranked method or within 1 % of it. ``ratio`` and ``worst``: the
    geometric mean and the largest of its error over that of the best peer in the same cell. ``loose``: the geometric
    mean of its error with the loose bound over that with the tight one.
    """

    method: str
    cells: int
    near: float
    ratio: float | None
    worst: float | None
    loose: float | None


@dataclass(frozen=True)
class Report:
    """All scores of a run, and what they say."""

    plan: Plan
    scores: tuple[Score, ...]

    @property
    def cells(self) -> list[Cell]:
        """The scores, gathered by table, bound, epsilon and method, in the order of the plan."""
        groups: dict[tuple[str, float, float, str], list[Score]] = {}
        for score in self.scores:
            key = (score.job.dataset, score.job.epsilon, score.job.factor, score.job.method)
            groups.setdefault(key, []).append(score)
        cells = []
        for (dataset, epsilon, factor, method), found in groups.items():
            found.sort(key=lambda score: score.job.number)
            errors = tuple(score.mse for score in found)
            seconds = float(np.median([score.seconds for score in found]))
            refused = sum(score.refused for score in found)
            cells.append(Cell(dataset, epsilon, factor, method, errors, seconds, refused))
        order = {name: place for place, name in enumerate(CONTENDERS)}
        return sorted(cells, key=lambda c: (c.dataset, c.factor, c.epsilon, order[c.method]))

    def contests(self, factor: float = 1.0) -> list[list[Cell]]:
        """The cells of one table and one epsilon, for all of them."""
        groups: dict[tuple[str, float], list[Cell]] = {}
        for cell in self.cells:
            if cell.factor == factor:
                groups.setdefault((cell.dataset, cell.epsilon), []).append(cell)
        return list(groups.values())

    def summaries(self, factor: float = 1.0) -> list[Summary]:
        """Every method of ours over all contests."""
        return [found for name in CONTENDERS if (found := self._summary(name, factor)) is not None]

    def _summary(self, method: str, factor: float) -> Summary | None:
        contests = [group for group in self.contests(factor) if any(cell.method == method for cell in group)]
        if CONTENDERS[method].kind != "ours" or not contests:
            return None
        near, ratios = 0, []
        for group in contests:
            mine = next(cell.mean for cell in group if cell.method == method)
            near += mine <= 1.01 * min(cell.mean for cell in group if cell.ranked)
            peers = [cell.mean for cell in group if CONTENDERS[cell.method].kind == "peer"]
            ratios += [mine / min(peers)] if peers else []
        share = near / len(contests)
        return Summary(method, len(contests), share, _middle(ratios), max(ratios, default=None), self._loose(method))

    def _loose(self, method: str) -> float | None:
        means = {(c.dataset, c.epsilon, c.factor): c.mean for c in self.cells if c.method == method}
        loose = self.plan.loose
        return _middle([means[d, e, f] / means[d, e, 1.0] for d, e, f in means if f == loose])

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain values."""
        return {
            "about": ABOUT,
            "parameters": asdict(self.plan) | {"not importable": self.plan.missing},
            "versions": versions(),
            "cells": [asdict(cell) | {"mean": cell.mean, "standard error": cell.deviation} for cell in self.cells],
            "summaries": [asdict(found) for found in self.summaries()],
        }


def best(group: Sequence[Cell]) -> Cell | None:
    """The ranked method with the smallest mean error."""
    return min((cell for cell in group if cell.ranked), key=lambda cell: cell.mean, default=None)


def _middle(ratios: Sequence[float]) -> float | None:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def versions() -> dict[str, str | None]:
    """Of what the numbers depend on."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found
