"""The loss of one noisy argmax, attacked: brute force over moves, the exact law, and Arb."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

from snugdp.mechanisms.teachers import loss
from snugdp.mechanisms.teachers.ball import gaps, log_miss
from snugdp.mechanisms.teachers.table import STEP, UNIT, LossTable, loss_table
from snugdp.numerics import balls
from snugdp_studies.paper.pate.renyi import theorem6
from tests.effort import often, repeated, sampled
from tests.mechanisms.noisy_votes import histograms, largest_loss, moved, phi

ORDERS = (1.05, 1.5, 3.0, 8.0, 22.0, 46.0, 100.0)
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def tight(log_q: ArrayLike, sigma: float, order: ArrayLike, cells: int = 400) -> Floats:
    """The optimum J over a grid of ``cells`` parts of q, from above in every cell (``loss.proof.md``, Theorem 2)."""
    logs = np.asarray(log_q, dtype=np.float64)[..., None]
    order = np.asarray(order, dtype=np.float64)[..., None]
    shares = np.linspace(-38.0, math.log(0.5), cells // 2)
    with np.errstate(divide="ignore"):
        below = np.concatenate([[-np.inf], shares, loss.log1mexp(shares)[::-1], [0.0]])
    x1, z2 = loss.sides(logs, below)
    m = math.sqrt(2.0) / sigma
    x = order * loss.log1mexp(logs) + (1 - order) * loss.log_rest(x1, z2, m)
    y = loss.log_moment(x1, z2, m, order)
    found = loss.log_sum(x[..., :-1], y[..., 1:]).max(axis=-1) / (order[..., 0] - 1)
    bounded: Floats = np.clip(found, 0.0, loss.ceiling(sigma, order[..., 0]))
    return bounded


@sampled(4)
@pytest.mark.parametrize(("total", "classes", "sigma"), [(12, 2, 2.0), (9, 3, 1.5), (6, 4, 4.0), (5, 5, 9.0)])
def test_the_ball_is_the_largest_within_its_moves_and_is_nested(total: int, classes: int, sigma: float) -> None:
    rows = {row: float(log_miss(gaps(np.array([row])), sigma)[0]) for row in histograms(total, classes)}
    for row in rows:
        reach = {row}
        leads = gaps(np.array([row]))
        for d in range(4):
            most = float(log_miss(leads, sigma, d)[0])
            largest = max(rows[other] for other in reach)
            assert largest <= most + 1e-12
            if 2 * d <= leads[0, 0]:
                assert largest == pytest.approx(most, abs=1e-12)  # not only a bound
            others = log_miss(gaps(np.array(list(moved(row)))), sigma, d + 1)
            assert (most + (d + 1) * STEP <= others + (d + 2) * STEP).all()
            reach = {after for before in reach for after in moved(before, abstain=False)}


def test_special_functions_are_as_accurate_as_the_proofs_assume() -> None:
    points = np.concatenate([np.linspace(-59, 8, 300), -np.geomspace(1e-9, 50, 100), np.geomspace(1e-9, 20, 100)])
    logs = log_ndtr(points)
    back = ndtri_exp(logs)
    worst_log, worst_back = 0.0, 0.0
    with balls.precision(800):
        for x, value, inverse in zip(points, logs, back, strict=True):
            true = phi(arb(float(x))).log()
            worst_log = max(worst_log, float(abs(arb(float(value)) / true - 1)) / max(1.0, x * x))
            if -1745 < value < -1e-3:
                z, at = arb(float(inverse)), phi(arb(float(inverse)))
                slope = (-(z**2) / 2).exp() / (2 * arb.pi()).sqrt() / at
                off = float(abs((at.log() - arb(float(value))) / slope))
                worst_back = max(worst_back, off / max(1.0, abs(float(inverse))))
    assert worst_log < 2**-51
    assert worst_back < 2**-50


def random_cases(count: int, seed: int) -> Iterator[tuple[list[int], float, float]]:
    """Histograms with ties, unit gaps and long tails; noises and orders."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        classes = int(generator.integers(2, 7))
        top = int(generator.integers(1, 60))
        shape = generator.choice(["tie", "unit", "random"])
        rest = generator.integers(0, top + 1, classes - 1)
        if shape != "random":
            rest[0] = top - (shape == "unit")
        yield [top, *rest.tolist()], float(np.exp(generator.uniform(0, 3.4))), float(generator.choice(ORDERS[:-1]))


def check(cases: Iterator[tuple[list[int], float, float]], factor: float) -> tuple[int, int]:
    """How often the exact loss is above the tight one (times a factor), and above it in the other direction."""
    above, reverse = 0, 0
    for votes, sigma, order in cases:
        log_q = log_miss(gaps(np.array([votes])), sigma)[0]
        there, back = largest_loss(votes, sigma, order)
        least, closed = float(tight(log_q, sigma, order)), float(loss.closed(log_q, sigma, order))
        stored = float(loss_table(sigma, (order,)).at(np.array([log_q + STEP]))[0, 0]) * UNIT
        above += there > factor * min(least, closed, stored) * (1 + 1e-9)
        reverse += back > min(least, stored) * (1 + 1e-9)
        assert stored <= min(closed, order / sigma**2) * 1.2 + 8 * UNIT
        assert there <= theorem6(log_q, sigma, order) * (1 + 1e-9)
    return above, reverse


@repeated
def test_the_exact_loss_is_below_every_bound() -> None:
    above, reverse = check(random_cases(often(12, 40, 70), 1), 1.0)
    assert above == 0
    assert reverse > 0  # the bounds are for one order of the pair: the other one is larger at times


@pytest.mark.slow
def test_half_the_loss_is_too_little() -> None:
    above, _ = check(random_cases(25, 2), 0.5)
    assert above > 3


@sampled(4)
@pytest.mark.parametrize("sigma", [3.0, 13.8, 48.6])
def test_tight_is_below_closed_and_theorem6(sigma: float) -> None:
    logs = -np.geomspace(0.11, 1500, 60)[:, None]
    fine, closed = tight(logs, sigma, ORDERS, 4000), loss.closed(logs, sigma, ORDERS)
    best = np.minimum(fine, closed)
    assert (best[:, 1:] <= theorem6(logs, sigma, ORDERS)[:, 1:] * (1 + 1e-9)).all()
    assert (np.diff(closed, axis=0) <= 1e-15).all()  # q falls along the rows
    assert (tight(logs, sigma, ORDERS, 400) >= fine * (1 - 1e-9)).all()


def at_points(log_q: float, sigma: float, order: float, shares: list[float]) -> arb:
    """The largest of S + W at some parts of q, in Arb; J is at least this."""
    m, alpha, q = arb(2).sqrt() / arb(sigma), arb(order), arb(log_q).exp()
    best = arb(0)
    for share in shares:
        a = q * arb(share)
        x1, z2 = (-arb(2).sqrt() * (2 * part).erfcinv() for part in (a, q - a))
        s = phi(x1 - m) + phi(z2 + m)
        w = (alpha * (alpha - 1) * m**2 / 2).exp() * (phi(x1 + (alpha - 1) * m) + phi(z2 - (alpha - 1) * m))
        value = (1 - q) ** alpha * (1 - s) ** (1 - alpha) + w
        best = value if value > best else best
    return best.log() / (alpha - 1)


def dense(table: LossTable, positions: Integers, column: int) -> NDArray[np.float64]:
    """The optimum at nodes of a table, from below, by many parts of q."""
    v = np.linspace(-36, 36, 2001)
    order, m = table.orders[column], math.sqrt(2) / table.sigma
    logs = table.nodes[positions][:, None]
    x1, z2 = loss.sides(logs, np.concatenate([[-np.inf], -np.logaddexp(0.0, -v), [0.0]]))
    first = order * loss.log1mexp(logs) + (1 - order) * loss.log_rest(x1, z2, m)
    values: NDArray[np.float64] = loss.log_sum(first, loss.log_moment(x1, z2, m, order)).max(axis=1) / (order - 1)
    return values


@sampled(4)
@pytest.mark.parametrize("sigma", [2.0, 13.8, 48.6, 150.0])
def test_a_table_is_above_the_optimum_and_close_to_it(sigma: float) -> None:
    table = loss_table(sigma, ORDERS)
    assert (np.diff(table.steps, axis=0) >= 0).all()
    assert (table.steps[-1] >= loss.ceiling(sigma, ORDERS) / UNIT).all()
    positions = np.linspace(len(table.nodes) - 1200, len(table.nodes) - 60, 40).astype(int)
    for column, order in enumerate(ORDERS):
        low = np.minimum(dense(table, positions, column), order / sigma**2)
        high = table.steps[positions, column] * UNIT
        assert (high >= low).all()
        assert (table.at(np.nextafter(table.nodes[positions], -1e4))[:, column] == table.steps[positions, column]).all()
        if order >= 3:
            counted = low > 1e-9
            assert np.median(high[counted] / low[counted], axis=0) < 1.04 if counted.any() else True


@pytest.mark.slow
@repeated
def test_entries_of_a_table_are_above_the_optimum_in_arb() -> None:
    shares = [1e-9, 0.03, 0.4, 0.5, 0.6, 0.95, 0.999, 1 - 1e-7]
    for sigma in (2.0, 20.0, 100.0):
        table = loss_table(sigma, ORDERS)
        for position in np.linspace(20, len(table.nodes) - 20, often(6, 12)).astype(int):
            with balls.precision(600):
                for column, order in enumerate(ORDERS):
                    true = at_points(float(table.nodes[position]), sigma, order, shares)
                    units = int(table.steps[position, column])
                    capped = units >= math.ceil(order / sigma**2 / UNIT)
                    assert capped or arb(units) * arb((1, -40)) >= true


def test_bad_tables_are_refused() -> None:
    for sigma, orders in ((0.0, (2.0,)), (1e-5, (2.0,)), (1.0, ()), (1.0, (1.0,)), (1.0, (2.0, 1001.0))):
        with pytest.raises(ValueError, match="a table of losses needs"):
            loss_table(sigma, orders)


@pytest.mark.parametrize("sigma", [1 / 16, 0.2, 0.35])
def test_losses_at_small_sigmas_fit_and_do_not_fall(sigma: float) -> None:
    table = loss_table(sigma, (1.05, 170.0, 500.0, 1000.0))
    assert (np.diff(table.steps, axis=0) >= 0).all()
    assert (table.steps > 0).all()
    ends = zip(table.steps[-1].tolist(), table.orders, strict=True)
    assert all(most >= Fraction(order) / Fraction(sigma) ** 2 * 2**40 for most, order in ends)


def test_more_classes_than_the_rounding_allows_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 65537 classes"):
        log_miss(np.zeros((1, (1 << 16) + 1), dtype=np.int64), 1.0)
