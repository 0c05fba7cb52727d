"""A clipping range found in private, so that loose bounds cost little. Proof: ``clipping.proof.md``.

Numbers are clipped at a public distance from a public centre, one of a list of candidates. One is drawn with a
probability that falls with the number of rows beyond it, and with its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from snugdp.mechanisms.support.peeling import gaussian_rate
from snugdp.noise import Gumbel, Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import Grid

CLIP = "clip"  # a step
TILT = Fraction(3, 4)  # how much the logarithm of the weight falls from one candidate to the next
OCTAVES = 12  # how often bounds are halved at most, where the number of rows is not known
_MAX_OCTAVES = 20
_PURE_PART, _GAUSSIAN_PART = Fraction(1, 5), Fraction(1, 10)  # of the share, for the choice
_MARGIN = 6  # how far the right candidate leads the lowest one, as a logarithm, with the fewest rows that it is for


def clip_part(share: Share) -> Fraction:
    """The part of a share that the choice gets; the release gets the rest."""
    return _PURE_PART if share.is_pure else _GAUSSIAN_PART


def centre_of(grid: Grid) -> int:
    """The number nearest to 0 within the bounds, in cells: distances are taken from there."""
    return min(max(0, grid.lower), grid.upper)


def candidates(grid: Grid, octaves: int) -> tuple[int, ...]:
    """Distances from the centre in cells, four for every doubling; the last reaches the farther bound.

    >>> candidates(Grid(0, -8, 64), 2)
    (16, 20, 24, 28, 32, 40, 48, 56, 64)
    """
    centre = centre_of(grid)
    largest = max(grid.upper - centre, centre - grid.lower)
    below = {(largest * quarter) >> (halvings + 2) for halvings in range(1, octaves + 1) for quarter in range(4, 8)}
    return (*sorted(cap for cap in below if 0 < cap < largest), largest)


@dataclass(frozen=True)
class ClipChoice:
    """One of ``number`` candidates, drawn with weights exp(-range * rows beyond it - TILT * position).

    Guarantee: the cost of the share (``clipping.proof.md``, Theorem 1).
    """

    share: Share
    number: int

    @property
    def range(self) -> Fraction:
        """How far the logarithms of the probabilities may spread between neighbours."""
        if self.share.is_pure:
            return self.share.epsilon
        return 2 * gaussian_rate(self.share.mu_squared)

    def draw(self, above: Secret[list[int]], noise: Noise) -> int:
        """The position of a candidate, from the number of rows beyond each of them."""
        return noise.at(CLIP).argmax(above.map(self.scores), Gumbel(1))  # 2

    def scores(self, above: list[int]) -> list[Fraction]:
        """The logarithms of the weights."""
        rate = self.range
        return [-rate * rows - TILT * place for place, rows in enumerate(above)]  # 1

    def steps(self) -> tuple[Step]:
        """The one step of a plan."""
        how = StepNoise("clipping", "gumbel", float(1 / self.range), "rows", params={"candidates": self.number})
        return (Step(CLIP, StepKind.SELECT, how, self.share.cost),)


def octaves_for(share: Share, rows: int | None) -> int:
    """How far down the candidates reach: as far as so many rows can tell the right one from the lowest. 0: none do."""
    if rows is None:
        return OCTAVES
    known = rows * ClipChoice(share.part(clip_part(share)), 1).range - _MARGIN
    return int(min(max(known // (4 * TILT), 0), _MAX_OCTAVES))


def rows_needed(share: Share, octaves: int) -> int:
    """The number of rows from which on a choice among so many octaves hardly ever clips too much."""
    return int((4 * TILT * octaves + _MARGIN) / ClipChoice(share.part(clip_part(share)), 1).range) + 1
