"""Exact output laws of the refusing algorithm, in rational numbers: nothing here is sampled or rounded."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache

from tests.mechanisms.queries_by_hand import Neighbours, Rows

ONE = Fraction(1)


@cache
def passing(distance: float, tau: int, p: Fraction) -> Fraction:
    """P[distance + Z >= tau] for discrete Laplace Z with ratio p."""
    if distance == math.inf:
        return ONE
    need = tau - int(distance)
    return p**need / (1 + p) if need >= 1 else 1 - p ** (1 - need) / (1 + p)


@cache
def released(t: Fraction, s: Fraction, shift: int, w: Fraction, alpha: Fraction) -> Fraction:
    """The hockey stick of t * (discrete Laplace) against s * (the same, moved): an infinite sum, closed."""
    mass, outside = (1 - w) / (1 + w), w / (1 + w)
    tails = max(ONE * 0, t - alpha * s * w**shift) + max(ONE * 0, t * w**shift - alpha * s)
    middle = (max(ONE * 0, mass * (t * w**z - alpha * s * w ** (shift - z))) for z in range(shift + 1))
    return outside * tails + sum(middle, ONE * 0)


def refused(t: Fraction, s: Fraction, alpha: Fraction) -> Fraction:
    return max(ONE * 0, (1 - t) - alpha * (1 - s))


def worst_delta(
    states: Iterable[Rows],
    near: Neighbours,
    law: Callable[[Rows], tuple[float, int]],
    *,
    tau: int,
    p: Fraction,
    w: Fraction,
    alpha: Fraction,
) -> Fraction:
    """The largest delta over all ordered pairs of neighbours; ``law`` gives the distance and the answer."""
    known = {rows: law(rows) for rows in states}
    kinds = {
        (known[rows][0], known[other][0], abs(known[rows][1] - known[other][1]))
        for rows in known
        for other in near(rows)
        if other in known
    }
    return max(pair_delta(*kind, tau=tau, p=p, w=w, alpha=alpha) for kind in kinds)


def pair_delta(
    here: float, there: float, shift: int, *, tau: int, p: Fraction, w: Fraction, alpha: Fraction
) -> Fraction:
    t, s = passing(here, tau, p), passing(there, tau, p)
    return refused(t, s, alpha) + released(t, s, shift, w, alpha)
