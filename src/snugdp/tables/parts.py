"""Which rows of a table belong to a part that a ledger declares. Proof: ``release/parts.proof.md``.

A row belongs to it by its own cell in one column and by what was declared, in every container.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from snugdp.ledger.parts import TablePart
from snugdp.tables.cells import labelled, type_name
from snugdp.tables.cells.names import Names
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources import Source, SparkSource, TableError
from snugdp.tables.sources.base import Frame
from snugdp.tables.sources.base import listed as names_of
from snugdp.tables.sources.chosen import ChosenSource, Mask

_SPARK = (
    "the rows of a part are read in this process, and a Spark table stays on its cluster: write the table to files, or "
    "charge the whole ledger"
)


@dataclass(frozen=True)
class PartChoice:
    """The rows of one part.

    Guarantee: whether a row is chosen depends on its own cell and on the declaration alone, in every container, and no
    row is in two parts of a partition (``release/parts.proof.md``, Lemma 1).
    """

    part: TablePart

    @property
    def columns(self) -> tuple[str, ...]:
        """The one that decides."""
        assert self.part.column is not None
        return (self.part.column,)

    @cached_property
    def _names(self) -> Names:
        return Names(self.part.partition.parts, "the parts of a table")

    def check(self, dtype: DType) -> None:
        """An error about a column whose declared type cannot tell parts apart."""
        (name,) = self.columns
        if not labelled(dtype):
            raise TypeError(
                f'the column "{name}", by which the table has parts, must hold text, whole numbers or dates, not '
                f"{type_name(dtype)}; convert it first"
            )
        if self.part.partition.key is None:
            _ = self._names  # whether all values are different ones
            return
        from snugdp.tables.persons.images import check_person  # polars: only for those who need it

        check_person(name, dtype)

    def chosen(self, frame: Frame) -> Mask:
        """Which rows of a frame are in this part."""
        (name,) = self.columns
        column, index = frame.get_column(name), self.part.index
        partition = self.part.partition
        if partition.key is None:
            listed: Mask = self._names.indices(column) == index  # 1
            return listed
        from snugdp.tables.persons.hashing import mixed, subkeys  # polars: only for those who need it
        from snugdp.tables.persons.images import person_image

        found = person_image(column)
        words = found.words(subkeys(int(partition.key, 16), 1)[0])  # 2
        hashed: Mask = mixed(words) % np.uint64(len(partition.parts)) == np.uint64(index)  # 3
        return hashed & ~found.missing


def restricted(source: Source, part: TablePart, *, hidden: bool) -> Source:
    """The rows of a table that are in a part. What is refused depends on names and declared types alone.

    ``hidden``: whether the column that decides is no column of the result.
    """
    choice = PartChoice(part)
    (name,) = choice.columns
    if isinstance(source, SparkSource):
        raise TypeError(_SPARK)
    if name not in source.types:
        raise TableError(
            f'{source.name} has no column "{name}", by which its rows belong to a part; it has '
            f"{names_of(list(source.types))}"
        )
    choice.check(source.type_for_reading(name))
    return ChosenSource(source, choice, choice.columns if hidden else ())
