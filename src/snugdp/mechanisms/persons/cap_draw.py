"""A cap on what one person contributes, found in private. Proof: ``persons.proof.md``, Theorem 2.

A small cap cuts off what some persons contribute, a large one asks for much noise. One of a list of public caps is
drawn with a probability that falls with its size and with how many persons more than a target are above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from snugdp.mechanisms.statistics.clipping import CandidateDraw
from snugdp.propose.share import Share

CAP = "cap"  # a step
DRAW_PART = Fraction(1, 10)  # of a share, for the draw, unless one or many numbers are released under the cap
_ONE_PURE = Fraction(1, 4)  # the part for one number with pure noise, whose best cap leaves hardly anybody above it
_SHARES_BY_NUMBERS = {200: Fraction(1, 50), 50: Fraction(1, 20)}  # the part for so many numbers or more
_ABOVE = Fraction(3, 10)  # of the number of cells over the noise: so many persons are best left above the cap
_DOUBT = 1  # over the range of the draw: so many persons more, as nobody is above any of the caps that are too large
_TILTS = {50: Fraction(2), 2: Fraction(1), 1: Fraction(3, 4)}  # from one cap to the next, for so many numbers or more


@dataclass(frozen=True)
class CapDraw(CandidateDraw):
    """One of ``number`` caps, from the number of persons above each, with weights that fall beyond a target.

    The logarithm of a weight falls with every person above the cap beyond the target, and by ``tilt`` from one cap to
    the next; ``below``: the part of the slope with which it falls with every person that is missing to the target.
    The last cap is a public bound that no person exceeds.

    Guarantee: the cost of the share, when a person with all rows comes, goes or is replaced, as its relation says
    (``persons.proof.md``, Theorem 2). It holds for any target, tilt and part from 0 to 1.
    """

    target: Fraction
    tilt: Fraction
    below: Fraction = Fraction(0)
    step = CAP

    def scores(self, above: list[int]) -> list[Fraction]:
        """The logarithms of the weights."""
        return [self._score(persons - self.target) - self.tilt * place for place, persons in enumerate(above)]  # 2

    def _score(self, beyond: Fraction) -> Fraction:
        rate = self.range  # 1
        return -rate * ((1 - self.below) * beyond if beyond > 0 else self.below * -beyond)


def draw_part(share: Share, numbers: int) -> Fraction:
    """The part of a share that is best spent on the draw, where so many numbers are released under the cap.

    Chosen on Poisson, uniform, Weibull, Pareto, lognormal, geometric and Zipf numbers of rows with other parameters
    than those of ``snugdp bench persons``; no part of the guarantee.
    """
    if numbers == 1 and share.is_pure:
        return _ONE_PURE
    return next((part for least, part in _SHARES_BY_NUMBERS.items() if numbers >= least), DRAW_PART)


def tilt_for(numbers: int) -> Fraction:
    """How much smaller caps are preferred, where so many numbers are released: more noise is then worse.

    Chosen on the same panels as ``draw_part``; no part of the guarantee.
    """
    return next(tilt for least, tilt in _TILTS.items() if numbers >= least)


def target_for(loss_range: Fraction, cells: int, noise: float) -> Fraction:
    """About how many persons to leave above a cap, where so many numbers get noise of this size for each unit of it.

    >>> target_for(Fraction(1, 2), 10, 4.0)
    Fraction(14, 1)
    """
    wanted = float(_ABOVE) * cells * noise + _DOUBT / float(loss_range)
    return Fraction(max(1, math.floor(2 * wanted + 0.5)), 2)
