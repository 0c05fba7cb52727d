"""Derivatives in floats are those of the exact passes, as far as floats go, for every loss and with weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from snugdp.mechanisms.objective.float_objective import FloatGradient
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, Loss, OneAgainst, PseudoHuber, SoftHinge, TamedPoisson
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure
from snugdp.tables.schema.schema import Number, Schema

SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y")
LOSSES: list[Loss] = [
    LogCosh("0.25"),
    PseudoHuber("0.1"),
    Huber("0.3"),
    Logistic(),
    SoftHinge("0.5"),
    OneAgainst(Logistic(), 1, 3),
    TamedPoisson(5, 3),
]


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_derivatives_of_the_exact_pass(loss: Loss, single: bool) -> None:
    rng, theta = np.random.default_rng(4), [Fraction(1, 4), Fraction(-3, 8), Fraction(1, 16)]
    exact = GradientEnclosure(SCHEMA, theta, loss, hessian=True)
    row_map = exact.row_map
    X = np.column_stack([rng.uniform(-1, 1, (700, 2)) / 2**0.5, np.ones(700)])
    V, w = next(row_map.blocks(X, rng.uniform(-1, 1, 700)))
    state = exact.empty()
    exact.add(state, V, w)
    work = FloatGradient(np.array(theta, float), loss, float(row_map.unit), row_map.target_limit, True)
    found, kind = work.empty(), np.float32 if single else np.float64
    work.add(found, V[:300].astype(kind), w[:300].astype(kind))
    other = work.empty()
    work.add(other, V[300:], w[300:], 2.0)
    work.add(other, V[300:], w[300:], np.full(400, -1.0))
    both = work.merge(found, other)
    np.testing.assert_allclose(
        both.gradient, [float(value) for value in exact.gradient(state)[0]], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(both.matrix, exact.second(state), rtol=1e-9, atol=1e-9)
    assert repr(found) == "<private floatsums>"
