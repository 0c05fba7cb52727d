"""Several classes: one objective perturbation per class, or one softmax model. Proofs: multiclass.proof.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from snugdp.accounting import gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.gaussian import nonnegative, positive, probability
from snugdp.accounting.objective import corners
from snugdp.accounting.objective.run import RunCost, Unit, lower_half, within
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, float_down, readings

_ZERO = Fraction(0)
SoftmaxBound: TypeAlias = Literal["trace", "corners"]
MAX_PERSON_KAPPA = 4  # of softmax: its atom has exp(kappa) branches for each class


@dataclass(frozen=True)
class SoftmaxRun:
    """One softmax objective perturbation: m squared (m = sqrt(2) B / sigma) and kappa = B^2 / ridge, exactly.

    ``unit``: neighbours differ in a row, or in all rows of a person. Then m and kappa are those of a row times the most
    that the weights of a person's rows add up to.
    ``bound``: how a removal is followed, by the largest determinant (``"trace"``) or level by level (``"corners"``, for
    rows and three classes or more).
    """

    m_squared: Fraction
    kappa: Fraction
    classes: int
    unit: Unit = "row"
    bound: SoftmaxBound = "trace"

    def __post_init__(self) -> None:
        _classes(self.classes)
        if self.m_squared < 0 or self.kappa < 0:
            raise ValueError("m_squared and kappa must be at least 0")
        if self.bound == "corners" and self.unit == "person":
            raise ValueError("the bound by corners is one for rows")
        if self.unit == "person" and self.kappa > MAX_PERSON_KAPPA:
            raise ValueError("the ridge is too small for a softmax model of persons: give a larger one")

    @property
    def _pair(self) -> RunCost | None:
        """The run of two classes for persons: one whose slope keeps its sign, with bounded curvature."""
        if self.unit == "row" or self.classes > 2:
            return None
        return RunCost(self.m_squared, self.shift, "constant_sign", unit="person")

    @property
    def failure(self) -> Fraction:
        """The probability of what is not followed."""
        if self.bound == "corners":
            return corners.TAIL
        return _ZERO if self._pair is None else self._pair.failure

    @property
    def shift(self) -> Fraction:
        """What the determinant costs: (K - 1) log(1 + kappa/K), rounded up; nothing where kappa <= m^2/4.

        For persons the trace, kappa (K - 1)/K.
        """
        if self.unit == "person":
            return self.kappa * (self.classes - 1) / self.classes
        return _ZERO if self.kappa <= self.m_squared / 4 else softmax_log_det(self.kappa, self.classes)

    @property
    def _removal_branches(self) -> int:
        """For persons: exp(shift) (K - 1), rounded up."""
        if not self.shift:
            return self.classes - 1
        return math.ceil(balls.rational_above(lambda: (self.classes - 1) * balls.exp(balls.ball(self.shift))))

    @property
    def atom(self) -> Atom:
        """What the run costs, for any company (multiclass.proof.md, Theorems 2 and 3; corners.proof.md).

        >>> len(SoftmaxRun(Fraction(1, 100), Fraction(1, 5), 10).atom.add)
        9
        """
        if self.bound == "corners":
            return corners.corner_atom(self.m_squared, self.kappa, self.classes)
        if self._pair is not None:
            return self._pair.atom
        rest = lower_half(self.m_squared) if self.classes == 2 else ()
        add = (*[Branch(self.m_squared, _ZERO)] * (self.classes - 1), *rest)
        if self.unit == "person":
            return Atom(add, (Branch(self.m_squared, self.shift),) * self._removal_branches)
        moved = tuple(Branch(branch.mu_squared, self.shift, branch.weight) for branch in add)
        return Atom(add, moved)


def softmax_log_det(kappa: Fraction, classes: int) -> Fraction:
    """(K - 1) log(1 + kappa/K), rounded up."""
    if not kappa:
        return _ZERO
    return balls.rational_above(lambda: (classes - 1) * balls.ball(kappa / classes).log1p())


def softmax(epsilon: Real, delta: Real, classes: int, kappa: Real, *, mu: Real = 0, unit: Unit = "row") -> float:
    """The largest m of one softmax run beside a Gaussian part ``mu``; rounded down, 0 if there is none.

    Guarantee: run and Gaussian part together are (epsilon, delta)-DP with the float, read in binary or as it prints.

    >>> round(softmax(1, "1e-6", 10, "0.2"), 4)
    0.1785
    """
    level, goal, rest = positive(epsilon, "epsilon"), probability(delta, "delta"), nonnegative(mu, "mu") ** 2
    size, many = nonnegative(kappa, "kappa"), _classes(classes)
    left = level - (softmax_log_det(size, many) if unit == "row" else SoftmaxRun(_ZERO, size, many, unit).shift)
    room = Fraction(gaussian.mu(left, goal / (many - 1))) ** 2 - rest if left > 0 else _ZERO
    if room <= 0:
        return 0.0

    def fits(m: float) -> bool:
        runs = [SoftmaxRun(value**2, size, many, unit) for value in readings(m)]
        return all(within(level, goal, [run], rest) for run in runs)

    return roots.largest_up_to(fits, math.sqrt(float_down(room)) * (1 - 2.0**-50))


def softmax_by_corners(
    epsilon: Real,
    delta: Real,
    classes: int,
    kappa: Real,
    *,
    mu: Real = 0,
    fits: Callable[[float], bool] | None = None,
) -> float:
    """As ``softmax``, with removals followed level by level; 0 if there is none, or no such bound.

    Guarantee: run (``bound="corners"``) and Gaussian part together are (epsilon, delta)-DP with the float, read in
    binary or as it prints. With ``fits``, that is what is proved of it instead.

    >>> round(softmax_by_corners(1, "1e-6", 10, "0.2"), 3)
    0.204
    """
    level, goal, rest = positive(epsilon, "epsilon"), probability(delta, "delta"), nonnegative(mu, "mu") ** 2
    size, many = nonnegative(kappa, "kappa"), _classes(classes)
    room = Fraction(gaussian.mu(level, goal / (many - 1))) ** 2 - rest
    if room <= 0 or not corners.usable(room, size, many):
        return 0.0

    def proved(m: float) -> bool:
        return all(
            corners.usable(value**2, size, many)
            and within(level, goal, [SoftmaxRun(value**2, size, many, bound="corners")], rest)
            for value in readings(m)
        )

    budget, most = (float(level), float(goal)), math.sqrt(float_down(room))
    return corners.largest_m(budget, size, many, mu=math.sqrt(rest), most=most, fits=fits or proved)


def _classes(classes: int) -> int:
    if isinstance(classes, bool) or not isinstance(classes, int) or not 2 <= classes <= 10**6:
        raise ValueError("classes must be a whole number, at least 2")
    return classes
