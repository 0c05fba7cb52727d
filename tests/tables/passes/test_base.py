"""Passes over tables: every order, partition and container gives the same numbers, and they are the right ones."""

import math
import pickle
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp.tables.losses.losses import LogCosh, Logistic, Loss, PseudoHuber, SoftHinge
from snugdp.tables.passes.base import Pass
from snugdp.tables.passes.columns.exponential_grid import GridCounts
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.passes.vectors.distances import NormPass, ResidualHistogramPass, RowSumPass, ScalePass
from snugdp.tables.passes.vectors.moments import GramPass, Moments
from snugdp.tables.schema.schema import Boolean, Category, Number, Schema
from tests.effort import often, repeated, sampled

SCHEMA = Schema(
    {
        "age": Number(0, 100),
        "income": Number(-5, 5),
        "city": Category(["Rome", "Oslo"]),
        "member": Boolean(),
        "y": Number(-2, 2),
    },
    target="y",
)
THETA = (0.5, -1.25, 0.1, 2.0, -0.3, 0.7)
LOSSES: list[Loss] = [Logistic(), SoftHinge("0.5"), PseudoHuber("0.3"), LogCosh("0.7")]
STRANGE = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -2.5e-310]


def table(seed: int, n: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {"age": rng.uniform(-10, 120, n), "income": rng.standard_normal(n) * 4, "y": rng.standard_normal(n)}
    for column in numbers.values():
        some = rng.random(n) < 0.05
        column[some] = rng.choice(STRANGE, some.sum())
    return pl.DataFrame(
        {
            **numbers,
            "city": rng.choice(["Rome", "Oslo", "Paris"], n).tolist(),
            "member": [(True, False, None)[i] for i in rng.integers(0, 3, n)],
        },
        schema={"age": pl.Float64, "income": pl.Float64, "y": pl.Float64, "city": pl.String, "member": pl.Boolean},
    )


def frame(native: Any) -> nw.DataFrame[Any]:
    return nw.from_native(native, eager_only=True)


def passes() -> list[Any]:
    return [
        GramPass(SCHEMA),
        GramPass(Schema(SCHEMA.columns, target=None, intercept=False, norm="0.6"), bits=12),
        *(FixedGradient(SCHEMA, THETA, loss) for loss in LOSSES),
        ScalePass(SCHEMA, THETA),
        ResidualHistogramPass(SCHEMA, THETA),
        RowSumPass(SCHEMA),
        NormPass(SCHEMA),
        GridCounts(("age", "y")),
    ]


def name_of(work: Any) -> str:
    return f"{type(work).__name__}-{getattr(work, 'loss', '')}"


@sampled(11)
@repeated
@pytest.mark.parametrize("work", passes(), ids=name_of)
def test_every_order_partition_and_container_gives_the_same_bytes(work: Pass[Any]) -> None:
    rows = table(1, 700)
    whole = work.pack(work.fold(work.empty(), frame(rows)))
    rng = np.random.default_rng(2)
    containers = (lambda part: part, lambda part: part.to_pandas(), lambda part: part.to_arrow(), lambda part: part)
    for shuffle in range(often(4, 8, 100) if isinstance(work, GramPass) else often(4, 8, 15)):
        shuffled = rows[rng.permutation(len(rows))]
        cuts = [0, *np.sort(rng.integers(0, len(rows) + 1, int(rng.integers(0, 64)))).tolist(), len(rows)]
        total = work.empty()
        for start, stop in pairwise(cuts):
            part = frame(containers[shuffle % 4](shuffled[start:stop]))
            if rng.random() < 0.3:
                total = work.fold(total, part)
            else:
                state = work.fold(work.empty(), part)
                total = work.merge(total, work.unpack(work.pack(state)) if rng.random() < 0.5 else state)
        assert work.pack(total) == whole


def test_the_gram_matrix_is_that_of_the_scaled_rows() -> None:
    rows = table(3, 500)
    work = GramPass(SCHEMA)
    X, y = SCHEMA.vectors(frame(rows))
    assert y is not None
    state, unit = work.fold(work.empty(), frame(rows)), float(work.row_map.unit) ** 2
    assert np.allclose(np.array(state.gram(), dtype=np.float64) * unit, X.T @ X, atol=1e-5 * len(rows))
    assert np.allclose(np.array(state.cross(), dtype=np.float64) * unit, X.T @ y, atol=1e-5 * len(rows))
    assert state.gram()[-1][-1] == len(X) << (2 * work.row_map.bits)  # the intercept is exact
    assert state.count() == len(X) == len(rows) - rows["y"].is_nan().sum() - rows["y"].null_count()


def test_norm_shortens_the_features_and_leaves_the_intercept() -> None:
    rows = pl.DataFrame({"age": [100.0], "income": [5.0], "y": [0.0], "city": ["Rome"], "member": [True]})
    work = GramPass(Schema(SCHEMA.columns, target="y", norm="0.5"))
    gram = np.array(work.fold(work.empty(), frame(rows)).gram(), dtype=np.float64) * float(work.row_map.unit) ** 2
    assert gram[-1, -1] == 1
    assert 0.2499 < np.trace(gram[:-1, :-1]) <= 0.25


def derivatives(loss: Loss, u: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """First and second derivative by the formulas of a textbook."""
    if isinstance(loss, Logistic):
        p = 1 / (1 + np.exp(u))
        return -p, p * (1 - p)
    if isinstance(loss, SoftHinge):
        h = float(loss.h)
        p = 1 / (1 + np.exp((u - 1) / h))
        return -p, p * (1 - p) / h
    c = float(loss.slope)
    if isinstance(loss, PseudoHuber):
        return u / np.sqrt(1 + (u / c) ** 2), (1 + (u / c) ** 2) ** -1.5
    return c * np.tanh(u / c), np.cosh(u / c) ** -2.0


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivatives_and_their_bounds(loss: Loss) -> None:
    u = np.concatenate([np.linspace(-20, 20, 4001), [0.0, -0.0, 1e-300, 300.0, -300.0]])
    slope, root = loss.parts(u)
    first, second = derivatives(loss, u)
    assert np.allclose(slope * float(loss.slope), first, atol=1e-13)
    assert np.allclose(root**2 * float(loss.curvature), second, atol=1e-13)
    assert np.abs(slope).max() <= 1
    assert 0 <= root.min() <= root.max() <= 1
    assert root.max() > 0.999  # the bounds are reached
    far = loss.parts(np.array([-1e150, 1e20, 1e-320]))
    assert np.isfinite(far).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_gradient_is_that_of_the_loss(loss: Loss) -> None:
    rows = table(4, 400)
    work = FixedGradient(SCHEMA, THETA, loss)
    X, y = SCHEMA.vectors(frame(rows))
    assert y is not None
    label = np.where(y > 0, 1.0, -1.0) if loss.classifies else np.ones(len(y))
    first, _ = derivatives(loss, X @ np.array(THETA) * label if loss.classifies else X @ np.array(THETA) - y)
    state = work.fold(work.empty(), frame(rows))
    assert np.allclose(work.gradient(state), X.T @ (first * label), atol=1e-5 * len(rows))
    assert state.count() == len(rows)


@sampled(4)
@repeated
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_one_row_moves_a_gradient_by_no_more_than_it_may(loss: Loss) -> None:
    work = FixedGradient(SCHEMA, tuple(40 * value for value in THETA), loss)
    bound = work.limits.sensitivity("add_remove")
    for row in table(5, often(60, 200)).iter_slices(1):
        state = work.fold(work.empty(), frame(row))
        assert sum(n * n for n in state.cross()) <= bound.cross_squared


def test_the_point_is_theta_to_fifty_bits() -> None:
    assert FixedGradient(SCHEMA, THETA, Logistic()).point == pytest.approx(THETA, rel=0, abs=2.0**-48)
    assert FixedGradient(SCHEMA, (1, -1, 0.5, 0, 2, -3), Logistic()).point == (1, -1, 0.5, 0, 2, -3)
    for theta in ((0.0,) * 6, (5e-324,) * 6, (2.0**100,) * 6, (-1e30, 1, 1, 1, 1, 1)):
        work = FixedGradient(SCHEMA, theta, PseudoHuber())
        state = work.fold(work.empty(), frame(table(6, 50)))
        assert np.isfinite(work.gradient(state)).all()


def test_x_theta_is_exact_before_it_is_rounded() -> None:
    """Cancellation to the last digit: huge coefficients whose sum vanishes on the row."""
    schema = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y", intercept=False)
    work = FixedGradient(schema, (2.0**60, -(2.0**60) + 2.0**20), PseudoHuber())
    rows = pl.DataFrame({"a": [0.5], "b": [0.5], "y": [0.0]})
    (V, w), *_ = work.row_map.blocks(*schema.vectors(frame(rows)))
    exact = V[0, 1] * 2.0**20 * float(work.row_map.unit)
    high, low = (V @ np.array(work._limbs, dtype=np.float64).T)[0]
    assert (high * 2.0**25 + low) * math.ldexp(1.0, -work._point_bits - work.row_map.bits) == exact
    assert w[0] == 0


@pytest.mark.parametrize("work", passes(), ids=name_of)
def test_a_pass_is_public_and_picklable(work: Any) -> None:
    again = pickle.loads(pickle.dumps(work))
    rows = frame(table(7, 60))
    assert again == work
    assert again.pack(again.fold(again.empty(), rows)) == work.pack(work.fold(work.empty(), rows))
    empty = work.fold(work.empty(), frame(table(7, 0)))
    assert work.pack(empty) == work.pack(work.empty())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GramPass(SCHEMA, bits=40), "fewer bits"),
        (lambda: FixedGradient(Schema({"x": Number(0, 1)}), (1, 2), Logistic()), "target"),
        (lambda: FixedGradient(SCHEMA, (1, 2), Logistic()), "6 entries"),
        (lambda: FixedGradient(SCHEMA, (math.nan,) * 6, Logistic()), "finite"),
        (lambda: FixedGradient(SCHEMA, (1e99,) * 6, Logistic()), "2\\*\\*100"),
        (lambda: PseudoHuber(0), "between"),
        (lambda: SoftHinge(math.inf), "finite"),
    ],
)
def test_what_is_wrong_in_public_is_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_states_of_different_passes_do_not_merge() -> None:
    with pytest.raises(ValueError, match="different grids"):
        GramPass(SCHEMA).merge(GramPass(SCHEMA).empty(), GramPass(SCHEMA, bits=3).empty())
    assert isinstance(GramPass(SCHEMA).empty(), Moments)
