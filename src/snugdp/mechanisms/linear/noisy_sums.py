"""Exact sums over rows with Gaussian noise: the Gram matrix, X'y, and a gradient. Proof: ``sufficient.proof.md``.

The sums are whole numbers of cells, the noise is rounded to whole cells, and sensitivities are exact integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Neighbours
from snugdp.mechanisms.linear.base import Design, check_budget, of_design
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rationals import root_above
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Layout

_RELATION = Neighbours.ADD_REMOVE


def affordable(design: Design, budget: Budget) -> Fraction:
    """The Gaussian part mu that a budget affords, rounded down; bad proposals are refused here, in public."""
    check_budget(budget)
    if design.row_map.target_limit < 1:
        raise ValueError("a regression needs a target with a bound above one cell: give a target, or more bits")
    mu = Fraction(gaussian.mu(budget.epsilon, budget.delta))
    if mu <= 0:
        raise ValueError("the budget is too small: give a larger epsilon or delta")
    return mu


def law_for(sensitivity_squared: int | Fraction, mu_squared: Fraction) -> Gaussian:
    """Noise for a vector of sums: sigma**2 >= sensitivity**2 / mu**2, in cells.

    Guarantee: mu-Gaussian DP when every entry of the vector gets noise of its own (``sufficient.proof.md``, Lemma 2).
    """
    return Gaussian(root_above(sensitivity_squared / mu_squared))


def off_diagonal(law: Gaussian) -> Gaussian:
    """The noise of an entry off the diagonal, which stands for two entries: 2 sigma_off**2 >= sigma**2."""
    return Gaussian(root_above(law.sigma**2 / 2))


def gram_law(design: Design, mu_squared: Fraction) -> Gaussian:
    """The noise of the diagonal of X'X."""
    return law_for(design.row_map.limits.sensitivity(_RELATION).gram_squared, mu_squared)


def cross_law(design: Design, mu_squared: Fraction) -> Gaussian:
    """The noise of X'y."""
    return law_for(design.row_map.limits.sensitivity(_RELATION).cross_squared, mu_squared)


def gradient_law(work: FixedGradient, mu_squared: Fraction) -> Gaussian:
    """The noise of a gradient, in its own cells: the same whatever the point and the clip."""
    return law_for(work.limits.sensitivity(_RELATION).cross_squared, mu_squared)


def symmetric(matrix: Secret[list[list[int]]], law: Gaussian, noise: Noise) -> list[list[int]]:
    """A symmetric matrix of whole numbers with the law's noise on the diagonal, and half of its variance elsewhere."""
    diagonal = noise.add_integers(matrix.map(lambda m: [m[i][i] for i in range(len(m))]), law)  # line 2
    d = len(diagonal)
    upper = matrix.map(lambda m: [m[i][j] for i in range(d) for j in range(i + 1, d)])
    others = iter(noise.add_integers(upper, off_diagonal(law)) if d > 1 else [])  # line 3
    noisy = [[0] * d for _ in range(d)]
    for i in range(d):
        noisy[i][i] = diagonal[i]
        for j in range(i + 1, d):
            noisy[i][j] = noisy[j][i] = next(others)
    return noisy


def noisy_gram(rows: Secret[Rows], design: Design, mu_squared: Fraction, noise: Noise) -> list[list[int]]:
    """X'X in cells squared, every entry of the upper triangle with noise of its own.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``sufficient.proof.md``, Lemma 1).
    """
    gram = rows.map(lambda table: of_design(table, design).moments().gram())  # line 1
    return symmetric(gram, gram_law(design, mu_squared), noise)


def noisy_cross(rows: Secret[Rows], design: Design, mu_squared: Fraction, noise: Noise) -> list[int]:
    """X'y in cells squared, with noise.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``sufficient.proof.md``, Lemma 2).
    """
    cross = rows.map(lambda table: of_design(table, design).moments().cross())
    return noise.add_integers(cross, cross_law(design, mu_squared))  # line 4


def noisy_gradient(rows: Secret[Rows], work: FixedGradient, mu_squared: Fraction, noise: Noise) -> list[int]:
    """The summed gradient at a public point, in units of ``work.gradient_unit``, with noise.

    Guarantee: mu-Gaussian DP under add/remove, for all tables and all points (``sufficient.proof.md``, Lemma 2).
    """
    sums = rows.map(lambda table: table.state(work).cross())
    return noise.add_integers(sums, gradient_law(work, mu_squared))  # line 7


def hold(rows: Secret[Rows]) -> None:
    """Keep the rows in memory where they fit: they are going to be read often. It changes time, and nothing else."""
    rows.map(lambda table: table.images())


@dataclass(frozen=True)
class Gradients:
    """The gradients of a table with clipped residuals: what is public about them."""

    schema: Layout
    bits: int | None

    @classmethod
    def of(cls, rows: Secret[Rows], design: Design, noise: Noise) -> Gradients:
        """Of this table. Its schema is public, the same on all neighbours; it must be that of the design."""
        schema, bits = noise.reveal(rows.map(lambda table: (table.schema, table.bits)))
        if row_map(schema, bits) != design.row_map:
            raise ValueError("the design was made from another schema or grid than the table: make it from the same")
        return cls(schema, bits)

    def at(self, theta: Sequence[float], clip: Fraction) -> FixedGradient:
        """The sum of clip(x . theta - y) x."""
        return FixedGradient(self.schema, theta, Huber(clip), self.bits)


def check_gradients(design: Design) -> None:
    """Refuse a grid on which x . theta would not be exact for every theta: it must not show after the charge."""
    if design.row_map.limits.norm_squared * design.entries > 1 << 56:  # limbs are at most 2**25, products 2**53
        raise ValueError("the grid is too fine for x . theta to be exact: give fewer bits")
