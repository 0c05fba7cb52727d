"""Theorems C1 and C2: the delta of keeping the best of K runs, from the lines of one run's trade-off curve.

Floats choose a grid and, for each of its cells, the line to use; any choice gives a true bound. Balls then compute the
upper sum that belongs to the choice. Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.accounting import balls
from snugdp.accounting.selection_curves import Curve
from snugdp.accounting.selection_laws import BALLS, FLOATS, Arithmetic, Floats, Law

Indices = NDArray[np.intp]

POINTS = 1500  # of the grid, beside the corners of the curve


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines L(x) >= (x - d)/alpha of a curve, alpha increasing, and where they meet."""

    curve: Curve

    @cached_property
    def alpha(self) -> Floats:
        """Factors, below 1 for what is known of the other order."""
        return np.concatenate([1 / self.back[0], self._ahead[0]])

    @cached_property
    def d(self) -> Floats:
        """Bounds on H_alpha."""
        return np.concatenate([1 - (1 - self.back[1]) / self.back[0], self._ahead[1]])

    @property
    def _ahead(self) -> tuple[Floats, Floats]:
        return self.curve.ahead

    @cached_property
    def back(self) -> tuple[Floats, Floats]:
        """From the largest factor down; without the factor 1 if the other list has it."""
        a, r = self.curve.back
        keep = slice(1, None) if a[0] == 1 == self._ahead[0][0] and r[0] >= self._ahead[1][0] else slice(0, None)
        return a[keep][::-1], r[keep][::-1]

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats]:
        """B(z) = 1 - L(1 - z) <= s z + c, the last line being B <= 1."""
        (a, r), (b, d) = self.back, self._ahead
        return np.concatenate([a, 1 / b, [0.0]]), np.concatenate([r, 1 - (1 - d) / b, [1.0]])

    @cached_property
    def corners(self) -> Floats:
        """The z at which each line hands over to the next."""
        s, c = self._slopes
        gap = np.maximum(s[:-1] - s[1:], 1e-300)
        return np.maximum.accumulate(np.clip((c[1:] - c[:-1]) / gap, 0.0, 1.0))

    @cached_property
    def _low(self) -> Floats:
        """The x at which each line of ``ahead`` hands over to the one before it, increasing."""
        a, d = self._ahead
        return np.maximum.accumulate((d[:-1] + a[:-1] * (d[:-1] - d[1:]) / (a[1:] - a[:-1]))[::-1])

    def grid(self, law: Law, points: int) -> Floats:
        """Points z from 1 down to 0."""
        parts = [self.corners, law.grid(points), np.geomspace(1e-15, 1.0, points // 5), np.array([0.0, 1.0])]
        return np.unique(np.concatenate(parts))[::-1]

    def upper(self, z: Floats) -> tuple[Indices, Floats, Floats]:
        """For every cell of the grid: a line of B, and its values at the upper and the lower end."""
        line = np.searchsorted(self.corners, (z[:-1] + z[1:]) / 2)
        s, c = (part[line] for part in self._slopes)
        return line, s * z[:-1] + c, s * z[1:] + c

    def at(self, x: Floats) -> Indices:
        """For every x the line that is highest there, nearly."""
        top = len(self.alpha) - 1
        low = top - np.searchsorted(self._low, x)
        high = np.searchsorted(self.corners, 1 - x)
        beyond = x > (self._low[-1] if len(self._low) else 0.0)
        return np.minimum(np.where(beyond, high, low), top)

    def stick(self, alpha: Floats) -> Floats:
        """H_alpha by chords between the lines."""
        found: Floats = np.interp(alpha, np.concatenate([[0.0], self.alpha]), np.concatenate([[1.0], self.d]))
        return found


class Sum:
    """Theorem C2, and C1, for one curve and one law: in floats at once, in balls on demand."""

    def __init__(self, curve: Curve, law: Law, points: int = POINTS) -> None:
        self.law, self.lines = law, Lines(curve)
        self.z = self.lines.grid(law, points)
        self.cell, *ends = self.lines.upper(self.z)
        self.start = self.lines.at(self.z)
        self.rho, self._weights = self._floats(*ends)

    def _floats(self, above: Floats, below: Floats) -> tuple[Floats, Floats]:
        """rho for every cell, as a supremum over all z below its upper end; and the weights of the cells."""
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

    def __init__(self, curve: Curve, law: Law, points: int = POINTS) -> None:
        self.sum = Sum(curve, law, points)

    def guess(self, epsilon: float) -> float:
        """C1 in floats: nothing is promised."""
        found = self.sum.lines.stick(np.exp(epsilon) / self.sum.rho[:1])
        return float(self.sum.law.mean_in(FLOATS) * found[0])

    def balls(self, epsilon: Fraction) -> arb:
        """C1 as a ball at the present precision, whose upper end is proved."""
        return Certificate(self.sum).c1(epsilon)


class Certificate:
    """The upper sum at one precision: what does not depend on epsilon is computed once."""

    def __init__(self, plan: Sum) -> None:
        self.plan, self.k = plan, _remembering()
        self.z = [arb(value) for value in plan.z.tolist()]
        self.chords = Chords(plan.lines)
        self.rho = self._rho()

    def c1(self, epsilon: Fraction) -> arb:
        """m H_alpha at alpha = exp(epsilon)/rho."""
        rho, mean = self.rho[0], self.plan.law.mean_in(self.k)
        return mean if rho is None else mean * self.chords.stick(balls.exp(balls.ball(epsilon)) / rho)

    @cached_property
    def _shares(self) -> list[arb]:
        return [self.plan.law.share(z, self.k) for z in self.z]

    def c2(self, epsilon: Fraction) -> arb:
        """The upper sum over the cells."""
        top, share, start = balls.exp(balls.ball(epsilon)), self._shares, self.plan.start.tolist()
        total, alpha, stick, before = arb(0), None, arb(1), None
        for i in range(len(self.rho) - 1, -1, -1):
            if self.rho[i] is not before or alpha is None:
                before = self.rho[i]
                alpha = None if before is None else top / before
                stick = arb(1) if alpha is None else self.chords.stick(alpha)  # line 3
            weight = share[i + 1] - share[i] if i else share[1]
            total += self.chords.bound(alpha, stick, self.z[i], start[i]) * weight  # line 4
        return self.plan.law.mean_in(self.k) * total

    def _rho(self) -> list[arb | None]:
        """For every cell a bound on rho over all z below its upper end; none if it may be infinite (line 2)."""
        law, k, cells = self.plan.law, self.k, self.plan.cell.tolist()
        worst = law.ratio(arb(0), arb(0), k)
        rho, found, last = law.rho(worst, k), [], -1
        for i in range(len(cells) - 1, -1, -1):
            line = cells[i]
            for z in (self.z[i],) if line == last else (self.z[i + 1], self.z[i]):
                ratio = law.ratio(z, self.chords.slope[line] * z + self.chords.offset[line], k)
                if rho is None or ratio <= worst:
                    continue
                worst = worst.max(ratio)
                rho = law.rho(worst, k) if ratio > -1 and ratio.is_finite() else None
            last = line
            found.append(rho)
        return found[::-1]


class Chords:
    """The lines of a curve as balls, and the profile between them."""

    def __init__(self, lines: Lines) -> None:
        (a, r), (b, d) = lines.back, lines.curve.ahead
        self.nodes = lines.alpha.tolist()
        self.alpha = [*(1 / arb(x) for x in a.tolist()), *map(arb, b.tolist())]
        self.d = [*(1 - (1 - arb(x)) * y for x, y in zip(r.tolist(), self.alpha, strict=False)), *map(arb, d.tolist())]
        self.slope = [*(1 / x for x in self.alpha), arb(0)]
        self.offset = [*(1 - (1 - d) / x for x, d in zip(self.alpha, self.d, strict=True)), arb(1)]

    def stick(self, alpha: arb) -> arb:
        """A bound on H_alpha: the chord between two lines around alpha; beyond the last, that one."""
        right = bisect_left(self.nodes, float(alpha.mid()))
        while right < len(self.alpha) and not alpha <= self.alpha[right]:
            right += 1
        left = min(right, len(self.alpha)) - 1
        while left >= 0 and not self.alpha[left] <= alpha:
            left -= 1
        if right == len(self.alpha):
            return self.d[left] if left >= 0 else arb(1)
        a, d = (self.alpha[left], self.d[left]) if left >= 0 else (arb(0), arb(1))
        part = (alpha - a) / (self.alpha[right] - a)
        return d + part * (self.d[right] - d)

    def bound(self, alpha: arb | None, stick: arb, x: arb, line: int) -> arb:
        """A bound on max over s <= x of s - alpha L(s), from the profile, from one line, and x itself."""
        if alpha is None:
            return x
        least = stick.min(x)
        if alpha <= self.alpha[line]:
            part = alpha / self.alpha[line]
            least = least.min(x - part * (x - self.d[line]))
        return least


def _remembering() -> Arithmetic:
    """Balls at the present precision; rationals that come again are not converted again."""
    known: dict[Fraction, arb] = {}

    def of(value: Fraction) -> arb:
        found = known.get(value)
        if found is None:
            found = known[value] = balls.ball(value)
        return found

    return Arithmetic(of, BALLS.exp, BALLS.log, BALLS.power)
