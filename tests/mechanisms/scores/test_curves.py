"""ROC and calibration curves from noisy counts."""

from itertools import pairwise

import numpy as np

from snugdp.mechanisms.scores.curves import Placement, ScoreBins, distribution
from snugdp.mechanisms.scores.intervals import WHOLE


def test_the_area_is_exact_for_densities_that_are_straight_lines() -> None:
    """Lemma 1 of the slopes: P(X > Y) for densities 1 + s(x - 1/2) is 1/2 + (s_p - s_q)/12, in any number of bins."""
    for s_p, s_q, number in ((1.5, -1.0, 4), (0.3, 1.9, 16), (-2.0, 2.0, 8)):
        edges = np.linspace(0, 1, number + 1)
        made = [1e9 * np.diff(edges + s * (edges**2 - edges) / 2) for s in (s_p, s_q)]
        positives, negatives = (tuple(round(count) for count in counts) for counts in made)
        bins = ScoreBins(positives, negatives, 1.0)
        assert abs(bins.area() - (0.5 + (s_p - s_q) / 12)) < 1e-6
        assert abs(bins.area(slopes=False) - bins.area()) > 1e-5


def test_a_small_class_is_said_to_be_small() -> None:
    large = (400,) * 16
    assert ScoreBins((1, -2, 3, 0) * 4, large, 8.0).small == "positive"
    assert ScoreBins(large, (-1,) * 16, 8.0).small == "negative"
    assert ScoreBins((1, -2, 3, 0) * 4, large, 8.0).area_interval() == WHOLE
    assert ScoreBins(large, large, 8.0).small is None
    assert Placement(large, 3.0, 1.0, 8.0, 8.0, 0.0).small == "positive"
    assert Placement((1,) * 16, 300.0, 100.0, 8.0, 8.0, 0.0).small == "negative"
    assert Placement(large, 3.0, 1.0, 8.0, 8.0, 0.0).interval() == WHOLE


def test_calibration_merges_bins_until_there_are_rows() -> None:
    bins = ScoreBins((0, 1, -2, 300, 0, 0, 2, 0), (2, 0, 1, 300, 1, 3, -4, 1), 8.0)
    found = bins.calibration()
    assert [(each.lower, each.upper) for each in found] == [(0.0, 1.0)]
    bins = ScoreBins((90, 0, 0, 300), (300, 1, 0, 90), 4.0)
    found = bins.calibration()
    assert [(each.lower, each.upper) for each in found] == [(0.0, 0.25), (0.25, 1.0)]
    assert abs(found[1].score - 0.875) < 0.01
    assert abs(bins.calibration_error() - np.hypot(90 / 390 - 0.125, 0.125 - 90 / 390) / np.sqrt(2)) < 0.02
    empty = ScoreBins((0,) * 4, (0,) * 4, 4.0)
    assert [each.interval for each in empty.calibration()] == [WHOLE]
    assert empty.calibration_error() == 0.0


def test_the_roc_curve_runs_from_corner_to_corner() -> None:
    found = ScoreBins((10, 20, 40), (50, 20, 5), 1.0).roc()
    assert [(p.false_positive_rate, p.true_positive_rate) for p in (found[0], found[-1])] == [(0.0, 0.0), (1.0, 1.0)]
    assert all(p.true_positive_interval[0] <= p.true_positive_rate <= p.true_positive_interval[1] for p in found)


def test_shares_never_fall_and_stay_between_0_and_1() -> None:
    for counts in ((5, -9, 3, 8), (0, 0), (-4, -1, 2), (-5, 20, -3)):
        found = distribution(counts)
        assert len(found) == len(counts) + 1
        assert found[0] == 0
        assert found[-1] == 1
        assert all(a <= b for a, b in pairwise(found))
