"""Whether and how the numbers of a column are clipped in private, and what a plan says about it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from snugdp.mechanisms.statistics.clipping import (
    MAX_OCTAVES,
    ClipRange,
    candidates,
    centre_of,
    clip_part,
    octaves_for,
    rows_needed,
)
from snugdp.propose.forecast import Note
from snugdp.propose.share import Share
from snugdp.tables.grid import Grid
from snugdp.tables.passes.statistics import CappedSums

Clip: TypeAlias = Literal["auto", "private"] | None


def check_clip(clip: object) -> None:
    """Refuse what is no way to clip."""
    if clip not in ("auto", "private", None):
        raise ValueError('clip must be "auto", "private" or None: at the bounds alone')


def capped_sums(column: str, grid: Grid, degree: int = 1) -> CappedSums:
    """What has to be summed up so that a column can be clipped at any candidate."""
    return CappedSums(column, grid, centre_of(grid), candidates(grid), degree)


def clip_range(share: Share, measure: CappedSums, clip: Clip, rows: int | None) -> ClipRange:
    """The choice of a range. "auto" clips where there are enough rows for it: so many, or a noisy number of them."""
    if clip == "auto":
        return ClipRange(share, measure, None if rows is None else octaves_for(share, rows))
    return ClipRange(share, measure, MAX_OCTAVES if rows is None else max(octaves_for(share, rows), 1))


def left_for_release(chosen: ClipRange) -> Share:
    """What is left where numbers are clipped."""
    return chosen.rest if chosen.octaves == 0 else chosen.rest.part(1 - clip_part(chosen.rest))


def clip_notes(chosen: ClipRange) -> tuple[Note, ...]:
    """What a plan says: whether it clips, and that nobody can know before whether that pays."""
    if chosen.octaves == 0:
        return (Note("clip-needs-rows", {"rows": rows_needed(chosen.rest, 1)}),)
    octaves = MAX_OCTAVES if chosen.octaves is None else chosen.octaves
    needed = rows_needed(chosen.rest, 6 if chosen.octaves is None else octaves)
    return (Note("clip-from-rows" if chosen.octaves is None else "clip-surely", {"rows": needed}),)
