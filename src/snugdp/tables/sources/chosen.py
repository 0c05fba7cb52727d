"""Some of the rows of a table: each is chosen, or not, by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, Protocol, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt
from snugdp.tables.sources.base import Batch, Frame, Partition, Source, TableError

Mask: TypeAlias = NDArray[np.bool_]
_UNREADABLE = "the rows to use could not be selected; the cause is withheld because it may depend on them"


class RowChoice(Protocol):
    """Which rows are meant: a function of each row by itself, and of what is public. It can be pickled."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide."""

    def chosen(self, frame: Frame) -> Mask:
        """Which rows of a frame, which has these columns."""


class ChosenPartition(Partition):
    """The chosen rows of a partition."""

    def __init__(self, inner: Partition, choice: RowChoice) -> None:
        self._inner, self._choice = inner, choice

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """These rows, with the given columns."""
        for batch in self._inner.batches(tuple(dict.fromkeys((*columns, *self._choice.columns)))):
            mask = chosen(self._choice, batch.frame)
            yield Batch(filtered(batch.frame, mask).select(*columns), batch.size)


class ChosenSource(Source):
    """The chosen rows of a table. ``hidden``: columns that are read for the choice alone."""

    def __init__(self, source: Source, choice: RowChoice, hidden: Sequence[str] = ()) -> None:
        self._source, self._choice = source, choice
        self.types = {name: dtype for name, dtype in source.types.items() if name not in hidden}
        self.name, self.size, self.inferred = source.name, source.size, source.inferred
        self.held = source.held
        self.library, self.floats_for_missing = source.library, source.floats_for_missing

    def partitions(self) -> Sequence[Partition]:
        """Those of the table."""
        return [ChosenPartition(part, self._choice) for part in self._source.partitions()]

    def mask(self, frame: Frame) -> Mask:
        """Which rows of a frame are chosen."""
        return chosen(self._choice, frame)

    def verify(self) -> None:
        """As the table."""
        self._source.verify()


def chosen(choice: RowChoice, frame: Frame) -> Mask:
    """The rows that are meant. What goes wrong is not told."""
    worked, mask = attempt(lambda: choice.chosen(frame))
    if not worked or mask is None:
        raise TableError(_UNREADABLE)
    return mask


def taken(values: Any, mask: Mask) -> Any:
    """Some of the rows, in the container that they came in."""
    if isinstance(values, list | tuple):
        return list(compress(values, mask))
    if isinstance(values, np.ndarray):
        return values[mask]
    found: Any = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(found, nw.DataFrame | nw.Series):
        return filtered(found, mask).to_native()
    return np.asarray(values)[mask]


def filtered(values: Any, mask: Mask) -> Any:
    """Some of the rows of a frame or a series; no condition can be made of an empty list."""
    return values.filter(mask.tolist()) if len(mask) else values
