"""What a rule of class means needs to know: sums of rows by class, and whether the rule is too steep.

Each row adds whole numbers, as a function of that row alone. Proof: ``class_means.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from snugdp.numerics.blas import require_exact_products
from snugdp.tables.losses.losses import codes
from snugdp.tables.passes.base import RowPass, Sums
from snugdp.tables.passes.derivatives.softmax import softmax
from snugdp.tables.rowmap import Floats
from snugdp.tables.schema.schema import Layout

STEEPNESS_CELLS = 1 << 20  # the most that a row adds
_EXACT = 1 << 53
_MAX_POINT_BITS, _MAX_ENTRY = 60, 2.0**100
_MAX_ARGUMENT = 1e6


@dataclass(frozen=True)
class ClassSumPass(RowPass[Sums]):
    """The sums of the entries of all rows of each class in cells, class by class.

    Guarantee: whole numbers, equal for every order and partition of the rows; all of them together move by at most the
    norm of a row when one comes or goes (``class_means.proof.md``, Theorem 1).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> work = ClassSumPass(Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y"), 3, bits=4)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.5, -1.0, 0.25], "y": [-1.0, 1.0, 1.0]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()
    [8, 16, 0, 0, -12, 32]
    """

    schema: Layout
    classes: int
    bits: int | None = None

    def __post_init__(self) -> None:
        if self.schema.target is None:
            raise ValueError("sums by class need a target: name one in the schema")

    def empty(self) -> Sums:
        """The sums over no rows."""
        return Sums(self.classes * self.row_map.entries)

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        places, whole = codes(w, self.row_map.target_limit, self.classes), V.astype(np.int64)  # 1
        sums = [whole[places == place].sum(axis=0) for place in range(self.classes)]  # 2
        state.accumulate(np.concatenate(sums).tolist())


@dataclass(frozen=True)
class SteepnessPass(RowPass[Sums]):
    """Whether log-odds ``slope`` times linear scores, plus ``offsets``, are too steep: the sum of what rows say.

    A row of class y with the scores f says sum_k (p_k - [k = y]) f_k over ``scale``, clipped to [-1, 1], with p the
    softmax of ``slope`` f + ``offsets``: the derivative of its log-loss by the slope. ``scores``: a row of coefficients
    for each class.

    Guarantee: a row adds one whole number of size at most ``STEEPNESS_CELLS``, a function of that row alone
    (``class_means.proof.md``, Theorem 2).

    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> schema = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y")
    >>> work = SteepnessPass(schema, ((-1.0, 0.0), (0.0, 0.0), (1.0, 0.0)), (0.0, 0.0, 0.0), 1.0, 2.0)
    >>> frame = nw.from_native(pd.DataFrame({"x": [0.5, 0.5], "y": [1.0, 1.0]}), eager_only=True)
    >>> work.fold(work.empty(), frame).values()  # both rows are of the class that they point to: not steep enough
    [-356434]
    """

    schema: Layout
    scores: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]
    slope: float
    scale: float
    bits: int | None = None

    def __post_init__(self) -> None:
        entries, numbers = self.row_map.entries, [value for row in self.scores for value in row]
        if self.schema.target is None:
            raise ValueError("scores of classes need a target: name one in the schema")
        if any(len(row) != entries for row in self.scores) or len(self.offsets) != len(self.scores) or not numbers:
            raise ValueError(f"there must be {entries} entries and an offset for each class")
        if not all(abs(value) <= _MAX_ENTRY for value in (*numbers, *self.offsets)):
            raise ValueError("scores and offsets must be at most 2**100")
        if not (0 < self.slope <= _MAX_ENTRY and 0 < self.scale <= _MAX_ENTRY):
            raise ValueError("the slope and the scale must be above 0 and at most 2**100")

    def empty(self) -> Sums:
        """The sum over no rows."""
        require_exact_products((self.row_map.limits.block, self.row_map.entries, len(self.scores)))
        return Sums(1)

    @cached_property
    def _points(self) -> tuple[NDArray[np.float64], float]:
        """Scores in whole multiples of 2**-s, as fine as keeps every product exact in floats; and the unit of these."""
        exact, s = [[Fraction(value) for value in row] for row in self.scores], _MAX_POINT_BITS
        norm = self.row_map.limits.norm_squared
        while norm * max(sum(round(v * Fraction(2) ** s) ** 2 for v in row) for row in exact) > _EXACT**2:
            s -= 1
        points = np.array([[float(round(v * Fraction(2) ** s)) for v in row] for row in exact])
        return points, math.ldexp(float(self.row_map.unit), -s)

    def add_block(self, state: Sums, V: Floats, w: Floats) -> None:
        """Add the rows of one block."""
        points, unit = self._points
        scores = np.dot(V, points.T) * unit  # 1
        limit, places = _MAX_ARGUMENT, codes(w, self.row_map.target_limit, len(points))
        chances = softmax(np.clip(self.slope * scores + np.array(self.offsets), -limit, limit))  # 2
        said = np.zeros(len(V))
        for k in range(len(points)):  # in this order, on every machine
            said += (chances[:, k] - (places == k)) * scores[:, k]
        whole = np.rint(np.clip(said / self.scale, -1.0, 1.0) * float(STEEPNESS_CELLS)).astype(np.int64)  # 3
        state.accumulate([int(whole.sum())])
