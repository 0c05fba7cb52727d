"""Matrices of balls: the Cholesky factor, and systems solved with it.

Every entry of a result encloses the exact one, as for balls. Proof: ``noise/exact/posterior.proof.md``, Lemma 1.
"""

from __future__ import annotations

from typing import TypeAlias

from flint import arb, arb_mat

Rows: TypeAlias = list[list[arb]]  # of a lower triangle: row i has i + 1 entries, or more that are not looked at

_BLOCK = 10  # columns worked on one by one; what they do to the rest is one product of matrices


def cholesky(rows: Rows) -> Rows | None:
    """The L of A = L L' for a symmetric A, or None where a pivot is not certainly positive.

    If there is an answer, every symmetric matrix in the balls is positive definite.

    >>> [[float(x.mid()) for x in row] for row in cholesky([[arb(4)], [arb(2), arb(10)]])]
    [[2.0], [1.0, 3.0]]
    """
    factor, stopped = _factored(rows)
    return factor if stopped is None else None


def definite(rows: Rows) -> bool | None:
    """Whether a symmetric matrix is positive definite: True, False (it is not even semidefinite), or open.

    >>> definite([[arb(4)], [arb(2), arb(10)]]), definite([[arb(4)], [arb(2), arb(0)]]), definite([[arb(0)]])
    (True, False, None)
    """
    _, stopped = _factored(rows)
    if stopped is None:
        return True
    return False if stopped < 0 else None


def _factored(rows: Rows) -> tuple[Rows, arb | None]:
    """The factor as far as pivots are certainly positive, and the first that is not."""
    factor: Rows = [[] for _ in rows]
    for first in range(0, len(rows), _BLOCK):
        last = min(first + _BLOCK, len(rows))
        stopped = _panel(_rest(rows, factor, first, last), factor, first, last)
        if stopped is not None:
            return factor, stopped
    return factor, None


def _rest(rows: Rows, factor: Rows, first: int, last: int) -> Rows:
    """Columns first to last of A, less what the columns of L before them account for."""
    panel = [row[first:last] for row in rows[first:]]
    if first:
        done = arb_mat(factor[first:]) * arb_mat(factor[first:last]).transpose()
        panel = [[a - b for a, b in zip(*pair, strict=False)] for pair in zip(panel, done.tolist(), strict=True)]
    return panel


def _panel(panel: Rows, factor: Rows, first: int, last: int) -> arb | None:
    """Columns first to last of L, one by one; the first pivot that is not certainly positive ends it."""
    top: Rows = []
    inverses: list[arb] = []
    for i, row in enumerate(panel):
        entries: list[arb] = []
        for above, inverse, value in zip(top, inverses, row, strict=False):
            for x, y in zip(entries, above, strict=False):
                value -= x * y  # noqa: PLW2901  the entry of A, less what was found before
            entries.append(value * inverse)
        if first + i < last:
            pivot = row[i]
            for x in entries:
                pivot -= x * x
            if not pivot > 0:
                return pivot
            entries.append(pivot.sqrt())
            inverses.append(1 / entries[-1])
            top.append(entries)
        factor[first + i].extend(entries)
    return None


def forward(factor: Rows, right: list[arb]) -> list[arb]:
    """The u of L u = right."""
    solved: list[arb] = []
    for row, value in zip(factor, right, strict=True):
        for x, y in zip(row, solved, strict=False):
            value -= x * y  # noqa: PLW2901
        solved.append(value / row[len(solved)])
    return solved


def backward(factor: Rows, right: list[arb]) -> list[arb]:
    """The v of L' v = right."""
    left = list(right)
    for i in range(len(left) - 1, -1, -1):
        left[i] /= factor[i][i]
        for j in range(i):
            left[j] -= factor[i][j] * left[i]
    return left
