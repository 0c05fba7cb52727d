"""The weights of the constant, the lines and the bends of a line that was released."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from snugdp import AdditiveClassifier, AdditiveRegressor, Budget, Number, Schema, Simulation
from snugdp.core.guarantee import Cost
from snugdp.estimators.methods.linear import METHODS
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.linear.weighing import LineParts, Weighing
from snugdp.mechanisms.objective.adaptive import Adaptive
from snugdp.noise import Noise
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.whitened import WhitenedRows
from snugdp.tables.losses.losses import Huber
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows

SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-8, 8)}, target="y", intercept=False)
DESIGN = Design.of(SCHEMA)
ENTRIES = LineParts(None, (1,))


def drawn(theta: Any, parts: LineParts = ENTRIES, size: float = 0.1) -> Any:
    """Of y = a + b/2, by a line that was released before; with hardly any noise."""
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (2, 20_000))
    table = Rows(pl.DataFrame({"a": a, "b": b, "y": a + b / 2}), SCHEMA)
    noise: Noise = Simulation(1)
    return Weighing(DESIGN, Fraction(10)).draw(Secret(table), np.array(theta), parts, size, noise)


def test_each_part_gets_the_weight_that_least_squares_gives_it() -> None:
    right, _ = drawn([1.0, 0.5])
    found, weights = drawn([0.8 * right[0], 2 * right[1]])
    assert found == pytest.approx(right, rel=0.02)
    assert weights["lines_weight"] == pytest.approx(1.25, rel=0.02)
    assert weights["bends_weight"] == pytest.approx(0.5, rel=0.02)
    assert right[0] == pytest.approx(2 * right[1], rel=0.02)


def test_a_long_row_is_shortened_with_its_target() -> None:
    right, _ = drawn([1.0, 0.5])
    found, _ = drawn([0.8 * right[0], 1.2 * right[1]], size=0.02)
    assert found == pytest.approx(right, rel=0.05)


def test_one_row_moves_both_sums_by_no_more_than_the_noise_is_made_for() -> None:
    """For any line, size and row: those of line 2, and the sums of lines 3 and 4."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        cells = rng.normal(size=(rng.integers(1, 6), 3)) * 10.0 ** rng.integers(-6, 6, 3)
        cells[rng.random(cells.shape) < 0.2] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e308])
        frame = pl.DataFrame(cells, schema=["a", "b", "y"])
        unit = float(10.0 ** rng.uniform(-5, 0))
        matrix, _ = ENTRIES.directions(rng.normal(size=2) * 10.0 ** rng.integers(-6, 12), unit)
        turned = [
            WhitenedRows(Rows(part, SCHEMA), tuple(map(tuple, matrix.tolist())), "shorten")
            for part in (frame, frame[:-1])
        ]
        work = FixedGradient(turned[0].schema, rng.normal(size=2).tolist(), Huber(Fraction(max(2 * unit, 1e-5))))
        moved = [
            np.array(one, dtype=object) - np.array(other, dtype=object)
            for one, other in (
                [table.moments().gram() for table in turned],
                [table.state(work).cross() for table in turned],
            )
        ]
        limits = Design(RowMap(2, 1, DESIGN.y_bound)).row_map.limits.sensitivity("add_remove")
        assert (moved[0] ** 2).sum() <= limits.gram_squared
        assert (moved[1] ** 2).sum() <= work.limits.sensitivity("add_remove").cross_squared


def test_without_bends_nothing_is_weighed() -> None:
    x = np.random.default_rng(1).uniform(0, 3, (3000, 1))
    for effects, weighed in (("both", True), ("line", False), ("curve", False)):
        model = AdditiveRegressor(epsilon=4, noise=Simulation(1), effects=effects).fit(x, x[:, 0] ** 2)
        assert ("bends_weight" in model.details_) is weighed


def test_a_line_of_nothing_stays_nothing_and_no_weight_is_zero_or_large() -> None:
    theta, weights = drawn([0.0, 0.0])
    assert theta.tolist() == [0.0, 0.0]
    assert all(1 / 16 <= weight <= 4 for weight in weights.values()), "that of noise"
    assert drawn([1.0, -3.0])[1]["bends_weight"] == 1 / 16
    assert np.isfinite(drawn([1e9, -1e9], size=0.0)[0]).all()


def test_a_plan_pays_for_the_weights_and_its_cost_is_that_of_all_rows() -> None:
    for name in ("auto", "adaptive"):
        after = METHODS[name].after
        assert after is not None
        given: dict[str, Any] = {"beside": Fraction(1, 100), "found_rows": 1000.0}
        given |= {"entries": 0} if name == "auto" else {}
        methods: list[Any] = [
            after(DESIGN, Budget(1, 1e-6), parts=parts, **given) for parts in (ENTRIES, LineParts(1.0, ()))
        ]
        plans = [method.plan() for method in methods]
        assert plans[0].cost == plans[1].cost == methods[0].cost
        assert (plans[0].cost + Cost(mu_squared=Fraction(1, 100))).fits(Budget(1, 1e-6))
        (step,) = (step for step in plans[0].steps if step.id == "weights")
        assert step.cost.mu_squared > 0
        assert after(DESIGN, Budget(1, 1e-6), **given).plan().steps[-1].id == "release"


def test_rows_of_persons_are_not_weighed() -> None:
    persons = Design(DESIGN.row_map, weight=4)
    method = Adaptive(persons, Budget(1, 1e-6), Fraction(1, 100), least_squares=False, parts=ENTRIES)
    assert all(step.id != "weights" for step in method.plan().steps)
    with pytest.raises(ValueError, match="not proved for persons"):
        Weighing(persons, Fraction(1))


def test_skewed_targets_have_their_mean_and_labels_are_not_weighed() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 3, 8000)
    y = np.exp(x + rng.normal(0, 1, 8000))
    model = AdditiveRegressor(epsilon=4, noise=Simulation(1)).fit(x[:, None], y)
    assert {"lines_weight", "bends_weight"} <= set(model.details_)
    assert abs(np.mean(model.predict(x[:, None]) - y)) < 0.2 * y.mean()
    labels = AdditiveClassifier(epsilon=4, noise=Simulation(1), classes=[False, True]).fit(x[:, None], y > 5)
    assert "bends_weight" not in labels.details_
