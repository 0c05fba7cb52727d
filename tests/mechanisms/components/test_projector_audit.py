"""An audit end to end: the hockey stick of whole fits on the worst neighbours, false certificates included."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from snugdp import Budget
from snugdp.mechanisms.components import projector
from snugdp.mechanisms.components.base import Rank, Task
from snugdp.mechanisms.components.crossing import Crossing
from snugdp.mechanisms.components.projector import Dual, Projector
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.points import MatrixSchema, MatrixSource
from snugdp.tables.passes.scatter import Scatter
from snugdp.tables.rows import Rows
from tests.mechanisms.components.test_projector_law import Recorder

LAYOUT = MatrixSchema(("x0", "x1"), 1)
EPSILON, DELTA = 1.0, 0.2  # so large that a failing certificate is seen
DRAWS = 200


def scatter(X: Any) -> Secret[Scatter]:
    return Secret(Scatter(Rows(MatrixSource(X, LAYOUT), LAYOUT, progress=False)))


def loss(first: Recorder, second: Recorder) -> float:
    """The logarithm of the ratio of densities of what was said, on the first table over the second."""
    total = 0.0
    for (mine, sigma), (yours, _), said in zip(first.seen, second.seen, first.said, strict=True):
        answers = said if isinstance(said, list) else [said]
        for a, b, c in zip(mine, yours, answers, strict=True):
            total += float(((c - b) ** 2 - (c - a) ** 2) / (2 * sigma**2))
    return total


def hockey_stick(method: Any, X: Any, other: Any) -> tuple[float, float]:
    """An estimate of delta at epsilon from draws on the first table, and its standard error."""
    here, there = scatter(X), scatter(other)
    found = []
    for seed in range(DRAWS):
        first = Recorder(seed)
        method.fit(here, ReleaseContext(first))
        second = Recorder(0, first.said)
        method.fit(there, ReleaseContext(second))
        found.append(max(0.0, 1 - math.exp(EPSILON - loss(first, second))) if loss(first, second) > EPSILON else 0.0)
    return float(np.mean(found)), float(np.std(found) / math.sqrt(DRAWS))


def neighbours() -> tuple[Any, Any]:
    """All but no gap; one row more, and the leading direction is the other one."""
    rows = np.vstack([np.tile(np.eye(2), (4, 1)), [[0.3, 0.0]]])
    return rows, np.vstack([rows, [[0.0, 1.0]]])


def task() -> Task:
    return Task(LAYOUT, Budget(EPSILON, DELTA), Rank.of(1, 2), rows=8)


@pytest.mark.parametrize("make", [Projector, Dual, Crossing])
def test_a_whole_fit_keeps_its_promise(make: Any) -> None:
    X, other = neighbours()
    delta, error = hockey_stick(make(task()), X, other)
    assert delta <= DELTA + 3 * error
    assert delta > DELTA / 4  # a mechanism that says nothing would pass as well


def test_a_test_without_a_margin_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projector, "margin", lambda sigma, failure: Fraction(0))
    X, other = neighbours()
    delta, error = hockey_stick(Projector(task()), X, other)
    assert delta > DELTA + 5 * error


def test_half_of_the_noise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Task, "mu_squared", lambda self, failure: Fraction(4))
    X, other = neighbours()
    delta, error = hockey_stick(Crossing(task()), X, other)
    assert delta > DELTA + 5 * error
