"""The outermost edge of a grid beyond which only a few rows lie. Proof: ``exponential_grid.proof.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import Gumbel, Noise
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret

Counts: TypeAlias = NDArray[np.int64]
Relation: TypeAlias = Literal["add_remove", "replace"]
THEOREM = theorem("bounds/1")
_RARE = 40  # each end goes astray once in so many cases: both are fine in 19 of 20


def scores(counts: Counts, outside: Fraction, slack: int) -> list[Fraction]:
    """For every edge, minus the number of rows by which it misses being the right lower bound.

    ``counts`` are the rows below the first edge, on it, between it and the second, and so on. Right is the largest
    edge with at most ``outside`` of the rows and ``slack`` more below it.

    Guarantee: between neighbours no score moves by more than ``reach(outside, relation)``
    (``exponential_grid.proof.md``, Lemma 1).

    >>> [int(score) for score in scores(np.array([0, 0, 10, 0, 5]), Fraction(0), 4)]
    [0, -6]
    """
    below = np.cumsum(counts)[0:-1:2].tolist()  # 1
    unit = outside.denominator  # in units of 1/unit rows all is whole
    allowed = outside.numerator * int(counts.sum()) + slack * unit
    excess = [unit * rows - allowed for rows in below]  # 2
    short = [-rows for rows in excess[1:]] + [0]  # 3
    return [Fraction(-max(here, there, 0), unit) for here, there in zip(excess, short, strict=True)]


def reach(outside: Fraction, relation: Relation) -> Fraction:
    """How far one row moves a score."""
    return Fraction(1) if relation == "replace" else 1 - outside


def step_of(column: int) -> str:
    """The step of a plan that draws the two edges of a column."""
    return f"column-{column + 1}"


@dataclass(frozen=True)
class GridEnds:
    """Two edges for every column of counts: a lower and an upper bound, each for ``epsilon``."""

    epsilon: Fraction
    outside: Fraction
    relation: Relation
    edges: int
    columns: int

    @property
    def law(self) -> Gumbel:
        """The noise on every score: the largest noisy score is the exponential mechanism."""
        return Gumbel(2 * reach(self.outside, self.relation) / self.epsilon)

    @property
    def slack(self) -> int:
        """So many rows more than the share may lie outside, so that noise hardly ever prefers an edge with no rows."""
        return math.ceil(self.law.scale * Fraction(math.log(_RARE * self.edges))) + 1

    def draw(self, data: Secret[Counts], noise: Noise) -> list[tuple[int, int]]:
        """The positions of the two edges, for every row of ``data``; not yet in order."""
        return [self._ends(data.map(itemgetter(at)), noise.at(step_of(at))) for at in range(self.columns)]

    def _ends(self, counts: Secret[Counts], noise: Noise) -> tuple[int, int]:
        lower = noise.argmax(counts.map(lambda rows: scores(rows, self.outside, self.slack)), self.law)
        mirrored = counts.map(lambda rows: scores(rows[::-1], self.outside, self.slack))
        return lower, self.edges - 1 - noise.argmax(mirrored, self.law)
