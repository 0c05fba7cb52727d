"""The matrix of squares and products with noise: all of it, a block of it, or what crosses a public subspace.

Proof: ``base.proof.md``. Everything is in whole cells; bases are public and of whole numbers, too.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.mechanisms.components.base import ComponentsView, Floats
from snugdp.mechanisms.linear.noisy_sums import law_for, off_diagonal, root_above
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.eigenvalues import departure, shifted, to_grid
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.scatter import Scatter

Labels: TypeAlias = NDArray[np.int64]

_BASIS = 50  # bits of the entries of a public basis


def noisy_cells(data: Secret[Scatter], view: ComponentsView, mu_squared: Fraction, noise: Noise) -> list[list[int]]:
    """X'X in cells squared, with noise.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``base.proof.md``, Lemma 2).
    """
    law = law_for(view.unit**2, mu_squared)  # 3.
    return symmetric(data.map(lambda s: s.gram(view.shift)), law, noise)


def noisy_matrix(data: Secret[Scatter], view: ComponentsView, mu_squared: Fraction, noise: Noise) -> Floats:
    """The same in units of what one row can add."""
    return floats(noisy_cells(data, view, mu_squared, noise), view.unit)


def noisy_block(
    data: Secret[Scatter], view: ComponentsView, vectors: Floats, mu_squared: Fraction, noise: Noise
) -> Floats:
    """V'X'XV for a few public vectors, in units of what one row can add.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``base.proof.md``, Lemma 3).
    """
    basis = to_grid(vectors, _BASIS)
    sensitivity = (1 + departure(basis, _BASIS)) * view.unit + vectors.shape[1]
    law = Gaussian(root_above(sensitivity**2 / mu_squared))  # 4.
    block = data.map(lambda s: shifted(s.between(view.shift, basis, basis), 2 * _BASIS))
    return floats(symmetric(block, law, noise), view.unit)


def noisy_crossing(
    data: Secret[Scatter], view: ComponentsView, blocks: tuple[Floats, Labels], mu_squared: Fraction, noise: Noise
) -> tuple[Floats, float]:
    """The entries of V'X'XV between different blocks of a public basis V, and the deviation of their noise.

    ``blocks``: the basis, and the block of each of its vectors. In units of what one row can add; 0 inside blocks.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``base.proof.md``, Lemma 4).
    """
    vectors, labels = blocks
    basis, number = to_grid(vectors, _BASIS), len(set(labels.tolist()))
    upper = [(i, j) for i, j in zip(*np.triu_indices(view.entries, 1), strict=True) if labels[i] != labels[j]]
    whole = (1 + departure(basis, _BASIS)) * view.unit
    sensitivity = whole * root_above(Fraction(number - 1, 2 * number)) + isqrt(len(upper)) + 1
    law = Gaussian(root_above(sensitivity**2 / mu_squared))  # 5.

    def entries(scatter: Scatter) -> list[int]:
        cells = shifted(scatter.between(view.shift, basis, basis), 2 * _BASIS)
        return [cells[i][j] for i, j in upper]

    noisy = np.zeros((view.entries, view.entries))
    for (i, j), value in zip(upper, noise.add_integers(data.map(entries), law), strict=True):
        noisy[i, j] = noisy[j, i] = value / view.unit
    return noisy, float(law.sigma / view.unit)


def symmetric(matrix: Secret[list[list[int]]], law: Gaussian, noise: Noise) -> list[list[int]]:
    """A symmetric matrix of whole numbers with the law's noise on the diagonal, and half of its variance elsewhere."""
    diagonal = noise.add_integers(matrix.map(lambda m: [m[i][i] for i in range(len(m))]), law)
    p = len(diagonal)
    upper = matrix.map(lambda m: [m[i][j] for i in range(len(m)) for j in range(i + 1, len(m))])
    others = iter(noise.add_integers(upper, off_diagonal(law)) if p > 1 else [])
    noisy = [[0] * p for _ in range(p)]
    for i in range(p):
        noisy[i][i] = diagonal[i]
        for j in range(i + 1, p):
            noisy[i][j] = noisy[j][i] = next(others)
    return noisy


def floats(cells: list[list[int]], unit: int) -> Floats:
    """A released matrix in other units, as floats."""
    return np.array([[value / unit for value in row] for row in cells])
