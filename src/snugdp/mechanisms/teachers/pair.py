"""What one noisy label gives away, exactly, and what many of them give away together. Proof: ``pair.proof.md``.

If the label misses the plurality with probability at most q = Phi(z), z <= 0, the pair of neighbours is dominated by
N(0, 1) against N(m, 1), m = sqrt(2)/sigma, of which everything between z and -z is seen as one symbol. So a sure
plurality gives away next to nothing, and nothing gives away more than the Gaussian mechanism does. Laws of
privacy losses live on a lattice, every loss split between the points next to it, and are composed by a Fourier
transform of the tilted law, so that errors are in proportion to the tail that is asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.teachers.ball import Floats, Integers

LEAST_SIGMA = 0.5
EPSILONS, DELTAS = (0.001, 50.0), (1e-15, 0.5)
_MAX_DEVIATIONS = 10.0  # deviations of a normal beyond which its mass counts as lost, or as a certain miss
_DECAY = 80.0  # the tilt over the width of the window
_FINE = 8  # points of the lattice for one m
_NODES = 400  # on the way from z = -_MAX_DEVIATIONS to z = 0
_MAX_TILT = 12.0  # the largest tilt: errors grow with it below epsilon
_MAX_POINTS = 1 << 15
_TINY_MASS = 1e-300
_HOPELESS = 300.0  # exponents from which on the bound is 1 by far
_BLOCK = 20  # rows of a sum at a time: the fewer sums in a row, the less rounding
_ROUNDING = 2.0**-42  # of the tilted tail, for every label: what floats and transforms may do
_MOST_QUERIES = 1 << 30


@dataclass(frozen=True)
class Profile:
    """The privacy profile of labels: an upper bound of delta at every epsilon, and what floats may have done to it."""

    losses: Floats
    above: Floats  # sums over the losses from here on: of the mass,
    shrunk: Floats  # and of the mass times exp(-loss)
    lost: float  # mass of infinite losses
    end: float  # not less than the mass above the window
    log_moment: float
    log_square: float
    tilt: float
    width: float
    unsure: float

    def delta(self, epsilon: Floats) -> Floats:
        """The bound at every epsilon, as floats compute it."""
        place = np.searchsorted(self.losses, epsilon, side="right")
        found: Floats = self.above[place] - np.exp(epsilon) * self.shrunk[place]
        bound: Floats = np.minimum(np.maximum(found, 0.0) + self.lost + self.end, 1.0)
        return bound

    def error(self, epsilon: Floats) -> Floats:
        """Not less than how far ``delta`` is from a bound that grows with every q; it grows with every q itself."""
        rounding = self.unsure * np.exp(np.minimum(self.log_moment - self.tilt * epsilon, 50.0))
        folded = np.minimum(self.log_square - 2 * self.tilt * epsilon - self.tilt * self.width, 50.0)
        most: Floats = rounding + 2 * np.exp(folded) + self.end
        return most


@dataclass(frozen=True)
class Composer:
    """All that is public of a composition: the noise, how many labels, and where accuracy is wanted.

    >>> composer = composer_for(40.0, 200, 1.0, 1e-5)
    >>> worst = composer.profile(np.array([composer.nodes - 1]), np.array([200.0]))  # no plurality anywhere
    >>> from snugdp.accounting import gaussian
    >>> bool(gaussian.delta(math.sqrt(400) / 40, 1) <= worst.delta(np.array([1.0]))[0])
    True
    """

    shift: float
    queries: int
    step: float
    size: int
    top: float
    tilt: float
    nodes: int
    rows: dict[int, tuple[NDArray[np.complex128], float, float, float]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def edges(self) -> Floats:
        """The z of every node, from a sure plurality to none."""
        return np.linspace(-_MAX_DEVIATIONS, 0.0, self.nodes)

    def node(self, log_q: Floats) -> Integers:
        """The first node at which a miss is at least as likely."""
        from scipy.special import log_ndtr

        place = np.searchsorted(log_ndtr(self.edges), log_q, side="left")
        found: Integers = np.minimum(place, self.nodes - 1).astype(np.int64)
        return found

    def profile(self, nodes: Integers, counts: Floats) -> Profile:
        """The profile of so many labels at each of these nodes, together."""
        self._prepare(nodes)
        rows = [self.rows[int(node)] for node in nodes]
        logs = np.array([row[0] for row in rows])
        parts = [counts[i : i + _BLOCK] @ logs[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK)]
        transform = np.exp(np.sum(parts, axis=0))
        moment, square, lost = (float(counts @ np.array([row[i] for row in rows])) for i in (1, 2, 3))
        tilted = np.maximum(np.fft.irfft(transform, self.size), 0.0)
        losses = self.step * np.arange(self._last - self.size + 1, self._last + 1, dtype=np.float64)
        mass = np.roll(tilted, self.size - 1 - self._last) * np.exp(np.minimum(moment - self.tilt * losses, _HOPELESS))
        end = math.exp(min(moment - self.tilt * self.top, 0.0))  # what lies beyond the window
        return Profile(
            losses,
            _sums(mass),
            _sums(mass * np.exp(-losses)),
            lost,
            end,
            moment,
            square,
            self.tilt,
            self.size * self.step,
            (self.queries + 64) * _ROUNDING / math.sqrt(-math.expm1(-2 * self.tilt * self.step)),
        )

    @property
    def _last(self) -> int:
        """The lattice point with which the window ends."""
        return math.floor(self.top / self.step)

    @property
    def _reach(self) -> int:
        """How many lattice points to either side one label needs."""
        return math.ceil((_MAX_DEVIATIONS * self.shift + self.shift**2) / self.step) + 1

    def _prepare(self, nodes: Integers) -> None:
        missing = [int(node) for node in np.unique(nodes) if int(node) not in self.rows]
        if not missing:
            return
        points = np.arange(-self._reach, self._reach + 1)
        mass, lost = pair(self.edges[missing], self.shift, self.step, self._reach)
        exponent = self.tilt * self.step * points
        tilted = mass * np.exp(exponent)
        moments, squares = tilted.sum(axis=1), (tilted * np.exp(exponent)).sum(axis=1)
        cells = np.zeros((len(missing), self.size))
        cells[:, points % self.size] = tilted / moments[:, None]
        values = np.fft.rfft(cells, axis=1)
        logs = np.log(np.where(values == 0, _TINY_MASS, values))  # a zero would spoil the product with every other law
        for row, node in enumerate(missing):
            self.rows[node] = (
                logs[row], float(np.log(moments[row])), float(np.log(squares[row])), float(lost[row]),
            )  # fmt: skip


def composer_for(sigma: float, queries: int, epsilon: float, delta: float) -> Composer:
    """The composition of so many labels, accurate near (epsilon, delta)."""
    if not sigma >= LEAST_SIGMA:
        raise ValueError(f"a test needs sigma of at least {LEAST_SIGMA} votes")
    if queries > _MOST_QUERIES:
        raise ValueError(f"a test takes at most {_MOST_QUERIES} queries; ask fewer")
    if not (EPSILONS[0] <= epsilon <= EPSILONS[1] and DELTAS[0] <= delta <= DELTAS[1]):
        raise ValueError('a test needs epsilon between 0.001 and 50, and delta between 1e-15 and 0.5; use test="none"')
    shift = math.sqrt(2.0) / sigma * (1 + 2.0**-51)  # not below the true one
    tilt = max(0.25, min(-math.log(delta) / (2 * epsilon), 2 / shift, _MAX_TILT))
    width = _DECAY / tilt + epsilon + 4.0
    wanted = 1 << math.ceil(math.log2(width * _FINE / shift))
    size = max(min(wanted, _MAX_POINTS), 1 << 9)
    step = max(width / size, shift / (2 * _FINE))
    nodes = min(_NODES, math.ceil(4 * _MAX_DEVIATIONS / shift)) + 1
    return Composer(shift, queries, step, size, epsilon + _DECAY / (2 * tilt), tilt, nodes)


def pair(z: Floats, shift: float, step: float, reach: int) -> tuple[Floats, Floats]:
    """The law of the privacy loss of one label on the lattice points -reach .. reach, and the mass beyond them.

    Guarantee: the pair with this law dominates that of any label that misses with probability at most Phi(z)
    (``pair.proof.md``, Theorems 1 and 2).
    """
    from scipy.special import ndtr

    left, right = z[:, None], -z[:, None]
    cuts = shift / 2 - step * np.arange(-reach, reach + 1)[None, :] / shift  # where the loss is a lattice point
    low, high = np.minimum(cuts, left), np.maximum(cuts, right)
    mass = _within(low) + _within(high)
    other = _within(low - shift) + _within(high - shift)
    below = ndtr(-high[:, 0])  # losses under the lattice, moved up to its first point
    beyond = ndtr(low[:, -1])
    atom, cell = _merged(z, shift, step, reach)
    rows = np.arange(len(z))
    mass[rows, cell] += atom[0]
    other[rows, cell] += atom[1]
    grown = np.exp(step * np.arange(-reach, reach))[None, :]
    upper = (mass - other * grown) / -math.expm1(-step)
    upper = np.clip(upper, 0.0, mass)
    law = np.zeros((len(z), 2 * reach + 1))
    law[:, 1:] += upper
    law[:, :-1] += mass - upper
    law[:, 0] += below
    return law, beyond


def _merged(z: Floats, shift: float, step: float, reach: int) -> tuple[tuple[Floats, Floats], Integers]:
    """The mass of the middle symbol on both sides of the pair, and the lattice cell of its loss."""
    from scipy.special import ndtr

    here, there = ndtr(-z) - ndtr(z), ndtr(-z - shift) - ndtr(z - shift)
    empty = here <= 0
    loss = np.log(np.where(empty, 1.0, here) / np.where(empty, 1.0, there))
    cell = np.floor(loss / step).astype(np.int64) + reach
    return (np.where(empty, 0.0, here), np.where(empty, 0.0, there)), cell


def _within(ends: Floats) -> Floats:
    """The mass of a standard normal between each point and the next one below it, from the smaller tail."""
    from scipy.special import ndtr

    above, below = ends[:, :-1], ends[:, 1:]
    side = np.where(above + below > 0, -1.0, 1.0)
    mass: Floats = side * (ndtr(side * above) - ndtr(side * below))
    return mass


def _sums(mass: Floats) -> Floats:
    """The sum from every place to the end, and nothing after it."""
    return np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
