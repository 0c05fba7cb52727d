"""A search that its ledger cannot pay says so before its first fit.

scikit-learn makes a score of nan out of an error inside a fit, and fits may run in other processes. But first it clones
the estimator, in the process of the caller and where an error ends the search. How many fits there will be is asked of
whoever clones: of the public parameters of a ``GridSearchCV`` and its like, or of ``cross_validate``. The number of
rows is never looked at; where the number of fits depends on it, as with ``LeaveOneOut``, nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from numbers import Integral
from types import FrameType
from typing import Any
from weakref import WeakSet

from sklearn.base import BaseEstimator, clone

from snugdp.estimators.workflows.callers import belongs, callers, function, given, parallel
from snugdp.ledger.errors import BudgetExceededError, KeyConflictError
from snugdp.propose.plan import Plan
from snugdp.release.context import account
from snugdp.secrecy.silence import attempt, muted

_VALIDATIONS = ("cross_validate", "cross_val_predict")
_WIDTH = 100  # of rows that do not tell theirs: the cost of a fit does not depend on it
_BUDGET = ("epsilon", "delta")
_SEEN: WeakSet[Any] = WeakSet()  # calls of joblib that were asked: they clone before every fit


class PaidEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fits may be charged to a ledger. A clone for a search that it cannot pay is refused."""

    ledger: Any

    def plan(self, n_features: int | None = None) -> Plan:
        """What a fit will do and what it costs."""
        raise NotImplementedError

    def _price(self, width: int) -> Plan:
        """The plan of a fit that is charged to the ledger."""
        return self.plan(width)

    def __sklearn_clone__(self) -> Any:
        _, problem = attempt(lambda: _problem() if self.ledger is not None else None)
        if problem is not None:
            raise problem
        return super().__sklearn_clone__()


@dataclass(frozen=True)
class Fits:
    """What somebody is about to do: fits of an estimator, in their order."""

    by: str
    each: tuple[tuple[Any, Plan], ...]  # the ledger and the plan

    def problem(self) -> BudgetExceededError | KeyConflictError | None:
        """Why a ledger does not pay for all of them, if it does not."""
        ledgers = {id(ledger): ledger for ledger, _ in self.each}
        for ledger in ledgers.values():
            payable, plans = getattr(ledger, "payable", None), [plan for of, plan in self.each if of is ledger]
            costs = [plan.cost for plan in plans]
            asked = costs if getattr(ledger, "composition", None) is None else plans
            try:
                number = len(costs) if payable is None else payable(asked)
            except KeyConflictError as told:
                return KeyConflictError(f"{self.by} asks for {len(costs)} private fits: {told}")
            if number < len(costs):
                left = getattr(ledger, "remaining", None)
                return BudgetExceededError(
                    f"{self.by} asks for {len(costs)} private fits, and the ledger can pay for {number} of them. A fit "
                    f"costs {costs[number].words}. {'' if left is None else f'{left} is left. '}Nothing was charged. "
                    "Give fewer candidates or splits, or every fit a smaller epsilon, or open a larger budget; "
                    "snugdp.select finds the best of many proposals for much less than all of them cost"
                )
        return None


def _problem() -> BudgetExceededError | KeyConflictError | None:
    """That of whoever clones, if it is a search or a cross-validation."""
    cloned, frames = None, callers()
    for frame in frames:
        if belongs(frame, "sklearn.base"):
            cloned = given(frame, "estimator") if function(frame) == "clone" else cloned
        elif cloned is not None or not belongs(frame, "snugdp"):
            if not belongs(frame, "sklearn.model_selection"):
                return None
            with muted():
                found = _of_frame(frame, cloned) if function(frame) == "fit" else _of_call(frames, cloned)
            return None if found is None else found.problem()
    return None


def _of_frame(frame: FrameType, cloned: Any) -> Fits | None:
    """Those of a search that begins; later it clones a clone."""
    search = given(frame, "self")
    if not _is_search(search) or search.estimator is not cloned:
        return None
    return Fits(type(search).__name__, tuple(_of_search(search, _width(frame))))


def _of_call(frames: Iterable[FrameType], cloned: Any) -> Fits | None:
    """Those of a cross-validation, which clones before every fit and is asked once."""
    call = None
    for frame in frames:
        call = parallel(frame) or call
        if function(frame) in _VALIDATIONS and given(frame, "estimator") is cloned:
            if call is None or call in _SEEN:
                return None
            _SEEN.add(call)
            return Fits(function(frame), tuple(_of_fit(cloned, _width(frame))) * _splits(given(frame, "cv")))
    return None


def _is_search(thing: Any) -> bool:
    """By its parameters: the class that all searches have in common is not public."""
    space = hasattr(thing, "param_grid") or hasattr(thing, "param_distributions")
    return space and all(hasattr(thing, name) for name in ("estimator", "cv", "refit"))


def _width(frame: FrameType) -> int:
    shape: tuple[int, ...] = getattr(given(frame, "X"), "shape", ())
    return int(shape[1]) if len(shape) == 2 else _WIDTH


def _of_fit(estimator: Any, width: int) -> Iterator[tuple[Any, Plan]]:
    """The charges of one fit: of a search, or of all the private estimators inside this one."""
    if _is_search(estimator):
        yield from _of_search(estimator, width)
        return
    for part in (estimator, *estimator.get_params().values()):
        if isinstance(part, PaidEstimator) and part.ledger is not None:
            yield account(part.ledger), part._price(width)


def _of_search(search: Any, width: int) -> Iterator[tuple[Any, Plan]]:
    """The charges of all its fits, the last one on all rows: that of the dearest candidate, for it may win."""
    splits = _splits(search.cv)
    candidates = _candidates(search) if splits else []
    each = [tuple(_of_fit(clone(search.estimator).set_params(**one), width)) for one in candidates]
    for number in _rounds(search, len(each)):
        for charges in each[:number]:
            yield from chain.from_iterable([charges] * splits)
    if search.refit:
        yield from max(each, key=_price_of, default=())


def _price_of(charges: Sequence[tuple[Any, Plan]]) -> Fraction:
    """By which the dearest candidate is found."""
    return sum((plan.cost.mu_squared + plan.cost.epsilon for _, plan in charges), Fraction(0))


def _rounds(search: Any, candidates: int) -> Iterator[int]:
    """How many candidates are fitted, in every round of a halving; few rows may end it earlier."""
    factor = getattr(search, "factor", None)
    rounds = 1 if factor is None or not candidates else 1 + math.floor(math.log(candidates, factor))
    for _ in range(rounds):
        yield candidates
        candidates = math.ceil(candidates / (factor or 1))


def _candidates(search: Any) -> list[dict[str, Any]]:
    """What it will set; none where that is not known beforehand."""
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    if hasattr(search, "param_grid"):
        return list(ParameterGrid(search.param_grid))
    number = getattr(search, "n_iter", getattr(search, "n_candidates", None))
    if not isinstance(number, Integral):  # "exhaust" goes by the number of rows
        return []
    space = search.param_distributions
    if isinstance(search.random_state, Integral):
        return list(ParameterSampler(space, number, random_state=search.random_state))
    spaces = space if isinstance(space, list | tuple) else [space]
    if any(name.rpartition("__")[2] in _BUDGET for one in spaces for name in one):
        return []
    listed = all(isinstance(values, list | tuple) for one in spaces for values in one.values())
    size = min(int(number), len(ParameterGrid(space))) if listed else int(number)
    return [{} for _ in range(size)]


def _splits(cv: Any) -> int:
    """In how many parts rows are split; 0 where that is not public, or not known."""
    from sklearn.model_selection import check_cv

    if isinstance(cv, list | tuple):
        return len(cv)
    splitter = check_cv(cv) if cv is None or isinstance(cv, Integral) else cv
    if not hasattr(splitter, "get_n_splits"):
        return 0  # asking a generator would use it up
    return attempt(lambda: int(splitter.get_n_splits()))[1] or 0
