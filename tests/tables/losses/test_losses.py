"""Losses: their constants attacked on fine grids at high precision, floats within proved errors, exact Hessians."""

import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from flint import arb, fmpq

from snugdp.numerics.balls import precision
from snugdp.tables.images import ImagePass, run
from snugdp.tables.losses.enclosures import float_error
from snugdp.tables.losses.losses import (
    Huber,
    LogCosh,
    Logistic,
    Loss,
    OneAgainst,
    PseudoHuber,
    SoftHinge,
    TamedPoisson,
    codes,
    counts,
    labels,
)
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.passes.derivatives.gradient import GradientEnclosure
from snugdp.tables.passes.derivatives.hessian import Curvatures, HessianEnclosure
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema
from tests.effort import often, repeated, sampled
from tests.tables.passes.derivatives.test_gradient import native as frame

LOSSES: list[Loss] = [
    Logistic(), SoftHinge("0.5"), SoftHinge("0.01"), PseudoHuber("0.3"), PseudoHuber(20), LogCosh("0.25"), LogCosh(40),
    TamedPoisson(5, 3), TamedPoisson(100, "0.2"), TamedPoisson("0.5", 1000), OneAgainst(Logistic(), 1, 4),
]  # fmt: skip
ONE = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y", intercept=False)
SCHEMA = Schema({"a": Number(-1, 1), "b": Number(0, 3), "y": Number(-2, 2)}, target="y")
THETA = (Fraction(3, 8), Fraction(-5, 2**20), Fraction(7, 4))
LIMIT = 1 << 20
TINY = arb(2) ** -200  # of balls at 400 bits


def at(value: Fraction | int | str) -> arb:
    return arb(fmpq(*Fraction(value).as_integer_ratio()))


def derivatives(loss: Loss, u: arb, y: arb | None = None) -> tuple[arb, arb]:
    """First and second derivative in the loss's own units, by independent formulas."""
    if isinstance(loss, OneAgainst):
        return derivatives(loss.loss, u)
    if isinstance(loss, TamedPoisson):
        rate = at(Fraction(str(loss.rate)))
        count = arb(0) if y is None else y
        if u.exp() < rate:
            return u.exp() - count, u.exp()
        return 2 * rate - rate * rate * (-u).exp() - count, rate * rate * (-u).exp()
    if isinstance(loss, Logistic | SoftHinge):
        h = at(Fraction(str(loss.h))) if isinstance(loss, SoftHinge) else arb(1)
        z = ((u - 1) / h if isinstance(loss, SoftHinge) else u) / 2
        return -(1 - z.tanh()) / 2, (1 - z.tanh() * z.tanh()) / (4 * h)
    c = at(loss.slope)
    v = u / c
    if isinstance(loss, PseudoHuber):
        return u / (1 + v * v).sqrt(), (1 + v * v).sqrt() ** -3
    return c * v.tanh(), 1 - v.tanh() * v.tanh()


def places(loss: Loss) -> list[Fraction]:
    """A fine grid around where the loss bends, and far out."""
    width = {SoftHinge: Fraction(str(getattr(loss, "h", 1))), TamedPoisson: Fraction(1)}.get(type(loss), loss.slope)
    middle = Fraction(1) if isinstance(loss, SoftHinge) else Fraction(0)
    if isinstance(loss, TamedPoisson):
        middle = Fraction(math.log(float(loss.curvature)))
    near = [middle + width * Fraction(k, 64) for k in range(-640, 641)]
    return near + [middle + s * width * Fraction(3, 2) ** k for k in range(5, 12) for s in (-1, 1)]


def sides(loss: Loss) -> list[arb | None]:
    return [None] if not isinstance(loss, TamedPoisson) else [at(0), at(str(loss.most)), at(str(loss.most)) / 3]


@sampled(12)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_constants_hold_on_a_fine_grid_and_are_not_loose(loss: Loss) -> None:
    steep = curved = bound = fast = Fraction(0)
    assert loss.log_lipschitz is not None
    assert loss.curvature_bound is not None
    with precision(400):
        last: arb | None = None
        for place, u in enumerate(points := places(loss)):
            for y in sides(loss):
                first, second = derivatives(loss, at(u), y)
                assert abs(first) <= at(loss.slope) + TINY
                assert second <= at(loss.curvature) + TINY
                assert at(loss.log_lipschitz) * abs(first) + second <= at(loss.curvature_bound) + TINY
                p, c0 = abs(first) / at(loss.slope), at(loss.c0)
                shape: Callable[[arb], arb] = {
                    "logistic": lambda p: p * (1 - p),
                    "log_cosh": lambda p: 1 - p * p,
                    "pseudo_huber": lambda p: (1 - p * p) * (1 - p * p).sqrt(),
                    "tamed_poisson": lambda p: 1 - p,
                }[loss.kind]
                assert second <= c0 * shape(p) + TINY
                steep = max(steep, Fraction(float(abs(first).mid())) / loss.slope)
                curved = max(curved, Fraction(float(second.mid())) / loss.curvature)
                total = at(loss.log_lipschitz) * abs(first) + second
                bound = max(bound, Fraction(float(total.mid())) / loss.curvature_bound)
            if last is not None and 0 < place <= 1280:
                change = abs(second.log() - last) / at(points[place] - points[place - 1])
                assert change <= at(loss.log_lipschitz) + TINY
                fast = max(fast, Fraction(float(change.mid())) / loss.log_lipschitz)
            last = second.log()
    assert min(steep, curved, bound, fast) > Fraction(97, 100)


@sampled(3)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_sign_of_the_slope_is_constant_where_the_kind_says_so(loss: Loss) -> None:
    with precision(100):
        signs = {derivatives(loss, at(u), y)[0] > 0 for u in places(loss) for y in sides(loss)}
    assert (len(signs) == 1) == (loss.kind == "logistic")


def whole_rows(seed: int, theta: float) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    spread = [(int(t), int(w)) for t, w in rng.integers(-LIMIT, LIMIT + 1, (150, 2))]
    near = rng.normal(size=60) * 10.0 ** rng.uniform(-6, 1, 60) / max(abs(theta), 1e-9)
    return spread + [(round(min(max(t, -1), 1) * LIMIT), LIMIT) for t in near] + [(0, 0), (LIMIT, -LIMIT)]


def argument(loss: Loss, theta: Fraction, t: int, w: int) -> tuple[Fraction, int]:
    u = theta * Fraction(t, LIMIT)
    if loss.classifies:
        mine = round((Fraction(w, LIMIT) + 1) * 3 / 2) == 1 if isinstance(loss, OneAgainst) else w > 0
        label = 1 if mine else -1
        return u * label, label
    return (u if counts(loss) else u - Fraction(w, LIMIT)), 1


@sampled(6)
@repeated
@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slopes_and_weights_of_single_rows_are_within_their_proved_errors(loss: Loss, level: int) -> None:
    for number, theta in enumerate([Fraction(5, 8), Fraction(987654321, 2**27), Fraction(0), Fraction(-3000001)]):
        work = GradientEnclosure(ONE, [theta], loss, level=level)
        second = HessianEnclosure(work)
        first_bound = float_error(loss) if level == 0 else Fraction(2)
        for t, w in whole_rows(number, float(theta))[:: often(9, 3) if level == 0 else often(22, 11)]:
            u, label = argument(loss, theta, t, w)
            V, y = np.array([[float(t)]]), np.array([float(w)])
            slopes, weights = work.empty(), second.empty()
            work.add(slopes, V, y)
            second.add(weights, V, y)
            with precision(400):
                count = at(str(loss.most)) * at(1 + Fraction(w, LIMIT)) / 2 if isinstance(loss, TamedPoisson) else None
                first, true = derivatives(loss, at(u), count)
                off = abs(slopes.sums[0] - label * t * first / at(loss.slope) * 2**work.slope_bits)
                assert off <= abs(t) * at(first_bound), (theta, t, w)
                gap = abs(second.gram(weights)[0][0] * at(second.unit) - true * at(Fraction(t, LIMIT) ** 2))
                assert gap <= at(second.error(weights)), (theta, t, w)


def gathered(work: HessianEnclosure, table: pl.DataFrame) -> Curvatures:
    return work.fold(work.empty(), nw.from_native(table, eager_only=True))


@pytest.mark.parametrize("loss", [Logistic(), TamedPoisson(4, 2), LogCosh("0.3")], ids=str)
@pytest.mark.parametrize("level", [0, 1])
def test_a_hessian_is_the_same_for_every_partition_and_after_packing(loss: Loss, level: int) -> None:
    work, table = HessianEnclosure(GradientEnclosure(SCHEMA, THETA, loss, level=level)), frame(300, 2)
    whole = work.gram(gathered(work, table))
    parts = [gathered(work, table[i::3]) for i in (2, 0, 1)]
    merged = work.merge(work.merge(parts[0], parts[1]), work.unpack(work.pack(parts[2])))
    assert work.gram(merged) == whole
    assert work.error(merged) == work.error(gathered(work, table))
    assert work.gram(Rows(table, SCHEMA).state(work)) == whole
    held = run(Rows(table, SCHEMA).state(ImagePass(SCHEMA)), pickle.loads(pickle.dumps(work)), 2)
    assert work.gram(held) == whole
    assert whole == [list(column) for column in zip(*whole, strict=True)]
    first = GradientEnclosure(SCHEMA, THETA, loss, level=level)
    with pytest.raises(ValueError, match="not statistics"):
        work.unpack(first.pack(first.empty()))


@pytest.mark.parametrize("loss", [Logistic(), SoftHinge("0.2"), TamedPoisson(4, 2), PseudoHuber("0.3")], ids=str)
def test_levels_of_a_hessian_agree_within_their_errors_with_floats(loss: Loss) -> None:
    table, found = frame(200, 3), []
    for level in (0, 1, 2):
        work = HessianEnclosure(GradientEnclosure(SCHEMA, THETA, loss, level=level))
        state = gathered(work, table)
        matrix = np.array([[value * work.unit for value in row] for row in work.gram(state)])
        found.append((matrix, work.error(state)))
    for (rough, error), (fine, small) in pairwise(found):
        assert sum((rough - fine).ravel() ** 2) <= (error + small) ** 2
        assert small < error / 2**40
    plain = GradientEnclosure(SCHEMA, THETA, loss, level=0, hessian=True)
    about = plain.second(plain.fold(plain.empty(), nw.from_native(table, eager_only=True)))
    assert np.allclose(found[0][0].astype(float), about, rtol=1e-12)


def test_a_point_that_floats_cannot_hold_goes_to_balls() -> None:
    fine = tuple(value + Fraction(1, 2**90) for value in THETA)
    work = HessianEnclosure(GradientEnclosure(SCHEMA, fine, Logistic()))
    assert work.weight_bits == 100
    state = gathered(work, frame(30, 4))
    near = HessianEnclosure(GradientEnclosure(SCHEMA, THETA, Logistic()))
    rough = near.gram(gathered(near, frame(30, 4)))
    assert float(work.gram(state)[0][0] * work.unit) == pytest.approx(float(rough[0][0] * near.unit), rel=1e-9)


def test_many_blocks_spill() -> None:
    schema = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y")
    work = HessianEnclosure(GradientEnclosure(schema, (Fraction(1, 2), Fraction(1, 4)), Logistic()))
    state, V = work.empty(), np.array([[float(LIMIT), float(LIMIT)]])
    for _ in range(1100):
        work.add(state, V, np.array([1.0]))
    alone = work.empty()
    work.add(alone, V, np.array([1.0]))
    assert work.gram(state)[0][1] == 1100 * work.gram(alone)[0][1]


def test_the_coarse_pass_knows_counts_and_classes() -> None:
    table = pl.DataFrame({"x": [0.5, -0.25, 1.0], "y": [-1.0, 1.0, 0.0]})
    for loss in (TamedPoisson(4, 2), OneAgainst(Logistic(), 1, 3), OneAgainst(SoftHinge("0.5"), 2, 3)):
        rough, fine = FixedGradient(ONE, (0.75,), loss), GradientEnclosure(ONE, (Fraction(3, 4),), loss)
        near = nw.from_native(table, eager_only=True)
        about = rough.gradient(rough.fold(rough.empty(), near))
        (true,), _ = fine.gradient(fine.fold(fine.empty(), near))
        assert float(true) == pytest.approx(about[0], abs=3 * float(loss.slope) * 2.0**-20)


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_codes_of_classes_are_read_back(classes: int) -> None:
    targets = np.array([-1 + 2 * k / (classes - 1) for k in range(classes)])
    w = np.trunc(targets * LIMIT)
    assert codes(w, LIMIT, classes).tolist() == list(range(classes))
    found = np.array([labels(OneAgainst(Logistic(), k, classes), w, LIMIT) for k in range(min(classes, 10))])
    assert found.sum(axis=1).tolist() == [2 - classes] * min(classes, 10)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TamedPoisson(0, 1), "most must be between"),
        (lambda: TamedPoisson(1, 10**9), "rate must be between"),
        (lambda: OneAgainst(Logistic(), 3, 3), "place"),
        (lambda: OneAgainst(Logistic(), 0, 1), "2 to 1000 classes"),
        (lambda: OneAgainst(LogCosh(1), 0, 2), "Logistic or SoftHinge"),  # type: ignore[arg-type]
        (lambda: HessianEnclosure(GradientEnclosure(SCHEMA, THETA, Huber(1))), "continuous"),
    ],
)
def test_bad_losses_are_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make()
