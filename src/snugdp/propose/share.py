"""A share of a budget: what one part of a release may cost, in the one currency that all its parts are paid in.

Pure shares add up plainly and pay for discrete Laplace noise; Gaussian shares add up in squares and pay for Gaussian
noise. A draw from a set pays in either (``accounting/bounded_range``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost, Neighbours


@dataclass(frozen=True)
class Share:
    """Either a pure part ``epsilon`` or the square of a Gaussian part ``mu_squared``; the other one is 0."""

    epsilon: Fraction
    mu_squared: Fraction
    neighbours: Neighbours

    def __post_init__(self) -> None:
        if min(self.epsilon, self.mu_squared) != 0 or max(self.epsilon, self.mu_squared) <= 0:
            raise ValueError("a share is either pure or Gaussian, and greater than 0")

    @classmethod
    def pure(cls, budget: Budget) -> Share:
        """All of epsilon; delta is not spent."""
        return cls(budget.epsilon, Fraction(0), budget.neighbours)

    @classmethod
    def gaussian(cls, budget: Budget) -> Share:
        """The largest Gaussian part that the budget allows. It needs a delta greater than 0."""
        if budget.delta == 0:
            raise ValueError("Gaussian noise needs delta > 0; 1e-6 is typical")
        return cls(Fraction(0), Fraction(gaussian.mu(budget.epsilon, budget.delta)) ** 2, budget.neighbours)

    @property
    def is_pure(self) -> bool:
        """Whether it pays for Laplace noise; otherwise for Gaussian noise."""
        return self.mu_squared == 0

    @property
    def cost(self) -> Cost:
        """The cost of whatever stays within the share."""
        return Cost(epsilon=self.epsilon, mu_squared=self.mu_squared, neighbours=self.neighbours)

    def part(self, weight: Fraction | int) -> Share:
        """A part of it: parts whose weights add up to 1 cost together what the whole does.

        >>> whole = Share.pure(Budget(1))
        >>> (whole.part(Fraction(1, 4)).cost + whole.part(Fraction(3, 4)).cost).fits(Budget(1))
        True
        """
        return Share(self.epsilon * weight, self.mu_squared * weight, self.neighbours)
