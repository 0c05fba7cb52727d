"""Atoms of objective perturbation from their two numbers, and the profiles of the losses that they bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from scipy.special import ndtr

from snugdp.accounting import composition
from snugdp.accounting.composition import Atom, Branch
from snugdp.numerics.rationals import Real, rational


def objective_perturbation(m: Real, e_c: Real) -> Atom:
    """With a loss of class T."""
    whole = Branch(rational(m, "m") ** 2, Fraction(0))
    return Atom((whole, whole), (whole, Branch(Fraction(0), rational(e_c, "e_c"))))


def objective_perturbation_general(m: Real, beta: Real) -> Atom:
    """With any admissible loss; beta is at least log(1 + B^2/lambda)."""
    size, shift = rational(m, "m") ** 2, rational(beta, "beta")
    whole = Branch(size, Fraction(0))
    return Atom((whole, whole), (Branch(size, shift), Branch(Fraction(0), shift)))


def gaussian_delta(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def add_profile(m: float, epsilon: float) -> float:
    """The delta of the loss m |t| + m^2/2, t standard normal."""
    if epsilon >= m**2 / 2:
        return 2 * gaussian_delta(m, epsilon)
    return float(1 - 2 * math.exp(epsilon) * ndtr(-m))


def remove_profile(m: float, floor: float, shift: float, epsilon: float) -> float:
    """The delta of the loss shift + max(m t + m^2/2, floor)."""
    level = epsilon - shift
    if level >= floor:
        return gaussian_delta(m, level)
    return 1 - math.exp(level - floor) * (1 - gaussian_delta(m, floor))


def exact(number: float) -> Fraction:
    """The number as it prints."""
    return Fraction(repr(number))


def composed(epsilon: float, atoms: Sequence[Atom], mu_squared: Fraction = Fraction(0)) -> float:
    """What Theorem T says about these atoms beside a Gaussian part."""
    return composition.delta(mu_squared=mu_squared, atoms=tuple(atoms), epsilon=exact(epsilon))


def claimed(epsilon: float, branches: tuple[Branch, ...], mu_squared: Fraction = Fraction(0), times: int = 1) -> float:
    """The same of one direction of an atom."""
    return composed(epsilon, (Atom(branches, branches),) * times, mu_squared)
