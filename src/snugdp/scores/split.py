"""Rows in two parts, each by a keyed hash of what it holds or of whose it is. Proof: ``holdout.proof.md``.

A row goes where its own hash sends it: rows that come or go move no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from snugdp.estimators.inputs import eager
from snugdp.estimators.open.tables import framed
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells.rows import is_sparse
from snugdp.tables.engines import PASS_FAILED
from snugdp.tables.sources import Source, SparkSource, TableError, open_source
from snugdp.tables.sources.base import Frame
from snugdp.tables.sources.chosen import ChosenSource, Mask, taken

_SPARSE = "holdout needs a dense array or a table: X.toarray() makes one of a sparse matrix"
_LENGTHS = "X and y have inconsistent numbers of rows: give one target for every row"
_SPARK = "holdout reads rows in this process, and a Spark table stays on its cluster: use snugdp.score on other rows"


@dataclass(frozen=True)
class RowSplit:
    """Which rows are held out: those whose keyed hash is below ``share`` of the largest. Public, but for the key.

    ``columns``: the features, and not the target, so that rows with the same features stay together; or the column of
    persons alone, so that a person is in one part.
    """

    columns: tuple[str, ...]
    share: float
    key: int
    persons: bool = False

    def held(self, frame: Frame) -> Mask:
        """Which rows of a frame are held out: each by itself."""
        from snugdp.tables.persons.hashing import mixed, subkeys  # polars: only for those who need it
        from snugdp.tables.persons.images import image, person_image

        words = np.zeros(len(frame), dtype=np.uint64)
        for name, key in zip(self.columns, subkeys(self.key, len(self.columns)), strict=True):
            column = frame.get_column(name)
            found = person_image(column) if self.persons else image(column)
            words = mixed(words ^ found.words(key, coarse=not self.persons))  # 1
        return (words >> np.uint64(11)) * 2.0**-53 < self.share  # 2


@dataclass(frozen=True)
class SplitSide:
    """One of the two parts."""

    split: RowSplit
    held: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that decide."""
        return self.split.columns

    def chosen(self, frame: Frame) -> Mask:
        """Which rows of a frame are in this part."""
        mask = self.split.held(frame)
        return mask if self.held else ~mask


@dataclass(frozen=True, repr=False)
class SplitRows:
    """Rows and targets of the fit, and those that are held out. ``names``: of the features."""

    fitted: tuple[Any, Any]
    held: tuple[Any, Any]
    names: tuple[str, ...]


@dataclass(frozen=True)
class SplitRequest:
    """How to split: ``share`` is held out, ``person`` names the column of persons, ``target`` that of the target."""

    share: float
    key: int
    person: str | None = None
    target: str | None = None

    def of(self, X: Any, y: Any) -> SplitRows:
        """Both parts. What is refused depends on types and names alone."""
        if is_sparse(X):
            raise TypeError(_SPARSE)
        frame = eager(X)
        if frame is None and _is_table(X):
            return self._of_source(open_source(X), y)
        found = framed(X) if frame is None else frame
        names, split = self._names(found.columns), self._split(found.columns)
        worked, mask = attempt(lambda: split.held(found))
        if not worked or mask is None:
            raise PrivateComputationError(PASS_FAILED)

        apart = y is not None and not isinstance(y, str)
        if apart and hasattr(y, "__len__") and len(y) != len(mask):  # before a library says how many there are
            raise ValueError(_LENGTHS)

        def part(chosen: Mask) -> tuple[Any, Any]:
            rows = taken(X, chosen)
            if isinstance(rows, list) and not rows:  # an empty list would not say how many features there are
                rows = np.empty((0, len(found.columns)))
            return rows, taken(y, chosen) if apart else y

        return SplitRows(part(~mask), part(mask), names)

    def _names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Of the features."""
        return tuple(name for name in columns if name not in (self.target, self.person))

    def _split(self, columns: Sequence[str]) -> RowSplit:
        if self.person is None:
            return RowSplit(self._names(columns), self.share, self.key)
        if self.person not in columns:
            raise TableError(f'the table has no column "{self.person}", which says whose rows belong together')
        return RowSplit((self.person,), self.share, self.key, persons=True)

    def _of_source(self, source: Source, y: Any) -> SplitRows:
        if isinstance(source, SparkSource):
            raise TypeError(_SPARK)
        split = self._split(tuple(source.types))
        fitted, held = (ChosenSource(source, SplitSide(split, held)) for held in (False, True))
        return SplitRows((fitted, y), (held, y), self._names(tuple(source.types)))


def _is_table(X: Any) -> bool:
    """Whether it is a table that is not in memory, rather than rows of an array."""
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(path, str) for path in X)
    return not isinstance(X, np.ndarray) and not hasattr(X, "__array__")
