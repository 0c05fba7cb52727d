"""One run of objective perturbation: what it costs, by the kind of its loss.

A sum of losses l(u) plus ``ridge/2 |theta - centre|^2`` plus ``b . theta``, b Gaussian, is minimised. What matters is
m = L0 B / sigma (the largest gradient of a row over the noise) and kappa = c0 B^2 / ridge, and the kind of the loss:
whether its slope keeps its sign, and how its curvature falls where the slope is largest. For the logistic loss one
release is exactly as private as one Gaussian release. Statements and proofs: glm.proof.md, linear.proof.md, and where
a person may have several rows persons.proof.md.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias, get_args

from flint import arb

from snugdp.accounting import composition, gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.objective import curve as curves
from snugdp.accounting.objective import removal
from snugdp.accounting.objective.curve import RemovalCurve
from snugdp.accounting.objective.growth import Family
from snugdp.accounting.objective.persons import PersonLoss
from snugdp.numerics import balls, roots

Kind: TypeAlias = Literal[
    "logistic",
    "class_c",
    "constant_sign",
    "tamed_poisson",
    "log_cosh",
    "pseudo_huber",
    "sign_changing",
    "class_t",
    "class_t_sharp",
]
Unit: TypeAlias = Literal["row", "person"]
CONSTANT_SIGN: frozenset[str] = frozenset({"logistic", "class_c", "constant_sign"})
CLASS_C: frozenset[str] = frozenset({"logistic", "class_c"})
_FAMILIES: dict[Kind, Family] = {
    "logistic": "logistic",
    "class_c": "linear",
    "tamed_poisson": "linear",
    "constant_sign": "bounded",
    "sign_changing": "bounded",
    "log_cosh": "class_t",
    "pseudo_huber": "class_t",
    "class_t": "class_t",
    "class_t_sharp": "class_t",
}
_ZERO = Fraction(0)


@dataclass(frozen=True)
class RunCost:
    """One objective perturbation: m squared and kappa, exactly, and the kind of its loss.

    With p = |l'|/L0: ``logistic`` is l'' <= c0 p (1 - p) (logistic, softplus-hinge), ``class_c`` is l'' <= c0 (1 - p),
    ``constant_sign`` is l'' <= c0, all three with an l' that never changes sign. The others may change it:
    ``tamed_poisson`` is l'' <= c0 (1 - p), ``log_cosh`` c0 (1 - p^2), ``pseudo_huber`` c0 (1 - p^2)^(3/2),
    ``sign_changing`` l'' <= c0. ``class_t`` is l'' <= c0 (1 - p^2) as well, with the simpler bounds of linear.proof.md;
    ``class_t_sharp`` follows the loss of a removal level by level (removal.py), which allows a larger kappa.
    ``levels``: how finely a run of logistic type is followed.
    ``unit``: neighbours differ in a row, or in all rows of a person. Then m and kappa are those of a row times the most
    that the weights of a person's rows add up to.
    """

    m_squared: Fraction
    kappa: Fraction
    kind: Kind = "logistic"
    levels: int = curves.MAX_LEVELS
    unit: Unit = "row"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"the kind of a loss must be one of {', '.join(get_args(Kind))}")
        if self.unit not in get_args(Unit):
            raise ValueError(f"the unit must be one of {', '.join(get_args(Unit))}")
        if self.m_squared < 0 or self.kappa < 0 or self.levels < 1:
            raise ValueError("m_squared and kappa must be at least 0, levels at least 1")

    def for_persons(self, weight: Fraction) -> RunCost:
        """The same run with neighbours that differ in a person, whose rows weigh at most ``weight`` together.

        >>> run = RunCost(Fraction(1, 16), Fraction(1, 4), "class_t").for_persons(Fraction(2))
        >>> run.m_squared, run.kappa, run.critical_loss
        (Fraction(1, 4), Fraction(1, 2), Fraction(9, 8))
        """
        if weight <= 0:
            raise ValueError("the weight of a person must be greater than 0")
        return replace(self, m_squared=weight**2 * self.m_squared, kappa=weight * self.kappa, unit="person")

    @property
    def person(self) -> PersonLoss | None:
        """The same run where neighbours differ in all rows of a person; None if they differ in a row."""
        if self.unit == "row":
            return None
        return PersonLoss(_FAMILIES[self.kind], self.kind in CONSTANT_SIGN, self.m_squared, self.kappa, 2 * self.levels)

    @property
    def failure(self) -> Fraction:
        """The probability of what the levels of a sharp bound do not follow."""
        if self.person:
            return self.person.failure
        return removal.TAIL if self.kind == "class_t_sharp" else _ZERO

    @property
    def critical_loss(self) -> Fraction:
        """Where the determinant is paid for: e_c, or log(1 + kappa) for a loss with bounded curvature only."""
        if self.person:
            return self.person.critical_loss
        return critical_loss(self.kind, self.m_squared, self.kappa)

    @property
    def curve(self) -> RemovalCurve:
        """The deltas of a removal (a loss with a slope of constant sign, l'' <= c0 (1 - p) at least)."""
        if self.kind not in CLASS_C:
            raise ValueError(f"there is no curve for {self.kind} losses: use the atom")
        if self.person:
            return self.person.curve
        if self.kind == "logistic" and self.levels > 1:
            return curves.logistic_curve(self.m_squared, self.kappa, self.levels)
        return curves.plain_curve(self.m_squared, self.critical_loss)

    @property
    def atom(self) -> Atom:
        """What the run costs, for any company.

        glm.proof.md, Theorems 1 to 4; linear.proof.md, Theorem 1; for persons persons.proof.md, Theorems 3 to 5.

        >>> RunCost(Fraction(1, 16), Fraction(1, 4)).atom.remove
        (Branch(mu_squared=Fraction(1, 16), shift=Fraction(0, 1), weight=Fraction(1, 1)),)
        """
        if self.person:
            return self.person.atom
        whole = Branch(self.m_squared, _ZERO)
        if self.kind == "class_t_sharp":
            return removal.sharp_atom(self.m_squared, self.kappa)
        if self.kind in CLASS_C:
            if self.kappa**2 <= self.m_squared:
                return Atom((whole,), (whole,))
            return _curve_atom(self)
        shift = self.critical_loss
        if self.kind == "constant_sign":
            return Atom((whole, *lower_half(self.m_squared)), (Branch(self.m_squared, shift),))
        if self.kind == "sign_changing":
            return Atom((whole, whole), (Branch(self.m_squared, shift), Branch(_ZERO, shift)))
        return Atom((whole, whole), (whole, Branch(_ZERO, shift)))

    @property
    def gaussian_instead(self) -> Fraction:
        """Mu squared of Gaussian releases that may take the run's place, chosen by what was released before.

        Guarantee: whichever is chosen, it costs no more than the run: its atom, and its failure (linear.proof.md,
        Theorem 3). For single rows and losses of class T.

        >>> RunCost(Fraction(1, 16), Fraction(1, 2), "class_t_sharp").gaussian_instead
        Fraction(1, 16)
        """
        if self.unit != "row" or self.kind not in ("class_t", "class_t_sharp"):
            raise ValueError("what may take the place of a run is proved for single rows and losses of class T alone")
        return self.m_squared

    @property
    def gaussian_squared(self) -> Fraction:
        """A square of mu such that the run is mu-Gaussian DP: a cost that composes without atoms.

        Guarantee: glm.proof.md, Theorems 2 and 3. For losses of class C (logistic among them) only.

        >>> round(math.sqrt(RunCost(Fraction(1, 16), Fraction(1, 2)).gaussian_squared), 3)
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


@lru_cache(maxsize=256)
def _curve_atom(run: RunCost) -> Atom:
    return Atom(run.curve.addition, run.curve.removal)


def critical_loss(kind: Kind, m_squared: Fraction, kappa: Fraction) -> Fraction:
    """The e_c of glm.proof.md, Lemma 2, and of linear.proof.md; exact or rounded up.

    >>> [critical_loss(kind, Fraction(1, 8), Fraction(1, 2)) for kind in ("logistic", "class_t")]
    [Fraction(7, 16), Fraction(15, 16)]
    """
    if kind in ("constant_sign", "sign_changing"):
        return log_det(kappa)
    if kind == "logistic":
        return max(_ZERO, kappa - m_squared / 2)
    if kind in ("class_c", "tamed_poisson"):
        return max(log_det(kappa), kappa - m_squared / 2)
    if kind in ("class_t", "class_t_sharp"):
        return max(kappa, 2 * kappa - m_squared / 2)
    if kind == "log_cosh":
        return max(log_det(kappa), 2 * kappa - m_squared / 2)
    return pseudo_huber(m_squared, kappa)


class PricedRun(Protocol):
    """A run with an atom, and a probability that it does not follow."""

    @property
    def atom(self) -> Atom:
        """What it costs, for any company."""

    @property
    def failure(self) -> Fraction:
        """The probability of what is not followed."""


def log_det(kappa: Fraction) -> Fraction:
    """Beta = log(1 + kappa), rounded up to a rational."""
    return balls.rational_above(lambda: balls.ball(kappa).log1p()) if kappa else Fraction(0)


def within(epsilon: Fraction, delta: Fraction, runs: Sequence[PricedRun], mu_squared: Fraction = _ZERO) -> bool:
    """Whether runs and a Gaussian part together are proved to be (epsilon, delta)-DP."""
    atoms, failure = tuple(run.atom for run in runs), sum((run.failure for run in runs), _ZERO)
    return composition.at_most(mu_squared=mu_squared, failure=failure, atoms=atoms, epsilon=epsilon, delta=delta)


def lower_half(m_squared: Fraction) -> tuple[Branch, ...]:
    """The weight Phi(-m/2) at loss 0, rounded up."""
    half = (
        balls.rational_above(lambda: gaussian.cdf(-balls.ball(m_squared).sqrt() / 2)) if m_squared else Fraction(1, 2)
    )
    return (Branch(_ZERO, _ZERO, half),)


def smallest_ridge(x_squared: Fraction, kappa: Fraction, bits: int = 30) -> Fraction:
    """The smallest ridge, on a grid of ``bits`` binary digits, with x_squared / ridge <= kappa.

    >>> smallest_ridge(Fraction(2), Fraction(1, 2))
    Fraction(4, 1)
    """
    if kappa <= 0:
        raise ValueError("no ridge is large enough: the other parts use up the budget")
    exact = x_squared / kappa
    step = Fraction(2) ** (exact.numerator.bit_length() - exact.denominator.bit_length() - bits)
    return math.ceil(exact / step) * step


# --- the critical loss of a pseudo-Huber slope: a supremum over one number, proved by branch and bound ---


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
