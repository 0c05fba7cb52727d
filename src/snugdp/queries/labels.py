"""The mode of a column, and votes between candidates. Proofs: ``mechanisms/votes/mode.proof.md``, ``vote.proof.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, Literal, Required, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.certify.distance import DistanceTest, integer_laplace
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.order_statistics.stable import Stable
from snugdp.mechanisms.votes import mode as _mode
from snugdp.mechanisms.votes import vote as _vote
from snugdp.mechanisms.votes.vote import NoisyMax
from snugdp.noise import Continuous, Gaussian, Gumbel, Laplace
from snugdp.numerics.rationals import Real, float_down, float_up, rational
from snugdp.propose.forecast import Forecast, Note, PassChance, noted
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise, share_of
from snugdp.propose.theorem import theorem
from snugdp.queries.base import Query, ReleaseKeywords, Shown, require_delta, require_name
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release, release_or_refuse
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import Names
from snugdp.tables.schema.kinds import Category

Label = TypeVar("Label", bound=Hashable)
Counts = NDArray[np.int64]
LawName = Literal["auto", "gumbel", "laplace", "gaussian"]
_GAPS = Note("missing-entries")


class ModeKeywords(ReleaseKeywords, Generic[Label], total=False):
    """The keyword arguments of ``mode``."""

    categories: Required[Sequence[Label]]
    delta: Required[Real]
    column: str | None


@dataclass(frozen=True, kw_only=True)
class Mode(Query[Label]):
    """The most frequent of the public ``categories``, exactly, if it leads by a safe margin; otherwise a refusal.
    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/votes/mode.proof.md``).

    Parameters
    ----------
    categories : sequence
        All values that count; public. Ties go to the one listed first; rows with other values are ignored.
    epsilon : Real
        Privacy budget.
    delta : Real
        Failure probability.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    column : str, optional
        The name of the column, if the data are a table: a frame, files, a database or Spark, read in one pass.

    Examples
    --------
    >>> query = Mode(categories=["yes", "no"], epsilon=1, delta=1e-6)
    >>> query.release(["yes"] * 200 + ["no"] * 90).value
    'yes'
    """

    categories: Sequence[Label]
    epsilon: Real
    delta: Real
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    column: str | None = None

    _later = {"column": None}  # noqa: RUF012

    def __post_init__(self) -> None:
        require_name(self.column)
        object.__setattr__(self, "categories", copy(self.categories))  # a list may change later
        self._names  # noqa: B018  invalid labels are refused here, before any data are seen
        require_delta(self._budget)

    @cached_property
    def _names(self) -> Names:
        return public_names(self.categories, "categories")

    @cached_property
    def _mechanism(self) -> Stable[Counts]:
        relation = self._budget.neighbours.relation
        return Stable(_mode.winner, lambda tally: _mode.distance(tally, relation), 0, self._budget, Fraction(1, 2))

    @cached_property
    def _plan(self) -> Plan:
        mechanism = self._mechanism
        lead = (mechanism.safe_distance() + 1) * _vote.step(self._budget.neighbours.relation)
        forecast = Forecast(chances=(PassChance(0.95, "mode-leads", {"rows": lead}),))
        plan = Plan("Mode", theorem("mode/1"), mechanism.steps(), forecast=forecast, budget=self._budget)
        return plan.with_notes(_GAPS)

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Label]:
        tally = self._tally(data)
        shown = Shown(self._mechanism, lambda index: self.categories[index])
        return release_or_refuse(self.plan(), self._mechanism.test(), shown, tally, context)

    def _tally(self, data: object) -> Secret[Counts]:
        """How often each category occurs."""
        if self.column is None:
            return Secret(self._names.counts(data))
        from snugdp.queries.statistics.base import sums_of  # for those who bring a table
        from snugdp.tables.passes.columns.statistics import LabelCounts, StatisticsPass

        sums = sums_of(data, StatisticsPass((LabelCounts(self.column, self._names),)))
        return sums.map(lambda counts: np.array(counts[: len(self._names)], dtype=np.int64))


class VoteKeywords(ReleaseKeywords, Generic[Label], total=False):
    """The keyword arguments of ``vote``."""

    candidates: Required[Sequence[Label]]
    delta: Real
    law: LawName
    noise_epsilon: Real | None
    test_share: Real


@dataclass(frozen=True, kw_only=True)
class Vote(Query[Label]):
    """The winner among public ``candidates`` after noise on every count: report noisy max.

        Rows with other labels, or without one, are ignored.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/votes/vote.proof.md``).

    Parameters
    ----------
    candidates : sequence
        All labels that count; public.
    epsilon : Real
        Privacy budget.
    delta : Real, default=0
        Failure probability.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    law : {"auto", "gumbel", "laplace", "gaussian"}
        The noise. "auto" is Laplace noise with its exact (epsilon, delta) loss for two candidates and delta > 0, and
        otherwise Gumbel noise, which is pure.
    noise_epsilon : Real, optional
        For two candidates: proposes less noise than the budget affords on all data. A private test on the lead then
        decides, and the vote may be refused. At equal privacy the plain vote is better: see the errata.
    test_share : Real, default=0.5
        The share of epsilon that pays for that test.

    Examples
    --------
    >>> Vote(candidates=["cat", "dog", "fox"], epsilon=2).release(["cat"] * 80 + ["dog"] * 10).value
    'cat'
    """

    candidates: Sequence[Label]
    epsilon: Real
    delta: Real = 0
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    law: LawName = "auto"
    noise_epsilon: Real | None = None
    test_share: Real = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", copy(self.candidates))  # a list may change later
        self._names  # noqa: B018  invalid labels are refused here, before any data are seen
        share_of(self.test_share)
        if self._budget.delta > Fraction(1, 2):
            raise ValueError("delta must be at most 1/2; 1e-6 is typical")
        if self.law not in ("auto", "gumbel", "laplace", "gaussian"):
            raise ValueError('law must be "auto", "gumbel", "laplace" or "gaussian"')
        if self.noise_epsilon is not None:
            if len(self.candidates) != 2 or self.law not in ("auto", "laplace"):
                raise ValueError("noise_epsilon, a proposal to be tested, is for two candidates and Laplace noise")
            if rational(self.noise_epsilon, "noise_epsilon") <= 0:
                raise ValueError("noise_epsilon must be greater than 0")
            require_delta(self._budget)
        if self.law == "gaussian" and not self._budget.delta:
            raise ValueError("Gaussian noise needs delta > 0; use law='gumbel' for delta = 0")
        self._prepared  # noqa: B018  what cannot be private enough is refused here

    @cached_property
    def _names(self) -> Names:
        return public_names(self.candidates, "candidates")

    @property
    def _plan(self) -> Plan:
        return self._prepared[2]

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Label]:
        tally = Secret(self._names.counts(data))
        mechanism, test, plan = self._prepared
        shown = Shown(mechanism, lambda index: self.candidates[index])
        if test is None:
            return release(plan, shown, tally, context)
        return release_or_refuse(plan, test, shown, tally, context)

    @cached_property
    def _prepared(self) -> tuple[NoisyMax, DistanceTest[Counts] | None, Plan]:
        if self.noise_epsilon is not None:
            return self._tested(rational(self.noise_epsilon, "noise_epsilon"))
        law, cost = self._plain()
        forecast = noted("lead-wins", rows=_usual_lead(law, len(self.candidates)))
        plan = Plan("Vote", theorem("vote/1"), (_release(law, cost),), forecast=forecast, budget=self._budget)
        return NoisyMax(law), None, plan.with_notes(_GAPS)

    def _plain(self) -> tuple[Continuous, Cost]:
        """The least noise that the budget affords on all data."""
        budget, relation = self._budget, self._budget.neighbours
        moved = _vote.step(relation.relation)
        pure = Cost(epsilon=budget.epsilon, neighbours=relation)
        if self.law == "gaussian":
            mu = Fraction(gaussian.mu(budget.epsilon, budget.delta))
            sigma = Fraction(math.isqrt(moved * 10**40) + 1, 10**20) / mu
            return Gaussian(sigma), Cost(mu=mu, neighbours=relation)
        if self.law == "gumbel" or (self.law == "auto" and not (len(self.candidates) == 2 and budget.delta)):
            return Gumbel(moved / budget.epsilon), pure
        if len(self.candidates) != 2 or not budget.delta:
            return Laplace(moved / budget.epsilon), pure
        strength = _vote.noise_epsilon_for(
            float_down(budget.epsilon), min(float_down(budget.delta), 0.49), relation.relation
        )
        return Laplace(1 / Fraction(strength)), pure + Cost(delta=budget.delta, neighbours=relation)

    def _tested(self, proposal: Fraction) -> tuple[NoisyMax, DistanceTest[Counts], Plan]:
        """The generalized form: test that the lead is large enough for the proposed noise."""
        budget, relation = self._budget, self._budget.neighbours.relation
        share, half = share_of(self.test_share), budget.delta / 2
        left = budget.epsilon * (1 - share)
        least = _vote.least_gap(float_up(proposal), float_down(left), float_down(half), relation)
        if math.isinf(least):
            raise ValueError("no lead makes this noise_epsilon private enough: propose a smaller one")
        test = integer_laplace(
            _gap_distance(least, relation), epsilon=budget.epsilon * share, delta=half, neighbours=budget.neighbours
        )
        law = Laplace(1 / Fraction(float_up(proposal)))
        params = {"least": least, "threshold": test.threshold}
        steps = (
            Step("test", StepKind.TEST, StepNoise("lead", "discrete Laplace", params=params), test.cost),
            _release(law, Cost(epsilon=left, delta=half, neighbours=budget.neighbours)),
        )
        lead = least + _vote.step(relation) * math.ceil(
            test.threshold + Fraction(math.log(20)) / (budget.epsilon * share)
        )
        forecast = Forecast(chances=(PassChance(0.95, "lead", {"rows": lead}),))
        proved = theorem("vote-tested/1")
        plan = Plan("Vote", proved, steps, {"noise_epsilon": proposal}, forecast, self._budget)
        return NoisyMax(law), test, plan.with_notes(_GAPS)


def _release(law: Continuous, cost: Cost) -> Step:
    scale = law.sigma if isinstance(law, Gaussian) else law.scale
    noise = StepNoise("largest-count", type(law).__name__.lower(), float(scale), "rows")
    return Step("release", StepKind.RELEASE, noise, cost)


def _gap_distance(least: int | float, relation: _vote.Relation) -> Callable[[Counts], int | float]:
    return lambda tally: _vote.distance(abs(int(tally[0]) - int(tally[1])), least, relation)


def _usual_lead(law: Continuous, candidates: int) -> int:
    """A lead over everybody else that wins in 19 of 20 cases, by a union bound over the others."""
    rare = math.log(20 * max(candidates - 1, 1))
    if isinstance(law, Gaussian):
        return math.ceil(float(law.sigma) * 2 * math.sqrt(rare))
    return math.ceil(float(law.scale) * (rare if isinstance(law, Gumbel) else rare + 1))


def public_names(labels: Sequence[Hashable], name: str) -> Names:
    """Labels that were listed, in the form that tells cells apart."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence):
        raise TypeError(f"{name} must be a list of labels, known without the data; use list(...) on other containers")
    if not labels:
        raise ValueError(f"{name} is empty: give the public list of labels")
    return Names(labels, name)


def listed(values: Sequence[Label] | Category | None) -> Sequence[Any] | None:
    """The values that somebody listed, or a schema did: a copy, for a list may change later."""
    return values.levels if isinstance(values, Category) else copy(values)
