"""The fine gradient: its proved error attacked with balls, row by row, and the same numbers for every partition."""

import math
import pickle
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from flint import arb, fmpq

from snugdp.numerics.balls import precision
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.tables.images import FiledBlock, ImagePass
from snugdp.tables.images import run as run_images
from snugdp.tables.losses.enclosures import float_error
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, Loss, PseudoHuber, SoftHinge
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure, Slopes
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema
from tests.effort import often, repeated, sampled

ONE = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y", intercept=False)
SCHEMA = Schema({"a": Number(-1, 1), "b": Number(0, 3), "y": Number(-2, 2)}, target="y")
THETA = (Fraction(3, 8), Fraction(-5, 2**30), Fraction(7, 4))
LOSSES: list[Loss] = [
    LogCosh("0.25"), LogCosh("0.001"), LogCosh(40), PseudoHuber("0.3"), PseudoHuber("0.000001"), Huber("0.2"),
    Huber("0.007"), Logistic(), SoftHinge("0.5"), SoftHinge("0.0001"),
]  # fmt: skip


def true_slope(loss: Loss, u: Fraction) -> arb:
    """An independent formula, at 300 bits."""
    x = arb(fmpq(u.numerator, u.denominator))
    if isinstance(loss, SoftHinge):
        x = (x - 1) / arb(fmpq(*Fraction(str(loss.h)).as_integer_ratio()))
    if loss.classifies:
        return -(1 - (x / 2).tanh()) / 2
    v = x / arb(fmpq(*loss.slope.as_integer_ratio()))
    if isinstance(loss, Huber):
        return arb(1) if v > 1 else arb(-1) if v < -1 else v
    if isinstance(loss, PseudoHuber):
        return v / (1 + v**2).sqrt()
    return 1 - 2 / ((2 * v).exp() + 1)


def rows_for(loss: Loss, theta: Fraction, seed: int) -> Iterator[tuple[int, int]]:
    """Integer rows (t, w) of the grid of 20 bits: spread, near the corners of the loss, where an exponential is cut."""
    rng = np.random.default_rng(seed)
    one, scale = 1 << 20, float(loss.slope / loss.curvature)
    for _ in range(100):
        yield int(rng.integers(-one, one + 1)), int(rng.integers(-one, one + 1))
    wanted = [0.0, scale, -scale, 60 * scale, 61 * scale, 120 * scale]
    wanted += [k * math.log(2) * scale / 2 for k in range(-20, 90)]
    wanted += (scale * rng.normal(size=60) * 10.0 ** rng.uniform(-6, 2, 60)).tolist()
    for u in wanted:
        t = int(rng.integers(one // 2, one))
        for shift in (-1, 0, 1):
            w = round(t * float(theta) - u * one) + shift
            if abs(w) <= one:
                yield t, w
            at = u + 1 if isinstance(loss, SoftHinge) else u
            reached = round(at * one / float(theta)) + shift if loss.classifies and theta else one + 1
            if abs(reached) <= one:
                yield reached, one - 2 * one * (shift > 0)


@sampled(21)
@repeated
@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_row_is_within_the_proved_error(loss: Loss, level: int) -> None:
    worst = Fraction(0)
    thetas = [Fraction(5, 8), Fraction(-987654321, 2**30), Fraction(10**9 + 7), Fraction(3, 2**47), Fraction(0)]
    for number, theta in enumerate(thetas if level == 0 else thetas[:2]):
        work = GradientEnclosure(ONE, [theta], loss, level=level)
        bound = float_error(loss) if level == 0 else Fraction(2)
        for t, w in list(rows_for(loss, theta, number))[:: often(3, 1) if level == 0 else 7]:
            state = work.empty()
            work.add(state, np.array([[float(t)]]), np.array([float(w)]))
            u = theta * Fraction(t, 2**20) - Fraction(w, 2**20)
            label = 1 if w > 0 else -1
            u = label * theta * Fraction(t, 2**20) if loss.classifies else u
            with precision(300):
                true = true_slope(loss, u) * (label if loss.classifies else 1)
                off = abs(state.sums[0] - t * true * 2**work.slope_bits)
                assert off <= abs(t) * arb(fmpq(*bound.as_integer_ratio())), (theta, t, w)
                worst = max(worst, Fraction(float(off.upper()) / max(1, abs(t))))
    rough = isinstance(loss, Huber) or loss.curvature > 100  # so steep that few rows lie where it bends
    assert worst > Fraction(2, 5) or rough  # no less than what rounding alone costs


def test_a_point_finer_than_level_0_takes_is_paid_for() -> None:
    fine = tuple(value + Fraction(1, 2**60) for value in THETA)
    frame = made(400, 3)
    for loss in (LogCosh("0.25"), Huber("0.2")):
        coarse, exact = GradientEnclosure(SCHEMA, fine, loss), GradientEnclosure(SCHEMA, fine, loss, level=1)
        rough, error = coarse.gradient(coarse.fold(coarse.empty(), frame))
        true, small = exact.gradient(exact.fold(exact.empty(), frame))
        assert small < error / 2**40
        plain = GradientEnclosure(SCHEMA, THETA, loss)
        assert error > plain.gradient(folded(plain, frame))[1]
        assert distance(rough, true) <= error + small


def made(n: int, seed: int) -> nw.DataFrame[Any]:
    return nw.from_native(native(n, seed), eager_only=True)


def native(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {"a": rng.uniform(-1.2, 1.2, n), "b": rng.uniform(-1, 4, n), "y": rng.standard_t(2, n)}
    for column in columns.values():
        column[rng.random(n) < 0.03] = rng.choice([math.nan, math.inf, -math.inf, 1e308, 5e-324])
    return pl.DataFrame(columns)


def folded(work: GradientEnclosure, frame: nw.DataFrame[Any]) -> Slopes:
    return work.fold(work.empty(), frame)


def distance(one: list[Fraction], other: list[Fraction]) -> Fraction:
    square = sum(((a - b) ** 2 for a, b in zip(one, other, strict=True)), Fraction(0))
    return Fraction(math.isqrt(math.ceil(square * 4**200)), 2**200)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_levels_agree_within_their_errors_and_errors_shrink(loss: Loss) -> None:
    frame = made(300, 1)
    results = [
        (w := GradientEnclosure(SCHEMA, THETA, loss, level=level)).gradient(folded(w, frame)) for level in range(3)
    ]
    for (rough, error), (fine, small) in pairwise(results):
        assert small < error / 2**40
        assert distance(rough, fine) <= error + small


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("loss", [LogCosh("0.25"), Huber("0.2"), Logistic()], ids=str)
def test_every_order_partition_and_block_gives_the_same_bytes(loss: Loss, level: int) -> None:
    work = GradientEnclosure(SCHEMA, THETA, loss, level=level)
    table = native(500, 2)
    expected = work.pack(folded(work, nw.from_native(table, eager_only=True)))
    rng = np.random.default_rng(5)
    for _ in range(4):
        mixed = table[rng.permutation(500).tolist()]
        cuts = [0, *sorted(rng.integers(0, 500, 3).tolist()), 500]
        total = work.empty()
        for start, stop in pairwise(cuts):
            part = folded(work, nw.from_native(mixed[start:stop], eager_only=True))
            total = work.merge(work.unpack(work.pack(part)), total)
        assert work.pack(total) == expected
    keep = ImagePass(SCHEMA)
    images = keep.fold(keep.empty(), nw.from_native(table, eager_only=True))
    assert work.pack(run_images(images, work, 2)) == expected
    copy = pickle.loads(pickle.dumps(work))
    assert copy.pack(folded(copy, nw.from_native(table, eager_only=True))) == expected
    with pytest.raises(ValueError, match="damaged"):
        work.unpack(expected[:-1] + bytes([expected[-1] ^ 1]))


def test_the_hessian_is_that_of_the_loss() -> None:
    loss, frame = LogCosh("0.25"), made(2000, 4)
    work = GradientEnclosure(SCHEMA, THETA, loss, hessian=True)
    parts = [(V.copy(), w.copy()) for X, y in SCHEMA.blocks(frame) for V, w in work.row_map.blocks(X, y)]
    V, w = (np.concatenate(part) * float(work.row_map.unit) for part in zip(*parts, strict=True))
    weight = 1 / np.cosh((V @ np.array([float(value) for value in THETA]) - w) / 0.25) ** 2
    state = folded(work, frame)
    np.testing.assert_allclose(work.second(state), (V * weight[:, None]).T @ V, rtol=1e-9)
    copy = work.merge(work.unpack(work.pack(state)), work.empty())
    np.testing.assert_array_equal(copy.second, state.second)
    assert copy.count == 2000


def test_rows_kept_in_memory_give_the_same_and_room_is_bounded() -> None:
    table = native(9000, 6)
    work = GradientEnclosure(SCHEMA, THETA, LogCosh("0.25"))
    rows = Rows(table, SCHEMA)
    before = work.pack(rows.state(work))
    images = rows.images()
    assert images is not None
    assert images.complete
    assert images.count == 9000
    assert work.pack(rows.state(work)) == before
    V, w, weights = images.sample(1000)
    assert 900 <= len(V) == len(w) == weights.sum() <= 3000
    small = ImagePass(SCHEMA, share=20_000)
    part = small.fold(small.empty(), nw.from_native(table[:2000], eager_only=True))
    total = small.merge(part, small.fold(small.empty(), nw.from_native(table[2000:], eager_only=True)))
    assert total.complete
    assert total.count == 9000
    assert any(isinstance(block, FiledBlock) for block in total.blocks)
    assert total.size <= 40_000
    assert repr(total) == "<private images>"
    with pytest.raises(TypeError, match="stay"):
        small.pack(total)


def test_what_goes_wrong_in_memory_is_not_told() -> None:
    class Broken(GradientEnclosure):
        def add(self, state: Slopes, V: Any, w: Any) -> None:
            raise ValueError("somebody's value")

    rows = Rows(native(10, 1), SCHEMA)
    rows.images()
    with pytest.raises(PrivateComputationError) as caught:
        rows.state(Broken(SCHEMA, THETA, LogCosh(1)))
    assert caught.value.__context__ is None
    assert "somebody" not in str(caught.value)


def test_what_is_refused() -> None:
    class Unknown(LogCosh):
        pass

    assert float_error(Unknown(1)) == 3
    with pytest.raises(ValueError, match="3 entries"):
        GradientEnclosure(SCHEMA, THETA[:2], LogCosh(1))
    with pytest.raises(ValueError, match="dyadic"):
        GradientEnclosure(SCHEMA, (*THETA[:2], Fraction(1, 3)), LogCosh(1))
    with pytest.raises(ValueError, match="level"):
        GradientEnclosure(SCHEMA, THETA, LogCosh(1), level=-1)
    with pytest.raises(ValueError, match="target"):
        GradientEnclosure(Schema({"a": Number(0, 1)}), THETA, LogCosh(1))
    with pytest.raises(TypeError, match="LogCosh"):
        GradientEnclosure(SCHEMA, THETA, object())  # type: ignore[arg-type]
