"""Layer C: how often a private bound is wrong, against the probability that its certificate claims.

A forgotten shift, a shift with the wrong sign and a slip by a factor of two in a failure probability hide behind the
slack of a whole mechanism; they are plain to see in the bound itself, at a failure probability of a few per cent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA, clopper_pearson
from snugdp.audit.finding import Finding, at_most
from snugdp.noise import Exact, Noise

Run = Callable[[Noise], float]

_ALARM_DEVIATIONS = 5.6  # deviations on either side: a slip is missed as rarely as there are false alarms


@dataclass(frozen=True)
class Certified:
    """A private bound on data that the audit knows.

    Parameters
    ----------
    name : str
        A name for findings.
    run : callable
        ``run(noise)``: draws the bound once and returns by how much it held; below zero, it was wrong.
    failure : float
        How often it may be wrong, at most. Choose it large for an audit: 1/20, or 1/5 where a run is slow.
    slips : mapping of str to float
        Mistakes that must be detected, such as a forgotten shift: by how much less the bound would hold.
    others : mapping of str to callable
        Runs of bounds made with a mistake. A mistake that is not detected makes the finding too weak.

    Examples
    --------
    >>> from snugdp.noise import Gaussian
    >>> from snugdp.secrecy.secret import Secret
    >>> def run(noise):
    ...     return float(noise.add(Secret(100), Gaussian(1), grid=-20)) + 1.645 - 100  # an upper bound on 100
    >>> print(coverage(Certified("a count", run, 1 / 20, {"no shift": 1.645})).passed)
    True
    """

    name: str
    run: Run
    failure: float
    slips: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.failure <= 0.25:
            raise ValueError("the failure probability of an audit must be above 0 and at most 1/4")
        if not self.slips and not self.others:
            raise ValueError("name at least one mistake that must be found, such as a forgotten shift")

    @property
    def runs(self) -> int:
        """So many that twice the failures are found, and nothing else is."""
        p = float(self.failure)
        needed = _ALARM_DEVIATIONS * (math.sqrt(p * (1 - p)) + math.sqrt(2 * p * (1 - 2 * p))) / p
        return math.ceil(1.2 * needed**2)


def coverage(certified: Certified, source: Noise | None = None, runs: int | None = None) -> Finding:
    """Whether the bound is wrong as rarely as it claims, and whether its mistakes would be found."""
    noise = Exact() if source is None else source
    n = certified.runs if runs is None else runs
    held = _held(certified.run, noise, n)
    low, high = clopper_pearson(int((held < 0).sum()), n, 2 * ALPHA)
    lost = {name: held < by for name, by in certified.slips.items()}
    lost |= {name: _held(run, noise, n) < 0 for name, run in certified.others.items()}
    missed = [name for name, wrong in lost.items() if not _too_often(wrong, certified.failure)]
    detail = ""
    if low > certified.failure:
        detail = "the bound is wrong too often: look at its shift, its sign and its failure probability"
    elif missed:
        detail = f"too weak: not found: {', '.join(missed)}"
    finds = [name for name in lost if name not in missed]
    return Finding(
        "C",
        certified.name,
        f"wrong with probability <= {at_most(certified.failure)}",
        f"{low:.4f} .. {high:.4f} in {n} runs" + (f"; finds {', '.join(finds)}" if finds else ""),
        low <= certified.failure and not missed,
        detail,
    )


def _held(run: Run, noise: Noise, n: int) -> NDArray[np.float64]:
    held = np.array([float(run(noise)) for _ in range(n)])
    return np.where(np.isnan(held), -math.inf, held)  # no number is no bound


def _too_often(wrong: NDArray[np.bool_], failure: float) -> bool:
    return clopper_pearson(int(wrong.sum()), len(wrong), 2 * ALPHA)[0] > failure
