"""Labels as targets: the place of each row among public classes, as a number between -1 and 1.

Classes are declared, never read from rows: a label that nobody else has would tell that its person is there. Every
label has an image that depends on its own row alone. What is none of the classes counts as the first of them, so a
row without a label is kept, and nothing that a label may hold raises or warns.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from snugdp.tables.schema.kinds import Boolean, Category, Column
from snugdp.tables.schema.scaling import Floats, OneHot, Scale, scale_for

if TYPE_CHECKING:
    from snugdp.tables.schema.schema import Schema

MAX_CLASSES = 1000


@dataclass(frozen=True)
class Coded(OneHot):
    """A category as one number: -1 for the first value and for what is not listed, 1 for the last, even steps between.

    >>> out = np.empty((1, 4))
    >>> Coded(("a", "b", "c"), 1.0).write(np.array([0, 1, 2, -1]), out)
    >>> out.tolist()
    [[-1.0, 0.0, 1.0, -1.0]]
    """

    @property
    def width(self) -> int:
        """One."""
        return 1

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        out[0] = codes(raw, len(self.values))


def codes(places: NDArray[Any], classes: int) -> Floats:
    """The targets of labels, from their places among the classes; -1 is the place of what is none of them.

    >>> codes(np.array([0, 1, -1]), 2).tolist()
    [-1.0, 1.0, -1.0]
    """
    return np.asarray(np.maximum(places, 0) * (2.0 / (classes - 1)) - 1.0, dtype=np.float64)


def target_scale(column: Column) -> Scale:
    """How a target becomes one number between -1 and 1."""
    return Coded(tuple(column.values), 1.0) if isinstance(column, Category) else scale_for(column, 1)


def check_target(name: str, column: Column) -> None:
    """Refuse a target from which nothing can be learned."""
    if isinstance(column, Category) and not 2 <= len(column.values) <= MAX_CLASSES:
        raise TypeError(
            f'the target "{name}" must be a Number, a Boolean or 2 to {MAX_CLASSES} listed values, not a Category of '
            f"{len(column.values)}"
        )


def classes_in(schema: Schema) -> tuple[Hashable, ...]:
    """The classes that the target of a schema declares: no and yes, or the listed values in their order.

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> classes_in(Schema({"x": Number(0, 1), "y": Category(["b", "a"])}, target="y"))
    ('b', 'a')
    """
    column = None if schema.target is None else schema.columns[schema.target]
    if isinstance(column, Boolean):
        return (False, True)
    if isinstance(column, Category):
        return tuple(column.values)
    raise TypeError(
        "the target of the schema must be a Boolean or a Category: its values are the classes, which must be known "
        'without the data. Say Schema({..., "plan": Category(["basic", "premium"])}, target="plan")'
    )


def with_classes(schema: Schema, values: Sequence[Hashable]) -> Schema:
    """The schema with these values, in this order, as those of its target; a Boolean stays one."""
    target = str(schema.target)
    if isinstance(schema.columns[target], Boolean):
        return schema
    return replace(schema, columns={**schema.columns, target: Category(tuple(values))})
