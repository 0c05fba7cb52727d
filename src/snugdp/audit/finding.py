"""What an audit is given, and what it says: a case to attack, a curve to draw, a finding to read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.noise import Noise
from snugdp.numerics.printed import printed_down, printed_up
from snugdp.numerics.rationals import rational

if TYPE_CHECKING:
    from snugdp.audit.coverage import Certified

Data = TypeVar("Data")
LAYERS = {
    "S": "laws of the noise",
    "I": "independence of the noise",
    "C": "coverage of the certificates",
    "D": "exact densities on neighbours",
    "N": "exact changes between neighbours",
    "L": "low bits",
    "E": "end to end",
    "B": "bad input and side channels",
}


def at_most(value: float | Fraction, digits: int = 4) -> str:
    """A claim for people: not less than what is claimed. A float is the decimal that it prints as.

    >>> at_most(1 / 3), at_most(float("inf"))
    ('0.3334', 'inf')
    """
    return printed_up(_exact(value), digits) if math.isfinite(value) else f"{value:g}"


def at_least(value: float | Fraction, digits: int = 4) -> str:
    """A lower bound for people: not more than was found."""
    return printed_down(_exact(value), digits) if math.isfinite(value) else f"{value:g}"


def _exact(value: float | Fraction) -> Fraction:
    return value if isinstance(value, Fraction) else rational(float(value), "an amount")


@dataclass(frozen=True)
class Curve:
    """Deltas that are claimed and that were measured, at the same epsilons: for a plot.

    ``low`` and ``high``: the ends of the interval around what was measured.
    """

    at: tuple[float, ...]
    claimed: tuple[float, ...]
    measured: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        lengths = {len(self.at), len(self.claimed), len(self.measured), len(self.low or self.at)}
        if lengths | {len(self.high or self.at)} != {len(self.at)}:
            raise ValueError("the parts of a curve must be equally long")


@dataclass(frozen=True)
class Finding:
    """One claim against what was measured. ``claim`` and ``measured`` are words and numbers for people."""

    layer: str
    case: str
    claim: str
    measured: str
    passed: bool
    detail: str = ""
    curve: Curve | None = None

    def __post_init__(self) -> None:
        if self.layer not in LAYERS:
            raise ValueError(f"layer must be one of {', '.join(LAYERS)}")
        if not isinstance(self.passed, bool):
            raise TypeError("passed must be True or False: what is neither has not passed")

    def __str__(self) -> str:
        words = f"{'ok    ' if self.passed else 'FAILED'} {self.layer} {self.case}: {self.claim}; {self.measured}"
        return f"{words} ({self.detail})" if self.detail else words


@dataclass(frozen=True)
class Case(Generic[Data]):
    """A mechanism to be audited: how to run it, what it claims, and neighbours to attack it with.

    ``run(data, noise)``: the whole walk through the public face, drawing from this source alone.
    ``cost``: what is claimed, with a delta large enough to be seen, such as 0.05.
    ``worst``: pairs on which the claim should be tight; ``random``: any neighbours, strange rows among them.
    ``budget``: where (epsilon, delta) is promised of the whole rather than the cost.
    ``certificates``: private bounds whose failures are counted.
    ``transcript``: whether everything drawn is promised, or only the output.
    ``tight``: whether noise 20 % too small must be seen on the worst pairs (or how many per cent, as a fraction).
    ``parts``: whether the Gaussian and the pure part of the cost bound the sums of what is drawn, each by itself.
    ``pace``: "swift" where a walk takes about a millisecond, "steady" at ten, "slow" at twenty and more: slow cases get
    fewer runs.
    ``apart``: for a mechanism that scatters rows among blocks, the place of the row that one table has more, so that
    all others stay where they are. Without it, it is the last one.
    """

    name: str
    run: Callable[[Data, Noise], Outcome[Any]]
    cost: Cost
    worst: Callable[[], Iterable[tuple[Data, Data]]]
    random: Callable[[np.random.Generator], tuple[Data, Data]] | None = None
    budget: Budget | None = None
    certificates: tuple[Certified, ...] = ()
    transcript: bool = True
    group: str = ""
    tight: bool | float = True
    parts: bool = True
    apart: Callable[[Data, Data], int] | None = None
    pace: Literal["swift", "steady", "slow"] = "swift"

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a case needs a name, such as 'median'")
        if not isinstance(self.cost, Cost):
            raise TypeError("cost is a snugdp.Cost: what is claimed; where (epsilon, delta) is, give budget= as well")
        if not (callable(self.run) and callable(self.worst) and (self.random is None or callable(self.random))):
            raise TypeError("run, worst and random are functions: run(data, noise), worst(), random(generator)")
        if not 0 <= self.tight <= 1:
            raise ValueError("tight is True, False, or a part of the noise such as 0.2")
        if self.pace not in ("swift", "steady", "slow"):
            raise ValueError('pace is "swift", "steady" or "slow"')

    @property
    def shrink(self) -> float:
        """How many times as wide the noise of the power check is: 1 where nothing is to be seen."""
        return 1 - (0.2 if self.tight is True else float(self.tight))

    def delta_at(self, epsilon: float) -> float:
        """The delta that is claimed at this epsilon."""
        if self.budget is None:
            return self.cost.delta_at(epsilon)
        return promised(float(self.budget.epsilon), float(self.budget.delta), epsilon)


def promised(epsilon: float, delta: float, at: float) -> float:
    """What (epsilon, delta) in both directions says about delta at another epsilon, below zero as well.

    At a larger epsilon it is the same delta. At a smaller one it is the largest delta of a trade-off curve that is
    promised: 1 - e^at (1 - delta') with all losses at epsilon, of mass 1 - delta.

    >>> promised(1.0, 0.0, 1.0), round(promised(1.0, 0.0, 0.0), 6)
    (0.0, 0.462117)
    """
    if at >= epsilon:
        return delta
    if at <= -epsilon:
        return -math.expm1(at) * (1 - delta) + delta
    # The worst pair: losses epsilon and -epsilon with chances e^epsilon : 1 beside the delta that gives all away.
    high = 1 / (1 + math.exp(-epsilon))
    return min(1.0, delta + (1 - delta) * high * -math.expm1(at - epsilon))
