"""More exact numbers: margins, posterior samples, sensitivities of models, sums over rows, labels from votes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special, stats

from snugdp.accounting.objective.run import RunCost
from snugdp.audit.density import gaussian_pair
from snugdp.certify.smooth import SmoothBound, smooth_bound
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.mechanisms.components import gap_test
from snugdp.mechanisms.linear import ridge_test
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.linear.posterior import PosteriorSampling
from snugdp.mechanisms.linear.ridge_test import RidgeCertificate
from snugdp.mechanisms.teachers.loss import closed
from snugdp.mechanisms.teachers.smooth_test import SmoothTest
from snugdp.mechanisms.teachers.table import UNIT, loss_table
from snugdp.secrecy.secret import Secret
from snugdp.tables.limits import Limits
from snugdp.tables.passes.moments import Moments
from snugdp.tables.schema.schema import Number, Schema

Numbers = Iterator[tuple[str, float, float]]


def margins() -> Numbers:
    """Noise and margins of the tests of curvatures, residuals and gaps."""
    one = Fraction(1)
    for failure in (Fraction(1, 10**6), Fraction(1, 20)):
        small = float(failure) * (1 + 1e-6)
        for mu in (Fraction(1, 4), one):
            sigma, _, margin = ridge_test.spread(one, Fraction(0), mu, failure)
            yield f"noise for mu {float(mu):g}", float(sigma * mu), 1.0
            yield f"a ridge's bound at {float(failure):g}", small, float(stats.norm.sf(float(margin / sigma)))
        test = gap_test.PairTest(2, 4, one, failure, Fraction(0))
        off = 10 - test.certified(Fraction(10))
        yield f"a gap's bound at {float(failure):g}", small, float(stats.norm.sf(float(off / test.sigma)))
        gaps = gap_test.certified_gaps([Fraction(9), Fraction(5), Fraction(1)], one, failure, 2, Fraction(0))
        smooth = _smooth_margin(failure)
        yield f"a smooth bound at {float(failure):g}", float(failure) / 2 * (1 + 1e-6), float(stats.norm.sf(smooth))
        tail = sum(float(stats.norm.sf(float(4 - gap) / math.sqrt(2))) for gap in gaps)
        yield f"all gaps' bounds at {float(failure):g}", small, tail


class Still:
    """No noise at all: what is left of a bound is its margin."""

    private = False

    def add(self, value: Secret[Any], law: Any, *, grid: int = 0, stretch: Any = None) -> Fraction:
        """The value."""
        inside: list[Fraction] = []
        value.map(inside.append)
        return inside[0]


def _smooth_margin(failure: Fraction) -> float:
    """The margin of a bound by smooth sensitivity, in deviations of the noise of the loss."""
    bound: SmoothBound[int] = smooth_bound(
        lambda _: 1.0,
        lambda _: 0.5,
        beta="0.000001",
        sigma=4,
        sigma_scale=1,
        order=2,
        delta=2 * failure,
        between=(0.25, 1.0),
        neighbours=Neighbours.ADD_REMOVE,
    )
    still: Any = Still()
    return (bound.certify(Secret(0), still) - 1.0) / (4 * 0.5)


def samples() -> Numbers:
    """One posterior sample on rows (1, 1) and with one row (1, -1) more, beside what is claimed for the release."""
    schema = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y", intercept=False)
    for epsilon, delta in ((1, Fraction(1, 20)), (4, Fraction(1, 10**6))):
        method = PosteriorSampling(Design.of(schema), Budget(epsilon, delta), ridge=2)
        split = method._test.split
        mu, slack = math.sqrt(split.mu_release_squared), float(split.slack)
        for rows in (3, 98):
            theta = rows / (rows + 2)
            gamma = method._sampler.allowed(RidgeCertificate(float(rows), 2.0, 1 + theta))
            if gamma is None:
                continue
            here = theta, 1 / math.sqrt(float(gamma) * (rows + 2))
            there = (rows - 1) / (rows + 3), 1 / math.sqrt(float(gamma) * (rows + 3))
            for name, one, other in (("more", here, there), ("less", there, here)):
                for at in (0.0, epsilon / 2, float(epsilon)):
                    claimed = _gaussian(mu, at) + slack
                    yield f"one row {name} of {rows} at {at:g}", claimed, gaussian_pair.delta(one, other, at)


def _gaussian(mu: float, epsilon: float) -> float:
    return float(stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu))


def residuals(posterior: Any) -> Numbers:
    """A row (1, -1) beside rows (1, 1): how far the solution and the size of its residuals go when it leaves."""
    for rows, ridge in ((1, 1.0), (4, 2.0), (40, 0.5)):
        rest = (rows - 1) / (ridge + rows - 1)
        held = (rows - 2) / (ridge + rows) if rows > 1 else -1 / (ridge + 1)
        moved = abs(math.log1p(abs(rest)) - math.log1p(abs(held)))
        yield f"residual, {rows} rows", float(posterior.log_lipschitz_sensitivity(1, ridge, rows)), moved
        size = 1 + abs(held)
        sensitivity = float(posterior.output_sensitivity(1, ridge, rows, size))
        yield f"solution, {rows} rows", sensitivity, abs(rest - held)
        farther = (rows + 1) / (ridge + rows + 1), rows / (ridge + rows)
        yield f"solution and a row more, {rows} rows", sensitivity, abs(farther[0] - farther[1])


def moments() -> Numbers:
    """Sums at the limits of floats and of 64 bits, and what one row moves them by."""
    limits = Limits(1, 1 << 52, 1)
    block = min(limits.rows_per_block, 3)
    for size, rows in (((1 << 26) - 1, 3 * block), (1 << 26, 3000)):
        sums = Moments(limits)
        for start in range(0, rows, block):
            part = np.full((min(block, rows - start), 1), float(size))
            sums.add(part, part, np.ones(len(part)))
        off = abs(sums.gram()[0][0] - rows * size**2)
        yield f"sum of {rows} squares of {size}, and not less", 0.0, float(off)
    both = Limits(2, 100, 5)
    for name, gram, cross in (("add_remove", 100**2, 2500), ("replace", 2 * 100**2, 4 * 2500)):
        found = both.sensitivity(name)
        yield f"X'X, {name}", found.gram_squared, gram
        yield f"X'y, {name}", found.cross_squared, cross


def projectors() -> Numbers:
    """How far a row of length 1 turns the leading eigenvector in the plane, by search over its direction."""
    angles = np.linspace(0, math.pi, 20_001)
    for gap in (1.5, 3.0, 40.0):
        turned = np.abs(np.arctan2(np.sin(2 * angles), gap + np.cos(2 * angles))) / 2
        moved = math.sqrt(2) * float(np.sin(turned).max())
        yield f"gap {gap:g}", float(gap_test.sensitivity_above(Fraction(gap))), moved
        one, other = np.meshgrid(angles[::50], angles[::50])
        across, along = np.sin(2 * one) - np.sin(2 * other), 2 * gap + np.cos(2 * one) - np.cos(2 * other)
        moved = math.sqrt(2) * float(np.sin(np.abs(np.arctan2(across, along)) / 2).max())
        yield f"gap {2 * gap:g}, a row replaced", gap_test.sensitivity(2 * gap, "replace") or math.inf, moved


def labels() -> Numbers:
    """The Renyi loss of a label of two classes: when a vote moves, comes or goes."""
    orders = (1.5, 5.0, 22.0, 50.0)
    for sigma, lead in ((1.5, 16), (10.0, 0), (10.0, 100), (40.0, 60)):
        log_q = stats.norm.logsf(lead / (math.sqrt(2) * sigma))
        table = loss_table(sigma, orders).at(np.array([log_q]))[0] * UNIT
        for order, listed in zip(orders, table.tolist(), strict=True):
            exact = max(_renyi(lead, lead + move, sigma, order) for move in (-2, -1, 1, 2))
            yield f"lead {lead}, noise {sigma:g}, order {order:g}", float(closed(log_q, sigma, order)), exact
            yield f"the same in the table, {lead}, {sigma:g}, {order:g}", listed, exact


def _renyi(lead: int, other: int, sigma: float, order: float) -> float:
    """Of the winner of two at this lead from that at another one."""
    terms = []
    for sign in (1, -1):
        p, q = (float(stats.norm.logcdf(sign * gap / (math.sqrt(2) * sigma))) for gap in (lead, other))
        terms.append(order * p + (1 - order) * q)
    return max(0.0, float(np.logaddexp(terms[0], terms[1])) / (order - 1))


def smooth_votes() -> Numbers:
    """The smooth sensitivity of the loss of labels: how fast it moves, and what it must cover."""
    order = Fraction(22)
    test = SmoothTest(
        sigma=Fraction("13.79"),
        order=order,
        beta=Fraction(1, 110),
        sigma_loss=Fraction(10),
        sigma_scale=Fraction(10),
        limit=Fraction(1),
        delta=Fraction(1, 10**5),
        failure=Fraction(1, 10**6),
        teachers=400,
        queries=1,
        classes=2,
    )
    found = {lead: np.array([[200 + lead, 200 - lead]]) for lead in range(0, 200, 1) if lead % 8 < 2}
    for lead in (lead for lead in found if lead + 1 in found):
        here, there = (test.sensitivity(found[place]) for place in (lead, lead + 1))
        yield f"smoothness at lead {2 * lead}", float(test.beta) * (1 + 1e-6), abs(math.log(here / there))
        moved = abs(test.loss(found[lead]) - test.loss(found[lead + 1]))
        yield f"local sensitivity at lead {2 * lead}", min(here, there) * (1 + float(test.beta)), moved


def objectives() -> Numbers:
    """One perturbed objective with one coefficient: no row against one row, at every place of its loss."""
    for kappa, m in itertools.product((0.2, 1.0, 4.0), (0.3, 1.0)):
        square, ratio = Fraction(m) ** 2, Fraction(kappa)
        runs = {
            "Huber": (RunCost(square, ratio, "sign_changing").atom, _huber),
            "log-cosh": (RunCost(square, ratio, "class_t").atom, _log_cosh),
            "logistic": (RunCost(square, ratio).atom, _logistic),
        }
        for name, (atom, loss) in runs.items():
            cost = Cost(atoms=(atom,))
            for centre in (0.0, 1.5):
                alone, beside = _densities(loss, 1 / kappa, 1 / m, centre)
                for epsilon in (0.5, 1.0, 2.0):
                    claimed = cost.delta_at(epsilon) + 1e-6
                    for way, (p, q) in {"more": (alone, beside), "less": (beside, alone)}.items():
                        exact = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                        yield f"{name}, kappa {kappa:g}, m {m:g}, one row {way} at {epsilon:g}", claimed, exact


def _densities(loss: Any, ridge: float, sigma: float, centre: float) -> tuple[Any, Any]:
    """The laws of the minimiser on a fine grid, from the normal law of the tilt and the slope of the gradient."""
    theta = np.linspace(-14 * sigma / ridge - 2, 14 * sigma / ridge + 2, 200_001)
    slope, curvature = loss(theta - centre)
    step = theta[1] - theta[0]
    alone = stats.norm.pdf(ridge * theta / sigma) / sigma * ridge * step
    beside = stats.norm.pdf((ridge * theta + slope) / sigma) / sigma * (ridge + curvature) * step
    return alone, beside


def _huber(u: Any) -> tuple[Any, Any]:
    return np.clip(u, -1, 1), (np.abs(u) <= 1).astype(np.float64)


def _log_cosh(u: Any) -> tuple[Any, Any]:
    return np.tanh(u), 1 - np.tanh(u) ** 2


def _logistic(u: Any) -> tuple[Any, Any]:
    p = special.expit(-u)
    return -p, p * (1 - p)
