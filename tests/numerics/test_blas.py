"""The guard under exact sums: numpy's products pass, whatever the threads; fast and short products are refused."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from snugdp.numerics import blas
from snugdp.numerics.blas import gram_is_exact, products_are_exact, require_exact_gram, require_exact_products
from snugdp.numerics.threads import one_blas_thread
from snugdp.tables.layouts.boxes import BoxSchema
from snugdp.tables.losses.losses import Logistic
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure
from snugdp.tables.passes.derivatives.hessian import HessianEnclosure
from snugdp.tables.passes.derivatives.softmax import SoftmaxGradient
from snugdp.tables.passes.vectors.distances import ScalePass
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.passes.vectors.scores import ScorePass
from snugdp.tables.rowmap import RowLimits, RowMap
from snugdp.tables.schema.schema import Number, Schema
from tests.effort import sampled
from tests.numerics.fast_products import (
    Product,
    inner_step,
    levelled,
    recursive,
    rounded_first,
    rounded_last,
    shuffled,
    single,
    split,
    strassen_step,
    winograd_step,
)

STEPS = {"Strassen": strassen_step, "Winograd": winograd_step}
SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-1, 1)}, target="y")


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    with threadpool_limits(request.param, user_api="blas"):
        yield request.param


@pytest.fixture
def afresh() -> Iterator[None]:
    """Nothing was looked at before, and what was found here is forgotten."""
    for looked_at in (blas._exact_products, blas._exact_gram):
        looked_at.cache_clear()
    yield
    for looked_at in (blas._exact_products, blas._exact_gram):
        looked_at.cache_clear()


def limit_block(seed: int, rows: int, d: int) -> Any:
    """Whole numbers whose sums of squares come near 2**53."""
    top = int(np.sqrt(2**53 / rows))
    return np.random.default_rng(seed).integers(top * 7 // 8, top, (rows, d))


@sampled(3)
@pytest.mark.parametrize(("rows", "d"), [(8192, 1), (8192, 2), (2, 5), (1, 1), (1999, 56), (1024, 257)])
def test_numpy_is_exact_in_every_shape(rows: int, d: int, threads: int) -> None:
    assert gram_is_exact(np.dot, rows, d)
    for shape in ((1, rows, d), (rows, d, 1), (1, rows, 1), (3, rows, d), (rows, d, 2), (d, rows, d)):
        assert products_are_exact(np.dot, *shape)
    assert products_are_exact(
        lambda a, b: np.einsum("...j,j...->...", a, b) if a.ndim == b.ndim == 1 else a @ b, 1, 9, 1
    )


@sampled(3)
@pytest.mark.parametrize("sizes", [(2, 2048, 5), (8, 1024, 20), (32, 500, 71), (64, 300, 131)])
@pytest.mark.parametrize("levels", [1, 2, 9])
@pytest.mark.parametrize("step", STEPS)
def test_fast_products_are_refused(step: str, levels: int, sizes: tuple[int, int, int]) -> None:
    cutoff, rows, d = sizes
    fast = recursive(STEPS[step], cutoff, levels)
    for product in (fast, levelled(fast), shuffled(fast, d), shuffled(levelled(fast), d)):
        assert not gram_is_exact(product, rows, d)
        assert not products_are_exact(product, d, rows, d)


@sampled(2)
@pytest.mark.parametrize(("cutoff", "d"), [(128, 257), (512, 1025)])
@pytest.mark.parametrize("step", STEPS)
def test_fast_products_of_wide_tables_are_refused(step: str, cutoff: int, d: int) -> None:
    fast = recursive(STEPS[step], cutoff)
    assert not gram_is_exact(fast, 1024, d)
    assert not gram_is_exact(levelled(fast), 1024, d)
    assert gram_is_exact(fast, 1024, 100)  # which it does in the plain way


@sampled(2)
@pytest.mark.parametrize("step", STEPS)
def test_fast_products_are_refused_whatever_their_order_and_signs(step: str) -> None:
    """They are wrong on most blocks near the limit, and the guard finds it for every one of them."""
    wrong = 0
    for seed in range(40):
        fast = shuffled(recursive(STEPS[step], 8, 1 + seed % 3), seed)
        block = limit_block(seed, 700, 21)
        wrong += not np.array_equal(fast(block.T.astype(float), block.astype(float)), block.T @ block)
        assert not gram_is_exact(fast, 700, 21)
        assert not gram_is_exact(levelled(fast), 700, 21)
        assert not products_are_exact(fast, 21, 700, 21)
    assert wrong > 20


def test_sums_along_the_rows_are_refused() -> None:
    for levels in (1, 2):
        assert not gram_is_exact(recursive(inner_step, 8, levels), 8192, 20)
        for seed in range(10):
            assert not products_are_exact(shuffled(recursive(inner_step, 8, levels), seed), 20, 1024, 20)


@pytest.mark.parametrize(
    "product",
    [single, rounded_first(11), rounded_first(24), rounded_last(24), rounded_last(52), split(8, 3), split(24, 2)],
    ids=["single", "TF32", "single, then double", "single at last", "52 bits", "BF16x3", "two singles"],
)
def test_short_formats_are_refused(product: Product, threads: int) -> None:
    for rows, d in ((8192, 1), (1024, 20), (100, 150)):
        assert not gram_is_exact(product, rows, d)
    for shape in ((1, 8192, 1), (1, 1024, 20), (1024, 20, 2), (1024, 1, 2), (3, 1024, 1), (20, 1024, 20)):
        assert not products_are_exact(product, *shape)


def test_one_wrong_entry_is_seen() -> None:
    for place in ((0, 0), (7, 12), (19, 19)):

        def almost(a: Any, b: Any, place: tuple[int, int] = place) -> Any:
            found = np.dot(a, b)
            found[place] = np.nextafter(found[place], np.inf)
            return found

        assert not gram_is_exact(almost, 1024, 20)
        assert not products_are_exact(almost, 20, 1024, 20)
    assert not gram_is_exact(lambda a, b: np.dot(a, b) * np.nan, 8, 2)


def test_rows_that_a_step_would_add_have_different_scales() -> None:
    for name in ("rows", "left", "right", "between"):
        scales = blas._scales(2000, name)
        assert (scales[1:] != scales[:-1]).all()
        for d in range(2, 300):
            assert all((scales[: d - h] != scales[h:d]).any() for h in range(1, d // 2 + 1)), d
        assert all((scales[:-h] != scales[h:]).mean() > 0.8 for h in range(1, 1000))


def test_each_shape_is_looked_at_once_for_each_number_of_threads(monkeypatch: pytest.MonkeyPatch, afresh: None) -> None:
    seen: list[Any] = []

    def looks(product: Any, *shape: int) -> bool:
        seen.append(shape)
        return True

    monkeypatch.setattr(blas, "gram_is_exact", looks)
    monkeypatch.setattr(blas, "products_are_exact", looks)
    for _ in range(3):
        require_exact_gram(100, 3)
        require_exact_products((1, 100, 3), (1, 100, 1))
        with one_blas_thread():
            require_exact_gram(100, 3)
    assert seen == [(100, 3), (1, 100, 3), (1, 100, 1), (100, 3)]


@pytest.mark.parametrize("guard", ["gram_is_exact", "products_are_exact"])
def test_moments_need_both(guard: str, monkeypatch: pytest.MonkeyPatch, afresh: None) -> None:
    monkeypatch.setattr(blas, guard, lambda product, *shape: False)
    with pytest.raises(RuntimeError, match="not an exact sum"):
        Moments(RowLimits(2, 100, 10))


def test_every_pass_asks(monkeypatch: pytest.MonkeyPatch, afresh: None) -> None:
    monkeypatch.setattr(blas, "gram_is_exact", lambda product, *shape: True)
    zero, loss = [Fraction(0)] * 3, Logistic()
    fine = GradientEnclosure(SCHEMA, zero, loss)
    asking: list[Any] = [
        lambda: next(RowMap(2, 1).blocks(np.ones((1, 2)), None)),
        fine.empty,
        HessianEnclosure(fine).empty,
        SoftmaxGradient(SCHEMA, zero * 2, 2).empty,
        ScalePass(SCHEMA).empty,
        ScorePass(BoxSchema(("a", "b"), x_bound=1, y_bound=1)).empty,
        FixedGradient(SCHEMA, [0.0] * 3, loss).empty,
    ]
    for ask in asking:
        ask()
    blas._exact_products.cache_clear()
    monkeypatch.setattr(blas, "products_are_exact", lambda product, *shape: False)
    for ask in asking:
        with pytest.raises(RuntimeError, match="not an exact sum"):
            ask()
