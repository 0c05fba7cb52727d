"""Who is protected (Neighbours), how much may be spent (Budget), and how costs add (Cost).

A cost is the triple (mu, epsilon, delta) of ``accounting/composition.proof.md``: a Gaussian part, a pure part and a
failure part. ``+`` composes, adaptively. Two extensions do not fit the triple and are carried along: atoms (the
one-sided alternatives of objective perturbation) and a total-variation part.
"""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from snugdp.accounting import composition
from snugdp.accounting.composition import Atom
from snugdp.core.named import NamedChoice
from snugdp.numerics.printed import printed_up, root_up
from snugdp.numerics.rationals import Real, float_up, rational


class RelationMismatchError(ValueError):
    """Two objects use different neighbouring relations: their numbers must not be combined.

    Examples
    --------
    >>> Neighbours.REPLACE.require(Neighbours.ADD_REMOVE)
    Traceback (most recent call last):
        ...
    snugdp.core.guarantee.RelationMismatchError: cannot combine replace with add_remove: ...
    """


def other_relation(kept: Neighbours, released: Neighbours) -> str:
    """Why a ledger of one relation does not take a release of the other, and the way out."""
    way_out = (
        "Charge a ledger of its own relation: Ledger.open(..., budget=Budget(epsilon, delta, "
        f'neighbours="{released.value}")), snugdp ledger create --neighbours {released.value}, or '
        f'MemoryLedger(..., neighbours="{released.value}")'
    )
    why = (
        "A release that treats the number of rows as public cannot be paid where that number is private"
        if released is Neighbours.REPLACE
        else "To replace a row is to remove one and add another, so the release would cost more than its plan says"
    )
    return (
        f"this ledger counts by {kept.value}, and the release is private for {released.value}: nothing was read, "
        f'charged or drawn. {why}. {way_out}; or ask for the release with neighbours="{kept.value}" if it can be had'
    )


class Neighbours(NamedChoice):
    """Which two data sets must look alike. Every cost, test and ledger carries one of these.

    Attributes
    ----------
    ADD_REMOVE
        One row more or less; the number of rows is private.
    REPLACE
        One row changed; the number of rows is public.

    Examples
    --------
    >>> Budget(1, neighbours="replace").neighbours
    <Neighbours.REPLACE: 'replace'>
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"

    @property
    def relation(self) -> Literal["add_remove", "replace"]:
        """The name of the relation."""
        return "add_remove" if self is Neighbours.ADD_REMOVE else "replace"

    def require(self, other: Neighbours) -> None:
        """Raise unless ``other`` is the same relation."""
        if self is not other:
            raise RelationMismatchError(
                f"cannot combine {self.value} with {other.value}: a sensitivity computed for one neighbouring relation "
                "says nothing about the other. Use one relation throughout, as in "
                f'MemoryLedger(..., neighbours="{other.value}")'
            )


@dataclass(frozen=True, init=False)
class Budget:
    """The (epsilon, delta) that a caller is willing to spend, and the neighbouring relation.

    Parameters
    ----------
    epsilon : Real
        Greater than 0. Numbers are kept as typed: ``Budget(0.3)`` is exactly three tenths.
    delta : Real, default=0
        The failure probability, at least 0 and less than 1.
    neighbours : Neighbours or str
        The relation, "add_remove" by default.

    Examples
    --------
    >>> Budget(epsilon=0.3, delta=1e-6)
    Budget(epsilon=0.3, delta=1e-06, neighbours='add_remove')
    """

    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours

    def __init__(self, epsilon: Real, delta: Real = 0, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> None:
        spend, failure = rational(epsilon, "epsilon"), rational(delta, "delta")
        if spend <= 0:
            raise ValueError("epsilon must be greater than 0; typical values are 0.1 to 4")
        if not 0 <= failure < 1:
            raise ValueError("delta must be at least 0 and less than 1; typical values are 1e-6 to 1e-9")
        object.__setattr__(self, "epsilon", spend)
        object.__setattr__(self, "delta", failure)
        object.__setattr__(self, "neighbours", Neighbours.of(neighbours))

    @property
    def cost(self) -> Cost:
        """The cost of whatever satisfies the budget."""
        return Cost(epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)

    def __repr__(self) -> str:
        parts = f"epsilon={printed_up(self.epsilon)}, delta={printed_up(self.delta)}"
        return f"Budget({parts}, neighbours={self.neighbours.value!r})"


@dataclass(frozen=True, init=False)
class Cost:
    """What a release spends: a Gaussian part ``mu``, a pure part ``epsilon`` and a failure part ``delta``.

    Guarantee: a mechanism of this cost satisfies ``delta_at(e)`` at every real ``e`` (Theorem T), and costs add under
    adaptive composition: ``mu`` in squares, the other parts plainly. All sums are exact rationals.

    Parameters
    ----------
    mu : Real, default=0
        The Gaussian part.
    epsilon : Real, default=0
        The pure part.
    delta : Real, default=0
        The failure part.
    variation : Real, default=0
        A part in total variation.
    atoms : tuple of Atom
        Releases by objective perturbation, which have a trade-off curve of their own.
    neighbours : Neighbours or str
        The relation, "add_remove" by default.
    mu_squared : Real, optional
        The square of the Gaussian part, instead of ``mu``.

    Examples
    --------
    >>> a = Cost(epsilon=0.1) + Cost(epsilon=0.2)
    >>> a.fits(Budget(0.3))
    True
    >>> Cost(mu=0.5, epsilon=0.5).epsilon_at(1e-6)  # doctest: +ELLIPSIS
    2.7026...
    """

    mu_squared: Fraction
    epsilon: Fraction
    delta: Fraction
    variation: Fraction
    atoms: tuple[Atom, ...]
    neighbours: Neighbours

    def __init__(
        self,
        *,
        mu: Real = 0,
        epsilon: Real = 0,
        delta: Real = 0,
        variation: Real = 0,
        atoms: tuple[Atom, ...] = (),
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        mu_squared: Real | None = None,
    ) -> None:
        if mu_squared is not None and mu != 0:
            raise ValueError("give mu or mu_squared, not both")
        size = rational(mu, "mu")
        parts = {
            "mu_squared": size * size if mu_squared is None else rational(mu_squared, "mu_squared"),
            "epsilon": rational(epsilon, "epsilon"),
            "delta": rational(delta, "delta"),
            "variation": rational(variation, "variation"),
        }
        if any(value.numerator < 0 for value in (size, *parts.values())):
            raise ValueError("the parts of a cost must not be negative")
        for name, value in parts.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "atoms", tuple(sorted(atoms, key=repr)))
        object.__setattr__(self, "neighbours", Neighbours.of(neighbours))
        if self.neighbours is Neighbours.REPLACE and not all(atom.both_ways for atom in self.atoms):
            raise ValueError(
                "an atom whose two directions differ says nothing about replacement: a pair of neighbours that replace "
                "a row may be in one direction for one release and in the other for the next. Give both directions the "
                'same branches, all that either may need, or use neighbours="add_remove"'
            )

    @property
    def mu(self) -> float:
        """The Gaussian part, rounded up."""
        root = math.sqrt(float_up(self.mu_squared))
        if math.isinf(root) or Fraction(root) ** 2 >= self.mu_squared:
            return root
        return math.nextafter(root, math.inf)

    def __add__(self, other: Cost | Literal[0]) -> Cost:
        if not isinstance(other, Cost):
            return self if other == 0 else NotImplemented
        self.neighbours.require(other.neighbours)
        total = Cost(
            mu_squared=self.mu_squared + other.mu_squared,
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            variation=self.variation + other.variation,
            neighbours=self.neighbours,
        )
        object.__setattr__(total, "atoms", _merged(self.atoms, other.atoms))
        return total

    __radd__ = __add__  # so that sum(costs) works

    def delta_at(self, epsilon: Real) -> float:
        """The delta of this cost at any real epsilon, rounded up and capped at 1."""
        return composition.delta(**self._parts(self.delta), epsilon=rational(epsilon, "epsilon"))

    def epsilon_at(self, delta: Real) -> float:
        """The smallest epsilon at this delta, rounded up; infinity when there is none."""
        at = rational(delta, "delta")
        if not 0 <= at <= 1:
            raise ValueError("delta must be between 0 and 1")
        if at == 1:
            return 0.0
        return composition.epsilon(**self._parts(self.delta), delta=at)

    def fits(self, budget: Budget) -> bool:
        """Whether this cost satisfies the budget. Pure parts and failures are compared exactly."""
        self.neighbours.require(budget.neighbours)
        left = budget.delta - self.delta
        if left < 0:
            return False
        if self._is_pure and self.epsilon <= budget.epsilon:
            return True
        return composition.at_most(**self._parts(Fraction(0)), epsilon=budget.epsilon, delta=left)

    def _parts(self, failure: Fraction) -> dict[str, Any]:
        """What ``composition`` calls the parts."""
        parts = {"mu_squared": self.mu_squared, "pure": self.epsilon, "failure": failure}
        return {**parts, "variation": self.variation, "atoms": self.atoms}

    def exact(self) -> dict[str, Fraction]:
        """The parts that are not 0, as numbers; ``mu`` is a root, and rounded up if it is irrational."""
        parts = {"mu": root_up(self.mu_squared), "epsilon": self.epsilon, "delta": self.delta}
        return {name: value for name, value in {**parts, "variation": self.variation}.items() if value}

    @property
    def words(self) -> str:
        """Every part that is not 0, none of them rounded down.

        >>> Cost(mu="4e-6", delta="1/3").words
        'mu 4e-06, delta 0.333334'
        """
        shares = [f"{name} {printed_up(value)}" for name, value in self.exact().items()]
        runs = len(self.atoms)
        shares += [f"{runs} perturbed objective{'s' if runs > 1 else ''}"] if runs else []
        return ", ".join(shares) or "free"

    @property
    def _is_pure(self) -> bool:
        return not (self.mu_squared or self.variation or self.atoms)

    def __repr__(self) -> str:
        parts = [f"{name}={printed_up(value)}" for name, value in self.exact().items()]
        parts += [f"atoms={len(self.atoms)}"] if self.atoms else []
        return f"Cost({', '.join([*parts, f'neighbours={self.neighbours.value!r}'])})"


def _merged(some: tuple[Atom, ...], others: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """Both in the order of their texts, in which each of them is: a text can be long, so few of them are made."""
    many, few = (some, others) if len(some) >= len(others) else (others, some)
    atoms = list(many)
    for atom in few:
        insort(atoms, atom, key=repr)
    return tuple(atoms)


@dataclass(frozen=True)
class Guarantee:
    """What one refusing release promises on its own: its failure enters as a maximum, not as a sum.

    Guarantee: Theorem A1 with a two-sided certificate (``release/spine.proof.md``), at every epsilon >= 0. Together
    with other releases use ``composable``.

    Parameters
    ----------
    cost : Cost
        What the release spends, without the failure of its test.
    failure : Fraction
        The failure probability of its test.

    Examples
    --------
    >>> alone = Guarantee(Cost(epsilon=1), Fraction(1, 10**6))
    >>> alone.composable
    Cost(epsilon=1, delta=1e-06, neighbours='add_remove')
    """

    cost: Cost
    failure: Fraction

    def delta_at(self, epsilon: Real) -> float:
        """The larger of the released part's delta and the test's failure probability, rounded up."""
        if rational(epsilon, "epsilon") < 0:
            raise ValueError("the stand-alone form holds for epsilon >= 0; use composable.delta_at below 0")
        ideal = replace(self.cost, variation=Fraction(0))
        variation = replace(Cost(neighbours=self.cost.neighbours), variation=self.cost.variation)
        alone = max(Fraction(ideal.delta_at(epsilon)), self.failure)
        return min(1.0, float_up(alone + Fraction(variation.delta_at(epsilon))))

    @property
    def composable(self) -> Cost:
        """The cost to add to others: the failure joins the delta part."""
        return self.cost + Cost(delta=self.failure, neighbours=self.cost.neighbours)
