"""What is summed up over the rows of a table, by what the model predicts: two classes, several, or a number."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from snugdp.mechanisms.scores.bins import BINS, EVEN, LOGITS, bin_of
from snugdp.mechanisms.scores.images import CELLS, AnswerScale, Floats, Integers
from snugdp.mechanisms.scores.parts import SumPart, bounded, counts, explained, rounded, spread, triple

LABELS = AnswerScale(0.0, float(CELLS))  # of an answer that is the index of a class
_UNIT = AnswerScale(0.0, 1.0)


@dataclass(frozen=True)
class ScoreTask(ABC):
    """Sums over rows, for the parts that are asked for. ``pure``: whether the noise will be.

    A row without a target is in none of them; one without a score is counted by itself.
    """

    asked: tuple[str, ...]
    pure: bool

    width: ClassVar[int] = 1

    @property
    @abstractmethod
    def parts(self) -> tuple[SumPart, ...]:
        """What is released, in this order."""

    @property
    def scale(self) -> AnswerScale:
        """Of the answers of a model."""
        return _UNIT

    @property
    def held(self) -> int:
        """How many sums are kept."""
        return 1 + sum(part.size for part in self.parts)

    def tally(self, images: Integers, targets: Integers) -> list[int]:
        """The sums over some rows; the last one counts those without a score."""
        kept = targets >= 0
        scored = images[:, 0] >= 0
        known = kept & scored
        return [*self._sums(images[known], targets[known]), int(np.count_nonzero(kept & ~scored))]

    @abstractmethod
    def _sums(self, images: Integers, targets: Integers) -> Sequence[int]:
        """Over rows that have both a score and a target."""

    def vector(self, held: list[int], edges: tuple[int, ...] = ()) -> list[int]:
        """What is released without its noise, from the sums that are kept. ``edges``: of bins, where there are some."""
        return held

    def named(self, vector: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """The parts of what was released, by their names."""
        found, start = dict[str, tuple[int, ...]](), 0
        for part in self.parts:
            found[part.name] = tuple(vector[start : start + part.size])
            start += part.size
        return found


@dataclass(frozen=True)
class TwoClasses(ScoreTask):
    """Rows by class and by the cell of the logit of the positive one; all else follows from these counts.

    ``floor``: probabilities are clipped to [floor, 1 - floor] for the log-loss.
    """

    floor: float = 0.01

    @property
    def scale(self) -> AnswerScale:
        """Logits."""
        return LOGITS

    @property
    def parts(self) -> tuple[SumPart, ...]:
        """Counts, or the sums of a loss."""
        known = {"bins": counts("bins", 2 * BINS), "table": counts("table", 4), "right": counts("right", 2)}
        return tuple(known[name] if name in known else bounded(name) for name in self.asked)

    @property
    def held(self) -> int:
        """The counts of all cells of both classes, and of rows without a score."""
        return 2 * (CELLS + 1) + 1

    def _sums(self, images: Integers, targets: Integers) -> Sequence[int]:
        place = np.minimum(targets, 1) * (CELLS + 1) + images[:, 0]
        found: list[int] = np.bincount(place, minlength=2 * (CELLS + 1)).tolist()
        return found

    def vector(self, held: list[int], edges: tuple[int, ...] = ()) -> list[int]:
        """Each part, from the counts of all cells."""
        fine, unscored = np.array(held[:-1], dtype=object).reshape(2, CELLS + 1), held[-1]
        made: dict[str, Callable[[], list[int]]] = {
            "bins": lambda: _grouped(fine, bin_of(edges), BINS),
            "table": lambda: _grouped(fine, predicted(), 2),
            "right": lambda: _right(_grouped(fine, predicted(), 2)),
        }
        losses = {"log_loss": log_losses(logistic(), self.floor), "brier": brier_losses(logistic())}
        whole = [made[name]() if name in made else self._loss(fine, losses[name]) for name in self.asked]
        return [*(total for part in whole for total in part), unscored]

    def _loss(self, fine: Integers, loss: Integers) -> list[int]:
        return [int((fine * part).sum()) for part in triple(loss, self.pure)]


@dataclass(frozen=True)
class SeveralClasses(ScoreTask):
    """The table of classes and predicted classes, and losses of the probabilities.

    ``labels``: the model says a class and no probabilities.
    """

    number: int = 2
    labels: bool = False
    floor: float = 0.01

    @property
    def width(self) -> int:  # type: ignore[override]  # of this many classes
        """A probability for every class, or one class."""
        return 1 if self.labels else self.number

    @property
    def scale(self) -> AnswerScale:
        """Of probabilities, or of the index of a class."""
        return LABELS if self.labels else _UNIT

    @property
    def parts(self) -> tuple[SumPart, ...]:
        """Counts, or the sums of a loss."""
        known = {"table": counts("table", self.number**2), "right": counts("right", 2)}
        return tuple(known[name] if name in known else bounded(name) for name in self.asked)

    def _sums(self, images: Integers, targets: Integers) -> Sequence[int]:
        said = images[:, 0] if self.labels else np.argmax(images, axis=1)
        table = np.bincount(targets * self.number + said, minlength=self.number**2).tolist()
        found = list[int]()
        for name in self.asked:
            if name == "table":
                found += table
            elif name == "right":
                found += _right(table)
            else:
                loss = self._log_loss(images, targets) if name == "log_loss" else self._brier(images, targets)
                found += [int(part.sum()) for part in triple(loss, self.pure)]
        return found

    def _log_loss(self, images: Integers, targets: Integers) -> Integers:
        losses = log_losses(np.arange(CELLS + 1) / CELLS, self.floor)[1]
        found: Integers = losses[images[np.arange(len(images)), targets]]
        return found

    def _brier(self, images: Integers, targets: Integers) -> Integers:
        """The sum of squares over all classes, which is at most 2 for probabilities."""
        off = images.copy()
        off[np.arange(len(images)), targets] -= CELLS
        return rounded((off**2).sum(axis=1), 2 * CELLS**2)


@dataclass(frozen=True)
class NumberErrors(ScoreTask):
    """Errors of predictions of a number between bounds. ``cap``: the largest error that counts, in cells."""

    lower: float = 0.0
    upper: float = 1.0
    cap: int = CELLS

    @property
    def scale(self) -> AnswerScale:
        """That of the target."""
        return AnswerScale(self.lower, self.upper)

    @property
    def parts(self) -> tuple[SumPart, ...]:
        """Sums of errors, and of the target."""
        return tuple(explained(name) if name == "r2" else bounded(name) for name in self.asked)

    def _sums(self, images: Integers, targets: Integers) -> Sequence[int]:
        error = np.minimum(np.abs(images[:, 0] - targets), self.cap)
        squares = rounded(error**2, self.cap**2)
        parts: dict[str, Callable[[], list[Integers]]] = {
            "mse": lambda: triple(squares, self.pure),
            "mae": lambda: triple(rounded(error, self.cap), self.pure),
            "r2": lambda: [*triple(targets, self.pure), squares, spread(squares, self.pure)],
        }
        return [int(total.sum()) for name in self.asked for total in parts[name]()]

    @cached_property
    def cap_value(self) -> float:
        """The largest error that counts, in the units of the target."""
        return self.cap / CELLS * (self.upper - self.lower)


def logistic() -> Floats:
    """The probability of every cell."""
    logits = LOGITS.lower + (LOGITS.upper - LOGITS.lower) * np.arange(CELLS + 1) / CELLS
    return np.asarray(1 / (1 + np.exp(-logits)), dtype=np.float64)


def predicted() -> Integers:
    """The more probable class of two, of every cell."""
    return (np.arange(CELLS + 1) >= EVEN).astype(np.int64)


def log_losses(p: Floats, floor: float) -> Integers:
    """The log-loss of each probability, as part of the largest one: of the negative and of the positive class."""
    held = np.clip(p, floor, 1 - floor)
    return _part(-np.log(np.stack([1 - held, held])) / log_cap(floor))


def log_cap(floor: float) -> float:
    """The largest log-loss of a row."""
    return -math.log(floor)


def brier_losses(p: Floats) -> Integers:
    """The squared error of each probability, of the negative and of the positive class."""
    return _part(np.stack([p, 1 - p]) ** 2)


def _part(shares: Floats) -> Integers:
    """Numbers between 0 and 1 as whole cells."""
    return np.clip(np.rint(shares * CELLS), 0, CELLS).astype(np.int64)


def _grouped(fine: Integers, group: Integers, number: int) -> list[int]:
    """The counts of both classes in groups of cells."""
    found = np.zeros((2, number), dtype=object)
    for label in range(2):
        np.add.at(found[label], group, fine[label])
    return [int(total) for total in found.ravel()]


def _right(table: Sequence[int]) -> list[int]:
    """How many predictions are right, and how many wrong."""
    size = math.isqrt(len(table))
    right = sum(table[:: size + 1])
    return [right, sum(table) - right]
