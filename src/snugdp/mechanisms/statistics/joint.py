"""Several whole numbers released together, each with noise of a public size of its own. Proof: ``joint.proof.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from snugdp.core.guarantee import Neighbours
from snugdp.noise import DiscreteLaplace, Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret

RELEASE = "release"
_LAPLACE_TAIL = math.log(20)  # of a scale: what discrete Laplace noise stays below in 19 of 20 cases
_GAUSSIAN_TAIL = 1.959963984540054  # of a standard deviation


@dataclass(frozen=True)
class JointNoise:
    """Noise on a vector of whole numbers. ``moves``: how far one row may move each of them, in this sense:

    between neighbours, sum |change / move| <= 1 for a pure share, and sum change**2 / move <= 1 for a Gaussian one,
    whose moves are squares. A pure share pays for discrete Laplace noise, a Gaussian one for Gaussian noise that is
    rounded to whole numbers.

    Guarantee: the cost of the share, for vectors that keep to their moves (``joint.proof.md``, Theorem 1).
    """

    share: Share
    moves: tuple[Fraction, ...]
    on: str = "sums"
    step: str = RELEASE

    @cached_property
    def laws(self) -> tuple[DiscreteLaplace | Gaussian, ...]:
        """The noise of each number."""
        by_move = {move: self._law(move) for move in dict.fromkeys(self.moves)}
        return tuple(by_move[move] for move in self.moves)

    def _law(self, move: Fraction) -> DiscreteLaplace | Gaussian:
        if self.share.is_pure:
            return DiscreteLaplace(move / self.share.epsilon)  # 1
        return Gaussian(root_above(move / self.share.mu_squared))  # 2

    def draw(self, values: Secret[list[int]], noise: Noise) -> list[int]:
        """The numbers with their noise."""
        noise, drawn = noise.at(self.step), list[int]()
        for law, same in groupby(self.laws):
            part = slice(len(drawn), len(drawn) + len(list(same)))
            drawn += noise.add_integers(values.map(itemgetter(part)), law)
        return drawn

    def steps(self) -> tuple[Step]:
        """The one step of a plan."""
        law = self.laws[0]
        scale = float(law.scale if isinstance(law, DiscreteLaplace) else law.sigma)
        name = "discrete Laplace" if self.share.is_pure else "gaussian"
        rows = self.on in ("count", "cells")  # others are in cells of a grid
        times = len(self.moves)
        how = StepNoise(self.on, name, scale, "rows", times) if rows else StepNoise(self.on, name, times=times)
        return (Step(self.step, StepKind.RELEASE, how, self.share.cost),)

    @property
    def deviations(self) -> tuple[float, ...]:
        """The standard deviation of the noise of each number."""
        return tuple(deviation(law) for law in self.laws)

    @property
    def errors(self) -> tuple[float, ...]:
        """What the noise of each number stays below in 19 of 20 cases."""
        return tuple(usual_error(law) for law in self.laws)

    @property
    def tail(self) -> float:
        """How many standard deviations a linear function of the noise stays below in at least 19 of 20 cases."""
        return _LAPLACE_TAIL / math.sqrt(2) if self.share.is_pure else _GAUSSIAN_TAIL


def deviation(law: DiscreteLaplace | Gaussian) -> float:
    """The standard deviation of noise on whole numbers; Gaussian noise is rounded to them."""
    if isinstance(law, Gaussian):
        return math.hypot(float(law.sigma), 12**-0.5)
    half = 1 / (2 * float(law.scale))
    return 1 / (math.sqrt(2) * math.sinh(half)) if half < 300 else 0.0


def usual_error(law: DiscreteLaplace | Gaussian) -> float:
    """What noise on a whole number stays below in 19 of 20 cases."""
    if isinstance(law, Gaussian):
        return float(law.sigma) * _GAUSSIAN_TAIL
    return float(law.scale) * _LAPLACE_TAIL


def count_noise(share: Share) -> JointNoise:
    """For the number of rows that have something: one row moves it by at most 1 (``joint.proof.md``, Theorem 2)."""
    return JointNoise(share, (Fraction(1),), "count")


def total_noise(share: Share, lower: int, upper: int) -> JointNoise:
    """For the sum of whole numbers between two whole bounds, where missing rows count as 0 (Theorem 2)."""
    added = share.neighbours is Neighbours.ADD_REMOVE
    most = max(abs(lower), abs(upper)) if added else max(upper, 0) - min(lower, 0)
    return JointNoise(share, (Fraction(most if share.is_pure else most**2),), "sum")


def cell_noise(share: Share, cells: int) -> JointNoise:
    """For the counts of disjoint cells: a row is in one of them at most (Theorem 3)."""
    return JointNoise(share, (Fraction(1 if share.neighbours is Neighbours.ADD_REMOVE else 2),) * cells, "cells")
