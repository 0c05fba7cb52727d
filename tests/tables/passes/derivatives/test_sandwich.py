"""Both matrices of a robust covariance: exact sums, and how far one row moves them together."""

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, PseudoHuber, TamedPoisson
from snugdp.tables.passes.derivatives.glm import SLOPE_BITS, FixedGradient
from snugdp.tables.passes.derivatives.sandwich import SandwichPass
from snugdp.tables.schema.schema import Boolean, Number, Schema
from tests.effort import sampled

LOSSES: dict[str, Any] = {
    "line": LogCosh(0.3),
    "clipped": Huber(0.3),
    "labels": Logistic(),
    "counts": TamedPoisson(10, 5),
}
THETA = [0.7, -0.4, 0.2]


def work(name: str) -> SandwichPass:
    target: Any = {"line": Number(-1, 1), "clipped": Number(-1, 1), "labels": Boolean(), "counts": Number(0, 10)}[name]
    schema = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": target}, target="y")
    return SandwichPass(FixedGradient(schema, THETA, LOSSES[name]))


def rows(name: str, n: int) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    even = rng.uniform(-1, 1, n)
    y = {"line": even, "clipped": even, "labels": rng.random(n) < 0.5, "counts": rng.integers(0, 11, n).astype(float)}
    return pl.DataFrame({"a": rng.uniform(-1, 1, n), "b": rng.uniform(-1, 1, n), "y": y[name]})


def matrices(name: str, frame: pl.DataFrame) -> np.ndarray:
    own = work(name)
    return np.array(own.matrices(own.fold(own.empty(), nw.from_native(frame, eager_only=True))), dtype=object)


@pytest.mark.parametrize("name", LOSSES)
def test_they_are_the_hessian_and_the_squares_of_gradients(name: str) -> None:
    frame, own = rows(name, 500), work(name)
    X, y = next(own.schema.blocks(nw.from_native(frame, eager_only=True)))
    assert y is not None
    linear = X @ np.array(THETA)
    if name in ("line", "clipped"):
        p = np.tanh((linear - y) / 0.3) if name == "line" else np.clip((linear - y) / 0.3, -1, 1)
        first, second = 1 - p**2, 0.3 * p
    elif name == "labels":
        q = 1 / (1 + np.exp(-linear))
        first, second = q * (1 - q), q - (y > 0)
    else:
        first, second = np.exp(linear), np.exp(linear) - (y + 1) * 5
    for found, unit, weight in zip(matrices(name, frame), own.units, (first, second**2), strict=True):
        assert found.astype(float) * float(unit) == pytest.approx((X.T * weight) @ X, rel=2e-3, abs=0.5)
        assert (found == found.T).all()


@pytest.mark.parametrize("name", LOSSES)
def test_the_order_and_the_cuts_do_not_matter(name: str) -> None:
    frame = rows(name, 9000)
    whole = matrices(name, frame)
    assert (matrices(name, frame[::-1]) == whole).all()
    assert (matrices(name, frame[:1]) + matrices(name, frame[1:]) == whole).all()


@sampled(3)
@pytest.mark.parametrize("name", LOSSES)
def test_one_row_moves_both_by_no_more_than_the_limit(name: str) -> None:
    """Rows at their bounds, with every slope that there is."""
    own = work(name)
    corners = [(a, b, y) for a in (-1.0, 1.0) for b in (-1.0, 1.0) for y in rows(name, 40)["y"]]
    squares = [
        sum(int(n) ** 2 for n in matrices(name, pl.DataFrame([row], schema=["a", "b", "y"], orient="row")).ravel())
        for row in corners
    ]
    assert max(squares) <= own.limit_squared
    assert max(squares) > own.limit_squared / 4, "the limit is no larger than it has to be"


def test_all_slopes_obey_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    slopes = np.arange(2**SLOPE_BITS + 1, dtype=np.float64)
    for name in LOSSES:
        own = work(name)
        roots = np.ones_like(slopes)
        monkeypatch.setattr(FixedGradient, "derivatives", lambda self, V, w, roots=roots: (slopes, roots))
        first, second = own._weights(slopes, slopes)
        assert min(first.min(), second.min()) >= 0
        assert (first**2 + second**2).max() <= 4**12, name


def test_other_losses_are_refused() -> None:
    with pytest.raises(TypeError, match="log-cosh, logistic and Poisson"):
        SandwichPass(FixedGradient(work("line").schema, THETA, PseudoHuber(0.3)))
