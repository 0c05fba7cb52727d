"""Theorems C1 and C2: the delta of keeping the best of K runs, from the lines of one run's trade-off curve.

Floats choose a grid and, for each of its cells, the line to use; any choice gives a true bound. Balls then compute the
upper sum that belongs to the choice. Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from flint import arb

from snugdp.accounting.selection.laws import BALLS, FLOATS, Arithmetic, Floats, Law
from snugdp.accounting.selection.tradeoff import Chords, TradeoffCurve, TradeoffLines
from snugdp.numerics import balls

POINTS = 1500  # of the grid, beside the corners of the curve


class CellSum:
    """Theorem C2, and C1, for one curve and one law: in floats at once, in balls on demand."""

    def __init__(self, curve: TradeoffCurve, law: Law, points: int = POINTS) -> None:
        self.law, self.lines = law, TradeoffLines(curve)
        self.z = self.lines.grid(law, points)
        self.cell, *ends = self.lines.upper(self.z)
        self.start = self.lines.at(self.z)
        self.rho, self._weights = self._floats(*ends)

    def _floats(self, above: Floats, below: Floats) -> tuple[Floats, Floats]:
        """Rho for every cell, as a supremum over all z below its upper end; and the weights of the cells."""
        law, z = self.law, self.z
        least = law.ratio(np.zeros(1), np.zeros(1), FLOATS)
        with np.errstate(all="ignore"):
            worst = np.maximum(least, np.maximum(law.ratio(z[:-1], above, FLOATS), law.ratio(z[1:], below, FLOATS)))
            rho = law.rho(np.maximum.accumulate(worst[::-1])[::-1], FLOATS)
        share = law.share(z, FLOATS)
        weights = np.diff(share)
        weights[0] += share[0]
        return rho, weights * law.mean_in(FLOATS)

    def guess(self, epsilon: float) -> float:
        """C2 in floats: nothing is promised."""
        lines, z, line = self.lines, self.z[:-1], self.start[:-1]
        with np.errstate(all="ignore"):
            alpha = np.exp(epsilon) / self.rho
            part = np.minimum(alpha / lines.alpha[line], 1.0)
            found = np.minimum(lines.stick(alpha), z * (1 - part) + part * lines.d[line])
        return float(np.minimum(found, z) @ self._weights)

    def balls(self, epsilon: Fraction) -> arb:
        """C2 as a ball at the present precision, whose upper end is proved (selection.proof.md, Theorem 3)."""
        return Certificate(self).c2(epsilon)


class First:
    """Theorem C1 for one curve and one law."""

    def __init__(self, curve: TradeoffCurve, law: Law, points: int = POINTS) -> None:
        self.sum = CellSum(curve, law, points)

    def guess(self, epsilon: float) -> float:
        """C1 in floats: nothing is promised."""
        found = self.sum.lines.stick(np.exp(epsilon) / self.sum.rho[:1])
        return float(self.sum.law.mean_in(FLOATS) * found[0])

    def balls(self, epsilon: Fraction) -> arb:
        """C1 as a ball at the present precision, whose upper end is proved."""
        return Certificate(self.sum).c1(epsilon)


class Certificate:
    """The upper sum at one precision: what does not depend on epsilon is computed once."""

    def __init__(self, plan: CellSum) -> None:
        self.plan, self.k = plan, _remembering()
        self.z = [arb(value) for value in plan.z.tolist()]
        self.chords = Chords(plan.lines)
        self.rho = self._rho()

    def c1(self, epsilon: Fraction) -> arb:
        """M H_alpha at alpha = exp(epsilon)/rho."""
        rho = self.rho[0]
        mean: arb = self.plan.law.mean_in(self.k)
        return mean if rho is None else mean * self.chords.stick(balls.exp(balls.ball(epsilon)) / rho)

    @cached_property
    def _cells(self) -> list[tuple[arb, int, arb, arb]]:
        """Of every cell its upper end, the line there, how far the end is above that line's d, and the weight."""
        d, start = self.chords.d, self.plan.start.tolist()[: len(self.rho)]
        share = [self.plan.law.share(z, self.k) for z in self.z]
        weights = [share[1], *(after - before for before, after in pairwise(share[1:]))]
        return [(z, line, z - d[line], w) for z, line, w in zip(self.z, start, weights, strict=False)]

    def c2(self, epsilon: Fraction) -> arb:
        """The upper sum over the cells."""
        top, total, alpha, stick, before = balls.exp(balls.ball(epsilon)), arb(0), None, arb(1), None
        for rho, (z, line, above, weight) in zip(reversed(self.rho), reversed(self._cells), strict=True):
            if rho is not before or alpha is None:
                before = rho
                alpha = None if rho is None else top / rho
                stick = arb(1) if alpha is None else self.chords.stick(alpha)  # line 3
            total += self.chords.bound(alpha, stick, z, line, above) * weight  # line 4
        mean: arb = self.plan.law.mean_in(self.k)
        return mean * total

    def _rho(self) -> list[arb | None]:
        """For every cell a bound on rho over all z below its upper end; none if it may be infinite (line 2)."""
        law, k, cells = self.plan.law, self.k, self.plan.cell.tolist()
        least = worst = law.ratio(arb(0), arb(0), k)
        rho: arb | None = law.rho(worst, k)
        found, last = [], -1
        for i in range(len(cells) - 1, -1, -1):
            line = cells[i]
            for z in (self.z[i],) if line == last else (self.z[i + 1], self.z[i]):
                ratio = law.ratio(z, self.chords.slope[line] * z + self.chords.offset[line], k)
                if rho is None or not ratio.is_finite() or ratio < least:  # a pole of the binomial law
                    rho = None
                elif not ratio <= worst:
                    worst = worst.max(ratio)
                    rho = law.rho(worst, k)
            last = line
            found.append(rho)
        return found[::-1]


def _remembering() -> Arithmetic:
    """Balls at the present precision; rationals that come again are not converted again."""
    known: dict[tuple[int, int], arb] = {}

    def of(value: Fraction) -> arb:
        name = value.numerator, value.denominator  # quicker to look up than the rational itself
        found = known.get(name)
        if found is None:
            found = known[name] = balls.ball(value)
        return found

    return Arithmetic(of, BALLS.exp, BALLS.log, BALLS.power)
