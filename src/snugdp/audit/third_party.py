"""Audits of mechanisms of others: drawn through our noise, or any function that gives numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA, epsilon_from_scores, mu_from_scores
from snugdp.audit.end_to_end import both_ways, claims, finding_of, learnt
from snugdp.audit.finding import Case, Finding, at_least, at_most
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.noise import Noise
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import Theorem
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome

Data = TypeVar("Data")
Floats = NDArray[np.float64]
Draw = Callable[[Secret[Data], Noise], Any]
_YOURS = Theorem("yours", "Your own claim", "", "")


def released_by(draw: Draw[Data], cost: Cost | Mapping[str, Cost]) -> Callable[[Data, Noise], Outcome[Any]]:
    """The ``run`` of a ``Case`` from a function of your own.

    Parameters
    ----------
    draw : callable
        ``draw(data, noise)``: gets the data as a ``Secret``, draws from this noise, and returns what is released, or
        None for a refusal.
    cost : Cost or mapping of str to Cost
        What is paid; with several steps, such as a test and then a release, the cost of each by its name, in their
        order. ``draw`` then names the step of every draw: ``noise.at("test").at_least(...)``.

    Returns
    -------
    callable
        ``run(data, noise)``.

    Examples
    --------
    >>> from snugdp.noise import Laplace, Simulation
    >>> run = released_by(lambda data, noise: noise.add(data.map(len), Laplace(1), grid=-10), Cost(epsilon=1))
    >>> run([0, 1, 2], Simulation(1)).refused
    False
    """
    costs = {"release": cost} if isinstance(cost, Cost) else cost
    if not isinstance(costs, Mapping) or not costs or not all(isinstance(one, Cost) for one in costs.values()):
        raise TypeError('cost is a snugdp.Cost, or one for every step by its name: {"test": ..., "release": ...}')
    steps = tuple(Step(name, StepKind.RELEASE, StepNoise("own"), one) for name, one in costs.items())
    plan = Plan("Audited", _YOURS, steps)

    def run(data: Data, noise: Noise) -> Outcome[Any]:
        def walk(noise: Noise, _: object) -> StoredOutcome:
            value = draw(Secret(data), noise.at("release") if isinstance(cost, Cost) else noise)
            return StoredOutcome(refused=value is None, value=value)

        return ReleaseContext(noise).pay(plan, walk)

    return run


def black_box(
    sample: Callable[[Data], Any],
    pair: tuple[Data, Data],
    claim: Cost | Budget,
    *,
    score: Callable[[Any], float] | None = None,
    runs: int = 10_000,
    name: str = "black box",
    alpha: float = ALPHA,
) -> Finding:
    """Run ``sample`` on two neighbouring data sets, and say whether the claim is refuted.

    Guarantee: a true claim fails with probability at most ``alpha`` in each direction. A false one may well pass: from
    outside, slack hides most mistakes.

    Parameters
    ----------
    sample : callable
        ``sample(data)``: one release, with fresh randomness, as a number, numbers, a word or None.
    pair : (data, data)
        Two neighbouring data sets.
    claim : Cost or Budget
        What is claimed.
    score : callable, optional
        A number for every release that tells the data sets apart; by default one is learned from half of the runs.
    runs : int, default=10_000
        How often to run on each data set.
    name : str
        A name for the finding.
    alpha : float
        The probability of a false alarm.

    Returns
    -------
    Finding
        Whether the claim survived, and lower bounds on what is leaked.

    Examples
    --------
    >>> import numpy as np
    >>> from snugdp import Cost
    >>> generator = np.random.default_rng(1)
    >>> noisy = lambda value: value + generator.laplace(scale=0.2)
    >>> black_box(noisy, (1, 0), Cost(epsilon=1), runs=2000).passed
    False
    """
    if runs < 100:
        raise ValueError("give at least 100 runs: fewer refute nothing")
    if not isinstance(claim, Cost | Budget):
        raise TypeError("claim must be a snugdp.Cost or a snugdp.Budget, such as Budget(epsilon=1, delta=1e-6)")
    cost, budget = (Cost(), claim) if isinstance(claim, Budget) else (claim, None)
    case = Case(name, lambda data, _: sample(data), cost, worst=lambda: [pair], budget=budget)
    first, second = ([sample(data) for _ in range(runs)] for data in pair)
    if score is None:
        scores = learnt(first, second)
    else:
        scores = (np.array([float(score(one)) for one in first]), np.array([float(score(one)) for one in second]))
        if np.median(scores[0][::2]) < np.median(scores[1][::2]):  # the half that only learns may turn it round
            scores = (-scores[0], -scores[1])
    at, claimed = claims(case)
    found = both_ways(scores, at, alpha)
    passed = bool((found[0] <= claimed + 1e-12).all())
    return finding_of(name, (at, claimed), found, passed, _bounds(scores, claimed[-1], runs, alpha))


def _bounds(scores: tuple[Floats, Floats], delta: float, runs: int, alpha: float) -> str:
    """What the scores say about epsilon and mu, in both directions."""
    ways = (scores, (-scores[1], -scores[0]))
    epsilon = max(epsilon_from_scores(*way, delta, alpha) for way in ways)
    mu = max(mu_from_scores(*way, alpha) for way in ways)
    found = f"epsilon >= {at_least(epsilon, 3)} at delta {at_most(delta, 3)}, mu >= {at_least(mu, 3)}"
    return f"{runs} runs a side; {found}"
