"""The critical loss of a pseudo-Huber slope: the supremum of a function of one number, proved by branch and bound."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction

from flint import arb

from snugdp.numerics import balls, roots

_RELATIVE_GAP = 2.0**-36
_MAX_CELLS = 4000


def pseudo_huber(m_squared: Fraction, kappa: Fraction) -> Fraction:
    """The supremum over 0 <= w < 1 of log(1 + kappa (1 - w^2)^(3/2))/(1 - w) - m^2 w/2; rounded up.

    >>> round(float(pseudo_huber(Fraction(2367, 10000)**2, Fraction(1))), 3)
    1.021
    """
    if not kappa:
        return Fraction(0)
    with balls.precision(balls.FIRST):
        return _supremum(m_squared, kappa)


def pseudo_huber_kappa(m_squared: Fraction, limit: Fraction) -> Fraction:
    """A kappa, nearly the largest, whose critical loss is at most ``limit``."""

    def fits(kappa: Fraction) -> bool:
        return pseudo_huber(m_squared, kappa) <= limit

    low, high = Fraction(0), limit
    while fits(high):
        low, high = high, 2 * high
    return roots.bisect(fits, low, high, 30, middle=roots.float_mean)[0]


def _supremum(m_squared: Fraction, kappa: Fraction) -> Fraction:
    """Cells of v = 1 - w, the most promising one halved until nothing is gained."""
    m, k = balls.ball(m_squared), balls.ball(kappa)
    best = max(_value(v / 512, float(m_squared), float(kappa)) for v in range(1, 513))
    edge = Fraction(1, 2)
    while 3 * float(kappa) * math.sqrt(edge) + float(m_squared * edge / 2) >= best + float(m_squared) / 2:
        edge /= 2
    first = (k * (8 * balls.ball(edge)).sqrt() + m * balls.ball(edge / 2) - m / 2).upper()  # v <= edge
    heap: list[tuple[float, Fraction, Fraction, arb]] = []
    while edge < 1:
        heapq.heappush(heap, _cell(edge, 2 * edge, m, k))
        edge *= 2
    for _ in range(_MAX_CELLS):
        top, low, high, _bound = heap[0]
        best = max(best, _value(float((low + high) / 2), float(m_squared), float(kappa)))
        if -top <= best + _RELATIVE_GAP * abs(best):
            break
        heapq.heappop(heap)
        middle = (low + high) / 2
        heapq.heappush(heap, _cell(low, middle, m, k))
        heapq.heappush(heap, _cell(middle, high, m, k))
    return max([balls.exact(first), Fraction(0), *(balls.exact(cell[3]) for cell in heap)])


def _value(v: float, m_squared: float, kappa: float) -> float:
    return math.log1p(kappa * (v * (2 - v)) ** 1.5) / v - m_squared * (1 - v) / 2


def _cell(low: Fraction, high: Fraction, m: arb, k: arb) -> tuple[float, Fraction, Fraction, arb]:
    """An upper bound on the function over a cell: its middle, and the largest slope times the half width."""
    middle, half = balls.ball((low + high) / 2), balls.ball((high - low) / 2)
    v = balls.ball(low).union(balls.ball(high))
    here, _ = _both(middle, m, k)
    plain, slope = _both(v, m, k)
    bound = (here + abs(slope) * half).upper().min(plain.upper()).upper()
    return (-float(bound) if bound.is_finite() else -math.inf), low, high, bound


def _both(v: arb, m: arb, k: arb) -> tuple[arb, arb]:
    """The function and its derivative."""
    root = (v * (2 - v)).sqrt()
    inside = 1 + k * root**3
    log = inside.log()
    slope = k * 3 * root * (1 - v) / (inside * v) - log / v**2 + m / 2
    return log / v - m * (1 - v) / 2, slope
