"""The test by smooth sensitivity for noisy labels, refusing, with one conversion for everything.

Proof: ``smooth_test.proof.md``. Usually the test by distance is far cheaper: this one is the paper's, made honest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.accounting import renyi
from snugdp.accounting.gaussian import positive, threshold
from snugdp.certify.bound import BoundTest
from snugdp.certify.smooth import SmoothBound
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.mechanisms.teachers.ball import Floats, Integers, gaps, log_miss
from snugdp.mechanisms.teachers.loss import ceiling, closed
from snugdp.mechanisms.teachers.table import MARGIN, STEP, UNIT
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret

THEOREM = theorem("labels-smooth/1")
ORDERS = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 14.0, 17.0, 20.0, 24.0, 28.0, 34.0, 40.0)
_SHRINK = 1 - 2.0**-20  # of beta, so that S as computed is beta-smooth
_GROW = 1 + 2.0**-30  # of S, for the floats in it
_HIGHEST = 2**11  # nats: floats hold the loss of a label to a unit up to here
_REST = 2.0**-38  # of the largest loss, added to S for the floats in the loss


@dataclass(frozen=True)
class SmoothTest:
    """Pass iff a private upper bound on the labels' loss at ``order`` is at most ``limit``. All fields are public.

    The loss gets Gaussian noise of ``sigma_loss`` times its beta-smooth sensitivity, the logarithm of which gets
    Gaussian noise of ``sigma_scale`` times beta. The bound is too small with probability at most ``failure``.

    Guarantee: the labels, if this test passes, and nothing otherwise, cost ``cost`` altogether
    (``smooth_test.proof.md``, Theorem 1).
    """

    sigma: Fraction
    order: Fraction
    beta: Fraction
    sigma_loss: Fraction
    sigma_scale: Fraction
    limit: Fraction
    delta: Fraction
    failure: Fraction
    teachers: int
    queries: int
    classes: int
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        for name in ("sigma", "order", "beta", "sigma_loss", "sigma_scale", "limit", "delta", "failure"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        if not self.failure < self.delta < 1:
            raise ValueError("failure must be below delta, and delta below 1: a tenth of delta is typical")
        if min(self.teachers, self.queries) < 1 or self.classes < 2:
            raise ValueError("a test of labels needs at least one teacher, one query and two classes")
        if self.limit > _HIGHEST and self.order > _HIGHEST * self.sigma**2:
            raise ValueError("sigma is too small for this limit: floats do not hold such losses to a unit")
        if self._bound.order != self.order:  # making the bound refuses an order that is too high for beta
            raise ValueError("order is too high for beta")

    @property
    def release(self) -> Fraction:
        """The Renyi divergence of the test's own two numbers, rounded up."""
        loss = renyi.smooth_gaussian(self.order, self.beta, self.sigma_loss)
        return rational(loss, "rho") + self.order / (2 * self.sigma_scale**2)

    @property
    def epsilon(self) -> float:
        """Of the whole release at ``delta``: the limit, the test, and one conversion; rounded up."""
        return renyi.epsilon(self.order, self.limit + self.release, self.delta - self.failure)

    @property
    def cost(self) -> Cost:
        """What test and labels cost together."""
        return Cost(epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)

    def passes(self, data: Secret[Integers], noise: Noise) -> bool:
        """One draw of the test."""
        return BoundTest(self._bound, lambda bound: bound, self.limit).passes(data, noise.at("test"))

    def loss(self, votes: Integers) -> float:
        """The labels' loss, a little above. It is private."""
        return total_loss(votes, float(self.sigma), float(self.order), self.teachers) + self.queries * UNIT

    def sensitivity(self, votes: Integers) -> float:
        """The smooth sensitivity of the loss, a little above. It is private."""
        sums = local_sums(votes, float(self.sigma), float(self.order), self.teachers)
        found = smooth_sensitivity(sums, float(self.beta) * _SHRINK)
        return float(found) * _GROW + self._largest * _REST

    @property
    def _largest(self) -> float:
        return self.queries * float(ceiling(float(self.sigma), float(self.order)))

    @property
    def _bound(self) -> SmoothBound[Integers]:
        return SmoothBound(
            loss=self.loss,
            sensitivity=self.sensitivity,
            beta=self.beta,
            sigma=self.sigma_loss,
            sigma_scale=self.sigma_scale,
            order=self.order,
            conversion=self.delta - self.failure,
            failure=self.failure,
            floor=self._largest * _REST,
            ceiling=self._largest * (1 + 2.0**-20),
            neighbours=self.neighbours,
        )


def smooth_plan(
    profile: Integers,
    *,
    sigma: Real,
    delta: Real,
    teachers: int,
    chance: float = 0.9,
    orders: tuple[float, ...] = ORDERS,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> SmoothTest:
    """The test whose whole release is cheapest among those that public votes like ``profile`` pass with this chance.

    ``profile`` has one public histogram for every query: a belief, or the votes of a public proxy, never the votes
    themselves. The numbers are searched on two grids; each is rounded to a few digits, so that it can be read.
    """
    votes = np.asarray(profile, dtype=np.int64)
    spread, failure = float(positive(sigma, "sigma")), float(positive(delta, "delta"))

    def cheapest(candidates: Sequence[float], knots: int) -> dict[str, float]:
        found = (_best_at(order, votes, teachers, spread, failure, chance=chance, knots=knots) for order in candidates)
        return min(found, key=itemgetter("epsilon"))

    first = cheapest(orders, 14)["order"]
    best = cheapest([order for order in (first * np.linspace(0.85, 1.15, 5)).tolist() if order > 1.2], 36)
    return SmoothTest(
        **{name: _short(value) for name, value in best.items() if name != "epsilon"},
        sigma=rational(sigma, "sigma"),
        delta=rational(delta, "delta"),
        teachers=teachers,
        queries=len(votes),
        classes=votes.shape[-1],
        neighbours=neighbours,
    )


def conversion(order: ArrayLike, delta: float) -> Floats:
    """What turning a divergence at this order into an epsilon at ``delta`` adds.

    >>> conversion([1.5, 4.0], 1e-5).round(9).tolist()
    [21.116308425, 3.087861629]
    """
    alpha = np.asarray(order, dtype=np.float64)
    added: Floats = (-math.log(delta) - np.log(alpha)) / (alpha - 1) + np.log1p(-1 / alpha)
    return added


def _best_at(
    order: float, votes: Integers, teachers: int, sigma: float, delta: float, *, chance: float, knots: int
) -> dict[str, float]:
    """The best numbers at one order, on a grid of beta, both noises and the failure probability; and their epsilon."""
    loss = total_loss(votes, sigma, order, teachers)
    sums = local_sums(votes, sigma, order, teachers)
    farthest = -math.log1p(-1 / order) / 2
    beta = (farthest * np.geomspace(0.03, 0.97, knots))[:, None, None, None]
    scale = np.geomspace(0.7, 40, knots)[:, None, None] * math.sqrt(order)
    spread = np.geomspace(0.5, 40, knots)[:, None] * math.sqrt(order)
    share = np.array([0.03, 0.1, 0.2, 0.4])
    sensitivity = smooth_sensitivity(sums, beta)
    over = _quantiles(beta * scale, share, delta, chance)
    limit = loss + sensitivity * spread * over
    room = 1 - order * -np.expm1(-2 * beta)
    own = order * np.exp(-2 * beta) / (2 * spread**2 * room) + (-2 * order * beta - np.log(room)) / (2 * (order - 1))
    left = np.array([float(conversion(order, delta * (1 - part))) for part in share])
    total = limit + own + order / (2 * scale**2) + np.maximum(left, 0.0)
    at = np.unravel_index(int(np.argmin(total)), total.shape)
    return {
        "epsilon": float(total[at]),
        "order": order,
        "beta": float(beta[at[0], 0, 0, 0]),
        "sigma_loss": float(spread[at[2], 0]),
        "sigma_scale": float(scale[at[1], 0, 0]),
        "failure": delta * float(share[at[3]]),
        "limit": float(limit[at]) * 1.0005,
    }


def _quantiles(widths: Floats, shares: Floats, delta: float, chance: float) -> Floats:
    """How far above the loss the bound is, in deviations of its noise, with this chance; by interpolation."""
    knots = np.linspace(math.log(1e-4), math.log(20.0), 120)
    at = np.clip(np.log(widths), knots[0], knots[-1])
    found = [np.interp(at, knots, _knots(float(share * delta), chance)) for share in shares]
    return np.concatenate(found, axis=-1)


@lru_cache(maxsize=64)
def _knots(failure: float, chance: float) -> Floats:
    """Quantiles of N + k exp(a (N' + k)) at the knots of log a."""
    from scipy.special import ndtr

    k = threshold(1, rational(failure, "failure") / 2)
    width = np.exp(np.linspace(math.log(1e-4), math.log(20.0), 120))[:, None]
    normal = np.linspace(-8, 8, 401)
    weight = np.exp(-(normal**2) / 2)
    centre = k * np.exp(np.minimum(width * (normal + k), 300.0))
    low, high = np.zeros(len(width)), centre[:, -1] + 9
    for _ in range(200):
        middle = (low + high) / 2
        reached = (ndtr(middle[:, None] - centre) * weight).sum(axis=1) / weight.sum() >= chance
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def _short(value: float) -> Fraction:
    """A number near by with six digits: proposals are public and meant to be read."""
    return Fraction(f"{value:.6g}")


# --- smooth sensitivity of the labels' Renyi loss: how much one teacher can change it, here and within d moves ---
# Proof: smooth.proof.md. The nodes of the table are even in the normal quantile, so that what one moved vote can do is
# always the same number of nodes; the envelope (a running maximum) makes the sensitivity monotone in q.


Positions = NDArray[np.intp]
Loss: TypeAlias = Callable[[Floats, float, float], Floats]  # of one label, from log q, sigma and the order

_MIN_QUANTILE = -59.0  # quantile below which nothing is told apart
_NODES = 30_000  # about: a move is cut into so many parts that there are not more nodes
_BLOCK = 1 << 21  # entries of one temporary array


@dataclass(frozen=True, eq=False)
class Envelope:
    """The loss at ``nodes`` of log q, and the most that one move changes it at this node or below.

    Guarantee: for neighbours the position of q differs by at most ``reach`` (``smooth.proof.md``, Lemma 1), ``loss``
    and ``most`` do not fall, and ``loss`` is at least the divergence from every neighbour. Public.
    """

    nodes: Floats
    loss: Floats
    most: Floats
    reach: int
    full: int  # the first position from which the loss is the worst case everywhere

    def position(self, log_q: Floats, moves: int | Integers = 0) -> Positions:
        """The first node that is not below log q, with room for the error of floats."""
        raised = log_q + (np.expand_dims(np.asarray(moves), -1) + 1) * STEP
        found = np.full(raised.shape, len(self.nodes) - 1)
        inner = raised <= self.nodes[-2]
        found[inner] = np.searchsorted(self.nodes, raised[inner])
        return found

    def local(self, position: Positions, origin: Positions, moves: Integers) -> Floats:
        """The most that one move changes the loss within so many moves; ``origin`` is the position at no moves."""
        most = self.most[position]
        lowest = origin - np.expand_dims(moves, -1) * self.reach  # where q can get to
        inside = lowest > self.full
        if inside.any():
            below = self.loss[np.maximum(lowest - self.reach, 0)]
            most = np.where(inside, np.minimum(most, self.loss[-1] - below), most)
        return most


@lru_cache(maxsize=128)
def envelope(sigma: float, order: float, teachers: int, classes: int, loss: Loss = closed) -> Envelope:
    """The table for these public numbers, made once."""
    from scipy.special import log_ndtr, ndtri

    if teachers < 1 or classes < 2 or not sigma > 0 or not order > 1:
        raise ValueError("smooth sensitivity needs a teacher, two classes, a sigma above 0 and an order above 1")
    move = math.sqrt(2.0) / sigma
    top = float(ndtri(1 / classes))
    lowest = min(max(-(teachers + 1) * move / 2, _MIN_QUANTILE), top - move)
    parts = int(np.clip(_NODES * move / (top - lowest + move), 16, 512))
    count = math.ceil((top - lowest) / move * parts) + 1
    quantiles = top - np.arange(count)[::-1] * (move / parts)
    nodes = np.minimum(log_ndtr(quantiles) + math.log(classes - 1), math.log1p(-1 / classes))
    values = np.minimum(loss(nodes, sigma, order) * (1 + MARGIN), ceiling(sigma, order))
    values = np.maximum.accumulate(values)
    nodes[-1] = 0.0  # answers for everything
    reach, at = parts + 1, np.arange(count)
    up = values[np.minimum(at + reach, count - 1)] - values
    down = values - values[np.maximum(at - reach, 0)]
    full = int(np.argmax(values >= values[-1]))
    return Envelope(nodes, values, np.maximum.accumulate(np.maximum(up, down)), reach, full)


def local_sums(votes: Integers, sigma: float, order: float, teachers: int, loss: Loss = closed) -> Floats:
    """What one teacher can change of the loss of all labels within d moves, for d = 0 .. teachers. Private."""
    rows, counts = np.unique(np.sort(votes, axis=-1), axis=0, return_counts=True)
    table = envelope(sigma, order, teachers, votes.shape[-1], loss)
    leads = gaps(rows)
    origin = table.position(log_miss(leads, sigma))
    sums = np.empty(teachers + 1)
    step = max(1, _BLOCK // leads.size)
    for start in range(0, teachers + 1, step):
        moves = np.arange(start, min(start + step, teachers + 1))
        position = table.position(log_miss(leads, sigma, moves), moves)
        sums[moves] = (table.local(position, origin, moves) * counts).sum(axis=-1)  # summed in pairs
    return sums


def smooth_sensitivity(sums: Floats, beta: ArrayLike) -> Floats:
    """The largest of e^(-beta d) times the sum at d; one for each beta.

    Guarantee: S(X) <= e^beta S(X') for neighbours and S bounds the local sensitivity, up to the rounding of floats
    (``smooth.proof.md``, Theorem 1).
    """
    moves = np.arange(len(sums))
    found: Floats = (np.exp(-np.asarray(beta, dtype=np.float64)[..., None] * moves) * sums).max(axis=-1)
    return found


def total_loss(votes: Integers, sigma: float, order: float, teachers: int) -> float:
    """The loss of all labels together, on the nodes of the envelope. Private: this file bounds its sensitivity."""
    table = envelope(sigma, order, teachers, votes.shape[-1])
    return float(table.loss[table.position(log_miss(gaps(votes), sigma))].sum())
