"""Objective perturbation for generalised linear models: what one run costs, and what a budget affords.

A sum of losses l(u) plus ``ridge/2 |theta - centre|^2`` plus ``b . theta``, b Gaussian, is minimised. What matters is
m = L0 B / sigma (the largest gradient of a row over the noise) and kappa = c0 B^2 / ridge, and the kind of the loss:
whether its slope keeps its sign, and how its curvature falls where the slope is largest. For the logistic loss one
release is exactly as private as one Gaussian release. Statements and proofs: glm.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from snugdp.accounting import composition, gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.gaussian import nonnegative, positive, probability
from snugdp.accounting.objective import critical, linear
from snugdp.accounting.objective import curve as glm_curve
from snugdp.accounting.objective.curve import RemovalCurve
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, float_down, readings

PROOF = "accounting/objective/glm.proof.md#theorem-1"

Kind: TypeAlias = Literal[
    "logistic", "class_c", "constant_sign", "tamed_poisson", "log_cosh", "pseudo_huber", "sign_changing"
]
CONSTANT_SIGN: frozenset[str] = frozenset({"logistic", "class_c", "constant_sign"})
CLASS_C: frozenset[str] = frozenset({"logistic", "class_c"})
_NONE = Fraction(0)


@dataclass(frozen=True)
class SharpRun:
    """One objective perturbation: m squared and kappa, exactly, and the kind of its loss.

    With p = |l'|/L0: ``logistic`` is l'' <= c0 p (1 - p) (logistic, softplus-hinge), ``class_c`` is l'' <= c0 (1 - p),
    ``constant_sign`` is l'' <= c0, all three with an l' that never changes sign. The others may change it:
    ``tamed_poisson`` is l'' <= c0 (1 - p), ``log_cosh`` c0 (1 - p^2), ``pseudo_huber`` c0 (1 - p^2)^(3/2),
    ``sign_changing`` l'' <= c0. ``levels``: how finely a run of logistic type is followed.
    """

    m_squared: Fraction
    kappa: Fraction
    kind: Kind = "logistic"
    levels: int = glm_curve.MOST_LEVELS

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"the kind of a loss must be one of {', '.join(get_args(Kind))}")
        if self.m_squared < 0 or self.kappa < 0 or self.levels < 1:
            raise ValueError("m_squared and kappa must be at least 0, levels at least 1")

    @property
    def critical_loss(self) -> Fraction:
        """Where the determinant is paid for: e_c, or log(1 + kappa) for a loss with bounded curvature only."""
        return critical_loss(self.kind, self.m_squared, self.kappa)

    @property
    def curve(self) -> RemovalCurve:
        """The deltas of a removal (a loss with a slope of constant sign, l'' <= c0 (1 - p) at least)."""
        if self.kind not in CLASS_C:
            raise ValueError(f"there is no curve for {self.kind} losses: use the atom")
        if self.kind == "logistic" and self.levels > 1:
            return glm_curve.logistic_curve(self.m_squared, self.kappa, self.levels)
        return glm_curve.plain_curve(self.m_squared, self.critical_loss)

    @property
    def atom(self) -> Atom:
        """What the run costs, for any company (glm.proof.md, Theorems 1 to 4).

        >>> SharpRun(Fraction(1, 16), Fraction(1, 4)).atom.remove
        (Branch(mu_squared=Fraction(1, 16), shift=Fraction(0, 1), weight=Fraction(1, 1)),)
        """
        whole = Branch(self.m_squared, _NONE)
        if self.kind in CLASS_C:
            if self.kappa**2 <= self.m_squared:
                return Atom((whole,), (whole,))
            return _curve_atom(self)
        shift = self.critical_loss
        if self.kind == "constant_sign":
            return Atom((whole, *lower_half(self.m_squared)), (Branch(self.m_squared, shift),))
        if self.kind == "sign_changing":
            return Atom((whole, whole), (Branch(self.m_squared, shift), Branch(_NONE, shift)))
        return Atom((whole, whole), (whole, Branch(_NONE, shift)))

    @property
    def gaussian_squared(self) -> Fraction:
        """A square of mu such that the run is mu-Gaussian DP: a cost that composes without atoms.

        Guarantee: glm.proof.md, Theorems 2 and 3. For losses of class C (logistic among them) only.

        >>> round(math.sqrt(SharpRun(Fraction(1, 16), Fraction(1, 2)).gaussian_squared), 3)
        0.273
        """
        if self.kind not in CLASS_C:
            raise ValueError(f"no Gaussian cost is proved for {self.kind} losses: use the atom")
        plain = max(self.m_squared, self.kappa**2)
        if plain == self.m_squared:
            return plain
        try:
            return min(plain, self.curve.gaussian_squared())
        except ValueError:
            return plain

    def is_gaussian(self, square: Fraction) -> bool:
        """Whether the run is proved to be mu-Gaussian DP for mu^2 = ``square``; quicker than ``gaussian_squared``."""
        if self.kind not in CLASS_C or square < self.m_squared:
            return False
        return max(self.m_squared, self.kappa**2) <= square or self.curve.below_gaussian(square)


@lru_cache(maxsize=256)
def _curve_atom(run: SharpRun) -> Atom:
    return Atom(run.curve.addition, run.curve.removal)


def critical_loss(kind: Kind, m_squared: Fraction, kappa: Fraction) -> Fraction:
    """The e_c of glm.proof.md, Lemma 2; exact or rounded up.

    >>> critical_loss("logistic", Fraction(1, 8), Fraction(1, 2))
    Fraction(7, 16)
    """
    if kind in ("constant_sign", "sign_changing"):
        return linear.log_det(kappa)
    if kind == "logistic":
        return max(_NONE, kappa - m_squared / 2)
    if kind in ("class_c", "tamed_poisson"):
        return max(linear.log_det(kappa), kappa - m_squared / 2)
    if kind == "log_cosh":
        return max(linear.log_det(kappa), 2 * kappa - m_squared / 2)
    return critical.pseudo_huber(m_squared, kappa)


def calibrate(
    epsilon: Real, delta: Real, kind: Kind = "logistic", *, kappa: Real | None = None, mu: Real = 0, runs: int = 1
) -> float:
    """The largest m of each of ``runs`` equal runs beside a Gaussian part ``mu``; rounded down, 0 if there is none.

    Without ``kappa``: what the adding of a row allows. It is the m of a Gaussian mechanism (of half the delta where the
    slope changes its sign), and ``largest_kappa`` says how small the ridge may be. With ``kappa`` given: an m at which
    the whole is proved to be (epsilon, delta)-DP.

    >>> round(calibrate(1, "1e-6"), 9), round(calibrate(1, "1e-6", kappa="1.2"), 5)
    (0.236704381, 0.23509)
    """
    level, goal, rest = positive(epsilon, "epsilon"), probability(delta, "delta"), nonnegative(mu, "mu") ** 2
    affordable = [gaussian.mu(level, goal if kind in CONSTANT_SIGN else goal / 2 ** _count(runs))]
    if kappa is not None and kind in ("constant_sign", "sign_changing"):
        left = level - runs * linear.log_det(nonnegative(kappa, "kappa"))
        affordable.append(gaussian.mu(left, goal) if left > 0 else 0.0)
    room = (Fraction(min(affordable)) ** 2 - rest) / _count(runs)
    if room <= 0:
        return 0.0
    most = math.sqrt(float_down(room)) * (1 - 2.0**-50)
    if kappa is None:
        return most
    return _calibrated(level, goal, kind, nonnegative(kappa, "kappa"), (rest, runs, most))


@lru_cache(maxsize=256)
def _calibrated(
    epsilon: Fraction, delta: Fraction, kind: Kind, kappa: Fraction, company: tuple[Fraction, int, float]
) -> float:
    """The m beside (mu squared, runs), at most the given one."""
    rest, runs, most = company

    def fits(m: float) -> bool:
        many = [[SharpRun(value**2, kappa, kind)] * runs for value in readings(m)]
        return all(within(epsilon, delta, some, rest) for some in many)

    return roots.largest_up_to(fits, most)


@lru_cache(maxsize=256)
def largest_kappa(
    epsilon: Fraction, delta: Fraction, m_squared: Fraction, kind: Kind = "logistic", mu_squared: Fraction = _NONE
) -> Fraction:
    """About the largest kappa at which one run and a Gaussian part are proved to be (epsilon, delta)-DP; 0 if none is.

    >>> round(float(largest_kappa(Fraction(1), Fraction(1, 10**6), Fraction(1, 18))), 2)
    1.12
    """

    def fits(kappa: Fraction) -> bool:
        return within(epsilon, delta, [SharpRun(m_squared, kappa, kind)], mu_squared)

    free = free_kappa(epsilon, m_squared, kind) if not mu_squared else _NONE
    for low in (free, _short(epsilon / 2**10)):
        if low and fits(low):
            return roots.largest_near(fits, low, short_mean)
    return _NONE


def free_kappa(epsilon: Fraction, m_squared: Fraction, kind: Kind = "logistic") -> Fraction:
    """The kappa with e_c = epsilon: one run alone is then no worse than its addition; exact or rounded down.

    For ``logistic`` it is epsilon + m^2/2: the ridge may be as small as c0 B^2 / (epsilon + m^2/2).
    """
    grown = _grown(epsilon)
    if kind == "logistic":
        return epsilon + m_squared / 2
    if kind in ("class_c", "tamed_poisson"):
        return min(grown, epsilon + m_squared / 2)
    if kind == "log_cosh":
        return min(grown, epsilon / 2 + m_squared / 4)
    if kind == "pseudo_huber":
        return critical.pseudo_huber_kappa(m_squared, epsilon)
    return _NONE


def least_ridge(
    x_squared: Fraction,
    epsilon: Fraction,
    delta: Fraction,
    m_squared: Fraction,
    kind: Kind = "logistic",
    *,
    c0: Fraction = Fraction(1),
    mu_squared: Fraction = _NONE,
) -> Fraction:
    """The smallest ridge of one run with this m beside a Gaussian part; rounded up. ``x_squared`` bounds |x|^2.

    >>> round(float(least_ridge(Fraction(1), Fraction(1), Fraction(1, 10**6), Fraction(1, 18))), 2)
    0.89
    """
    limit = largest_kappa(epsilon, delta, m_squared, kind, mu_squared)
    if limit <= 0:
        raise ValueError("no ridge is large enough for this noise: use a smaller m")
    return linear.smallest_ridge(c0 * x_squared, limit)


def within(epsilon: Fraction, delta: Fraction, runs: list[SharpRun], mu_squared: Fraction = _NONE) -> bool:
    """Whether runs and a Gaussian part together are proved to be (epsilon, delta)-DP."""
    atoms = tuple(run.atom for run in runs)
    return composition.at_most(
        mu_squared=mu_squared, pure=_NONE, failure=_NONE, variation=_NONE, atoms=atoms, epsilon=epsilon, delta=delta
    )


def lower_half(m_squared: Fraction) -> tuple[Branch, ...]:
    """The weight Phi(-m/2) at loss 0, rounded up."""
    half = (
        balls.rational_above(lambda: gaussian.cdf(-balls.ball(m_squared).sqrt() / 2)) if m_squared else Fraction(1, 2)
    )
    return (Branch(_NONE, _NONE, half),)


def _grown(epsilon: Fraction) -> Fraction:
    """exp(epsilon) - 1, rounded down."""
    if epsilon > 30:
        return Fraction(10**13)
    return -balls.rational_above(lambda: -balls.ball(epsilon).expm1())


def short_mean(low: Fraction, high: Fraction) -> Fraction:
    """About the middle, with few digits."""
    return _short((low + high) / 2)


def _short(value: Fraction) -> Fraction:
    """The same with 40 binary digits, rounded down."""
    step = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - 40)
    return math.floor(value / step) * step


def _count(runs: int) -> int:
    if not isinstance(runs, int) or not 1 <= runs <= 1024:
        raise ValueError("runs must be a whole number from 1 to 1024")
    return runs
