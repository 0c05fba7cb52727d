"""A cap on what one person contributes, found in private. Proof: ``persons.proof.md``, Theorem 2.

A small cap cuts off what some persons contribute, a large one asks for much noise. One of a list of public caps is
drawn with a probability that falls with its size and with how far the number of persons above it is from a target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from snugdp.mechanisms.statistics.clipping import CandidateDraw

CAP_TILT = Fraction(1, 2)  # how much the logarithm of the weight falls from one cap to the next
DRAW_PART = Fraction(1, 10)  # of a share, for the draw
_ABOVE = Fraction(1, 4)  # of the number of cells over the noise: so many persons are best left above the cap
_DOUBT = 2  # over the range of the draw: so many persons more, as nobody is above any of the caps that are too large


@dataclass(frozen=True)
class CapDraw(CandidateDraw):
    """One of ``number`` caps, from the number of persons above each, with weights exp(-range/2 |persons - target|).

    The last cap is a public bound that no person exceeds; weights fall by a tilt besides.

    Guarantee: the cost of the share, when a person with all rows comes, goes or is replaced
    (``persons.proof.md``, Theorem 2). It holds for any target.
    """

    target: Fraction
    tilt: Fraction = CAP_TILT

    def scores(self, above: list[int]) -> list[Fraction]:
        """The logarithms of the weights."""
        rate = self.range / 2  # 1
        return [-rate * abs(persons - self.target) - self.tilt * place for place, persons in enumerate(above)]


def target_for(loss_range: Fraction, cells: int, noise: float) -> Fraction:
    """About how many persons to leave above a cap, where so many numbers get noise of this size for each unit of it.

    >>> target_for(Fraction(1, 2), 10, 4.0)
    Fraction(14, 1)
    """
    wanted = float(_ABOVE) * cells * noise + _DOUBT / float(loss_range)
    return Fraction(max(1, math.floor(2 * wanted + 0.5)), 2)
