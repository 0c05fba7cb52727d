"""A digest of the rows that a pass has read: their number and two sums of hashes, the same in every order.

It says whether two passes have read one table. Each row is hashed by itself and hashes are added up, so it merges like
every other pass. Proof: ``digest.proof.md``; the line numbers in the comments are those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt
from snugdp.tables.passes.base import SummingPass, Sums

if TYPE_CHECKING:
    import polars as pl

_BLOCK = 1 << 14  # rows that stay in a cache
_MODULUS = 1 << 64
_ODD, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_MISSING = np.uint64(0xA5A3B1C977E20F4D)


@dataclass(frozen=True)
class DigestPass(SummingPass[Sums]):
    """The number of rows and two sums of the hashes of their cells in these columns; in all columns if there are none.

    >>> import polars as pl
    >>> work = DigestPass(("x",))
    >>> frames = [nw.from_native(pl.DataFrame({"x": cells}), eager_only=True) for cells in ([1.0, 2.0], [2.0, 1.0])]
    >>> one, other = (work.sums(work.fold(work.empty(), frame)) for frame in frames)
    >>> one == other
    True
    """

    columns: tuple[str, ...]

    def empty(self) -> Sums:
        """No rows."""
        return Sums(3)

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Add the rows of a frame."""
        cells = [_of_column(frame.get_column(name)) for name in sorted(self.columns or frame.columns)]
        for start in range(0, len(frame), _BLOCK):
            state.accumulate(_summed([column[start : start + _BLOCK] for column in cells]))
        return state

    def sums(self, state: Sums) -> tuple[int, ...]:
        """The number of rows, and the two sums modulo 2**64: as private as the state."""
        rows, *sums = state.values()
        return rows, *(value % _MODULUS for value in sums)


def _summed(columns: list[NDArray[np.uint64]]) -> list[int]:
    row, half = np.zeros((2, len(columns[0])), dtype=np.uint64)
    for column in columns:  # 2
        row ^= column
        row *= _ODD
        row ^= np.right_shift(row, _HALF, out=half)
    other = (row ^ (row >> np.uint64(29))) * _OTHER  # 3
    other ^= other >> _HALF
    return [len(row), int(row.sum()), int(other.sum())]


def _of_column(cells: nw.Series[Any]) -> NDArray[np.uint64]:
    worked, found = attempt(lambda: words(cells.to_polars()))
    if worked and found is not None:
        return found
    import polars as pl

    return words(pl.Series([repr(cell) for cell in cells.to_list()], dtype=pl.String))  # a type unknown to polars


def words(cells: pl.Series) -> NDArray[np.uint64]:
    """One word of 64 bits for each cell: its bits where they are no more, a hash otherwise."""
    import polars as pl  # for those whose rows are not in our hands

    dtype = cells.dtype
    whole = (pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
    if isinstance(dtype, pl.Categorical | pl.Enum):  # codes may differ from batch to batch
        cells = cells.cast(pl.String)
    elif dtype.is_float():
        cells = cells.cast(pl.Float64)
    elif dtype.is_temporal() or dtype in whole:
        cells = cells.to_physical().cast(pl.Int64)
    is_word = cells.dtype in (pl.Float64, pl.Int64, pl.UInt64)
    missing = cells.is_null().to_numpy() if cells.null_count() else None
    bits = cells if is_word and missing is None else cells.fill_null(0) if is_word else cells.hash(0)
    found: NDArray[np.uint64] = bits.to_numpy().view(np.uint64)
    return found if missing is None else np.where(missing, _MISSING, found)  # 1
