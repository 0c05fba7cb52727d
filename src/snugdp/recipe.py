"""From a data-dependent privacy analysis to a private algorithm: the entry point for researchers.

You bring a mechanism, a bound on its privacy loss *on the data at hand*, and a budget. You get an algorithm that
pays, tests and releases or refuses. The worked example is in ``docs/your-own-mechanism.md``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, Literal, Protocol, TypeVar

from snugdp.certify.bound import BoundTest
from snugdp.certify.distance import Distance, integer_laplace
from snugdp.certify.statistics import GaussianBounds, Statistic, gaussian_bounds
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import LedgerLike, Outcome
from snugdp.ledger.question import question
from snugdp.noise import Noise
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise, check_callable, share_of
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import Certifier, PrivateTest, certify_and_release, release_or_refuse
from snugdp.secrecy.secret import Secret
from snugdp.serial.registry import identity

Data = TypeVar("Data")
Data_contra = TypeVar("Data_contra", contravariant=True)
Output = TypeVar("Output")
Draw = Callable[[Secret[Data], Noise], Output]
Measure = Literal["epsilon", "mu"]
THEOREM = theorem("recipe/1")
_CERTIFY, _RELEASE = "certify", "release"  # steps


class UpperBound(Certifier[Data_contra, float], Protocol[Data_contra]):
    """A certifier that releases an upper bound on the loss, and says what that costs."""

    @property
    def cost(self) -> Cost:
        """The cost of the bound, its failure included."""
        ...


@dataclass(frozen=True)
class PrivateAlgorithm(Generic[Data, Output]):
    """A test, a mechanism and the plan that pays for both: call it on data.

    It is made by ``from_statistics``, ``from_distance``, ``from_upper_bound`` or ``calibrated``.

    Guarantee: the plan's cost (``release/spine.proof.md``, Theorem A1), if your loss or distance is what it claims.

    Attributes
    ----------
    plan : Plan
        What a call will do and what it costs. Printing it is free.
    limit : Fraction
        The loss that the mechanism may have on the data at hand: pure epsilon or Gaussian mu.

    Examples
    --------
    >>> import snugdp
    >>> budget = snugdp.Budget(1, 1e-6)
    >>> algorithm = snugdp.from_distance(distance=len, draw=lambda rows, noise: "many rows", budget=budget)
    >>> float(algorithm.limit), algorithm(list(range(1000))).refused
    (0.5, False)
    """

    plan: Plan
    limit: Fraction
    _run: Callable[[Plan, Secret[Data], ReleaseContext], Outcome[Output]] = field(repr=False)
    asked: Mapping[str, Any] = field(default_factory=dict, repr=False)  # for the key of a ledger; functions by name

    def __call__(self, data: Data, *, ledger: LedgerLike | None = None, noise: Noise | None = None) -> Outcome[Output]:
        """Pay, test, release or refuse.

        ``ledger``: what is charged, a ledger or the path or URL of one; without it the call has a budget of its own and
        nothing is being summed up, but for the ``cost`` of the outcome.
        """
        title = self.plan.title
        context = ReleaseContext(noise, ledger, self.plan.budget).with_question(
            lambda: question(title, what=title, asked=self.asked)
        )
        return self._run(self.plan, Secret(data), context)


def from_statistics(
    *,
    loss: Callable[..., float],
    statistics: tuple[Statistic[Data], ...],
    draw: Draw[Data, Output],
    budget: Budget,
    measure: Measure = "epsilon",
    test_share: Real = 0.5,
    what: str = "your mechanism",
) -> PrivateAlgorithm[Data, Output]:
    """Private algorithm from a loss that is a monotone function of statistics of known sensitivity.

    Half of delta pays for the failure of the test.

    Parameters
    ----------
    loss : callable
        ``loss(**bounds)`` bounds, in both orders, the privacy loss of ``draw`` on data with these statistics.
    statistics : tuple of Statistic
        What the loss depends on.
    draw : callable
        ``draw(data, noise)``: your mechanism. The data are a ``Secret``.
    budget : Budget
        What a call may spend; delta must be greater than 0.
    measure : {"epsilon", "mu"}
        What the loss is: pure epsilon, or Gaussian mu.
    test_share : Real, default=0.5
        The share of the budget that pays for the test.
    what : str
        A public name, for plans and ledgers.

    Returns
    -------
    PrivateAlgorithm
        Call it on data.

    Examples
    --------
    A mechanism whose loss on n rows is at most 100 / n:

    >>> import snugdp
    >>> from snugdp.noise import Laplace
    >>> rows = snugdp.Statistic("rows", of=len, sensitivity=1, side="lower", between=(1, 10**9))
    >>> algorithm = snugdp.from_statistics(
    ...     loss=lambda rows: 100 / rows,
    ...     statistics=(rows,),
    ...     draw=lambda data, noise: noise.add(data.map(len), Laplace(2), grid=0),
    ...     budget=snugdp.Budget(1, 1e-6),
    ... )
    >>> algorithm(list(range(5000))).refused
    False
    """
    share = share_of(test_share)
    certifier, limit = _certifier(statistics, budget, measure, share)
    check_callable(draw, "draw", "data", "noise")
    _takes(loss, statistics)
    test = BoundTest(certifier, lambda bounds: loss(**bounds), limit)
    noise = StepNoise("statistics", "gaussian", params={"statistics": _names(statistics), "limit": limit})
    steps = Step("test", StepKind.TEST, noise, certifier.cost), _release(_spent(measure, limit, budget))
    asked = {"loss": loss, "statistics": statistics, "draw": draw, "budget": budget, "share": share, "by": measure}
    plan = Plan(what, THEOREM, steps, {f"{measure}_limit": limit}, budget=budget)
    return _refusing(plan, limit, test, draw, asked)


def from_distance(
    *,
    distance: Distance[Data],
    draw: Draw[Data, Output],
    budget: Budget,
    test_share: Real = 0.5,
    what: str = "your mechanism",
) -> PrivateAlgorithm[Data, Output]:
    """Private algorithm from an integer distance to the data sets on which the mechanism is not private enough.

    Parameters
    ----------
    distance : callable
        ``distance(data)``: an integer that changes by at most 1 between neighbours.
    draw : callable
        ``draw(data, noise)``: your mechanism. It must be ``algorithm.limit``-DP, in both orders, on every data set with
        a distance of at least 1; the limit is ``(1 - test_share) * epsilon``. The data are a ``Secret``.
    budget : Budget
        What a call may spend.
    test_share, what
        As in ``from_statistics``.

    Returns
    -------
    PrivateAlgorithm
        Call it on data.

    Examples
    --------
    >>> import snugdp
    >>> from snugdp.noise import Laplace
    >>> algorithm = snugdp.from_distance(
    ...     distance=lambda rows: len(rows) - 100,
    ...     draw=lambda rows, noise: noise.add(rows.map(len), Laplace(2), grid=0),
    ...     budget=snugdp.Budget(1, 1e-6),
    ... )
    >>> algorithm(list(range(1000))).refused
    False
    """
    share = share_of(test_share)
    limit = (1 - share) * budget.epsilon
    check_callable(distance, "distance", "data")
    check_callable(draw, "draw", "data", "noise")
    test = integer_laplace(distance, epsilon=share * budget.epsilon, delta=budget.delta, neighbours=budget.neighbours)
    noise = StepNoise("distance", "discrete Laplace", params={"threshold": test.threshold})
    steps = Step("test", StepKind.TEST, noise, test.cost), _release(_spent("epsilon", limit, budget))
    asked = {"distance": distance, "draw": draw, "budget": budget, "share": share}
    return _refusing(Plan(what, THEOREM, steps, {"epsilon_limit": limit}, budget=budget), limit, test, draw, asked)


def from_upper_bound(
    *, certifier: UpperBound[Data], draw: Draw[Data, Output], limit: Real, release: Cost, what: str = "your mechanism"
) -> PrivateAlgorithm[Data, Output]:
    """Private algorithm from any private upper bound on the loss, such as ``snugdp.certify.smooth.smooth_bound``.

    The plan costs the bound and the release; choose both to fit your budget. There is no budget of its own, so
    a call needs a ledger.

    Parameters
    ----------
    certifier : UpperBound
        Releases an upper bound on the loss: ``certify(data, noise)``, with its ``cost``.
    draw : callable
        ``draw(data, noise)``: your mechanism. It must cost at most ``release``, in both orders, on every data set whose
        loss is at most ``limit``. The data are a ``Secret``.
    limit : Real
        The largest loss at which to release.
    release : Cost
        What ``draw`` costs below that limit.
    what : str
        A public name, for plans and ledgers.

    Returns
    -------
    PrivateAlgorithm
        Call it on data.

    Examples
    --------
    >>> import snugdp
    >>> from snugdp.noise import Laplace
    >>> class Loss:  # 100 / rows, from a noisy count that is too large with probability below 1e-6
    ...     cost = snugdp.Cost(epsilon=0.5, delta=1e-6)
    ...     def certify(self, data, noise):
    ...         return 100 / max(float(noise.add(data.map(len), Laplace(2), grid=0)) - 30, 1)
    >>> algorithm = snugdp.from_upper_bound(
    ...     certifier=Loss(),
    ...     draw=lambda data, noise: noise.add(data.map(len), Laplace(2), grid=0),
    ...     limit=0.5,
    ...     release=snugdp.Cost(epsilon=0.5),
    ... )
    >>> algorithm(list(range(5000)), ledger=snugdp.MemoryLedger(1, 1e-6)).refused
    False
    """
    most = rational(limit, "limit")
    check_callable(draw, "draw", "data", "noise")
    test = BoundTest(certifier, lambda bound: bound, most)
    noise = StepNoise("upper-bound", params={"limit": most})
    steps = Step("test", StepKind.TEST, noise, certifier.cost), _release(release)
    asked = {"certifier": _public(certifier), "draw": draw, "limit": most, "release": release}
    return _refusing(Plan(what, THEOREM, steps, {"limit": most}), most, test, draw, asked)


def calibrated(
    *,
    statistics: tuple[Statistic[Data], ...],
    draw: Callable[[Secret[Data], Mapping[str, float], Noise], Output | None],
    budget: Budget,
    measure: Measure = "epsilon",
    test_share: Real = 0.5,
    what: str = "your mechanism",
) -> PrivateAlgorithm[Data, Output]:
    """Private algorithm that chooses its noise from private bounds, and so never needs to refuse.

    The bounds are released too. Half of delta pays for their failure.

    Parameters
    ----------
    statistics : tuple of Statistic
        What the noise depends on.
    draw : callable
        ``draw(data, bounds, noise)``: your mechanism. It must cost at most ``algorithm.limit`` whenever the bounds hold
        for the data; it may return None to refuse. The data are a ``Secret``.
    measure : {"epsilon", "mu"}
        What the limit is: pure epsilon, or Gaussian mu.
    budget, test_share, what
        As in ``from_statistics``; the test is the release of the bounds.

    Returns
    -------
    PrivateAlgorithm
        Call it on data.

    Examples
    --------
    >>> import snugdp
    >>> from snugdp.noise import Laplace
    >>> rows = snugdp.Statistic("rows", of=len, sensitivity=1, side="lower", between=(1, 10**9))
    >>> algorithm = snugdp.calibrated(
    ...     statistics=(rows,),
    ...     draw=lambda data, bounds, noise: noise.add(data.map(len), Laplace(2), grid=0),
    ...     budget=snugdp.Budget(1, 1e-6),
    ... )
    >>> outcome = algorithm(list(range(5000)))
    >>> outcome.certificate["rows"] < 5000
    True
    """
    share = share_of(test_share)
    certifier, limit = _certifier(statistics, budget, measure, share)
    check_callable(draw, "draw", "data", "bounds", "noise")
    noise = StepNoise("released-statistics", "gaussian", params={"statistics": _names(statistics)})
    steps = (
        Step(_CERTIFY, StepKind.TEST, noise, certifier.cost),
        _release(_spent(measure, limit, budget), "own-calibrated"),
    )
    plan = Plan(what, THEOREM, steps, {f"{measure}_limit": limit}, budget=budget)
    return PrivateAlgorithm(
        plan,
        limit,
        lambda plan, data, context: certify_and_release(plan, _Certified(certifier), _Calibrated(draw), data, context),
        {"statistics": statistics, "draw": draw, "budget": budget, "share": share, "by": measure},
    )


@dataclass(frozen=True)
class _Drawn(Generic[Data, Output]):
    draw: Draw[Data, Output]


@dataclass(frozen=True)
class _Certified(Generic[Data]):
    """A certifier that draws in its step."""

    certifier: Certifier[Data, Mapping[str, float]]

    def certify(self, data: Secret[Data], noise: Noise) -> Mapping[str, float]:
        return self.certifier.certify(data, noise.at(_CERTIFY))


@dataclass(frozen=True)
class _Calibrated(Generic[Data, Output]):
    """Your draw, in its step."""

    function: Callable[[Secret[Data], Mapping[str, float], Noise], Output | None]

    def draw(self, data: Secret[Data], certificate: Mapping[str, float], noise: Noise) -> Output | None:
        return self.function(data, certificate, noise.at(_RELEASE))


def _release(cost: Cost, on: str = "own") -> Step:
    return Step(_RELEASE, StepKind.RELEASE, StepNoise(on), cost)


def _public(certifier: object) -> object:
    """One of ours with all its numbers; of others only the class is known to be public."""
    return type(certifier) if identity(type(certifier)) is None else certifier


def _refusing(
    plan: Plan, limit: Fraction, test: PrivateTest[Data], draw: Draw[Data, Output], asked: Mapping[str, Any]
) -> PrivateAlgorithm[Data, Output]:
    return PrivateAlgorithm(
        plan, limit, lambda plan, data, context: release_or_refuse(plan, test, _Drawn(draw), data, context), asked
    )


def _certifier(
    statistics: tuple[Statistic[Data], ...], budget: Budget, measure: Measure, share: Fraction
) -> tuple[GaussianBounds[Data], Fraction]:
    """Private bounds on the statistics for a share of the budget, and the limit on the mechanism's loss."""
    failure = _half(budget)
    mu, limit = _split(budget, failure, measure, share)
    for statistic in statistics:
        check_callable(statistic.of, f"the statistic {statistic.name}", "data")
    return gaussian_bounds(statistics, mu=mu, delta=failure, neighbours=budget.neighbours), limit


def _split(budget: Budget, failure: Fraction, measure: Measure, share: Fraction) -> tuple[Fraction, Fraction]:
    """The largest Gaussian part for the test, and the limit on the mechanism's loss, that the budget affords."""
    if measure not in ("epsilon", "mu"):
        raise ValueError('measure must be "epsilon" (pure loss) or "mu" (Gaussian loss)')
    if measure == "epsilon":
        limit = (1 - share) * budget.epsilon
        return _largest(
            lambda mu: Cost(mu=mu, epsilon=limit, delta=failure, neighbours=budget.neighbours), budget
        ), limit
    total = _largest(lambda mu: Cost(mu=mu, delta=failure, neighbours=budget.neighbours), budget)
    return _root(share) * total, _root(1 - share) * total


def _root(share: Fraction) -> Fraction:
    """The square root of a share, from below: at least 1 - 2^-60 of it, however small it is."""
    bits = 61 + max(0, share.denominator.bit_length() - share.numerator.bit_length() + 1) // 2 + 1
    return Fraction(math.isqrt(share.numerator * 4**bits // share.denominator), 2**bits)


def _largest(cost: Callable[[Fraction], Cost], budget: Budget) -> Fraction:
    """Bisection for the largest part (a multiple of 2^-30 of epsilon) whose cost still fits."""
    low, high = 0, 2**34
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(budget.epsilon * middle / 2**30).fits(budget) else (low, middle)
    return budget.epsilon * low / 2**30


def _spent(measure: Measure, limit: Fraction, budget: Budget) -> Cost:
    if measure == "epsilon":
        return Cost(epsilon=limit, neighbours=budget.neighbours)
    return Cost(mu=limit, neighbours=budget.neighbours)


def _names(statistics: tuple[Statistic[Data], ...]) -> str:
    return ", ".join(statistic.name for statistic in statistics)


def _takes(loss: Callable[..., float], statistics: tuple[Statistic[Data], ...]) -> None:
    """Refuse a loss that does not take the statistics by name, before anything is charged."""
    try:
        inspect.signature(loss).bind(**{statistic.name: 0.0 for statistic in statistics})
    except TypeError:
        raise ValueError(f"loss must take these arguments by name: {_names(statistics)}") from None
    except ValueError:  # a built-in without a signature
        pass


def _half(budget: Budget) -> Fraction:
    if not isinstance(budget, Budget):
        raise TypeError("budget must be a snugdp.Budget(epsilon, delta)")
    if budget.delta == 0:
        raise ValueError("a test by statistics needs delta > 0 in the budget; 1e-6 is typical")
    return budget.delta / 2
