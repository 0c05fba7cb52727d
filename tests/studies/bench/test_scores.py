"""The benchmark of scores runs, and says what it measured."""

import math

from snugdp_studies.bench.scores import DESIGNS, ScoreDesign, run


def test_a_few_runs_of_some_designs() -> None:
    some = (DESIGNS[0], DESIGNS[9], ScoreDesign("mse", 2000, 2.0, 0.7), ScoreDesign("roc_auc", 500, 0.2, 1.0, -6.0))
    found = list(run(6, designs=some))
    assert [row.design for row in found] == list(some)
    assert found[0].error < 0.03
    assert found[1].error < 0.002
    assert all(0 <= row.population <= 1 for row in found)
    assert found[3].silent > 0.5 or math.isnan(found[3].error)
