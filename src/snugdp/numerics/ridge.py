"""Numbers computed from exact moments with a certified error: an eigenvalue, a ridge solution, a log Lipschitz bound.

Floats guess, balls decide, and precision grows until the answer is as accurate as was asked for. Every function is
total: nothing about the values can raise. Proof: ``ridge.proof.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from typing import TypeVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.numerics import balls
from snugdp.numerics.matrices import Rows, backward, cholesky, definite, forward

T = TypeVar("T")

_BITS = 128  # to begin with
_FLOATS = 900  # bits of a whole number that a float holds with room to spare


def smallest_eigenvalue(gram: Sequence[Sequence[int]], unit: Fraction, accuracy: Fraction) -> Fraction:
    """The smallest eigenvalue of ``unit * gram``, wrong by at most ``accuracy``; never negative.

    ``gram`` is a sum of squares of rows of whole numbers: symmetric, positive semidefinite. ``unit`` and ``accuracy``
    are above zero.

    >>> smallest_eigenvalue([[2, 0], [0, 6]], Fraction(1), Fraction(1, 1000)) - 2 <= Fraction(1, 1000)
    True
    """
    allowed = accuracy / unit
    guess, direction = _float_guess(gram)
    high = _rayleigh(gram, direction)  # 1.
    low = max(Fraction(0), min(guess, high) - allowed / 4)  # 2.
    if low > 0 and not _definite(gram, low, _BITS):
        low = Fraction(0)
    bits = _BITS
    for attempt in count():  # 3.
        if high - low <= 2 * allowed:
            break
        middle = low + (high - low) * _part(attempt)
        answer = _definite(gram, middle, bits)
        if answer is None:
            bits *= 2
        else:
            low, high = (middle, high) if answer else (low, middle)
    return unit * (low + high) / 2


def solution(
    gram: Sequence[Sequence[int]], cross: Sequence[int], unit: Fraction, ridge: Fraction, accuracy: Fraction
) -> list[Fraction]:
    """The theta of (unit gram + ridge I) theta = unit cross, wrong by at most ``accuracy`` in Euclidean norm.

    >>> solution([[1]], [1], Fraction(1), Fraction(1), Fraction(1, 2**20))
    [Fraction(1, 2)]
    """
    share = accuracy / len(cross)  # the Euclidean norm is at most the sum

    def accurate(theta: list[arb]) -> list[Fraction] | None:
        middles = [_middle(value, share) for value in theta]
        found = [middle for middle in middles if middle is not None]
        return found if len(found) == len(middles) else None

    return _solved(gram, cross, ridge / unit, accurate)


def log_lipschitz(
    gram: Sequence[Sequence[int]],
    cross: Sequence[int],
    *,
    unit: Fraction,
    ridge: Fraction,
    y_bound: Fraction,
    x_bound: Fraction,
    accuracy: Fraction,
) -> Fraction:
    """log(y_bound + x_bound |theta*|), theta* the ridge solution, wrong by at most ``accuracy``. y_bound > 0.

    >>> log_lipschitz([[0]], [0], unit=Fraction(1), ridge=Fraction(1), y_bound=Fraction(1), x_bound=Fraction(1),
    ...               accuracy=Fraction(1, 2**20))
    Fraction(0, 1)
    """

    def accurate(theta: list[arb]) -> Fraction | None:
        norm = _root(sum((value * value for value in theta), arb(0)))  # not **: a power of a ball around 0 is no number
        return _middle((balls.ball(y_bound) + balls.ball(x_bound) * norm).log(), accuracy)

    return _solved(gram, cross, ridge / unit, accurate)


def _solved(
    gram: Sequence[Sequence[int]], cross: Sequence[int], ridge: Fraction, accurate: Callable[[list[arb]], T | None]
) -> T:
    """What ``accurate`` says of the solution of (gram + ridge I) theta = cross, at the precision that it needs."""
    bits = _BITS
    while True:
        with balls.precision(bits):
            factor = cholesky(_shifted(gram, ridge))
            if factor is not None:
                theta = backward(factor, forward(factor, [arb(value) for value in cross]))
                answer = accurate(theta)
                if answer is not None:
                    return answer
        bits *= 2


def _shifted(gram: Sequence[Sequence[int]], ridge: Fraction) -> Rows:
    """The lower triangle of gram + ridge I, in balls at the present precision."""
    weight = balls.ball(ridge)
    rows = [[arb(value) for value in row[: i + 1]] for i, row in enumerate(gram)]
    for i, row in enumerate(rows):
        row[i] += weight
    return rows


def _definite(gram: Sequence[Sequence[int]], shift: Fraction, bits: int) -> bool | None:
    """Whether all eigenvalues are above the shift: yes, no (the smallest is below), or open."""
    with balls.precision(bits):
        return definite(_shifted(gram, -shift))


def _part(attempt: int) -> Fraction:
    """Where to cut next: near the middle, and never twice at the same part, since a cut may be an eigenvalue."""
    return Fraction(1, 2) + Fraction(2 * (attempt % 2) - 1, 8 + attempt)


def _rayleigh(gram: Sequence[Sequence[int]], direction: list[int]) -> Fraction:
    """The Rayleigh quotient of the direction, exactly. The smallest eigenvalue is not above it."""
    images = [sum(a * b for a, b in zip(row, direction, strict=True)) for row in gram]
    return Fraction(
        sum(a * b for a, b in zip(images, direction, strict=True)), sum(entry * entry for entry in direction)
    )


def _float_guess(gram: Sequence[Sequence[int]]) -> tuple[Fraction, list[int]]:
    """About the smallest eigenvalue, and about its vector in whole numbers, not zero. Nothing is proved of them."""
    shift = max(0, max(abs(value).bit_length() for row in gram for value in row) - _FLOATS)
    matrix: NDArray[np.float64] = np.array([[float(value >> shift) for value in row] for row in gram])
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:  # no guess then, and a longer search
        values, vectors = np.zeros(len(gram)), np.eye(len(gram))
    direction = [int(entry) for entry in np.rint(np.nan_to_num(vectors[:, 0]) * 2.0**50).tolist()]
    guess = Fraction(float(np.nan_to_num(values[0]))) * (1 << shift)
    return guess, direction if any(direction) else [1] * len(gram)


def _middle(ball: arb, accuracy: Fraction) -> Fraction | None:
    """The middle of the ball, if everything in the ball is within ``accuracy`` of it."""
    if not ball.is_finite() or balls.exact(ball.rad()) > accuracy:
        return None
    return balls.exact(ball.mid())


def _root(square: arb) -> arb:
    """The root of a number that is not negative, though its ball may reach below zero."""
    return square.sqrt() if square > 0 else square.upper().max(arb(0)).sqrt().union(arb(0))
