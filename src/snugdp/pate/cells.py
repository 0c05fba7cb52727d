"""From cells to votes: which class a label stands for, and which counts are counts. Each cell by itself.

How one cell is read is in ``tables/cells``. Nothing here raises by a value; only declared types are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.pate.blocks import Block, VoteLines
from snugdp.secrecy.silence import muted
from snugdp.tables.cells import Names, numbers

Integers = NDArray[np.int64]

MOST = 1 << 40  # teachers: sums of counts stay far from the end of the whole numbers
_CELLS = 1 << 19  # votes counted at a time


def tally(found: Integers, width: int) -> Integers:
    """How often each index occurs in each row."""
    flat = found + width * np.arange(len(found))[:, None]
    return np.bincount(flat.ravel(order="K"), minlength=width * len(found)).reshape(len(found), width)


def placed(block: Block, classes: Names) -> Iterator[Integers]:
    """The index of each label among the classes; the one after the last is for what is none of them."""
    if isinstance(block, VoteLines):
        lines = np.stack([classes.indices(line) for line in block.lines]) if block.lines else np.zeros((0, 0), np.int64)
        found = lines if block.rows else lines.T
        yield np.where(found < 0, len(classes), found)
        return
    size = max(1, _CELLS // max(block.shape[1], 1))
    for start in range(0, len(block), size):
        found = _indices(block[start : start + size], classes)
        found[found < 0] = len(classes)
        yield found


def _indices(part: NDArray[Any], classes: Names) -> Integers:
    if part.dtype.kind in "biuf" and part.dtype.itemsize != 2:  # half precision is refused below
        found = classes.of_numbers(np.asarray(part))
        return np.where(np.ma.getmaskarray(part), -1, found) if isinstance(part, np.ma.MaskedArray) else found
    return classes.indices(part.ravel()).reshape(part.shape)


def whole(block: Block) -> Integers:
    """The counts; -1 where a cell is none: missing, negative, not whole, or too large to be one."""
    if isinstance(block, VoteLines):
        lines = np.stack([numbers(line) for line in block.lines]) if block.lines else np.zeros((0, 0))
        cells: NDArray[Any] = lines if block.rows else lines.T
    else:
        cells = block
        if cells.dtype.kind not in "biuf":
            raise TypeError('histograms must hold numbers; for labels use form="teachers" or form="queries"')
    with muted():  # a warning would depend on private values
        plain = np.asarray(cells)
        good = (plain >= 0) & (plain <= MOST) if plain.dtype.kind != "b" else np.ones(plain.shape, dtype=np.bool_)
        if plain.dtype.kind == "f":
            good &= plain == np.floor(plain)
        if isinstance(cells, np.ma.MaskedArray):
            good &= ~np.ma.getmaskarray(cells)
        return np.where(good, plain, -1).astype(np.int64)
