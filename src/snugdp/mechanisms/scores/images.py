"""What a model says of a row, as whole numbers: a function of that row alone, though models are asked in batches.

A model that is asked about many rows at once answers faster, and not bit by bit as about each row by itself: products
of matrices add up in another order, and one row that cannot be scored makes the whole call fail. So rows whose answer
is close to the border of two cells are asked about again alone, and a call that fails is repeated for each half of its
rows. The line numbers in the comments are those of ``scores.proof.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.silence import attempt, muted

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Ask: TypeAlias = Callable[[Any], Any]  # a batch of rows to an array, one line for each

CELLS = 1 << 12  # of the scale from its lower to its upper end
TOLERANCE = 2.0**-20  # of that scale: by how much the answer for a row may depend on the rows beside it
UNSCORED = -1


@dataclass(frozen=True)
class AnswerScale:
    """The ends of a scale; what lies outside counts as the nearer end.

    >>> AnswerScale(0.0, 1.0).cells(np.array([0.25, 2.0, -1.0])).tolist()
    [1024, 4096, 0]
    """

    lower: float
    upper: float

    def places(self, values: Floats) -> Floats:
        """Where values are, in cells."""
        with np.errstate(all="ignore"):
            return np.clip((values - self.lower) / (self.upper - self.lower), 0.0, 1.0) * CELLS

    def cells(self, values: Floats) -> Integers:
        """The nearest whole cells of values that are numbers."""
        return np.rint(self.places(values)).astype(np.int64)


@dataclass(frozen=True)
class RowImages:
    """The answers of a model as whole numbers of cells: ``width`` of them for a row, all ``UNSCORED`` if one is none.

    ``alone``: ask about every row by itself, for models whose answer for a row depends on the rows beside it.

    Guarantee: the image of a row is that of its answer alone, if answers in a batch differ from those by at most
    ``TOLERANCE`` of the scale, and a batch is answered if and only if all of its rows are (``scores.proof.md``, Lemma
    1).
    """

    width: int
    scale: AnswerScale
    alone: bool = False

    def of(self, ask: Ask, rows: Any, count: int) -> Integers:
        """The images of so many rows, which can be sliced. What goes wrong in ``ask`` is not told."""
        with muted():
            if self.alone:
                return self._each(ask, rows, np.arange(count))
            return self._batch(ask, rows, 0, count)

    def _batch(self, ask: Ask, rows: Any, start: int, stop: int) -> Integers:
        count = stop - start
        if not count:
            return np.empty((0, self.width), dtype=np.int64)
        answers = self._answers(ask, rows[start:stop], count)
        if answers is None and count > 1:  # 2
            middle = start + count // 2
            halves = self._batch(ask, rows, start, middle), self._batch(ask, rows, middle, stop)
            return np.concatenate(halves)
        images = self._images(answers, count)
        if count > 1 and answers is not None:
            places = self.scale.places(answers)
            near = np.abs(places - np.floor(places) - 0.5) <= TOLERANCE * CELLS  # 3
            again = np.flatnonzero(near.any(axis=1))
            images[again] = self._each(ask, rows, start + again)
        return images

    def _each(self, ask: Ask, rows: Any, chosen: Integers) -> Integers:
        """The images of single rows."""
        none = np.empty((0, self.width), dtype=np.int64)
        one = (self._images(self._answers(ask, rows[row : row + 1], 1), 1) for row in chosen.tolist())
        return np.concatenate([none, *one])

    def _answers(self, ask: Ask, rows: Any, count: int) -> Floats | None:
        """The answers as floats, one line for each row; None for what is not of that shape."""
        worked, answers = attempt(lambda: np.asarray(ask(rows), dtype=np.float64).reshape(count, self.width))
        return answers if worked else None

    def _images(self, answers: Floats | None, count: int) -> Integers:
        if answers is None:
            return np.full((count, self.width), UNSCORED, dtype=np.int64)
        known = ~np.isnan(answers).any(axis=1, keepdims=True)
        return np.where(known, self.scale.cells(np.nan_to_num(answers)), UNSCORED)  # 1
