"""One draw of a normal law around the solution of a linear system, exactly. Proof: ``posterior.proof.md``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from snugdp.noise.exact.deviate import Deviate
from snugdp.noise.exact.filtered import draw
from snugdp.noise.exact.refine import START, exactly, floor, refine
from snugdp.noise.exact.shapes import HALF_NORMAL
from snugdp.numerics.matrices import backward, cholesky, forward

_HALF = Fraction(1, 2)


def check_posterior(unit: Fraction, ridge: Fraction, precision: Fraction, grid: int) -> None:
    """Refuse public numbers that leave no law to draw from."""
    if isinstance(grid, bool) or not isinstance(grid, int):
        raise TypeError("grid must be a whole number g, for multiples of 2**g")
    for name, value in (("unit", unit), ("ridge", ridge), ("precision", precision)):
        if not isinstance(value, Fraction):
            raise TypeError(f"{name} must be a Fraction")
        if value <= 0:
            raise ValueError(f"{name} must be above zero")


def rounded_posterior(
    gram: Sequence[Sequence[int]],
    cross: Sequence[int],
    *,
    unit: Fraction,
    ridge: Fraction,
    precision: Fraction,
    grid: int,
    start: int | None = None,
) -> list[Fraction]:
    """N(A^-1 c, (precision A)^-1) rounded to the grid; A = unit gram + ridge I, c = unit cross.

    ``start`` is the number of bits to begin with; it changes the time and not the law.

    Guarantee: exactly the rounded law, for every symmetric positive semidefinite ``gram`` of whole numbers
    (``posterior.proof.md``, Theorem 1). There is no last attempt, so nothing about the values can fail.
    """
    drawn = draw(HALF_NORMAL, len(cross))  # 1.
    noise = [drawn[lane] for lane in range(len(cross))]
    begin = _first_bits(gram, ridge / unit, grid) if start is None else start

    def expression(count: int) -> list[arb] | None:
        return _enclosure(gram, cross, noise, count, ridge=ridge / unit, precision=precision * unit, grid=grid)

    cells = refine(expression, _cells, begin)  # 4.
    step = Fraction(2) ** grid
    return [step * cell for cell in cells]


def _enclosure(
    gram: Sequence[Sequence[int]],
    cross: Sequence[int],
    noise: list[Deviate],
    count: int,
    *,
    ridge: Fraction,
    precision: Fraction,
    grid: int,
) -> list[arb] | None:
    """Balls around theta / 2**grid + 1/2, or None while the matrix is not certainly positive definite."""
    weight = exactly(ridge)
    rows = [[arb(value) for value in row[: i + 1]] for i, row in enumerate(gram)]
    for i, row in enumerate(rows):
        row[i] += weight
    factor = cholesky(rows)  # 2.
    if factor is None:
        return None
    spread = exactly(1 / precision).sqrt()
    middle = forward(factor, [arb(value) for value in cross])
    right = [mean + spread * one.ball(count) for mean, one in zip(middle, noise, strict=True)]
    theta = backward(factor, right)  # 3.
    cell, half = arb((1, -grid)), exactly(_HALF)
    return [cell * value + half for value in theta]


def _cells(balls: list[arb] | None) -> list[int] | None:
    """The cell of every coordinate, once all of them are certain."""
    cells: list[int] = []
    for ball in balls or ():
        cell = floor(ball)
        if cell is None:
            return None
        cells.append(cell)
    return cells if balls is not None else None


def _first_bits(gram: Sequence[Sequence[int]], ridge: Fraction, grid: int) -> int:
    """Bits that are nearly always enough: the size of the numbers, twice, and how fine the grid is."""
    widest = max((abs(row[i]).bit_length() for i, row in enumerate(gram)), default=0)
    finest = max(0, ridge.denominator.bit_length() - ridge.numerator.bit_length())
    return START + max(0, -grid) + (widest + finest) // 2
