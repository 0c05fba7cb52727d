"""Try many proposals in private, keep the best, pay once. Proof: ``select.proof.md``, whose line numbers the code has.

Keeping the best of many runs tells more about the data than a single run does. So their number is random and hidden,
or every proposal is tried once and all of it is paid for. What a run may spend then is decided in ``routes.py``.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

from snugdp.accounting.selection import Law
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import LedgerLike, NotPrivate, Outcome, Refused, Released, Unit
from snugdp.ledger.memory import RunLedger
from snugdp.ledger.question import question
from snugdp.mechanisms.selection.routes import (
    ROUTES,
    STEP,
    RunBudget,
    SelectionRequest,
    SharedTest,
    cheapest,
    law_of,
    planned,
    scaled,
)
from snugdp.noise import Noise
from snugdp.noise.number import number
from snugdp.numerics.rationals import Real
from snugdp.propose.plan import Plan, check_callable, share_of
from snugdp.release.context import ReleaseContext
from snugdp.release.progress import waiting
from snugdp.secrecy.silence import attempt
from snugdp.serial.codec import StoredOutcome

_LARGEST = Fraction(sys.float_info.max)

Proposal = TypeVar("Proposal")
Proposal_co = TypeVar("Proposal_co", covariant=True)


@dataclass(frozen=True)
class Selected(Generic[Proposal_co]):
    """The best of the runs.

    Parameters
    ----------
    proposal : object
        The winning proposal.
    release : object
        What its run released: an outcome, or a fitted estimator.
    score : float
        Its score.

    Examples
    --------
    >>> Selected(0.1, release=None, score=-2.5).proposal
    0.1
    """

    proposal: Proposal_co
    release: Any
    score: float


@dataclass(frozen=True)
class Selection(Generic[Proposal]):
    """The best of many runs, for one price.

    Rehearse before you release: whatever goes wrong inside a run or a score, even a mistake of yours, is a refusal that
    gives no reason and is paid for.

    Guarantee: (epsilon, delta) of the budget in all, for the winner with its proposal and score (``select.proof.md``,
    Theorems 1 to 3). A refused or failed run ranks last; if there is no other, the selection is refused. The number of
    runs stays hidden; the time they take reveals something about it and is not covered. Nor is anything that ``run``
    and ``score`` do besides their releases: printing, or scoring on private rows as if they were public.

    Parameters
    ----------
    proposals : sequence
        The candidates; public.
    run : callable
        ``run(proposal, budget, ledger)``: a release of this library, charged to the given ledger within the given
        budget; it returns the outcome or the fitted estimator. With an attribute ``plan(proposal, budget)``, the plan
        of the run, its cost is known and it may spend more; without one it counts as an arbitrary (epsilon, delta)-DP
        release. A run that also takes ``noise=`` can be rehearsed; the ledger is then None.
    score : callable
        ``score(release)``: a number of any type, larger is better, computed from the release and public data alone.
        With ``score_share``, ``score(release, budget, ledger)`` is itself a release, with ``plan(budget)`` if that is
        known.
    budget : Budget
        What the whole selection may spend.
    law : str or Law, default="geometric"
        The law of the hidden number of runs.
    mean_runs : Real, optional
        The mean number of runs; by default the number of proposals.
    most_runs : int, optional
        Where the number of runs is cut off, and the selection refused; by default where that is next to impossible.
    route : {"stop", "compose"}, optional
        "stop" for a random number of runs, "compose" to run every proposal once; by default the second, if it leaves
        each run no less to spend.
    score_share : Real, optional
        The share of a run's budget that the score spends, if it looks at private data.
    shared_test : callable, optional
        ``shared_test(budget, ledger)``: a release before all runs, with ``plan(budget)`` if that is known. Every run is
        given its outcome as ``certificate=``. If it refuses, so does the selection.
    test_share : Real, default=0.2
        The share of the budget that the shared test spends.
    unit : {"row", "person"}
        Whom every run protects: "person" where runs name a column of persons, as in ``person="customer_id"``.

    Examples
    --------
    >>> import snugdp
    >>> def run(law, budget, ledger):
    ...     return snugdp.vote("ab", candidates="ab", epsilon=budget.epsilon, law=law, ledger=ledger)
    >>> choice = Selection(["gumbel", "laplace"], run, lambda release: 0, budget=snugdp.Budget(2, 1e-6))
    >>> print(choice.plan().title)
    The best of 2 proposals
    """

    proposals: Sequence[Proposal]
    run: Callable[..., Any]
    score: Callable[..., Any]
    _: KW_ONLY
    budget: Budget
    law: str | Law = "geometric"
    mean_runs: Real | None = None
    most_runs: int | None = None
    route: str | None = None
    score_share: Real | None = None
    shared_test: Callable[..., Any] | None = None
    test_share: Real = 0.2
    unit: Unit | str = Unit.ROW
    _plan: Plan = field(init=False, repr=False, compare=False)
    _runs: RunBudget = field(init=False, repr=False, compare=False)
    _request: SelectionRequest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Everything that can be refused is refused here: all proposals are planned, none is run."""
        self._check()
        request = SelectionRequest(
            proposals=tuple(self.proposals),
            budget=self.budget,
            law=law_of(self.law, self.mean_runs, len(self.proposals)),
            most=self.most_runs,
            run_plan=getattr(self.run, "plan", None),
            score_plan=getattr(self.score, "plan", None),
            score_share=Fraction(0) if self.score_share is None else share_of(self.score_share, "score_share"),
            test=self._test(),
        )
        chosen, other = cheapest(request, self.route)
        plan = replace(planned(request, chosen, other), unit=self._unit)
        made = {"_request": request, "_runs": chosen, "_plan": plan}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def plan(self) -> Plan:
        """What will be done and what it costs, which route it takes and what the other leaves. No data are read."""
        return self._plan

    @property
    def run_budget(self) -> Budget:
        """What a run is given to spend."""
        return self._request.split(self._runs.whole)[0]

    def release(
        self, *, ledger: LedgerLike | None = None, noise: Noise | None = None, progress: bool | None = None
    ) -> Outcome[Selected[Proposal]]:
        """Pay once, run, keep the best.

        ``ledger``: what is charged, a ledger or the path or URL of one; without it the selection has a budget of its
        own and nothing is being summed up. One that keeps outcomes keeps the winner if its proposal and release are
        numbers, text, arrays, lists, dicts or outcomes of ours; a fitted estimator is shown once, and a retry refused.
        ``progress``: a sign of life on the terminal, by default where there is one; it shows the time and nothing else.

        Guarantee: that of the class.
        """
        later = {"unit"} if self._unit is Unit.ROW else set()  # keys do not tell of it
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.init and one.name not in later}
        return self.paid_from(
            ReleaseContext(noise, ledger, self.budget, unit=self._unit).with_question(
                lambda: question(self._plan.title, by="select", **given)
            ),
            progress,
        )

    def paid_from(
        self, context: ReleaseContext, progress: bool | None = None, **more: Any
    ) -> Outcome[Selected[Proposal]]:
        """``release`` with the money and the randomness of a context. ``more``: given to every run.

        Guarantee: that of the class.
        """
        if progress not in (None, True, False):
            raise TypeError("progress must be True, False or None")
        if not context.noise.private and not _names(self.run, "noise"):
            raise TypeError("a rehearsal needs a run that takes noise=... and gives it to its release")

        def walk(noise: Noise, _: object) -> StoredOutcome:
            best = self._best(noise.at(STEP), more)
            return StoredOutcome(refused=True) if best is None else StoredOutcome(refused=False, value=best)  # 5.

        with waiting("selecting", progress):
            return context.pay(self._plan, walk)  # 1.

    def _best(self, noise: Noise, more: dict[str, Any]) -> Selected[Proposal] | None:
        if self.shared_test is not None and self._request.test is not None:
            test, asked = self.shared_test, self._request.test
            own = self._ledger(noise, asked.whole, asked.limit, label="the test of a selection")
            certificate = _attempt(lambda: self._released(test(asked.whole, own, **_noise_for(test, noise)), own), own)
            if certificate is None:
                return None
            more = {**more, "certificate": certificate}
        best: Selected[Proposal] | None = None
        for proposal in self._tries(noise):
            found = self._once(proposal, noise, more)  # 3.
            if found is not None and (best is None or found.score > best.score):  # 4.
                best = found
        return best

    def _tries(self, noise: Noise) -> Iterator[Proposal]:
        """What to run, one after the other. How many there are is hidden, unless it is every proposal once."""
        if self._runs.law is None:
            yield from self.proposals
            return
        for _ in range(noise.stopping(self._runs.law, self._runs.most)):  # 2.
            yield self.proposals[noise.choice(len(self.proposals))]

    def _once(self, proposal: Proposal, noise: Noise, more: dict[str, Any]) -> Selected[Proposal] | None:
        """One run and its score, charged to a ledger of their own; nothing if it was refused or failed."""
        run_budget, score_budget = self._request.split(self._runs.whole)
        parts = (run_budget,) if score_budget is None else (run_budget, score_budget)
        own = self._ledger(noise, self._runs.whole, self._runs.limit, parts=parts)
        to_run, to_score = (_noise_for(what, noise) for what in (self.run, self.score))

        def attempt() -> Selected[Proposal] | None:
            release = self._released(self.run(proposal, run_budget, own, **to_run, **more), own)
            if release is None:
                return None
            if score_budget is None:
                return Selected(proposal, release, _number(self.score(release)))
            scored = self._released(self.score(release, score_budget, own, **to_score), own)
            return None if scored is None else Selected(proposal, release, _number(_outcome(scored).value))

        found: Selected[Proposal] | None = _attempt(attempt, own)
        return found

    @property
    def _unit(self) -> Unit:
        return Unit.of(self.unit)

    def _ledger(self, noise: Noise, budget: Budget, limit: Cost | None, **how: Any) -> RunLedger | None:
        """That of one run; None in a rehearsal."""
        return RunLedger(budget, limit, unit=self._unit, **how) if noise.private else None

    def _released(self, result: Any, own: RunLedger | None) -> Any:
        """The result of a release, or nothing if it was refused. What was not charged to its ledger is no release."""
        outcome = _outcome(result)
        if isinstance(outcome, Refused) or (own is None and isinstance(outcome, NotPrivate) and outcome.refused):
            return None
        paid = isinstance(outcome, Released) and own is not None and own.gave(outcome.receipt)
        if not paid and not (own is None and isinstance(outcome, NotPrivate)):
            raise TypeError(
                "a run must return the outcome, or the fitted estimator, that was charged to the ledger given"
            )
        self._unit.require(outcome.unit)
        return result

    def _test(self) -> SharedTest | None:
        if self.shared_test is None:
            return None
        return SharedTest.of(scaled(self.budget, share_of(self.test_share)), getattr(self.shared_test, "plan", None))

    def _check(self) -> None:
        proposals = self.proposals
        if isinstance(proposals, str | bytes | Mapping) or not hasattr(proposals, "__len__") or not len(proposals):
            raise ValueError("proposals must be a list of at least one")
        object.__setattr__(self, "proposals", tuple(proposals))
        if not isinstance(self.budget, Budget):
            raise TypeError("budget must be a snugdp.Budget(epsilon, delta)")
        if self.route not in (None, *ROUTES):
            raise ValueError('route must be "stop" or "compose", or None for the cheaper one')
        most = self.most_runs
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise ValueError("most_runs must be a whole number of at least 1")
        more = {} if self.shared_test is None else {"certificate": None}
        paid = () if self.score_share is None else ("budget", "ledger")
        check_callable(self.run, "run", "proposal", "budget", "ledger", **more, **_noise_for(self.run, None))
        check_callable(self.score, "score", "release", *paid, **_noise_for(self.score, None))
        if self.shared_test is not None:
            check_callable(self.shared_test, "shared_test", "budget", "ledger", **_noise_for(self.shared_test, None))


def select(
    proposals: Sequence[Proposal],
    run: Callable[..., Any],
    score: Callable[..., Any],
    *,
    budget: Budget,
    law: str | Law = "geometric",
    mean_runs: Real | None = None,
    route: str | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Outcome[Selected[Proposal]]:
    """The best of many private runs, for one price: ``Selection(...).release(...)``.

    Guarantee: that of ``Selection``.

    Parameters
    ----------
    proposals, run, score
        The public candidates, ``run(proposal, budget, ledger)`` and ``score(release)``, as described at ``Selection``.
    budget : Budget
        What the whole selection may spend.
    law, mean_runs, route
        How many runs there are, and whether at random, as described at ``Selection``.
    ledger, noise
        As in ``snugdp.median``. **Without a ledger this release is not counted against any budget.**
    progress : bool, optional
        Whether to show that it is running.
    **options
        ``most_runs``, ``score_share``, ``shared_test``, ``test_share`` and ``unit`` of ``Selection``.

    Returns
    -------
    Outcome
        Its value is a ``Selected``.

    Examples
    --------
    >>> import snugdp
    >>> ages = [30 + i % 7 for i in range(5000)]
    >>> def run(beta, budget, ledger):
    ...     query = snugdp.TrimmedMean(epsilon=budget.epsilon, delta=budget.delta, bounds=(0, 100), beta=beta)
    ...     return query.release(ages, ledger=ledger)
    >>> budget = snugdp.Budget(2, 1e-6, "replace")
    >>> outcome = select([0.1, 0.2], run, lambda release: -abs(release.value - 33), budget=budget)
    >>> outcome.refused or outcome.value.proposal in (0.1, 0.2)
    True
    """
    made = Selection(proposals, run, score, budget=budget, law=law, mean_runs=mean_runs, route=route, **options)
    return made.release(ledger=ledger, noise=noise, progress=progress)


def _attempt(work: Callable[[], Any], own: RunLedger | None) -> Any:
    """What came of it. In a release whatever goes wrong is a refusal, and quiet; a rehearsal shows the mistake."""
    if own is None:
        return work()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same warning again and again would count the runs
            return attempt(work)[1]
    finally:
        own.close()


def _outcome(result: Any) -> Any:
    return getattr(result, "outcome_", result)


def _number(score: Any) -> float:
    """A score to compare, a number of any type; what is no number is the worst of those that were released."""
    value = number(score)
    if isinstance(value, Fraction):
        return float(max(-_LARGEST, min(value, _LARGEST)))
    return -math.inf if math.isnan(value) else value


def _noise_for(function: Any, noise: Any) -> dict[str, Any]:
    """The noise by name, for a function that takes it."""
    return {"noise": noise} if _names(function, "noise") else {}


def _names(function: Any, argument: str) -> bool:
    """Whether the function takes an argument of this name."""
    try:
        return argument in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
