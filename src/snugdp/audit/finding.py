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
    """Claimed and measured deltas at the same epsilons, for a plot.

    Parameters
    ----------
    at : tuple of float
        The epsilons.
    claimed, measured : tuple of float
        The deltas.
    low, high : tuple of float
        The ends of the interval around each measured delta.

    Examples
    --------
    >>> Curve(at=(0.0, 1.0), claimed=(0.5, 0.1), measured=(0.4, 0.1)).measured
    (0.4, 0.1)
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
    """One claim compared with what was measured.

    Parameters
    ----------
    layer : str
        A letter of ``LAYERS``.
    case : str
        What was audited.
    claim, measured : str
        The claim and the measurement, in words and numbers for people.
    passed : bool
        Whether the claim held.
    detail : str
        What to look at.
    curve : Curve, optional
        For a plot.

    Examples
    --------
    >>> print(Finding("E", "a count", "delta(1) <= 0.1", "at least 0.02", True))
    ok     E a count: delta(1) <= 0.1; at least 0.02
    """

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
    """A mechanism to audit: how to run it, what it claims, and neighbours to attack it with.

    Parameters
    ----------
    name : str
        A name, such as "median".
    run : callable
        ``run(data, noise)``: the whole release through the public interface, drawing from this source alone.
    cost : Cost
        What is claimed, with a delta large enough to be seen, such as 0.05.
    worst : callable
        ``worst()``: pairs of neighbours on which the claim should be tight.
    random : callable, optional
        ``random(generator)``: any pair of neighbours, strange rows among them.
    budget : Budget, optional
        The claim, where (epsilon, delta) is promised of the whole rather than the cost.
    certificates : tuple of Certified
        Private bounds whose failures are counted.
    transcript : bool, default=True
        Whether the claim covers everything drawn, or only the output.
    group : str
        The group it is reported in.
    tight : bool or float, default=True
        Whether noise that is 20 % too small must be detected on the worst pairs; or by how much it must be too small,
        as a fraction.
    parts : bool, default=True
        Whether the Gaussian and the pure part of the cost each bound the sum of what is drawn.
    pace : {"swift", "steady", "slow"}
        "swift" where a walk takes about a millisecond, "steady" at ten, "slow" at twenty and more, which gets fewer
        runs.
    apart : callable, optional
        ``apart(one, other)``: for a mechanism that scatters rows among blocks, the index of the additional row, so that
        all other rows stay where they are. By default it is the last row.

    Examples
    --------
    >>> from snugdp.audit import audit, released_by
    >>> from snugdp.noise import Laplace
    >>> def draw(data, noise):
    ...     return noise.add(data.map(len), Laplace(1), grid=-10)
    >>> claim = Cost(epsilon=1)
    >>> case = Case("a count", released_by(draw, claim), claim, worst=lambda: [([0, 1], [0])])
    >>> audit(case, layers="D").passed
    True
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
