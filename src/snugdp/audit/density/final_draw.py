"""What the last draw of a walk shows, exactly, against what the last step of its plan pays for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from snugdp.audit.density.gaussian_pair import along_the_shift, delta
from snugdp.audit.density.parts import part
from snugdp.audit.density.sites import log_probability
from snugdp.audit.finding import at_least, at_most
from snugdp.audit.replay import Path
from snugdp.core.guarantee import Cost
from snugdp.noise.recording import private_inputs

_LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)
_ROUND = 1e-6  # of floats


def shown(run: Path) -> str:
    """What a lucky run shows that its neighbour does not have, or more of a posterior than the last step pays for."""
    if run.reason:
        return run.reason
    if any(one.method == "reveal" and part(one, two).epsilon for one, two in run.pairs):
        return "a value was shown that a neighbour does not have"
    if not run.pairs or run.pairs[-1][0].method != "posterior" or not run.here.plans:
        return ""
    ends = along_the_shift(*run.pairs[-1])
    return _compared(run, _LEVELS, lambda epsilon: delta(*ends, epsilon))


def elected(run: Path) -> str:
    """Whether the last step pays for a winner, who is all that it draws: every candidate has a known chance."""
    if run.refused or run.reason or not run.here.plans or not run.pairs or run.pairs[-1][0].method != "argmax":
        return ""
    here, there = run.pairs[-1]
    candidates = range(len(private_inputs(here)[0]))
    chances = [[math.exp(log_probability(replace(site, answer=k))) for k in candidates] for site in (here, there)]

    def found(epsilon: float) -> float:
        return math.fsum(max(one - math.exp(epsilon) * two, 0.0) for one, two in zip(*chances, strict=True))

    return _compared(run, (float(_paid(run).epsilon),), found)


def _compared(run: Path, levels: Iterable[float], found: Callable[[float], float]) -> str:
    """The delta of the last draw against what its step pays for, at every one of these epsilons."""
    cost = _paid(run)
    for epsilon in levels:
        seen, paid = found(epsilon), cost.delta_at(epsilon)
        if seen > paid * (1 + _ROUND):
            return f"the last draw has delta({epsilon}) >= {at_least(seen)}, paid are {at_most(paid)}"
    return ""


def _paid(run: Path) -> Cost:
    """The cost of the last step; where that is free, of the whole plan, which pays for it."""
    *before, last = run.here.plans[-1].costs.values()
    free = last == Cost(neighbours=last.neighbours)
    return sum(before, last) if free else last
