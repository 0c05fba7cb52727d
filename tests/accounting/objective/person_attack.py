"""The worst person and the worst table for a bound, by coordinate ascent from many starts; exact laws.

A pair is a table with and without a person. The event is the worst one for the pair by itself (where one law exceeds
the other); the search is over the person's weights, lengths, directions and offsets, and over how far the rest of the
table lets the coefficients move, piece by piece.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from snugdp.accounting.objective.persons import PersonLoss
from tests.accounting.objective.person_laws import Floats, Person, allowed, hockey, in_the_plane, on_a_line

_COARSE_LINE, _FINE_LINE = np.linspace(-9.0, 9.0, 601), np.linspace(-12.0, 12.0, 7201)
_COARSE_PLANE, _FINE_PLANE = np.linspace(-6.5, 6.5, 45), np.linspace(-8.5, 8.5, 273)
_FINEST_PLANE = np.linspace(-8.5, 8.5, 817)  # where the fine one comes near the bound: it errs by some 1e-5 there
_PIECES = 12  # of the table
SEEN = {"line": 1e-9, "plane": 2e-4}  # bounds below are not told from rounding
LEEWAY = {"line": 1e-13, "plane": 2e-6}  # cells on the line are exact, squares in the plane are not


@dataclass(frozen=True)
class Attack:
    """One bound to be attacked: a loss, its exp-shift, a direction, and the line or the plane."""

    family: str
    loss: PersonLoss
    shift: float
    removes: bool
    where: str

    @cached_property
    def bound(self) -> float:
        branches = self.loss.atom.remove if self.removes else self.loss.atom.add
        return float(allowed(branches, np.array([self.shift]))[0])

    def reached(self, point: Floats, *, fine: bool, plane: Floats = _FINE_PLANE) -> float:
        """What the pair tells, over the bound; more than 1 would be a violation."""
        rows = (len(point) - _PIECES) // 4
        parts, lengths, angles, offsets = point[: 4 * rows].reshape(4, rows)
        weights = np.abs(parts) / max(np.abs(parts).sum(), 1.0)
        m, kappa = math.sqrt(self.loss.m_squared), float(self.loss.kappa)
        if self.where == "plane":
            person = Person(weights, np.clip(lengths, 0, 1), angles, offsets)
            laws = in_the_plane(self.family, person, m, kappa, plane if fine else _COARSE_PLANE)
        else:
            person = Person(weights, np.clip(lengths, 0, 1), np.where(np.cos(angles) < 0, math.pi, 0.0), offsets)
            line = _FINE_LINE if fine else _COARSE_LINE
            pieces = np.clip(point[4 * rows :], 0, 1)
            held = pieces[np.arange(len(line) - 1) * _PIECES // (len(line) - 1)]
            laws = on_a_line(self.family, person, m, kappa, held, line=line)
        pair = laws if self.removes else laws[::-1]
        return float(hockey(*pair, np.array([self.shift]))[0]) / (self.bound * (1 + 1e-9) + LEEWAY[self.where])

    def worst(self, random: np.random.Generator, sweeps: tuple[float, ...] = (1.5, 0.4, 0.1)) -> float:
        """The most that one start finds, measured on the fine grid."""
        point = self._start(random)
        best = self.reached(point, fine=False)
        for size in sweeps:
            for place in random.permutation(len(point) - (_PIECES if self.where == "plane" else 0)):
                for sign in (1, -1):
                    moved = point.copy()
                    moved[place] += sign * size * (8 if _is_offset(place, len(point)) else 1)
                    found = self.reached(moved, fine=False)
                    if found > best:
                        point, best = moved, found
                        break
        found = self.reached(point, fine=True)
        near = self.where == "plane" and found > 0.999
        return self.reached(point, fine=True, plane=_FINEST_PLANE) if near else found

    def _start(self, random: np.random.Generator) -> Floats:
        """Of one to four rows: anything, or rows that are nearly parallel, saturated, or at their knee."""
        rows = int(random.integers(1, 5))
        parts, angles = random.dirichlet(np.ones(rows)), random.uniform(0, 2 * math.pi, rows)
        lengths, offsets = random.uniform(0.3, 1, rows), random.normal(size=rows) * 4
        kind = random.integers(4)
        if kind:
            angles, lengths = angles[0] + random.normal(size=rows) * 0.1 * (kind > 1), np.ones(rows)
            offsets = offsets * 0.1 + (0.0 if kind == 3 else random.choice([-30.0, -3.0, 3.0, 30.0]))
        table = random.choice([0.0, 1.0], _PIECES, p=[0.2, 0.8]) if kind == 2 else np.ones(_PIECES)
        return np.concatenate([parts, lengths, angles, offsets, table])


def _is_offset(place: int, size: int) -> bool:
    rows = (size - _PIECES) // 4
    return 3 * rows <= place < 4 * rows


SETTINGS = ((0.1, 0.2), (0.24, 0.45), (0.24, 1.2), (0.6, 0.5), (1.0, 2.0))
_PARTS = (-0.4, 0.0, 0.3, 0.6, 0.9, 1.0, 1.1)  # of the critical loss


def attacks(family: str, make: Callable[[Any, float, float], PersonLoss], where: str) -> Iterator[Attack]:
    """All settings, losses and directions for which the bound is large enough to be seen."""
    for (m, kappa), part, removes in itertools.product(SETTINGS, _PARTS, (True, False)):
        loss = make(family, m, kappa)
        attack = Attack(family, loss, part * float(loss.critical_loss), removes, where)
        if attack.bound > SEEN[where]:
            yield attack
