"""What labels cost by every analysis: the printed table for the surrogate votes, and the two benchmarks in small."""

from __future__ import annotations

import numpy as np
import pytest

from snugdp.mechanisms.teachers import smooth_test as smooth
from snugdp.mechanisms.teachers.confident import ORDERS
from snugdp.mechanisms.teachers.table import UNIT, table_for
from snugdp.noise import DiscreteGaussian
from snugdp_studies.bench.pate import speed
from snugdp_studies.paper.pate.curves import Case, not_private_curves
from snugdp_studies.paper.pate.renyi import LabelLosses, epsilons, needed, tails, threshold_for
from tests.vectors.pate import PATE, TEACHERS, histograms

PRINTED = [  # votes, sigma, exact Gaussian, by Theorem 6, by the closed form, distance with deviations 6 and 8
    ("high_200", 13.7858, 6.7759, 0.1290, 0.1289, 0.5953, 0.4409),
    ("high_200", 31.9192, 2.5672, 0.1579, 0.1486, 0.6096, 0.4994),
    ("high_200", 48.5693, 1.6059, 0.2352, 0.2185, 0.7190, 0.6847),
    ("low_200", 13.7858, 6.7759, 0.2501, 0.2394, 0.7272, 0.8105),
    ("low_200", 48.5693, 1.6059, 0.5291, 0.4730, 1.3494, 1.4520),
]


@pytest.mark.parametrize("row", PRINTED)
def test_the_printed_table(row: tuple[str, float, float, float, float, float, float]) -> None:
    votes, sigma, *printed = row
    found = PATE["eps_table"](votes=votes, T=200, sigma=sigma, delta=1e-5)
    names = ("ind_gdp", "dep_thm6", "dep_Jclosed", "dist_dgauss6_Jclosed", "dist_dgauss8_Jclosed")
    assert [round(found[name], 4) for name in names] == pytest.approx(printed, abs=1.01e-4)


@pytest.mark.parametrize("row", PRINTED)
def test_tables_of_the_optimum_are_never_worse_than_the_closed_form(
    row: tuple[str, float, float, float, float, float, float],
) -> None:
    votes, sigma, *_, last = row
    law = DiscreteGaussian(64)
    at = threshold_for(law, 1, "1e-5")
    losses = LabelLosses(table_for(sigma, ORDERS))
    epsilon = needed(losses.of, histograms(votes), law=law, threshold=at, teachers=TEACHERS, delta=1e-5)
    assert 0.5 * last < epsilon < 1.005 * last
    known = tails(law, at, TEACHERS + 1)
    here = losses.of(histograms(votes), known.distance_for(0.9) - 1) * UNIT
    assert float(epsilons(here, ORDERS, known, 1e-5)) == pytest.approx(epsilon, abs=1e-7)


def test_all_analyses_side_by_side() -> None:
    votes = np.tile([[95, 3, 2], [80, 15, 5]], (20, 1))
    names = ("gaussian", "theorem6", "tight", "smooth", "renyi")
    row, noisier = (not_private_curves(Case(votes, 100, sigma, 1e-4), names) for sigma in (8.0, 20.0))
    assert row["tight"] <= row["theorem6"] * 1.01
    assert row["tight"] < row["renyi"] < row["smooth"]
    assert noisier["gaussian"] < row["gaussian"]


def test_the_loop_and_the_table_agree() -> None:
    loop, ours, again = speed.run(queries=9, teachers=400, classes=4, repeats=1)
    assert ours.sensitivity == again.sensitivity
    assert loop.sensitivity * 0.999 <= ours.sensitivity <= loop.sensitivity * 1.03
    assert again.median < loop.median
    with pytest.raises(ValueError, match="at least 1"):
        speed.run(repeats=0)


def test_many_queries_take_little_memory() -> None:
    votes = speed.made_up(3000, 300, 5)
    whole = smooth.local_sums(votes, 25.0, 8.0, 300)
    parts = sum(smooth.local_sums(part, 25.0, 8.0, 300) for part in np.array_split(votes, 5))
    assert np.allclose(whole, parts, rtol=1e-12)
