"""``snugdp.pate``: from the votes of teachers to labels that may be published."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting.gaussian import positive
from snugdp.core.guarantee import Budget
from snugdp.core.outcome import LedgerLike, Outcome, Unit
from snugdp.ledger.question import Question, question
from snugdp.mechanisms.teachers.labels import NO_ANSWER
from snugdp.mechanisms.teachers.planning import design
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.pate.proposals import Confidence, LabelRequest, Proposal, Size, plain, smooth, tested
from snugdp.pate.votes import Form, Panel, read
from snugdp.propose.plan import Plan
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release, release_or_refuse
from snugdp.secrecy.secret import Secret

Test = Literal["distance", "smooth", "none"]


@dataclass(frozen=True, eq=False)
class Labels:
    """Released labels, one for each query.

    Parameters
    ----------
    labels : ndarray
        The labels; meaningless where ``answered`` is False.
    answered : ndarray of bool
        Which queries have an answer.

    Examples
    --------
    >>> np.asarray(Labels(np.array(["cat", "dog"]), np.array([True, True]))).tolist()
    ['cat', 'dog']
    """

    labels: NDArray[Any]
    answered: NDArray[np.bool_]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.labels, dtype=dtype) if copy is not False else np.asarray(self.labels, dtype=dtype)

    def __len__(self) -> int:
        return len(self.labels)


def plan(
    budget: Budget,
    *,
    n_queries: int,
    n_teachers: int,
    n_classes: int,
    sigma: Real | None = None,
    test: Test = "distance",
    gap: Any = None,
    proxy: Any = None,
    threshold: Real | None = None,
    threshold_sigma: Real | None = None,
) -> Plan:
    """What ``label`` will do, what it costs and what to expect. No votes are read.

    Parameters
    ----------
    budget : Budget
        What may be spent.
    n_queries, n_teachers, n_classes : int
        How many there are; public.
    sigma : Real, optional
        Standard deviation of the noise on every count; by default the plan chooses it.
    test : {"distance", "smooth", "none"}
        "distance" tests where that promises more right labels than plain noise; "smooth" is the test of the paper;
        "none" is plain noise, which never refuses.
    gap : Real or sequence, optional
        A belief: the number of votes by which the plurality leads. Without ``gap`` and ``proxy`` all leads are taken to
        be equally likely, and the test hardly ever pays.
    proxy : array-like, optional
        A belief: public histograms of similar queries.
    threshold : Real, optional
        Answer only queries whose largest count reaches this after noise (Confident-GNMax).
    threshold_sigma : Real, optional
        Standard deviation of that noise.

    Returns
    -------
    Plan
        Print it.

    Examples
    --------
    >>> from snugdp import Budget
    >>> print(plan(Budget(0.5, 1e-5), n_queries=1000, n_teachers=400, n_classes=10, gap=200))  # doctest: +ELLIPSIS
    Plan: Labels of 1,000 queries by 400 teachers
      propose  sigma = ...
    """
    size = Size(_count(n_teachers, "n_teachers"), _count(n_queries, "n_queries"), _count(n_classes, "n_classes", 2))
    return propose(budget, size, test, Numbers(sigma, gap, proxy, threshold, threshold_sigma)).plan


def label(
    votes: Any,
    budget: Budget,
    sigma: Real | None = None,
    test: Test = "distance",
    *,
    form: Form = "histograms",
    n_teachers: int | None = None,
    classes: Sequence[Hashable] | None = None,
    gap: Any = None,
    proxy: Any = None,
    threshold: Real | None = None,
    threshold_sigma: Real | None = None,
    ledger: LedgerLike | None = None,
    noise: Noise | None = None,
) -> Outcome[Labels]:
    """Labels for public queries from the votes of teachers, or a refusal.

    Guarantee: (epsilon, delta)-DP if the votes of neighbouring tables differ in those of one teacher, who may change
    all its votes or abstain, whether it ends in labels or in a refusal. The queries are public and chosen without the
    votes; ``gap``, ``proxy`` and all numbers must not be tuned on the votes either.

    Parameters
    ----------
    votes : array, list, table or path of a Parquet file
        The votes, in one of three forms.
    budget, sigma, test, gap, proxy, threshold, threshold_sigma
        As in ``plan``.
    form : {"histograms", "teachers", "queries"}
        "histograms": one row for each query and one column for each class. "teachers": the label that each teacher
        (row) gives to each query (column). "queries": the same, transposed.
    n_teachers : int, optional
        How many teachers there are; required if they may abstain.
    classes : sequence, optional
        The classes; public.
    ledger, noise
        As in ``snugdp.median``. **Without a ledger this release is not counted against any budget.**

    Returns
    -------
    Outcome
        Its value is a ``Labels``.

    Examples
    --------
    >>> from snugdp import Budget
    >>> votes = [[10, 280, 10], [290, 5, 5]] * 20
    >>> outcome = label(votes, Budget(2, 1e-5), gap=250)
    >>> outcome.value.labels[:4].tolist() if outcome else "refused"
    [1, 0, 1, 0]
    """
    _check_budget(budget)
    context = ReleaseContext(noise, ledger, budget, unit=Unit.TEACHER)
    panel, inside = read(votes, form=form, n_teachers=n_teachers, classes=classes)
    size = Size(panel.teachers, panel.queries, len(panel.classes))
    numbers = Numbers(sigma, gap, proxy, threshold, threshold_sigma)
    return run(
        propose(budget, size, test, numbers),
        panel,
        inside,
        context.with_question(lambda: asked(budget, panel, test, numbers)),
    )


def asked(budget: Budget, panel: Panel, test: Test, given: Numbers) -> Question:
    """The question of a call, for the key of a ledger: all of it is public."""
    words = f"labels of {panel.queries:,} queries"
    votes = {"classes": panel.classes, "teachers": panel.teachers, "queries": panel.queries}
    return question(words, by="pate.label", votes=votes, budget=budget, test=test, given=given)


def run(proposal: Proposal, panel: Panel, votes: Secret[Any], context: ReleaseContext) -> Outcome[Labels]:
    """Pay, test, release or refuse."""
    shown = _Shown(proposal, panel)
    if proposal.test is None:
        return release(proposal.plan, shown, votes, context)
    return release_or_refuse(proposal.plan, proposal.test, shown, votes, context)


@dataclass(frozen=True)
class _Shown:
    """The mechanism with the names of the classes."""

    proposal: Proposal
    panel: Panel

    def draw(self, data: Secret[Any], noise: Noise) -> Labels:
        indices = self.proposal.mechanism.draw(data, noise)
        answered = indices != NO_ANSWER
        return Labels(_names(self.panel.classes)[np.maximum(indices, 0)], answered)


def _names(classes: Sequence[Hashable]) -> NDArray[Any]:
    if all(isinstance(c, str) for c in classes) or all(isinstance(c, int | np.integer) for c in classes):
        return np.array(classes)
    names = np.empty(len(classes), dtype=object)
    names[:] = list(classes)
    return names


@dataclass(frozen=True)
class Numbers:
    """The public numbers of a call, as they were given."""

    sigma: Real | None
    gap: Any
    proxy: Any
    threshold: Real | None
    threshold_sigma: Real | None


def propose(budget: Budget, size: Size, test: Test, given: Numbers) -> Proposal:
    """The proposal for a call. Everything public is checked here, before any vote is looked at."""
    _check_budget(budget)
    if test not in get_args(Test):
        raise ValueError('test must be "distance", "smooth" or "none"')
    belief = design(
        gap=given.gap, proxy=given.proxy, teachers=size.teachers, queries=size.queries, classes=size.classes
    )
    sigma = None if given.sigma is None else positive(given.sigma, "sigma")
    request = LabelRequest(budget, size, sigma, _confidence(given.threshold, given.threshold_sigma, size), belief)
    return {"none": plain, "smooth": smooth, "distance": tested}[test](request)


def _confidence(threshold: Real | None, threshold_sigma: Real | None, size: Size) -> Confidence | None:
    if threshold is None:
        if threshold_sigma is not None:
            raise ValueError("threshold_sigma belongs to a threshold: give threshold=..., a number of votes")
        return None
    at = rational(threshold, "threshold")
    if not 0 < at <= size.teachers:
        raise ValueError(f"threshold must be a number of votes, above 0 and at most the {size.teachers} teachers")
    spread = Fraction(3 * size.teachers, 8) if threshold_sigma is None else positive(threshold_sigma, "threshold_sigma")
    return Confidence(at, spread)


def _check_budget(budget: object) -> None:
    if not isinstance(budget, Budget):
        raise TypeError("budget must be a snugdp.Budget, such as Budget(epsilon=1, delta=1e-6)")


def _count(value: Any, name: str, least: int = 1) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if count < least or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of at least {least}, known without the data")
    return count
