"""Report noisy max: which of the counts is largest after noise on each of them. Proof: ``vote.proof.md``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import Continuous, Noise
from snugdp.secrecy.secret import Secret


@dataclass(frozen=True)
class NoisyMax:
    """The position of the largest count after independent noise of one law on every count, decided exactly.

    Guarantee: ``vote.proof.md``, Theorem 5 over all data; Theorem 4 after a test on the lead of two candidates.
    """

    law: Continuous

    def draw(self, data: Secret[NDArray[np.int64]], noise: Noise) -> int:
        """The position of the winner."""
        return noise.at("release").argmax(data.map(lambda tally: [int(count) for count in tally]), self.law)
