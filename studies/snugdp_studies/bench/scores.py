"""Scores of a model on private rows: how far they are from those of the sample, and how often intervals cover.

The model is public and right, sure of itself or not; rows are made up, anew in every run. Noise is that of a rehearsal
with a seed, which has the law of a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import snugdp

Floats = NDArray[np.float64]
_TRUTH = 2_000_000  # rows that stand for the population


@dataclass(frozen=True)
class Logits:
    """A classifier whose logit is the first entry of a row times ``certainty``."""

    certainty: float = 1.0
    classes_ = np.array([0, 1])

    def predict_proba(self, X: Any) -> Floats:
        """Of both classes."""
        p = 1 / (1 + np.exp(-self.certainty * np.asarray(X)[:, 0]))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The more probable class."""
        return (np.asarray(X)[:, 0] >= 0).astype(np.int64)


class FirstEntry:
    """A regressor that predicts the first entry of a row."""

    def predict(self, X: Any) -> Floats:
        """One number for every row."""
        return np.asarray(np.asarray(X)[:, 0], dtype=np.float64)


@dataclass(frozen=True)
class ScoreDesign:
    """Rows, and a metric. ``spread`` and ``shift``: of the logits; for numbers ``spread`` is that of the errors."""

    metric: str
    rows: int
    epsilon: float
    spread: float
    shift: float = 0.0
    certainty: float = 1.0
    together: bool = False  # with all metrics that share its release

    @property
    def number(self) -> bool:
        """Whether a number is predicted."""
        return self.metric in ("r2", "mse", "mae")

    def made(self, rows: int, draw: np.random.Generator) -> tuple[Floats, Floats]:
        """Rows and targets."""
        if self.number:
            x = draw.normal(size=rows)
            return x[:, None], x + self.spread * draw.normal(size=rows)
        z = self.shift + self.spread * draw.normal(size=rows)
        return z[:, None], (draw.random(rows) < 1 / (1 + np.exp(-z))).astype(np.float64)

    def score(self) -> snugdp.Score:
        """The release."""
        if self.number:
            return snugdp.Score(
                model=FirstEntry(), metric=self.metric, epsilon=self.epsilon, bounds=(-5, 5), max_error=4
            )
        metric = None if self.together else self.metric
        return snugdp.Score(model=Logits(self.certainty), metric=metric, epsilon=self.epsilon)

    def true(self, X: Floats, y: Floats) -> float:
        """The metric without noise, on these rows."""
        if self.number:
            x, y = np.clip(X[:, 0], -5, 5), np.clip(y, -5, 5)
            error = np.minimum(np.abs(y - x), 4)
            found = {"mse": np.mean(error**2), "mae": np.mean(error), "r2": 1 - np.mean(error**2) / np.var(y)}
            return float(found[self.metric])
        p = Logits(self.certainty).predict_proba(X)[:, 1]
        if self.metric == "roc_auc":
            return area(X[:, 0], y)
        held = np.clip(p, 0.01, 0.99)
        said = p >= 0.5
        found = {
            "accuracy": lambda: np.mean(said == y),
            "recall": lambda: np.mean(said[y == 1]),
            "log_loss": lambda: -np.mean(np.log(np.where(y == 1, held, 1 - held))),
            "brier": lambda: np.mean((p - y) ** 2),
        }
        return float(found[self.metric]())


@dataclass(frozen=True)
class ScoreRow:
    """What came of a design. ``error``: from the sample's score, in 19 of 20 runs; coverage of both intervals.

    ``silent``: the share of runs in which nothing is said.
    """

    design: ScoreDesign
    positives: float
    truth: float
    error: float
    population: float
    sample: float
    silent: float


DESIGNS = (
    ScoreDesign("roc_auc", 5000, 0.5, 1.5),
    ScoreDesign("roc_auc", 5000, 0.5, 1.5, -1.9),
    ScoreDesign("roc_auc", 5000, 0.5, 4.0, -3.5),
    ScoreDesign("roc_auc", 5000, 0.5, 1.5, together=True),
    ScoreDesign("roc_auc", 5000, 0.5, 1.5, -1.9, together=True),
    ScoreDesign("roc_auc", 5000, 0.5, 1.5, 0.0, 3.0, together=True),
    ScoreDesign("roc_auc", 20_000, 0.5, 1.5, -3.8, together=True),
    ScoreDesign("roc_auc", 20_000, 0.5, 1.5, -3.8),
    ScoreDesign("roc_auc", 2000, 0.5, 1.5, -5.5, together=True),
    ScoreDesign("accuracy", 20_000, 0.5, 1.5),
    ScoreDesign("accuracy", 2000, 0.5, 1.5),
    ScoreDesign("accuracy", 5000, 0.5, 1.5, together=True),
    ScoreDesign("recall", 5000, 0.5, 1.5, -1.9, together=True),
    ScoreDesign("log_loss", 5000, 0.5, 1.5),
    ScoreDesign("brier", 5000, 0.5, 1.5, -1.9),
    ScoreDesign("mse", 5000, 0.5, 0.7),
    ScoreDesign("mae", 5000, 0.5, 0.7),
    ScoreDesign("r2", 5000, 1.0, 0.7),
)


def run(repeats: int = 200, seed: int = 1, designs: tuple[ScoreDesign, ...] = DESIGNS) -> Iterator[ScoreRow]:
    """Each design in turn."""
    for place, design in enumerate(designs):
        draw = np.random.default_rng([seed, place])
        yield _row(design, repeats, draw, snugdp.Simulation(seed + place))


def _row(design: ScoreDesign, repeats: int, draw: np.random.Generator, noise: snugdp.Simulation) -> ScoreRow:
    X, y = design.made(_TRUTH, draw)
    truth, positives = design.true(X, y), float(np.mean(y))
    score, seen = design.score(), list[tuple[float, bool, bool]]()
    for _ in range(repeats):
        X, y = design.made(design.rows, draw)
        own = design.true(X, y)
        outcome = score.release(X, y, noise=noise)
        assert outcome.value is not None
        found = outcome.value[design.metric]
        inner = found.sample_lower <= own <= found.sample_upper
        seen.append((abs(found.value - own), found.lower <= truth <= found.upper, inner))
    errors = [error for error, *_ in seen if not math.isnan(error)]
    far = float(np.quantile(errors, 0.95)) if errors else math.nan
    whole, own_rows = (float(np.mean([each[place] for each in seen])) for place in (1, 2))
    return ScoreRow(design, positives, truth, far, whole, own_rows, 1 - len(errors) / repeats)


def area(score: Floats, y: Floats) -> float:
    """The area under the ROC curve, by ranks; scores are all different."""
    ranks = np.empty(len(score))
    ranks[np.argsort(score)] = np.arange(1, len(score) + 1)
    ones = float(y.sum())
    if ones in (0, len(y)):
        return math.nan
    return float((ranks[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones)))
