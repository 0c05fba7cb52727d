"""How long standardised rows are: a noisy histogram of their lengths, and the length to which long ones are shortened.

Proof: ``preparation.proof.md``, Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.core.guarantee import Cost
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.numerics.rounded import clear
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret

BINS, STEPS = 32, 4  # bins for every halving, from the longest rows down
_TOP = 8.0  # times the root of the number of entries, the usual length of a row
_CLEAR_BIN = 3.5  # a bin counts if noise alone is as rarely above it as so many deviations
_GUESSED, _AT = 3.0, 12  # the guess, a usual length, counts like so many deviations


@dataclass(frozen=True)
class RowLengths:
    """The length that all but a share ``longer`` of the rows keep to, and about how many rows there are.

    Guarantee: cost ``mu_squared`` when one row comes or goes (``preparation.proof.md``, Theorem 1).
    """

    mu_squared: Fraction
    longer: float

    @property
    def deviation(self) -> Fraction:
        """Of the noise on the number of rows in a bin."""
        return root_above(1 / self.mu_squared)

    @property
    def step(self) -> Step:
        """The step of a plan."""
        noise = StepNoise("row-norms", "gaussian", float(self.deviation), "rows")
        return Step("length", StepKind.STATISTIC, noise, Cost(mu_squared=self.mu_squared))

    def draw(self, counts: Secret[list[int]], entries: float, noise: Noise) -> tuple[float, float]:
        """The released length and number of rows."""
        return self.read(noise.at("length").add_integers(counts, Gaussian(self.deviation)), entries)

    def read(self, counts: Sequence[int], entries: float) -> tuple[float, float]:
        """From noisy counts: bins below their noise do not count.

        >>> RowLengths(Fraction(1, 100), 0.1).read([0] * 11 + [500, 400] + [0] * 19, 4)
        (2.378414230005442, 900.0)
        """
        deviation = float(self.deviation)
        least = clear(1, deviation, _CLEAR_BIN)
        held = [float(count) if count > least else 0.0 for count in counts]
        rows = max(sum(held), deviation)
        held[_AT] += _GUESSED * deviation
        above = np.cumsum(held)
        place = int(np.argmax(above >= self.longer * above[-1]))
        return longest(entries) * 2.0 ** (-place / STEPS), rows


def longest(entries: float) -> float:
    """The upper end of the first bin."""
    return _TOP * math.sqrt(entries)
