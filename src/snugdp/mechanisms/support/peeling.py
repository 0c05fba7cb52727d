"""Which entries go with the target: the best scores after Gumbel noise, one after the other.

A score is |sum of x_j (y - centre)|: one row moves all of them at once, in any directions, by at most 1 + |centre|.
Proof: ``peeling.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.bounded_range import range_at
from snugdp.core.guarantee import Cost
from snugdp.noise import Gaussian, Gumbel, Noise
from snugdp.numerics.rationals import Real
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.candidates import Candidates
from snugdp.tables.passes.vectors.scores import CELLS, Integers

CENTRE, SELECT = "select-centre", "select"  # steps

_ROOT = Fraction(99, 70)  # not below the root of 2
_GRID = 4096  # the centre is a multiple of 1/4096


@dataclass(frozen=True)
class Support:
    """What a selection released: positions of entries, the best first, and the centre of the targets it was made at."""

    places: tuple[int, ...]
    centre: Fraction = Fraction(0)


@dataclass(frozen=True)
class TopScores:
    """``size`` positions drawn one after the other, each the largest score after Gumbel noise, without replacement.

    ``rate``: the most that one person moves a score, over the scale of its noise. ``cost``: what all draws cost.
    ``max_rows``: of a person; 1 where that is a row.

    Guarantee: ``cost``, for one row more or less, or one person (``peeling.proof.md``, Theorems 1 and 3).
    """

    size: int
    rate: Fraction
    cost: Cost
    max_rows: int = 1

    @classmethod
    def pure(cls, size: int, epsilon: Real) -> TopScores:
        """With a pure part alone: a scale of 2 size / epsilon.

        >>> TopScores.pure(5, 0.5).rate
        Fraction(1, 20)
        """
        spend = gaussian.positive(epsilon, "epsilon")
        return cls(size, spend / (2 * size), Cost(epsilon=spend))

    @classmethod
    def gaussian(cls, size: int, mu_squared: Fraction) -> TopScores:
        """With a Gaussian part alone: every draw is as private as one of N(0, 1) and N(mu, 1), mu² = mu_squared/size.

        >>> float(1 / TopScores.gaussian(4, Fraction(1)).rate)  # doctest: +ELLIPSIS
        2.4995...
        """
        return cls(size, range_at(mu_squared / size) / 2, Cost(mu_squared=mu_squared))

    def scale(self, sensitivity: int = 1) -> Fraction:
        """The scale of the noise, in units of the scores, where one row moves a score by so much."""
        return self.max_rows * sensitivity / self.rate

    def draw(self, scores: Secret[Integers], sensitivity: int, noise: Noise) -> tuple[int, ...]:
        """The positions, in the order of the draws."""
        law, chosen = Gumbel(self.scale(sensitivity)), list[int]()
        for _ in range(self.size):
            left = scores.map(lambda all_of_them: np.delete(all_of_them, chosen)[None])
            place = int(noise.argmaxes(left, law)[0])  # 4
            chosen.append(_whole_place(place, chosen))
        return tuple(chosen)


@dataclass(frozen=True)
class NoisySupport:
    """The entries with the best noisy scores, around a private mean of the targets where ``centre_mu`` pays for one.

    Guarantee: ``cost``, for one row more or less, or one person (``peeling.proof.md``, Theorem 4).
    """

    top: TopScores
    centre_mu: Fraction = Fraction(0)

    @property
    def cost(self) -> Cost:
        """The centre and the draws."""
        return self.top.cost + Cost(mu=self.centre_mu) if self.centre_mu else self.top.cost

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        noise = StepNoise("best-scores", "gumbel", float(self.top.scale()), "rows", times=self.top.size)
        return *_centre(self.centre_mu), Step(SELECT, StepKind.SELECT, noise, self.top.cost)

    def needed(self, width: int) -> float:
        """The lead, in rows, at which a score is found among ``width`` in about 19 cases of 20."""
        return float(self.top.scale()) * (math.log(max(width, 2)) + 3.0)

    def certify(self, data: Secret[Candidates], noise: Noise) -> Support:
        """Draw the centre, then the positions."""
        centre = mean_target(self.centre_mu, data, noise, self.top.max_rows) if self.centre_mu else Fraction(0)
        cells = int(centre * CELLS)
        scores = data.map(lambda candidates: candidates.scores().centred(cells))  # 3
        return Support(self.top.draw(scores, CELLS * (CELLS + abs(cells)), noise.at(SELECT)), centre)


@dataclass(frozen=True)
class NoisyScores:
    """The largest of all scores after Gaussian noise on each of them: for rows that are short as a whole.

    ``row_norm``: whole rows are shortened to it, so that one row moves the vector of all scores by little. The noise
    does not grow with ``size``. ``max_rows``: of a person; 1 where that is a row.

    Guarantee: ``cost``, for one row more or less, or one person (``peeling.proof.md``, Theorem 5).
    """

    size: int
    mu: Fraction
    row_norm: Fraction
    centre_mu: Fraction = Fraction(0)
    max_rows: int = 1

    @property
    def _deviation(self) -> Fraction:
        """Of the noise, in rows."""
        return self.max_rows * self.row_norm / self.mu

    @property
    def cost(self) -> Cost:
        """The centre and the scores."""
        return Cost(mu=self.mu) + Cost(mu=self.centre_mu)

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        noise = StepNoise("best-scores", "gaussian", float(self._deviation), "rows", times=self.size)
        return *_centre(self.centre_mu), Step(SELECT, StepKind.SELECT, noise, Cost(mu=self.mu))

    def needed(self, width: int) -> float:
        """The lead, in rows, at which a score is found among ``width`` in about 19 cases of 20."""
        return float(self._deviation) * (math.sqrt(2 * math.log(max(width, 2))) + 2.5)

    def certify(self, data: Secret[Candidates], noise: Noise) -> Support:
        """Draw the centre, then all scores; the largest are chosen from what was released."""
        centre = mean_target(self.centre_mu, data, noise, self.max_rows) if self.centre_mu else Fraction(0)
        cells, limit = int(centre * CELLS), self.max_rows * math.floor(self.row_norm * CELLS)
        scores = data.map(lambda candidates: _shortened(candidates, self.row_norm).scores().signed(cells))
        noisy = noise.at(SELECT).add_integers(scores, Gaussian(limit * (CELLS + abs(cells)) / self.mu))  # 5
        order = sorted(range(len(noisy)), key=lambda place: (-abs(noisy[place]), place))
        return Support(tuple(order[: self.size]), centre)


def _centre(mu: Fraction) -> tuple[Step, ...]:
    return (Step(CENTRE, StepKind.STATISTIC, StepNoise("mean-target", "gaussian"), Cost(mu=mu)),) if mu else ()


def mean_target(mu: Fraction, data: Secret[Candidates], noise: Noise, max_rows: int = 1) -> Fraction:
    """The mean of the scaled targets, shrunk towards 0: a Gaussian release of this mu (Theorem 4, lines 1 and 2)."""
    deviation = max_rows * _ROOT / mu
    sums = data.map(lambda candidates: candidates.scores().totals())
    total, count = noise.at(CENTRE).add_integers(sums, Gaussian(CELLS * deviation))  # 1
    known = max(Fraction(count, CELLS), Fraction(0)) + 2 * deviation
    part = min(max(Fraction(total, CELLS) / known, Fraction(-1)), Fraction(1))
    return Fraction(round(part * _GRID), _GRID)  # 2


def _shortened(candidates: Candidates, row_norm: Fraction) -> Candidates:
    """The candidates, if their rows are shortened as planned: others end like any private failure."""
    if candidates.work.row_norm is None or candidates.work.row_norm > row_norm:
        raise ValueError("the rows are not shortened to the norm that was planned for")
    return candidates


def _whole_place(place: int, chosen: Sequence[int]) -> int:
    """The position among all entries of one among those that were not chosen before."""
    for earlier in sorted(chosen):
        place += earlier <= place
    return place
