"""Audits of mechanisms of others: drawn through our noise, or any function that gives numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA, epsilon_from_scores, mu_from_scores
from snugdp.audit.end_to_end import learnt, lower_deltas
from snugdp.audit.finding import Curve, Finding, at_least, at_most, promised
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.noise import Noise
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import Theorem
from snugdp.release.context import Purse
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome

Data = TypeVar("Data")
Floats = NDArray[np.float64]
Draw = Callable[[Secret[Data], Noise], Any]
_PLACES = (0.0, 0.3, 0.6, 0.85, 1.0)  # of the claimed epsilon
_SMALL = 0.05
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

        return Purse(noise).pay(plan, walk)

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
    first, second = ([sample(data) for _ in range(runs)] for data in pair)
    if score is None:
        scores = learnt(first, second)
    else:
        scores = (np.array([float(score(one)) for one in first]), np.array([float(score(one)) for one in second]))
        if np.median(scores[0][::2]) < np.median(scores[1][::2]):  # the half that only learns may turn it round
            scores = (-scores[0], -scores[1])
    top = _epsilon(claim)
    at = np.array([top * place for place in _PLACES])
    claimed = np.array([_delta(claim, float(epsilon)) for epsilon in at])
    both = [lower_deltas(*way, at, alpha) for way in (scores, (-scores[1], -scores[0]))]
    low: Floats = np.max([one for one, _ in both], axis=0)
    mean: Floats = np.max([one for _, one in both], axis=0)
    place = int(np.argmax(low - claimed))
    return Finding(
        "E",
        name,
        f"delta({at_most(at[place], 3)}) <= {at_most(claimed[place])}",
        f"at least {at_least(low[place])}",
        bool((low <= claimed + 1e-12).all()),
        _bounds(scores, claimed[-1], runs, alpha),
        Curve(tuple(at.tolist()), tuple(claimed.tolist()), tuple(mean.tolist()), tuple(low.tolist()), (1.0,) * len(at)),
    )


def _bounds(scores: tuple[Floats, Floats], delta: float, runs: int, alpha: float) -> str:
    """What the scores say about epsilon and mu, in both directions."""
    ways = (scores, (-scores[1], -scores[0]))
    epsilon = max(epsilon_from_scores(*way, delta, alpha) for way in ways)
    mu = max(mu_from_scores(*way, alpha) for way in ways)
    found = f"epsilon >= {at_least(epsilon, 3)} at delta {at_most(delta, 3)}, mu >= {at_least(mu, 3)}"
    return f"{runs} runs a side; {found}"


def _epsilon(claim: Cost | Budget) -> float:
    if isinstance(claim, Budget):
        return float(claim.epsilon)
    if not isinstance(claim, Cost):
        raise TypeError("claim must be a snugdp.Cost or a snugdp.Budget, such as Budget(epsilon=1, delta=1e-6)")
    found = claim.epsilon_at(min(max(_SMALL, 1.5 * float(claim.delta)), 0.5))
    return max(found if np.isfinite(found) else 1.0, float(claim.epsilon), 0.05)


def _delta(claim: Cost | Budget, at: float) -> float:
    if isinstance(claim, Budget):
        return promised(float(claim.epsilon), float(claim.delta), at)
    return claim.delta_at(at)
