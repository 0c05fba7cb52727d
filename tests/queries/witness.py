"""A noise source that writes down exactly what a query asks for, so that its output law can be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from snugdp.noise import Law, Noise
from snugdp.noise.exact.weighted import Groups
from snugdp.secrecy.secret import Secret, unwrap

T = TypeVar("T")


@dataclass
class Witness(Noise):
    """Passes every test, adds nothing, remembers everything. Not private, so nothing can be charged for it."""

    private: bool = False
    tests: list[tuple[Any, Law, Fraction]] = field(default_factory=list)
    sums: list[tuple[Any, Law | None]] = field(default_factory=list)
    contests: list[tuple[list[int], Law]] = field(default_factory=list)
    draws: list[tuple[Groups, Fraction]] = field(default_factory=list)

    def at(self, step: str) -> Witness:
        return self

    def add(self, value: Secret[Any], law: Law, *, grid: int = 0, stretch: Any = None) -> Fraction:
        self.sums.append((unwrap(value), law))
        return Fraction(unwrap(value))

    def reveal(self, value: Secret[T]) -> T:
        self.sums.append((unwrap(value), None))
        return unwrap(value)

    def at_least(self, value: Secret[Any], law: Law, threshold: Any) -> bool:
        self.tests.append((unwrap(value), law, Fraction(threshold)))
        return True

    def argmax(self, scores: Secret[Sequence[Any]], law: Law) -> int:
        self.contests.append((list(unwrap(scores)), law))
        return 0

    def weighted_choice(self, groups: Secret[Groups], rate: Fraction) -> int:
        self.draws.append((unwrap(groups).whole(), rate))
        return int(unwrap(groups).first[0])
