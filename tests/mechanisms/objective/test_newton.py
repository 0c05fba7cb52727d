"""Newton's method: it ends at the minimiser, whatever Hessian it begins with, after as few evaluations as it may."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from snugdp.mechanisms.objective.newton import Derivatives, Newton

Floats = NDArray[np.float64]
SHARES = np.array([1.0, 0.3, 0.01])
RIDGE = 0.1


class Counted:
    """The sum of log cosh of each coordinate less 1, times a share of its own; and how often what was asked for."""

    def __init__(self) -> None:
        self.gradients = self.hessians = 0

    def __call__(self, theta: Floats, hessian: bool) -> tuple[Floats, Floats | None]:
        self.gradients += 1
        self.hessians += hessian
        slope = np.tanh(theta - 1.0)
        return SHARES * slope + RIDGE * theta, np.diag(SHARES * (1 - slope**2)) if hessian else None


def found(
    at: Derivatives, start: Floats, matrix: Floats | None = None, *, trusted: float = 0.0, enough: float = 0.0
) -> Floats:
    return Newton(at, RIDGE, 100, close=1e-7, stale=1e-3, trusted=trusted, enough=enough).run(start, matrix)[0]


def size(theta: Floats) -> float:
    return float(np.abs(Counted()(theta, False)[0]).max())


@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.3, 1.0, 30.0, 1e4])
def test_a_poor_hessian_costs_time_only(scale: float) -> None:
    at = Counted()
    assert size(found(at, np.zeros(3), np.diag(SHARES) * scale)) < 1e-12
    assert at.hessians <= 12
    assert at.gradients <= 40


def test_a_good_hessian_is_not_taken_anew() -> None:
    near = found(Counted(), np.zeros(3)) + 1e-6
    matrix = Counted()(near, True)[1]
    at = Counted()
    assert size(found(at, near, matrix)) < 1e-12
    assert at.hessians == 0


def test_a_trusted_step_is_taken_without_a_look() -> None:
    near = found(Counted(), np.zeros(3)) + 1e-6
    at = Counted()
    assert size(found(at, near, Counted()(near, True)[1], trusted=1e-5)) < 1e-11
    assert at.gradients == 1


def test_a_step_too_short_to_matter_is_not_taken() -> None:
    near = found(Counted(), np.zeros(3)) + 1e-6
    at = Counted()
    assert (found(at, near, Counted()(near, True)[1], enough=1e-5) == near).all()
    assert at.gradients == 1
