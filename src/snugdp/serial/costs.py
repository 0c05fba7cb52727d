"""Costs and budgets as exact text, and their sums: no float ever stands for what was spent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from snugdp.accounting.composition import Atom, Branch
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.numerics.rationals import written_up

Json: TypeAlias = Any
PARTS = ("mu_squared", "epsilon", "delta", "variation")
PLAIN_PARTS = ("mu", "epsilon", "delta", "variation")
MAX_AMOUNT_BITS = 600  # bits of an amount, numerator and denominator together: 180 digits
GRID = 256  # a longer one is rounded up to a multiple of 2**-GRID
MOST_ATOMS = 1000  # in one charge
LONGEST_BRANCH = 6000  # bits; the amounts of an atom are never rounded
_NAMES = frozenset({*PARTS, "atoms"})
_NO_PARTS = dict.fromkeys(PARTS, Fraction(0))
_WRITTEN = re.compile(r"(0|[1-9][0-9]{0,1999})(?:/([1-9][0-9]{0,1999}))?", re.ASCII)


def bits(value: Fraction) -> int:
    """The size of an exact number."""
    return value.numerator.bit_length() + value.denominator.bit_length()


def short(value: Fraction) -> Fraction:
    """The amount itself, or a little more (below 1e-77) if it would be too long to write down at every charge.

    >>> short(Fraction(3, 10)), float(short(Fraction(1, 3**500)))
    (Fraction(3, 10), 8.636168555094445e-78)
    """
    if bits(value) <= MAX_AMOUNT_BITS:
        return value
    value = Fraction(-(-(value.numerator << GRID) // value.denominator), 1 << GRID)
    if bits(value) > MAX_AMOUNT_BITS:
        raise ValueError("this amount is far larger than any budget; a cost is a number such as 0.1")
    return value


@lru_cache(maxsize=4096)
def read(text: str) -> Fraction:
    """The amount that was written by ``str``; anything that would not be written so is a ValueError."""
    match = _WRITTEN.fullmatch(text)
    value = Fraction(int(match[1]), int(match[2] or 1)) if match else None
    if value is None or str(value) != text:
        raise ValueError("an amount is written as p or p/q, in lowest terms")
    return value


def amount(text: object, longest: int = MAX_AMOUNT_BITS) -> Fraction:
    """An amount from a record."""
    if not isinstance(text, str):
        raise TypeError("an amount is text")
    value = read(text)
    if bits(value) > longest:
        raise ValueError("an amount is too long")
    return value


def recorded(cost: Cost) -> Cost:
    """The cost as it is written down: exactly, or rounded up where it is too long."""
    if len(cost.atoms) > MOST_ATOMS:
        raise ValueError(f"one charge holds at most {MOST_ATOMS} atoms: charge the release in pieces")
    for atom in cost.atoms:
        for branch in (*atom.add, *atom.remove):
            if max(bits(branch.mu_squared), bits(branch.shift), bits(branch.weight)) > LONGEST_BRANCH:
                raise ValueError("an amount in an atom is longer than a ledger writes down: round it up before")
    parts = {name: getattr(cost, name) for name in PARTS}
    shorter = {name: less for name, value in parts.items() if value and (less := short(value)) is not value}
    return cost if type(cost) is Cost and not shorter else _made(parts | shorter, cost.atoms, cost.neighbours)


def cost_to_json(cost: Cost) -> Json:
    """Every part that is not 0; the relation is genesis' for all."""
    parts: dict[str, Json] = {name: str(value) for name in PARTS if (value := getattr(cost, name))}
    if cost.atoms:
        parts["atoms"] = [[[_branch(b) for b in side] for side in (atom.add, atom.remove)] for atom in cost.atoms]
    return parts


def cost_parts(cost: Cost) -> dict[str, Json]:
    """A cost for people: in plain numbers, rounded up, and in words."""
    exact = cost.exact()
    parts = {name: written_up(exact[name]) if name in exact else 0.0 for name in PLAIN_PARTS}
    return {**parts, "neighbours": cost.neighbours.value, "words": repr(cost)}


def cost_told(cost: Cost) -> dict[str, Json]:
    """A cost for people and machines: as ``cost_parts``, and every part exactly, as ratios of whole numbers."""
    return {**cost_parts(cost), "exact": cost_to_json(cost)}


def total_to_json(cost: Cost) -> Json:
    """A running total: its atoms are in the charges already, so only their number is written."""
    parts: dict[str, Json] = {name: str(value) for name in PARTS if (value := getattr(cost, name))}
    return parts | {"atoms": len(cost.atoms)} if cost.atoms else parts


def cost_from_json(parts: Json, neighbours: Neighbours) -> Cost:
    """The cost that was written."""
    if not isinstance(parts, dict) or not parts.keys() <= _NAMES:
        raise ValueError("a cost has parts " + ", ".join((*PARTS, "atoms")))
    values = {name: amount(text) for name, text in parts.items() if name != "atoms"}
    atoms = _atoms_from_json(parts["atoms"], neighbours) if "atoms" in parts else ()
    if not all(values.values()):
        raise ValueError("a cost is written without zeros, its atoms in order")
    return _made(values, atoms, neighbours)


def _atoms_from_json(written: Json, neighbours: Neighbours) -> tuple[Atom, ...]:
    atoms = tuple(
        Atom(*(tuple(Branch(*(amount(x, LONGEST_BRANCH) for x in b)) for b in side) for side in atom))
        for atom in written
    )
    if not atoms or atoms != Cost(atoms=atoms, neighbours=neighbours).atoms:
        raise ValueError("a cost is written without zeros, its atoms in order")
    return atoms


def _made(parts: Mapping[str, Fraction], atoms: tuple[Atom, ...], neighbours: Neighbours) -> Cost:
    """A cost of parts that are known to be exact and not negative, and of sorted atoms. A history is full of these."""
    cost = object.__new__(Cost)
    cost.__dict__.update(_NO_PARTS, **parts, atoms=atoms, neighbours=neighbours)
    return cost


def budget_to_json(budget: Budget | Cost) -> Json:
    """A budget, or a cost whose parts are caps; the relation stands beside it."""
    if isinstance(budget, Cost):
        return {"cap": cost_to_json(budget)}
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta)}


def budget_from_json(parts: Json, neighbours: Neighbours) -> Budget | Cost:
    """The budget that was written."""
    if isinstance(parts, dict) and parts.keys() == {"cap"}:
        return cost_from_json(parts["cap"], neighbours)
    if not isinstance(parts, dict) or parts.keys() != {"epsilon", "delta"}:
        raise ValueError("a budget is epsilon and delta, or a cap")
    return Budget(amount(parts["epsilon"]), amount(parts["delta"]), neighbours)


def _branch(branch: Branch) -> list[str]:
    return [str(branch.mu_squared), str(branch.shift), str(branch.weight)]


def added(total: Cost, cost: Cost) -> Cost:
    """The composed total, never longer than can be written down."""
    total.neighbours.require(cost.neighbours)
    parts = {name: getattr(total, name) for name in PARTS}
    for name, before in parts.items():
        if more := getattr(cost, name):
            parts[name] = short(before + more) if before else more
    atoms = (total + cost).atoms if total.atoms and cost.atoms else total.atoms or cost.atoms
    return _made(parts, atoms, total.neighbours)


def largest(costs: Sequence[Cost]) -> Cost:
    """Part by part the largest: what dominates each of them. Atoms by how often each occurs."""
    atoms: Counter[Atom] = Counter()
    for cost in costs:
        atoms |= Counter(cost.atoms)
    return Cost(
        mu_squared=max(cost.mu_squared for cost in costs),
        epsilon=max(cost.epsilon for cost in costs),
        delta=max(cost.delta for cost in costs),
        variation=max(cost.variation for cost in costs),
        atoms=tuple(atoms.elements()),
        neighbours=costs[0].neighbours,
    )
