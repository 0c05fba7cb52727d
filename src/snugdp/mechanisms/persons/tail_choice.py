"""A cap on what one person contributes, read from noisy numbers of persons by how much they contribute.

For many released numbers: the best cap leaves few persons above it, fewer than a draw for a few per cent of a budget
can count; but how fast their number falls below it tells about where it is. Proof: ``persons.proof.md``, Theorem 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.persons.cap_draw import CAP
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret

Floats: TypeAlias = NDArray[np.float64]

FULL = 1 << 16  # the largest weight of a person, whole
EVERY = 2  # of the candidates is an end of a bin
MIN_NUMBERS = 50  # numbers, from which on a cap is read from counts
_PARTS = {200: Fraction(1, 20), MIN_NUMBERS: Fraction(1, 10)}  # of a share, for so many numbers or more
_CLEAR = 5.0  # deviations: so many persons are clearly there,
_RUNS = (1, 2, 4)  # in so many bins together
_BEFORE = (6, 2)  # a tail begins up to so many bins before them, and at least so many: there numbers begin to fall
_FREE = 2.0  # the price, in logarithms of likelihoods, of a bin before the tail, whose number is taken as it is
_SLOPES = np.geomspace(0.1, 20, 26)  # of the logarithm of the number of persons, in that of their rows
_BENDS = np.array([-0.2, 0.0, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0])  # 0: Pareto tails; others: Weibull tails
_ENDLESS, _BENT = 2.0, 3.0  # prices of a tail whose mean is infinite, and of a bend of 1
_SHIFTS = (0.0, -1.0, 1.0)  # deviations by which the number of persons in a tail may be off
_BEYOND = 40  # lengths above the largest cap, four for every doubling
_NOBODY = 0.5  # persons: a tail ends where fewer are left
_LEAST_CHANCE = 1e-3
_TRUSTED = 0.8  # of what a cap is estimated to cut off
_MAX_ADDED_DEVIATIONS = 0.5  # standard deviations of the noise that may be added to a count for it


@dataclass(frozen=True)
class TailReading:
    """What noisy numbers of persons say: which cap, and about how many rows it takes from a count on average."""

    place: int
    lost: float


def tail_part(numbers: int) -> Fraction:
    """The part of a share that is best spent on numbers of persons, where so many numbers are released.

    Chosen on uniform, Poisson, Weibull, lognormal, geometric and Zipf numbers of rows with other parameters than those
    of ``snugdp bench persons``, as the constants are; no part of the guarantee.
    """
    return next(part for least, part in _PARTS.items() if numbers >= least)


def restored(counts: Floats, lost: float, noise: float) -> Floats:
    """Noisy counts with what a cap is estimated to have cut off, in proportion to them; the last axis has the cells.

    ``lost``: from a count on average. ``noise``: its standard deviation, of which at most half is added to any count
    (``persons.proof.md``, Theorem 7).

    >>> restored(np.array([90.0, 10.0, -4.0]), 4.0, 10.0).tolist()
    [95.0, 11.25, -4.0]
    """
    seen = np.maximum(counts, 0)
    part = counts.shape[-1] * lost / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    found: Floats = counts + np.minimum(seen * part, _MAX_ADDED_DEVIATIONS * noise)
    return found


@dataclass(frozen=True)
class TailChoice:
    """Noisy numbers of persons between caps, and the cap that a public formula makes of them.

    ``caps``: the candidates. ``numbers``: released under the cap. ``unit``: the deviation of the noise on each of them,
    for a cap of 1.

    Guarantee: the cost of the share when one person with all rows comes or goes (``persons.proof.md``, Theorem 6),
    where a person is in one bin at most, with a weight of at most ``FULL``.
    """

    share: Share
    caps: tuple[Fraction, ...]
    numbers: int
    unit: float

    def __post_init__(self) -> None:
        if self.share.is_pure or self.share.neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError("numbers of persons by length are for Gaussian noise and neighbours by add/remove")

    @property
    def ends(self) -> tuple[Fraction, ...]:
        """Where bins begin; the last one has no end."""
        return self.caps[::EVERY]

    @property
    def law(self) -> Gaussian:
        """Of the noise on every count."""
        return Gaussian(root_above(FULL**2 / self.share.mu_squared))

    def found(self, counts: Secret[list[int]], noise: Noise) -> TailReading:
        """A cap, from the weights of persons in every bin."""
        return self.read(noise.at(CAP).add_integers(counts, self.law))  # 2

    def read(self, noisy: Sequence[int]) -> TailReading:
        """The cap with the least regret on average over tails, each weighed by its likelihood; and what it cuts off."""
        counts, spread = np.array([count / FULL for count in noisy]), float(self.law.sigma) / FULL
        first, last = (max(_last_clear(counts, spread) - before, 0) for before in _BEFORE)
        found = self._least_regret(counts[first:], spread, last - first)
        return replace(found, place=EVERY * first + found.place)

    def _least_regret(self, counts: Floats, spread: float, last: int) -> TailReading:
        """Of the caps from the first of these bins on, for tails that begin there, or later, up to a last bin."""
        caps = np.array([float(cap) for cap in self.caps[-_caps_from(len(self.caps), len(counts)) :]])
        lengths = np.concatenate([caps, caps[-1] * 2 ** (np.arange(1, _BEYOND + 1) / 4)])
        fits = [_fitted(counts, spread, np.log(self.rows_of(lengths)), len(caps), start) for start in range(last + 1)]
        persons, log_chances = (np.concatenate(each) for each in zip(*fits, strict=True))
        chances = np.exp(log_chances - log_chances.max())
        likely = chances > _LEAST_CHANCE * chances.sum()
        middle = lengths * 2**0.125
        lost = np.maximum(middle[:, None] - caps, 0) * np.minimum(middle, np.sqrt(self.numbers))[:, None]
        cut_off = persons[likely] @ lost / self.numbers
        errors = _absolute(cut_off, caps * self.unit)
        weights = chances[likely] / errors.min(axis=1)
        place = int(np.argmin(weights @ errors))
        return TailReading(place, _TRUSTED * _median(cut_off[:, place], weights))

    def rows_of(self, length: Floats) -> Floats:
        """How many rows have about this length, if each is in any of the cells."""
        found: Floats = self.numbers / 2 * (np.sqrt(1 + 4 * length**2 / self.numbers) - 1)
        return found


def _caps_from(caps: int, bins: int) -> int:
    """How many candidates are in so many of the last bins."""
    return caps - EVERY * ((caps + EVERY - 1) // EVERY - bins)


def _last_clear(counts: Floats, spread: float) -> int:
    """The last bin with which persons begin that are clearly there; 0 if nobody is."""
    found = 0
    for run in _RUNS:
        if run <= len(counts):
            together = np.convolve(counts, np.ones(run), "valid")
            found = max(found, *np.flatnonzero(together >= _CLEAR * spread * np.sqrt(run)).tolist(), 0)
    return found


def _fitted(counts: Floats, spread: float, logs: Floats, caps: int, start: int) -> tuple[Floats, Floats]:
    """Numbers of persons between lengths, a line for every tail that begins with this bin, and log likelihoods.

    Each tail has the number of persons that fits best, and one deviation less and more. The bins before it have the
    numbers that were seen.
    """
    parts, prices = _tails(logs[EVERY * start :] - logs[EVERY * start])
    shapes, seen = _between(parts[:, : caps - EVERY * start : EVERY]), np.maximum(counts[:start], 0)
    squares = (shapes**2).sum(axis=1)
    best = np.maximum(shapes @ counts[start:] / squares, spread / 4)
    sizes = np.concatenate([np.maximum(best + shift * spread / np.sqrt(squares), spread / 10) for shift in _SHIFTS])
    expected = sizes[:, None] * np.tile(shapes, (len(_SHIFTS), 1))
    variance = spread**2 + expected
    log_chances = -((counts[start:] - expected) ** 2 / variance + np.log(variance)).sum(axis=1) / 2
    log_chances -= np.tile(prices, len(_SHIFTS)) + np.log(spread**2 + seen).sum() / 2 + _FREE * start
    tails = sizes[:, None] * np.tile(parts, (len(_SHIFTS), 1))
    before = np.tile(np.repeat(seen / EVERY, EVERY), (len(tails), 1))
    return np.concatenate([before, _between(np.where(tails < _NOBODY, 0.0, tails))], axis=1), log_chances


def _tails(logs: Floats) -> tuple[Floats, Floats]:
    """The part of persons above each length, by the logarithm of its rows, and the price of every tail."""
    slopes, bends = (each.ravel()[:, None] for each in np.meshgrid(_SLOPES, _BENDS))
    steep = np.where(bends == 0, 1.0, bends)
    with np.errstate(over="ignore"):
        parts = np.exp(-slopes * np.where(bends == 0, logs, np.expm1(steep * logs) / steep))
    prices = _ENDLESS * ((bends <= 0) & (slopes < 1)) + _BENT * np.maximum(bends, 0)
    return parts, prices[:, 0]


def _between(tails: Floats) -> Floats:
    """The numbers between lengths, from those above each; the last has all that are above it."""
    found: Floats = tails - np.concatenate([tails[:, 1:], np.zeros((len(tails), 1))], axis=1)
    return found


def _median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(below, below[-1] / 2)]])


def _absolute(lost: Floats, noise: Floats) -> Floats:
    """The mean of |what is lost + Gaussian noise|."""
    spread = noise * np.sqrt(2 / np.pi) * np.exp(-((lost / noise) ** 2) / 2)
    found: Floats = spread + lost * erf(lost / noise / np.sqrt(2))
    return found
