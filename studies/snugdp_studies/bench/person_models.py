"""How well models are fitted where persons have several rows: caps, weights, the weight that is found in private.

Made-up panels: numbers of rows that are Zipf, geometric or lognormal, features that vary from row to row, and for a
line errors that are correlated within a person. Everything is a rehearsal; seeds differ from panel to panel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

import snugdp

Floats: TypeAlias = NDArray[np.float64]
Model: TypeAlias = Literal["linear", "logistic"]

FEATURES = tuple(f"x{place}" for place in range(6))
THETA = np.array([0.5, -0.4, 0.3, -0.2, 0.1, 0.0])
X_NORM, Y_BOUND = 3.5, 5.0
WEIGHTS = (1, 2, 4, 8, 16)
_MOST_ROWS = 200
ROWS: Mapping[str, Callable[[np.random.Generator, int], Any]] = {
    "Zipf": lambda draw, people: draw.zipf(1.8, people),
    "geometric": lambda draw, people: draw.geometric(1 / 6, people),
    "lognormal": lambda draw, people: np.ceil(draw.lognormal(0.7, 1.2, people)),
}


@dataclass(frozen=True)
class PersonPanel:
    """Persons and their rows. ``rho``: how errors of one person's rows are correlated (of a line)."""

    rows: str
    people: int
    model: Model
    rho: float = 0.0

    def table(self, seed: int) -> pl.DataFrame:
        """One made-up table."""
        draw = np.random.default_rng([seed, self.people, len(self.rows)])
        sizes = np.minimum(ROWS[self.rows](draw, self.people), _MOST_ROWS).astype(np.int64)
        who = np.repeat(np.arange(self.people), sizes)
        X = draw.normal(size=(len(who), len(FEATURES)))
        linear = X @ THETA
        if self.model == "logistic":
            y: Floats = (draw.random(len(who)) < 1 / (1 + np.exp(-2 * linear))).astype(np.float64)
        else:
            shared = np.sqrt(self.rho) * draw.normal(size=self.people)[who]
            y = linear + shared + np.sqrt(1 - self.rho) * draw.normal(size=len(who))
        return pl.DataFrame({**dict(zip(FEATURES, X.T, strict=True)), "y": y, "person": who})

    @property
    def truth(self) -> Floats:
        """The coefficients."""
        return THETA if self.model == "linear" else 2 * THETA


@dataclass(frozen=True)
class PersonScore:
    """The mean squared distance to the true coefficients, of one way to fit."""

    panel: PersonPanel
    way: str
    error: float


def run(
    people: tuple[int, ...] = (1_000, 5_000), repeats: int = 12, epsilon: float = 1.0, delta: float = 1e-6
) -> list[PersonScore]:
    """All ways on all panels."""
    found = []
    for panel in panels(people):
        errors: dict[str, list[float]] = {}
        for seed in range(repeats):
            for way, error in _errors(panel, seed, epsilon, delta):
                errors.setdefault(way, []).append(error)
        found += [PersonScore(panel, way, float(np.mean(some))) for way, some in errors.items()]
    return found


def panels(people: tuple[int, ...]) -> list[PersonPanel]:
    """All of them."""
    lines = [PersonPanel(rows, many, "linear", rho) for rows in ROWS for many in people for rho in (0.0, 0.5)]
    return [*lines, *(PersonPanel(rows, many, "logistic") for rows in ROWS for many in people)]


def _errors(panel: PersonPanel, seed: int, epsilon: float, delta: float) -> Iterator[tuple[str, float]]:
    table = panel.table(seed)
    shuffled = table.sample(fraction=1, shuffle=True, seed=seed)
    ways: dict[str, tuple[pl.DataFrame, dict[str, Any]]] = {"row-level": (table.drop("person"), {})}
    ways["cap 1"] = shuffled.unique("person", keep="first", maintain_order=True).drop("person"), {}
    for most in WEIGHTS:
        ways[f"weights {most}"] = table, {"person": "person", "max_rows": most}
    for most in WEIGHTS[1:]:  # rows that are kept weigh 1 each, and so do their weights
        kept = shuffled.filter(pl.int_range(pl.len()).over("person") < most)
        ways[f"cap {most}"] = kept, {"person": "person", "max_rows": most}
    ways["private"] = table, {"person": "person", "max_rows": "private"}
    for way, (rows, given) in ways.items():
        fitted = _model(panel.model, epsilon, delta, seed, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a rehearsal
            fitted.fit(rows.drop("y"), rows["y"].to_numpy())
        yield way, float(np.sum((np.ravel(fitted.coef_) - panel.truth) ** 2))


def _model(model: Model, epsilon: float, delta: float, seed: int, given: Mapping[str, Any]) -> Any:
    shared = {"epsilon": epsilon, "delta": delta, "x_norm": X_NORM, "random_state": seed, **given}
    if model == "linear":
        return snugdp.LinearRegression(y_bound=Y_BOUND, **shared)
    return snugdp.LogisticRegression(classes=[0, 1], **shared)


def words(scores: list[PersonScore]) -> Iterator[tuple[str, ...]]:
    """A line for every panel: errors, the best in hindsight, and how far the private weight is from it."""
    for panel in dict.fromkeys(score.panel for score in scores):
        errors = {score.way: score.error for score in scores if score.panel == panel}
        public = {way: error for way, error in errors.items() if way.startswith(("weights", "cap"))}
        best = min(public, key=lambda way: public[way])
        name = f"{panel.model}, {panel.rows}, {panel.people:,}" + (f", rho {panel.rho:g}" if panel.rho else "")
        shown = [f"{errors[way]:.2g}" for way in SHOWN if way in errors]
        yield (name, *shown, best, f"{errors.get('private', np.nan) / public[best]:.2f}")


SHOWN = ("row-level", "cap 1", "weights 1", "cap 2", "weights 2", "cap 4", "weights 4", "weights 16", "private")
