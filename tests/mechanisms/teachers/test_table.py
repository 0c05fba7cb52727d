"""What labels cost by every analysis: the surrogate votes, and the two benchmarks in small."""

import numpy as np
import pytest

from snugdp.mechanisms.teachers import smooth_test as smooth
from snugdp.mechanisms.teachers.confident import ORDERS
from snugdp.mechanisms.teachers.table import UNIT, table_for
from snugdp.noise import DiscreteGaussian
from snugdp_studies.bench.pate import speed
from snugdp_studies.paper.pate.curves import KnownVotes, not_private_curves
from snugdp_studies.paper.pate.renyi import LabelLosses, epsilons, needed, tails, threshold_for
from tests.effort import sampled
from tests.vectors.pate import TEACHERS, histograms

CLOSED_FORM = [  # votes, sigma, the epsilon of the distance test with deviation 8 (vectors of the kind eps_table)
    ("high_200", 13.7858, 0.4409),
    ("high_200", 31.9192, 0.4994),
    ("high_200", 48.5693, 0.6847),
    ("low_200", 13.7858, 0.8105),
    ("low_200", 48.5693, 1.4520),
]


@sampled(3)
@pytest.mark.parametrize(("votes", "sigma", "closed"), CLOSED_FORM)
def test_tables_of_the_optimum_are_never_worse_than_the_closed_form(votes: str, sigma: float, closed: float) -> None:
    law = DiscreteGaussian(64)
    at = threshold_for(law, 1, "1e-5")
    losses = LabelLosses(table_for(sigma, ORDERS))
    epsilon = needed(losses.of, histograms(votes), law=law, threshold=at, teachers=TEACHERS, delta=1e-5)
    assert 0.5 * closed < epsilon < 1.005 * closed
    known = tails(law, at, TEACHERS + 1)
    here = losses.of(histograms(votes), known.distance_for(0.9) - 1) * UNIT
    assert float(epsilons(here, ORDERS, known, 1e-5)) == pytest.approx(epsilon, abs=1e-7)


@pytest.mark.slow
def test_all_analyses_side_by_side() -> None:
    votes = np.tile([[95, 3, 2], [80, 15, 5]], (20, 1))
    names = ("gaussian", "theorem6", "tight", "smooth", "renyi")
    row, noisier = (not_private_curves(KnownVotes(votes, 100, sigma, 1e-4), names) for sigma in (8.0, 20.0))
    assert row["tight"] <= row["theorem6"] * 1.01
    assert row["tight"] < row["renyi"] < row["smooth"]
    assert noisier["gaussian"] < row["gaussian"]


@pytest.mark.slow
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
