"""Sums to which each person adds a vector of bounded length, under a cap that is public or found in private.

Proof: ``persons.proof.md``, Theorem 3; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.persons.cap_draw import CAP, CapDraw, draw_part, target_for, tilt_for
from snugdp.mechanisms.persons.tail_choice import FULL, MIN_NUMBERS, TailChoice, restored, tail_part
from snugdp.mechanisms.statistics.clipping import caps_up_to
from snugdp.mechanisms.statistics.joint import JointNoise
from snugdp.noise import DiscreteLaplace, Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.secrecy.secret import Secret
from snugdp.tables.found import FoundCap
from snugdp.tables.passes.columns.statistics import binned
from snugdp.tables.persons.totals import PersonTotals, Totals

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Seen = TypeVar("Seen")

THEOREM = theorem("person-totals/1")
FINE = 1 << 24  # in such parts of a unit totals are scaled down
MAX_CAP = 1 << 20
_NEAR = 1 + 2.0**-18  # so much longer than the cap a total may be before it is scaled down
_SLACK = 1 + Fraction(1, 1 << 17)  # so much longer than the cap a total may be in all, with the rounding of floats
_SPLIT = 20  # bits
_MAX_OCTAVES = 20
_LOST_UNIT = 64  # parts of a row


@dataclass(frozen=True)
class TotalsBlock:
    """Some of the numbers that persons add in every cell, and the combinations of them that are released.

    ``places``: of the numbers among those of a ``Totals``. ``rows``: the combinations. ``moves``: of each combination,
    in the sense of ``JointNoise``: the length of a vector is measured by them. ``share``: what is spent on the block.
    """

    places: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    moves: tuple[Fraction, ...]
    share: Share
    step: str

    def lengths(self, totals: Totals) -> Floats:
        """How long the vector of each person is, up to the rounding of floats."""
        combined, moves = self._combined(totals)
        entries = (np.abs(combined) / moves if self.share.is_pure else combined**2 / moves).sum(axis=0)  # 1
        found = np.bincount(totals.person, entries, minlength=totals.persons).astype(np.float64)
        return found if self.share.is_pure else np.sqrt(found)

    def spreads(self, totals: Totals, lengths: Floats, numbers: int) -> Integers:
        """Whole weights up to ``FULL``: how much of each person's length is lost in the sum of absolute errors."""
        combined, moves = self._combined(totals)
        entries = np.abs(combined / np.sqrt(moves)).sum(axis=0)
        rows = np.bincount(totals.person, entries, minlength=totals.persons).astype(np.float64)
        with np.errstate(all="ignore"):
            weights = np.nan_to_num(rows / lengths / np.minimum(lengths, numbers**0.5))
        whole: Integers = np.floor(FULL * np.clip(weights, 0, 1)).astype(np.int64)
        return whole

    def _combined(self, totals: Totals) -> tuple[Floats, Floats]:
        """The combinations, a line for each, and their moves. Entries are rounded each by itself: BLAS may not."""
        values = [totals.values[place].astype(np.float64) for place in self.places]
        nothing = np.zeros(len(totals.person))
        combined = np.stack(
            [sum((f * value for f, value in zip(row, values, strict=True) if f), nothing) for row in self.rows]
        )
        return combined, np.array([[float(move)] for move in self.moves])

    def cut(self, cap: Fraction, cells: int, totals: PersonTotals) -> list[int]:
        """The combinations over all persons, each scaled down to the cap, in parts of ``FINE``; cell by cell."""
        sums = np.zeros((len(self.places), cells), dtype=object)
        for part in totals.parts:
            sums = sums + self._sums(cap, cells, part)
        return [int(each) for each in (np.array(self.rows, dtype=object) @ sums).ravel()]  # 5

    def _sums(self, cap: Fraction, cells: int, totals: Totals) -> NDArray[Any]:
        """The sums over some persons of weight times number, by place and cell."""
        lengths, limit = self.lengths(totals), float(cap)
        with np.errstate(all="ignore"):
            scaled = np.floor(FINE * (limit / lengths))
        weights = np.where(lengths > limit * _NEAR, scaled, FINE).astype(np.int64)  # 4
        weights[totals.too_many] = 0
        return np.stack([_weighted(totals, place, weights, cells) for place in self.places])

    def noise(self, cap: Fraction, cells: int) -> JointNoise:
        """That of the combinations in parts of ``FINE``."""
        power = 1 if self.share.is_pure else 2
        moves = tuple(move * FINE**power for move in self.moves for _ in range(cells))
        return JointNoise(share_of_row(self.share, cap), moves, step=self.step)  # 6

    @property
    def unit_noise(self) -> float:
        """The standard deviation of the noise on the first combination for each unit of a cap, in its moves."""
        law = JointNoise(self.share, (Fraction(1),)).laws[0]
        return 2**0.5 * float(law.scale) if isinstance(law, DiscreteLaplace) else float(law.sigma)


def share_of_row(share: Share, cap: Fraction) -> Share:
    """What is spent on a single row, where a person with all rows counts for at most so many of them."""
    rows = cap * _SLACK
    return share.part(1 / rows if share.is_pure else 1 / rows**2)


def _weighted(totals: Totals, place: int, weights: Integers, cells: int) -> NDArray[Any]:
    """The sum over persons of weight times number, for every cell; in whole numbers of any size."""
    each, values, found = weights[totals.person], totals.values[place], np.zeros(cells, dtype=object)
    for sign in (1, -1):
        sized = np.maximum(sign * values, 0)
        if sized.any():
            low, high = each * (sized & ((1 << _SPLIT) - 1)), each * (sized >> _SPLIT)
            found = found + sign * binned(totals.cell, low, int(low.max()), cells)
            found = found + sign * (binned(totals.cell, high, int(high.max()), cells) << _SPLIT)
    return found


@dataclass(frozen=True)
class PersonVectors:
    """Sums over persons, of vectors that are scaled down to a cap. ``blocks``: what is released; the first is longest.

    ``cells``: public. ``largest``: the cap, or the last candidate where it is to be found ``in_private``.
    ``least``: the smallest candidate may not be below it; candidates are multiples of the fourth part of it.

    Guarantee: the costs of its steps together, when a person with all rows comes or goes (``persons.proof.md``,
    Theorem 3).
    """

    blocks: tuple[TotalsBlock, ...]
    cells: int
    largest: int
    in_private: bool = False
    least: Fraction = Fraction(1)
    share: Share | None = None  # of the draw

    def __post_init__(self) -> None:
        if not 1 <= self.largest <= MAX_CAP:
            raise ValueError(f"max_rows must be at most {MAX_CAP:,}")
        for block in self.blocks:
            block.share.neighbours.require(Neighbours.ADD_REMOVE)

    @cached_property
    def candidates(self) -> tuple[Fraction, ...]:
        """The caps among which one is drawn, four for every doubling; the last is the largest."""
        unit = self.least / 4
        caps = (cap * unit for cap in caps_up_to(int(self.largest / unit), _MAX_OCTAVES))
        return tuple(cap for cap in caps if cap >= self.least)

    @property
    def numbers(self) -> int:
        """How many are released of the first block."""
        return self.cells * len(self.blocks[0].rows)

    @cached_property
    def cap_choice(self) -> CapDraw | TailChoice:
        """How a cap is found: read from counts where many numbers get Gaussian noise, otherwise drawn."""
        assert self.share is not None
        numbers = self.numbers
        if _reads_tail(self.share, numbers):
            return TailChoice(self.share, self.candidates, numbers, self.blocks[0].unit_noise)
        draw = CapDraw(self.share, len(self.candidates), Fraction(0), tilt_for(numbers))
        return replace(draw, target=target_for(draw.range, numbers, self.blocks[0].unit_noise))

    def certify(self, data: Secret[PersonTotals], noise: Noise) -> FoundCap:
        """A cap, by how many persons are above each candidate, or between them."""
        choice = self.cap_choice
        if isinstance(choice, CapDraw):
            return FoundCap(self.candidates[choice.draw(data.map(self.above), noise)], self.largest)  # 2, 3
        reading = choice.found(data.map(self.between), noise)
        lost = Fraction(round(reading.lost * _LOST_UNIT), _LOST_UNIT) if self.restores else Fraction(0)
        return FoundCap(self.candidates[reading.place], self.largest, lost)

    @property
    def restores(self) -> bool:
        """Whether counts get back what the cap is estimated to cut off: where nothing but counts is released."""
        counts = len(self.blocks) == 1 and self.blocks[0].rows == ((1,),) and self.blocks[0].moves == (Fraction(1),)
        return self.in_private and counts and isinstance(self.cap_choice, TailChoice)

    def above(self, totals: PersonTotals) -> list[int]:
        """For every candidate, how many persons are above it."""
        limits = np.array([float(cap) * _NEAR for cap in self.candidates])
        above = np.zeros(len(limits), dtype=np.int64)
        for part in totals.parts:
            lengths = np.sort(self.blocks[0].lengths(part))
            above += len(lengths) - np.searchsorted(lengths, limits, side="right")
        return [int(each) for each in above]

    def between(self, totals: PersonTotals) -> list[int]:
        """For every bin of a ``TailChoice``, the weights of the persons in it: each is in one at most."""
        assert isinstance(self.cap_choice, TailChoice)
        ends = np.array([float(end) * _NEAR for end in self.cap_choice.ends])
        found = np.zeros(len(ends) + 1, dtype=np.int64)
        for part in totals.parts:
            lengths = self.blocks[0].lengths(part)
            weights = self.blocks[0].spreads(part, lengths, self.numbers)
            np.add.at(found, np.searchsorted(ends, lengths, side="left"), weights)
        return [int(each) for each in found[1:]]

    def draw(self, data: Secret[PersonTotals], cap: Fraction, noise: Noise) -> list[list[Fraction]]:
        """The noisy combinations of every block, by combination and cell."""
        drawn = []
        for block in self.blocks:
            sums = data.map(partial(block.cut, cap, self.cells))
            drawn.append([Fraction(each, FINE) for each in block.noise(cap, self.cells).draw(sums, noise)])
        return drawn

    def steps(self, columns: tuple[str, ...] = ()) -> tuple[Step, ...]:
        """Of a plan. Where the cap is found in private, the noise is scaled by it and its cost stays the same."""
        first: tuple[Step, ...] = ()
        if self.in_private:
            assert self.share is not None
            drawn = self._found()
            first = (Step(CAP, StepKind.SELECT, drawn, self.share.cost),)
        return (*first, *(self._step(block, *columns[place : place + 1]) for place, block in enumerate(self.blocks)))

    def _found(self) -> StepNoise:
        """How the cap is found."""
        choice, params = self.cap_choice, {"candidates": len(self.candidates), "largest": self.largest}
        if isinstance(choice, TailChoice):
            return StepNoise("person-tail", "gaussian", float(choice.law.sigma) / FULL, "persons", params=params)
        return StepNoise("person-cap", "gumbel", params=params)

    def _step(self, block: TotalsBlock, *column: str) -> Step:
        """The scale is in rows at the largest value, of the first combination."""
        cap = Fraction(1) if self.in_private else Fraction(self.largest)
        law = JointNoise(share_of_row(block.share, cap), (Fraction(1),)).laws[0]
        scale = float(law.scale if isinstance(law, DiscreteLaplace) else law.sigma)
        params: dict[str, Any] = {"column": column[0]} if column else {}
        if self.in_private:
            params["each"] = scale
        name, times = "discrete Laplace" if block.share.is_pure else "gaussian", self.cells * len(block.rows)
        one, many = ("capped-total", "capped-totals") if self.in_private else ("person-total", "person-totals")
        size = None if self.in_private else scale
        noise = StepNoise(one if times == 1 else many, name, size, "rows", times, params)
        return Step(block.step, StepKind.RELEASE, noise, block.share.cost)


def choice_part(share: Share, numbers: int) -> Fraction:
    """The part of a share that the choice of a cap gets."""
    return tail_part(numbers) if _reads_tail(share, numbers) else draw_part(share, numbers)


def _reads_tail(share: Share, numbers: int) -> bool:
    return numbers >= MIN_NUMBERS and not share.is_pure


def divided(share: Share, numbers: int, *, in_private: bool) -> tuple[Share | None, Share]:
    """The part of a share that the choice of a cap gets, and the rest, for so many numbers."""
    part = choice_part(share, numbers)
    return (share.part(part), share.part(1 - part)) if in_private else (None, share)


@dataclass(frozen=True)
class ShownVectors(Generic[Seen]):
    """What is drawn under a cap, in the user's units: ``show`` takes the cap and the combinations of every block."""

    vectors: PersonVectors
    show: Callable[[Fraction, list[list[Fraction]]], Seen]

    def draw(self, data: Secret[PersonTotals], certificate: FoundCap, noise: Noise) -> Seen:
        """Draw, add what was cut off, then show."""
        drawn = self.vectors.draw(data, certificate.cap, noise)
        if certificate.lost:
            deviation = self.vectors.blocks[0].unit_noise * float(certificate.cap)
            counts = restored(np.array(drawn[0], dtype=np.float64), float(certificate.lost), deviation)  # 7
            drawn = [[Fraction(each) for each in counts.tolist()]]
        return self.show(certificate.cap, drawn)


@dataclass(frozen=True)
class ShownAtCap(Generic[Seen]):
    """The same with a public cap."""

    shown: ShownVectors[Seen]

    def draw(self, data: Secret[PersonTotals], noise: Noise) -> Seen:
        """Draw, then show."""
        vectors = self.shown.vectors
        return self.shown.draw(data, FoundCap(Fraction(vectors.largest), vectors.largest), noise)
