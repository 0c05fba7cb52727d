"""Noise on the sums from which scores follow. Proof: ``scores.proof.md``, whose line numbers the comments carry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.scores.bins import (
    BINS,
    REACH,
    bin_of,
    centre_sums,
    edges_of,
    noisy_share,
    shares_below,
    spread_sums,
)
from snugdp.mechanisms.scores.images import CELLS, Integers
from snugdp.mechanisms.scores.parts import moves, pair
from snugdp.mechanisms.scores.passes import ModelScorePass
from snugdp.mechanisms.scores.result import PLACES, ModelScores
from snugdp.mechanisms.scores.tasks import ScoreTask, TwoClasses
from snugdp.mechanisms.statistics.joint import RELEASE, JointNoise
from snugdp.noise import Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.engines import Local, gather
from snugdp.tables.sources import Source, SparkSource

EDGES_SHARE = Fraction(8, 100)  # of the budget: for where the bins are
_SHAPE = ("score-centre", "score-spread")


@dataclass(frozen=True)
class NoisyEdges:
    """Where the bins of a score are: from the noisy mean of all scores, and their noisy mean distance from it.

    Guarantee: the cost of the share, in either relation (``scores.proof.md``, Lemma 5).
    """

    share: Share
    steps_at: tuple[str, str] = ("centre", "spread")

    @cached_property
    def _draws(self) -> tuple[JointNoise, ...]:
        half = self.share.part(Fraction(1, 2))
        kinds = zip(_SHAPE, self.steps_at, strict=True)
        return tuple(JointNoise(half, moves((pair(on),), half)[:-1], on, at) for on, at in kinds)

    def steps(self) -> tuple[Step, ...]:
        """One for each of the two."""
        return tuple(step for draw in self._draws for step in draw.steps())

    def draw(self, held: Secret[list[int]], noise: Noise) -> tuple[int, ...]:
        """The edges, in cells."""
        first, second = self._draws
        centre = round(noisy_share(first.draw(held.map(lambda sums: centre_sums(_rows(sums))), noise)) * CELLS)  # 7
        drawn = second.draw(held.map(lambda sums: spread_sums(_rows(sums), centre)), noise)  # 8
        return edges_of(centre, noisy_share(drawn) * REACH)  # 9


@dataclass(frozen=True)
class NoisyModelScores:
    """The sums of a task with noise for a share of a budget.

    ``blank``: what is released but for its sums. ``step``: of a plan, if all is drawn in one.

    Guarantee: the cost of the share, in either relation (``scores.proof.md``, Theorem 1).
    """

    task: ScoreTask
    share: Share
    blank: ModelScores
    step: str | None = None

    @cached_property
    def edges(self) -> NoisyEdges | None:
        """Where the bins are, if there are some."""
        if "bins" not in self.task.asked:
            return None
        part = self.share.part(EDGES_SHARE)
        return NoisyEdges(part) if self.step is None else NoisyEdges(part, (self.step, self.step))

    @cached_property
    def noise(self) -> JointNoise:
        """On all sums at once."""
        left = self.share if self.edges is None else self.share.part(1 - EDGES_SHARE)
        return JointNoise(left, moves(self.task.parts, left), "scores", self.step or RELEASE)  # 10

    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        return (*(() if self.edges is None else self.edges.steps()), *self.noise.steps())

    @property
    def deviations(self) -> dict[str, float]:
        """The standard deviation of the noise of a sum of each part."""
        found, place = dict[str, float](), 0
        for part in self.task.parts:
            found[part.name] = self.noise.deviations[place]
            place += part.size
        return found

    def draw(self, held: Secret[list[int]], noise: Noise) -> ModelScores:
        """One draw, from the sums that a pass has kept."""
        edges = () if self.edges is None else self.edges.draw(held, noise)
        drawn = self.noise.draw(held.map(lambda sums: self.task.vector(sums, edges)), noise)
        sums, unscored = self.task.named(drawn), drawn[-1]
        return replace(self.blank, parts=sums, deviations=self.deviations, unscored=unscored, edges=edges)


@dataclass(frozen=True)
class PlacedScores:
    """The area under the ROC curve where positives are rare: the negatives by bins, then where positives stand.

    A row is in one class: it is in the counts of the negatives, or in the two sums over the positives.

    Guarantee: the cost of the share, which is pure, if rows come or go (``scores.proof.md``, Theorem 2).
    """

    task: TwoClasses
    share: Share
    blank: ModelScores

    def __post_init__(self) -> None:
        if self.share.neighbours is not Neighbours.ADD_REMOVE or not self.share.is_pure:
            raise ValueError('the release for rare positives is proved for neighbours="add_remove" and pure noise')

    @cached_property
    def edges(self) -> NoisyEdges:
        """Where the bins are."""
        return NoisyEdges(self.share.part(EDGES_SHARE))

    @cached_property
    def counts(self) -> JointNoise:
        """On the counts of the negatives, and of rows without a score."""
        left = self.share.part(1 - EDGES_SHARE)
        return JointNoise(left, (Fraction(1),) * (BINS + 1), "rare-scores")  # 11

    @cached_property
    def places(self) -> JointNoise:
        """On the two sums over the positives."""
        return JointNoise(self.counts.share, (Fraction(PLACES),) * 2)  # 13

    def steps(self) -> tuple[Step, ...]:
        """Of a plan: the draws for both classes are one step, and cost together what one of them does."""
        how = StepNoise("rare-scores", "discrete Laplace", float(1 / self.counts.share.epsilon), "rows", BINS + 1)
        return (*self.edges.steps(), Step(RELEASE, StepKind.RELEASE, how, self.counts.share.cost))

    def draw(self, held: Secret[list[int]], noise: Noise) -> ModelScores:
        """One draw of both."""
        edges = self.edges.draw(held, noise)
        *common, unscored = self.counts.draw(held.map(lambda sums: common_counts(sums, edges)), noise)
        weights = place_weights(tuple(common), edges)
        placed = self.places.draw(held.map(lambda sums: placed_sums(sums, weights)), noise)
        sums = {"common": tuple(common), "placement": tuple(placed)}
        found = {"common": self.counts.deviations[0], "placement": self.places.deviations[0]}
        return replace(self.blank, parts=sums, deviations=found, unscored=unscored, edges=edges)


@dataclass(frozen=True)
class ScoredTable:
    """A mechanism on the sums of a pass, which is made after the charge: it asks a model that others have written."""

    work: ModelScorePass
    mechanism: NoisyModelScores | PlacedScores
    progress: bool | None = None

    def draw(self, data: Secret[Source], noise: Noise) -> ModelScores:
        """One pass, then one draw."""
        return self.mechanism.draw(data.map(self._sums), noise)

    def _sums(self, source: Source) -> list[int]:
        if isinstance(source, SparkSource):
            return gather(source, self.work, progress=self.progress).values()
        return Local(threads=1, progress=self.progress).run(source, self.work).values()  # models may not like threads


def _rows(held: list[int]) -> Integers:
    """The rows of both classes by cell."""
    found: Integers = np.array(held[:-1], dtype=object).reshape(2, CELLS + 1).sum(axis=0)
    return found


def common_counts(held: list[int], edges: tuple[int, ...]) -> list[int]:
    """The negatives by bins, and rows without a score."""
    counts = np.zeros(BINS, dtype=object)
    np.add.at(counts, bin_of(edges), np.array(held[: CELLS + 1], dtype=object))
    return [*(int(count) for count in counts), held[-1]]


def place_weights(common: tuple[int, ...], edges: tuple[int, ...]) -> list[int]:
    """The share of negatives below each cell by what was released, in whole numbers from 0 to ``PLACES``."""
    shares = shares_below(common, edges)
    return [int(weight) for weight in np.clip(np.rint(shares * PLACES), 0, PLACES)]  # 12


def placed_sums(held: list[int], weights: list[int]) -> list[int]:
    """The sums of these over the positives, and of the rest to ``PLACES``."""
    counts: Any = held[CELLS + 1 : -1]
    above = sum(count * weight for count, weight in zip(counts, weights, strict=True))
    return [above, sum(counts) * PLACES - above]
