"""Try many proposals in private, keep the best, pay once. Proof: ``select.proof.md``, whose line numbers the code has.

To look at the scores of many runs and to keep the best tells about the data what no single run does. The runs are a
random number of draws from the proposals, and the number stays hidden; or every proposal is tried once, and all of it
is paid for. ``accounting/selection.py`` says what a run may spend.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar

from snugdp.accounting.rational import Real, rational
from snugdp.accounting.selection import Law
from snugdp.data.quiet import quietly
from snugdp.guarantee import Budget
from snugdp.ledger.inner import RunLedger
from snugdp.noise import Noise
from snugdp.outcome import Ledger, NotPrivate, Outcome, Refused, Released
from snugdp.ptr.propose import Plan
from snugdp.ptr.purse import Purse
from snugdp.ptr.routes import ROUTES, Routes, Share, law_of
from snugdp.ptr.waiting import waiting

Proposal = TypeVar("Proposal")
Proposal_co = TypeVar("Proposal_co", covariant=True)


@dataclass(frozen=True)
class Selected(Generic[Proposal_co]):
    """The best of the runs: what was proposed, what its run released, and its score."""

    proposal: Proposal_co
    release: Any = field(repr=False)
    score: float


@dataclass(frozen=True)
class Selection(Generic[Proposal]):
    """The best of many runs, for one price.

    ``proposals``: public. ``run(proposal, budget, ledger)``: a release of ours, charged to this ledger within this
    budget; it returns the outcome or the fitted estimator. If it has an attribute ``plan(proposal, budget)`` that gives
    the plan of the run, the run may spend more, for its cost is known; without one it is any (epsilon, delta)-DP
    release. If it takes ``noise`` as well it can be rehearsed; the ledger is then ``None``.
    ``score(release)``: larger is better; from the release and public data alone. ``score_share``: the part of a run's
    budget that the score spends, if it looks at the private data: ``score(release, budget, ledger)`` is then a release
    like a run, with ``plan(budget)`` if that is known.
    ``law``, ``mean_runs``: the law of the hidden number of runs, by name or one of ``accounting.selection``, and its
    mean; by default geometric, and as many as there are proposals. ``most_runs``: where the number is cut off, which
    ends in a refusal; by default where that is next to impossible.
    ``route``: "stop" for a random number of runs, "compose" for every proposal once; by default the second if it leaves
    a run no less to spend.
    ``shared_test(budget, ledger)``: a release before all runs, for ``test_share`` of epsilon and delta, that every run
    is given as ``certificate=...``; if it refuses, so does the selection.

    Guarantee: (epsilon, delta) of the budget in all, for the winner with its score and proposal
    (``select.proof.md``, Theorem 1). A refused or failed run is the worst; if there is no other, the selection is
    refused. How many runs there were is not told; how long it took tells about it and is not covered. Not covered: what
    ``run`` and ``score`` do beside their releases, such as printing, or scoring on private rows as if they were public.
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
    _routes: Routes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "proposals", _several(self.proposals))
        if not isinstance(self.budget, Budget):
            raise TypeError("budget must be a snugdp.Budget(epsilon, delta)")
        if self.route not in (None, *ROUTES):
            raise ValueError(f"route must be one of {', '.join(ROUTES)}, or None for the cheapest")
        private, tested = self.score_share is not None, self.shared_test is not None
        _takes(self.run, "run", "proposal, budget, ledger", 3, ("certificate",) if tested else ())
        _takes(self.score, "score", *(("release, budget, ledger", 3) if private else ("release", 1)))
        if self.shared_test is not None:
            _takes(self.shared_test, "shared_test", "budget, ledger", 2)
        share = Share(
            part(self.score_share, "score_share") if self.score_share is not None else Fraction(0),
            part(self.test_share, "test_share") if tested else Fraction(0),
        )
        law = law_of(self.law, self.mean_runs, len(self.proposals))
        routes = Routes(tuple(self.proposals), self.run, self.score, self.budget, law, share, self.most_runs, self.route)
        object.__setattr__(self, "_routes", routes)
        assert routes.plan  # what cannot be planned is refused here

    def plan(self) -> Plan:
        """What will be done and what it costs, which route it takes and why. No data are read."""
        return self._routes.plan

    def release(
        self, *, ledger: Ledger | None = None, noise: Noise | None = None, progress: bool | None = None
    ) -> Outcome[Selected[Proposal]]:
        """Pay once, run, keep the best.

        ``progress``: a sign on the terminal that something is going on; by default where there is a terminal. It shows
        the time and nothing else.

        Guarantee: that of the class.
        """
        if progress not in (None, True, False):
            raise TypeError("progress must be True, False or None")
        purse = Purse(noise, ledger, self.budget)
        if not purse.noise.private and not _named(self.run, "noise"):
            raise TypeError("a rehearsal needs a run that takes noise=..., and gives it to its release")
        paid = purse.pay(self.plan())  # 1.
        with waiting("selecting", progress):
            best = self._best(purse.noise)
        return paid.refused() if best is None else paid.released(best)  # 5.

    def _best(self, noise: Noise) -> Selected[Proposal] | None:
        more: dict[str, Any] = {}
        if self.shared_test is not None:
            found = self._charged(noise, self._routes.test, lambda own, ledger: self._tested(own, ledger, noise))
            if found is None:
                return None
            more["certificate"] = found
        best: Selected[Proposal] | None = None
        for proposal in self._tries(noise):
            candidate = self._once(proposal, noise, more)  # 3.
            if candidate is not None and (best is None or candidate.score > best.score):  # 4.
                best = candidate
        return best

    def _tries(self, noise: Noise) -> Iterator[Proposal]:
        """What to run, one after the other; how many there are is hidden."""
        chosen = self._routes.chosen
        if chosen.law is None:
            yield from self.proposals
            return
        for _ in range(noise.stopping(chosen.law, chosen.most)):  # 2.
            yield self.proposals[noise.choice(len(self.proposals))]
