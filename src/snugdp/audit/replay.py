"""The same walk on two neighbours, with the same answers: what it gives away, draw by draw.

The losses are exact, so nothing has to be estimated from outputs: delta(epsilon) is the mean of (1 - e^(epsilon - L))
where that is positive, over runs on the first data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.density.parts import LossPart, part
from snugdp.audit.density.sites import log_probability
from snugdp.audit.equality import equal
from snugdp.audit.finding import Case
from snugdp.noise import Noise
from snugdp.noise.recording import Impossible, Replay, Site, Transcript, Witness

Data = TypeVar("Data")
_APART = 1 << 32  # between the seeds of a run and of its replay


@dataclass(frozen=True, eq=False)
class Path:
    """A run on one data set, and its replay on a neighbour.

    ``reason``: why the neighbour cannot have walked the same way; empty where it can. ``refused``: how it ended.
    """

    here: Transcript
    there: Transcript
    reason: str = ""
    refused: bool = False

    @property
    def pairs(self) -> tuple[tuple[Site, Site], ...]:
        """The draws of both, as far as the walk was the same."""
        return tuple(zip(self.here, self.there, strict=False))

    @property
    def loss(self) -> float:
        """The logarithm of how much likelier the run is here than there. Not a number where that is unknown."""
        if self.reason:
            return math.inf
        return loss_of(self.pairs)


@dataclass(frozen=True)
class Realised:
    """What one run gives away, from the changes of what gets noise and not from the noise: a cost, part by part.

    ``mu_squared``: the sum of (change / deviation) squared where noise is Gaussian; ``epsilon``: the sum of
    change / scale where it is Laplace or Gumbel; ``other``: draws that have no such part. ``steps`` are the parts.
    """

    mu_squared: Fraction
    epsilon: Fraction | float
    other: tuple[str, ...]
    steps: tuple[LossPart, ...]
    reason: str = ""


def path(  # noqa: PLR0917
    case: Case[Data],
    first: Data,
    second: Data,
    seed: int,
    shrink: float = 1.0,
    source: Noise | None = None,
    *,
    kept: bool = False,
) -> Path:
    """Run on the first, replay on the second. What is raised on the second only is a difference too.

    ``kept``: what an estimator keeps is compared too, not its outcome alone. That takes longer.
    """
    witness = Witness(seed, shrink=shrink, source=source)
    outcome = case.run(first, witness)
    given = witness.transcript()
    apart = None if case.apart is None else case.apart(first, second)
    replay = Replay(given, seed + _APART, shrink=shrink, apart=apart)
    try:
        other = case.run(second, replay)
    except Impossible:
        return Path(given, replay.transcript(), "the walk differs")
    except Exception:
        return Path(given, replay.transcript(), "an error on one side")
    reason = "" if replay.finished else "the walk ends early"
    return Path(given, replay.transcript(), reason or _different(outcome, other, kept), bool(outcome.refused))


def paths(  # noqa: PLR0917  as in ``path``
    case: Case[Data], first: Data, second: Data, runs: int, seed: int = 0, shrink: float = 1.0
) -> Iterator[Path]:
    """Independent runs."""
    return (path(case, first, second, (seed << 20) + run, shrink) for run in range(runs))


def random_pairs(case: Case[Data], count: int, seed: int) -> Iterator[tuple[Data, Data]]:
    """So many of the random neighbours of a case, each the other way round than the last; none if it has none."""
    generator = np.random.default_rng(seed)
    for number in range(count if case.random is not None else 0):
        assert case.random is not None
        one, two = case.random(generator)
        yield (one, two) if number % 2 else (two, one)


def losses(  # noqa: PLR0917  as in ``path``
    case: Case[Data], first: Data, second: Data, runs: int, seed: int = 0, shrink: float = 1.0
) -> NDArray[np.float64]:
    """The exact losses of runs on the first against the second; infinite where the second cannot have done the same.

    For the other direction exchange the two.
    """
    return np.array([one.loss for one in paths(case, first, second, runs, seed, shrink)])


def realised_by(run: Path) -> Realised:
    """The parts of a run."""
    steps = tuple(part(one, two) for one, two in run.pairs)
    pure: Fraction | float = sum((step.epsilon for step in steps), Fraction(0))
    other = tuple(step.method for step in steps if step.other)
    return Realised(sum((step.mu_squared for step in steps), Fraction(0)), pure, other, steps, run.reason)


def loss_of(pairs: tuple[tuple[Site, Site], ...]) -> float:
    """The sum of the losses of the draws. What is infinite on both sides is not a number."""
    total = 0.0
    for one, two in pairs:
        total += log_probability(one) - log_probability(two)
    return total


def _different(one: Any, other: Any, kept: bool) -> str:
    """The outcome is a function of the answers; what else it shows is a leak."""
    parts = ("refused", "value", "certificate", *(["kept"] if kept else []))
    same = all(equal(getattr(one, name, None), getattr(other, name, None)) for name in parts)
    return "" if same else "the outcome differs though all answers are the same"
