"""A cap on what one person contributes, read from noisy numbers of persons by how much they contribute.

For many released numbers: the best cap leaves few persons above it, fewer than a draw for a few per cent of a budget
can count; but how fast their number falls below it tells about where it is. Proof: ``persons.proof.md``, Theorem 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
MANY = 50  # numbers, from which on a cap is read from counts
TAIL_PART = Fraction(1, 20)  # of a share
_CLEAR = 12.0  # deviations: so many persons together are clearly there
_SLOPES = np.geomspace(0.4, 12, 18)  # of the logarithm of the number of persons, in that of their rows
_BENDS = np.array([-0.2, 0.0, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0])  # 0: Pareto tails; others: Weibull tails
_FACTORS = np.array([0.8, 0.9, 1.0, 1.1, 1.2])  # of the number of persons with which a tail begins
_BEYOND = 40  # lengths above the largest cap, four for every doubling
_NOBODY = 0.5  # persons: a tail ends where fewer are left
_LEAST_CHANCE = 1e-3


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

    def draw(self, counts: Secret[list[int]], noise: Noise) -> int:
        """The position of a cap, from the weights of persons in every bin."""
        return self.read(noise.at(CAP).add_integers(counts, self.law))  # 2

    def read(self, noisy: Sequence[int]) -> int:
        """The position of the cap with the least regret on average over tails, each weighed by its likelihood."""
        counts, spread = np.array([count / FULL for count in noisy]), float(self.law.sigma) / FULL
        above = np.cumsum(counts[::-1])[::-1]
        clear = np.flatnonzero(above >= _CLEAR * spread * np.sqrt(np.arange(len(counts), 0, -1)))
        first = int(clear[-1]) if len(clear) else 0
        return EVERY * first + self._least_regret(counts[first:], max(float(above[first]), spread), spread)

    def _least_regret(self, counts: Floats, begin: float, spread: float) -> int:
        """Of the caps from the first bin on, where a tail of about so many persons begins."""
        caps = np.array([float(cap) for cap in self.caps[-_caps_from(len(self.caps), len(counts)) :]])
        longer = caps[-1] * 2 ** (np.arange(1, _BEYOND + 1) / 4)
        lengths = np.concatenate([caps, longer])
        tails = begin * _tails(np.log(self.rows_of(lengths) / self.rows_of(lengths[:1])))
        expected = _between(tails[:, : len(caps) : EVERY])
        variance = spread**2 + expected
        log_chances = -((counts - expected) ** 2 / variance + np.log(variance)).sum(axis=1) / 2
        chances = np.exp(log_chances - log_chances.max())
        likely = chances > _LEAST_CHANCE * chances.sum()
        persons = _between(np.where(tails[likely] < _NOBODY, 0.0, tails[likely]))
        middle = lengths * 2**0.125
        lost = np.maximum(middle[:, None] - caps, 0) * np.minimum(middle, np.sqrt(self.numbers))[:, None]
        errors = _absolute(persons @ lost / self.numbers, caps * self.unit)
        regrets = errors / errors.min(axis=1, keepdims=True)
        return int(np.argmin(chances[likely] @ regrets))

    def rows_of(self, length: Floats) -> Floats:
        """How many rows have about this length, if each is in any of the cells."""
        found: Floats = self.numbers / 2 * (np.sqrt(1 + 4 * length**2 / self.numbers) - 1)
        return found


def _caps_from(caps: int, bins: int) -> int:
    """How many candidates are in so many of the last bins."""
    return caps - EVERY * ((caps + EVERY - 1) // EVERY - bins)


def _tails(logs: Floats) -> Floats:
    """The part of persons above each length, by the logarithm of its rows; a line for every tail."""
    slopes, bends = (each.ravel()[:, None] for each in np.meshgrid(_SLOPES, _BENDS))
    steep = np.where(bends == 0, 1.0, bends)
    with np.errstate(over="ignore"):
        falls = slopes * np.where(bends == 0, logs, np.expm1(steep * logs) / steep)
        parts = np.exp(-falls)
    found: Floats = np.concatenate([factor * parts for factor in _FACTORS])
    return found


def _between(tails: Floats) -> Floats:
    """The numbers between lengths, from those above each; the last has all that are above it."""
    found: Floats = tails - np.concatenate([tails[:, 1:], np.zeros((len(tails), 1))], axis=1)
    return found


def _absolute(lost: Floats, noise: Floats) -> Floats:
    """The mean of |what is lost + Gaussian noise|."""
    spread = noise * np.sqrt(2 / np.pi) * np.exp(-((lost / noise) ** 2) / 2)
    found: Floats = spread + lost * erf(lost / noise / np.sqrt(2))
    return found
