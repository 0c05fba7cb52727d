"""Several classes: one objective perturbation per class, or one softmax model. Proofs: multiclass.proof.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from snugdp.accounting import composition, gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.gaussian import nonnegative, positive, probability
from snugdp.accounting.objective.run import lower_half
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, float_down, readings

_NONE = Fraction(0)


@dataclass(frozen=True)
class SoftmaxRun:
    """One softmax objective perturbation: m squared (m = sqrt(2) B / sigma) and kappa = B^2 / ridge, exactly."""

    m_squared: Fraction
    kappa: Fraction
    classes: int
    failure = _NONE

    def __post_init__(self) -> None:
        _classes(self.classes)
        if self.m_squared < 0 or self.kappa < 0:
            raise ValueError("m_squared and kappa must be at least 0")

    @property
    def shift(self) -> Fraction:
        """What the determinant costs: (K - 1) log(1 + kappa/K), rounded up; nothing where kappa <= m^2/4."""
        return _NONE if self.kappa <= self.m_squared / 4 else softmax_log_det(self.kappa, self.classes)

    @property
    def atom(self) -> Atom:
        """What the run costs, for any company (multiclass.proof.md, Theorem 2).

        >>> len(SoftmaxRun(Fraction(1, 100), Fraction(1, 5), 10).atom.add)
        9
        """
        rest = lower_half(self.m_squared) if self.classes == 2 else ()
        add = (*[Branch(self.m_squared, _NONE)] * (self.classes - 1), *rest)
        moved = tuple(Branch(branch.mu_squared, self.shift, branch.weight) for branch in add)
        return Atom(add, moved)


def softmax_log_det(kappa: Fraction, classes: int) -> Fraction:
    """(K - 1) log(1 + kappa/K), rounded up."""
    if not kappa:
        return _NONE
    return balls.rational_above(lambda: (classes - 1) * balls.ball(kappa / classes).log1p())


def softmax(epsilon: Real, delta: Real, classes: int, kappa: Real, *, mu: Real = 0) -> float:
    """The largest m of one softmax run beside a Gaussian part ``mu``; rounded down, 0 if there is none.

    Guarantee: run and Gaussian part together are (epsilon, delta)-DP with the float, read in binary or as it prints.

    >>> round(softmax(1, "1e-6", 10, "0.2"), 4)
    0.1785
    """
    level, goal, rest = positive(epsilon, "epsilon"), probability(delta, "delta"), nonnegative(mu, "mu") ** 2
    size, many = nonnegative(kappa, "kappa"), _classes(classes)
    left = level - softmax_log_det(size, many)
    room = Fraction(gaussian.mu(left, goal / (many - 1))) ** 2 - rest if left > 0 else _NONE
    if room <= 0:
        return 0.0

    def fits(m: float) -> bool:
        atoms = [SoftmaxRun(value**2, size, many).atom for value in readings(m)]
        return all(composition.at_most(mu_squared=rest, atoms=(atom,), epsilon=level, delta=goal) for atom in atoms)

    return roots.largest_up_to(fits, math.sqrt(float_down(room)) * (1 - 2.0**-50))


def _classes(classes: int) -> int:
    if isinstance(classes, bool) or not isinstance(classes, int) or not 2 <= classes <= 10**6:
        raise ValueError("classes must be a whole number, at least 2")
    return classes
