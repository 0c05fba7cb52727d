"""What is missing is counted for nothing, and all portions together cost what the plan says."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from snugdp import Budget, Simulation
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.statistics.clipping import ClippedMoments, ClippedRange, ClipRange, candidates, centre_of
from snugdp.mechanisms.statistics.described import DescribedRelease, EntryCounts, MomentsAndMissing, Portion
from snugdp.noise import DiscreteLaplace, Gaussian
from snugdp.propose.plan import StepNoise
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import Grid
from snugdp.tables.passes.columns.statistics import CappedSums

GRID = Grid(0, -3, 9)
SHARES = [Share.pure(Budget(1)), Share.gaussian(Budget(1, 1e-6))]


def made(share: Share, degree: int) -> MomentsAndMissing:
    measure = CappedSums("x", GRID, centre_of(GRID), candidates(GRID, 2), degree)
    return MomentsAndMissing(ClippedMoments(ClipRange(share, measure, 0), degree))


def sums(work: MomentsAndMissing, rows: list[float]) -> list[int]:
    import numpy as np

    values = np.array(rows, dtype=np.float64)
    return [len(rows), *work.clipped.range.measure.sums(len(rows), lambda *_: values)]


def loss(work: MomentsAndMissing, clip: ClippedRange, one: list[float], other: list[float], part: float = 1.0) -> float:
    """The largest privacy loss of a joint release, exactly: in units of the share. ``part``: of the noise."""
    changes = [
        a - b
        for a, b in zip(work._features(clip, sums(work, one)), work._features(clip, sums(work, other)), strict=True)
    ]
    laws = work.noise(clip).laws
    if clip.left.is_pure:
        scales = [law.scale for law in laws if isinstance(law, DiscreteLaplace)]
        return sum(abs(d) / float(s * part) for d, s in zip(changes, scales, strict=True)) / float(clip.left.epsilon)
    sigmas = [law.sigma for law in laws if isinstance(law, Gaussian)]
    return sum((d / float(s * part)) ** 2 for d, s in zip(changes, sigmas, strict=True)) / float(clip.left.mu_squared)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("share", SHARES, ids=["pure", "Gaussian"])
def test_a_row_is_missing_or_a_number_and_costs_the_share(share: Share, degree: int) -> None:
    """All rows on all tables of up to one other row: every clipped range; missing ones reach the cost."""
    work = made(share, degree)
    worst: dict[tuple[int, bool], float] = {}
    for place in range(len(work.clipped.range.measure.caps)):
        clip = work.clipped.range._range(place, share)
        for row, rest in product([*range(-4, 11), float("nan")], ([], [5.0])):
            kind = place, math.isnan(row)
            worst[kind] = max(worst.get(kind, 0.0), loss(work, clip, [*rest, float(row)], rest))
    assert max(worst.values()) <= 1 + 1e-9
    assert all(value == pytest.approx(1, rel=1e-6) for (_, missing), value in worst.items() if missing)
    clip = work.clipped.range._range(0, share)
    assert loss(work, clip, [float("nan")], [], 0.8) > 1.2


@pytest.mark.parametrize("share", SHARES, ids=["pure", "Gaussian"])
def test_where_rows_are_replaced_nothing_is_counted_beside_the_moments(share: Share) -> None:
    replaced = Share(share.epsilon, share.mu_squared, Neighbours.REPLACE)
    for degree in (1, 2):
        rows = sums(made(replaced, degree), [1.0, 2.0, float("nan")])
        drawn = [made(each, degree).draw(Secret(rows), Simulation(1))[1] for each in (share, replaced)]
        assert len(drawn[0]) == len(drawn[1]) + 1


def test_entries_are_two_cells_or_a_count() -> None:
    for relation, moves in ((Neighbours.ADD_REMOVE, (1, 1)), (Neighbours.REPLACE, (1,))):
        share = Share(Fraction(1), Fraction(0), relation)
        assert [int(move) for move in EntryCounts(share).noise.moves] == list(moves)
        assert len(EntryCounts(share).draw(Secret([10, 7]), Simulation(1))) == len(moves)


def test_portions_draw_in_their_own_steps_and_rows_are_shown_where_they_are_public() -> None:
    for relation in Neighbours:
        whole = Share(Fraction(1), Fraction(0), relation)
        about = StepNoise("described-entries", "discrete Laplace", 1.0, "rows", 2)
        portions = tuple(Portion(f"column-{i}-sums", EntryCounts(whole.part(Fraction(1, 2))), about) for i in (1, 2))
        release = DescribedRelease(portions, relation)
        data: Secret[Any] = Secret({"rows": 10, "column-1-sums": [10, 7], "column-2-sums": [10, 10]})
        drawn = release.draw(data, Simulation(2))
        public = relation is Neighbours.REPLACE
        assert drawn.get("rows") == (10 if public else None)
        assert [step.id for step in release.steps()] == ["rows"] * public + ["column-1-sums", "column-2-sums"]
        assert sum((step.cost for step in release.steps()[1:]), release.steps()[0].cost).epsilon == 1
