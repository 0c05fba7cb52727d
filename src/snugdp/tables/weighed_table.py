"""The tables of one release about persons with several rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources import Source


class WeighedTable(PrivateState):
    """All rows with weights, and one row of each person. Private.

    ``weights``: the column of ``rows`` with the weights, whole numbers of 1/``WEIGHT``. ``most``: so much the rows of a
    person weigh together, at most. ``one``: one row of each person; what is looked at before a fit is looked at there.
    """

    __slots__ = ("most", "one", "rows", "weights")

    def __init__(self, rows: Source, one: Source, most: int, weights: str) -> None:
        self.rows, self.one, self.most, self.weights = rows, one, most, weights

    def with_types(self, types: Mapping[str, DType]) -> WeighedTable:
        """The same with columns of other declared types."""
        return WeighedTable(_typed(self.rows, types), _typed(self.one, types), self.most, self.weights)


class WeighableTable(PrivateState):
    """The same before it is known how much the rows of a person may weigh. Private.

    ``counts``: how many persons have 1, 2, 3-4, 5-8, ... rows. ``weigh``: makes the table with all rows, weighed so
    that those of a person weigh at most so much. ``weights``: its column of weights.
    """

    __slots__ = ("_weigh", "counts", "one", "weights")

    def __init__(self, one: Source, counts: Sequence[int], weigh: Callable[[int], Source], weights: str) -> None:
        self.one, self.counts, self.weights = one, list(counts), weights
        self._weigh = weigh

    def weighing(self, most: int) -> WeighedTable:
        """The tables in which the rows of a person weigh at most so much."""
        return WeighedTable(self._weigh(most), self.one, most, self.weights)

    def with_types(self, types: Mapping[str, DType]) -> WeighableTable:
        """The same with columns of other declared types."""
        weigh = self._weigh
        return WeighableTable(
            _typed(self.one, types), self.counts, lambda most: _typed(weigh(most), types), self.weights
        )


def unused(names: Iterable[str], wanted: str = "weight") -> str:
    """A name that no column has, also where case is ignored.

    >>> unused(["x", "Weight"])
    'weight_'
    """
    taken = {name.lower() for name in names}
    while wanted in taken:
        wanted += "_"
    return wanted


def _typed(source: Source, types: Mapping[str, DType]) -> Source:
    return source.with_types({name: types.get(name, kind) for name, kind in source.types.items()})
