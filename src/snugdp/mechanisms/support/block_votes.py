"""Which entries go with the target: blocks of rows vote, and the winners are released if no row can change them.

The paper's propose-test-release for a set: the distance to another answer is half the lead. Proof:
``block_votes.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.certify.distance import DistanceTest, integer_laplace
from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.support.peeling import SELECT, Support
from snugdp.noise import Noise
from snugdp.propose.forecast import Amount
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.candidates import Candidates
from snugdp.tables.passes.vectors.scores import Integers

_FORECAST_CASES = 20  # forecasts are for 19 cases in 20


@dataclass(frozen=True)
class VotedSupport:
    """The ``size`` entries with the most votes of ``blocks`` blocks of rows, or a refusal.

    Every row goes to a block by a lot of its own; the number of blocks is public and does not follow the number of
    rows. ``centred``: whether a block compares covariances, or plain sums of products. ``max_rows``: of a person, who
    comes or goes with all of them, each in a block of its own; 1 where that is a row.

    Guarantee: (epsilon, delta) of the budget (``block_votes.proof.md``, Theorem 1), for both neighbouring relations.
    """

    size: int
    blocks: int
    budget: Budget
    centred: bool = True
    max_rows: int = 1

    @property
    def cost(self) -> Cost:
        """Of the test; the release is free."""
        return self._test().cost

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        test = self._test()
        params: dict[str, Amount] = {"blocks": self.blocks, "threshold": test.threshold}
        noise = StepNoise("block-votes", "discrete Laplace", params=params)
        return (Step(SELECT, StepKind.SELECT, noise, test.cost),)

    def needed(self, width: int) -> float:
        """The lead, in votes, at which the test passes in about 19 cases of 20."""
        persons = float(self._test().threshold) + math.log(_FORECAST_CASES) / float(self.budget.epsilon)
        return 2.0 * self.max_rows * persons + 1.0

    def certify(self, data: Secret[Candidates], noise: Noise) -> Support | None:
        """Vote, test, release or refuse."""
        noise = noise.at(SELECT)
        counts = data.map(lambda candidates: self._votes(candidates, noise))  # 1, 2
        if not self._test().passes(counts, noise):  # 3
            return None
        return Support(noise.reveal(counts.map(lambda tally: tuple(sorted(leaders(tally, self.size))))))  # 4

    def _votes(self, candidates: Candidates, noise: Noise) -> Integers:
        sums = candidates.block_sums(self.blocks, noise.scatter)
        return votes(*sums, size=self.size, centred=self.centred)

    def _test(self) -> DistanceTest[Integers]:
        size, budget, rows = self.size, self.budget, self.max_rows
        return integer_laplace(
            lambda tally: distance(tally, size, rows),
            epsilon=budget.epsilon,
            delta=budget.delta,
            neighbours=budget.neighbours,
        )


def votes(
    products: Integers, entries: Integers, targets: Integers, counts: Integers, *, size: int, centred: bool
) -> Integers:
    """How many blocks have each entry among their ``size`` best; ties go to the smaller position.

    An entry without a score gets no vote: a block without rows votes for nothing.
    """
    scores = products.astype(np.float64)
    if centred:  # n times the covariance, times n
        scores = scores * counts[:, None] - targets[:, None].astype(np.float64) * entries
    best = np.argsort(-np.abs(scores), axis=1, kind="stable")[:, :size]
    some = np.take_along_axis(scores, best, axis=1) != 0
    tally: Integers = np.bincount(best[some], minlength=products.shape[1])
    return tally


def leaders(counts: Sequence[int] | Integers, size: int) -> tuple[int, ...]:
    """The positions with the most votes, the most first; ties go to the smaller position.

    >>> leaders([4, 9, 4, 1], 2)
    (1, 0)
    """
    order = np.argsort(-np.asarray(counts, dtype=np.int64), kind="stable")[:size]
    return tuple(int(place) for place in order)


def margin(counts: Sequence[int] | Integers, size: int, rows: int = 1) -> Fraction | float:
    """Half the lead of the winners, less one, at least 0: where it is positive no neighbour has other winners.

    ``rows``: of a person, each of which may be in another block; then it is half the lead over their number, less one.

    >>> margin([40, 38, 35, 3, 1], 3), margin([5, 4], 1), margin([40, 38, 35, 3, 1], 3, rows=4)
    (Fraction(15, 1), Fraction(0, 1), Fraction(3, 1))
    """
    if size >= len(counts):
        return math.inf
    ordered = np.sort(np.asarray(counts, dtype=np.int64))[::-1]
    return max(Fraction(int(ordered[size - 1] - ordered[size]), 2 * rows) - 1, Fraction(0))


def distance(counts: Sequence[int] | Integers, size: int, rows: int = 1) -> int | float:
    """A lower bound on how many persons must change before the winners do, 1-Lipschitz: the margin, rounded up."""
    half = margin(counts, size, rows)
    return half if isinstance(half, float) else math.ceil(half)
