"""Public classes, and labels among them: each is read by itself, whatever the type of its column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.inputs import one_column
from snugdp.secrecy.silence import attempt
from snugdp.tables.cells import Names

Integers = NDArray[np.int64]
_CLASSES = (
    "classes is needed: all labels there can be, such as classes=range(10) or classes=['no', 'yes']. They must be "
    "known without the data: a label read from the rows may be one person's, and would tell that this person is there. "
)
FOUND_WITH_BOUNDS = "Or leave out x_norm as well, to have classes and bounds found privately"


def declared(classes: Any, otherwise: str = FOUND_WITH_BOUNDS) -> NDArray[Any]:
    """The public classes as an array, in ascending order where they have one. ``otherwise``: another way out.

    >>> declared(["yes", "no"]).tolist(), declared(range(3)).tolist()
    (['no', 'yes'], [0, 1, 2])
    """
    if classes is None:
        raise ValueError(_CLASSES + otherwise)
    listed = None if isinstance(classes, str | bytes) else attempt(lambda: list(classes))[1]
    if listed is None:
        raise TypeError("classes must be a list of labels, such as range(10) or ['no', 'yes']")
    labels: list[Any] = list(Names(listed, "classes").names)
    if len(labels) < 2:
        raise ValueError("classes must be at least two different labels, such as numbers or text")
    labels = attempt(lambda: sorted(labels))[1] or labels
    array = np.array(labels) if len(set(map(type, labels))) == 1 else np.empty(0)
    if array.shape != (len(labels),):
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
    return array


def labels_of(y: Any, classes: Sequence[Hashable]) -> Integers:
    """The index of every label among the public classes; -1 for what is none of them.

    >>> labels_of(np.array([0, 1, "rare"]), [0, 1]).tolist(), labels_of([5, "5", 5.0], ["4", "5"]).tolist()
    ([0, 1, -1], [1, 1, 1])
    """
    return Names(classes, "classes").indices(one_column(y, "label"))


def as_numbers(indices: Integers) -> NDArray[np.float64]:
    """The indices as a column of numbers; what is none of the classes is missing.

    >>> as_numbers(np.array([1, -1])).tolist()
    [1.0, nan]
    """
    return np.where(indices < 0, np.nan, indices)
