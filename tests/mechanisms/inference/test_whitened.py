"""Fits with intervals: what they cost, whatever is found; what is drawn; and whether intervals cover."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp import Boolean, Budget, Cost, Number, Schema, Simulation
from snugdp.mechanisms.inference.glm import WhitenedGLM
from snugdp.mechanisms.inference.line import WhitenedLine
from snugdp.mechanisms.inference.whitening import WhitenedFit, least_error, radius_from_counts
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.adaptive import Adaptive
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.tables.losses.losses import Logistic, Softmax, TamedPoisson
from snugdp.tables.rows import Rows
from tests.effort import often, repeated, sampled

BUDGET, BESIDE = Budget(1, 1e-6), Fraction(1, 100)
LINE = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-8, 8)}, target="y")
LABELS = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Boolean()}, target="y")


def basis(entries: int, directions: int) -> Any:
    return tuple(map(tuple, np.eye(entries)[:, :directions].tolist()))


def methods(beside: Fraction = Fraction(0), **given: Any) -> list[WhitenedLine | WhitenedGLM]:
    line, labels = Design.of(LINE), Design.of(LABELS)
    return [
        WhitenedLine(line, BUDGET, beside, **given),
        WhitenedGLM(labels, BUDGET, losses=(Logistic(),), beside=beside, **given),
        WhitenedGLM(line, BUDGET, losses=(TamedPoisson(10, 5),), beside=beside, **given),
        WhitenedLine(line, BUDGET, beside, **given, intervals=False),
    ]


@sampled(2)
@pytest.mark.parametrize("beside", [Fraction(0), BESIDE])
def test_the_cost_is_the_same_for_every_basis_and_fits_the_budget(beside: Fraction) -> None:
    for one, other in zip(methods(beside), methods(beside, basis=basis(3, 2)), strict=True):
        assert one.plan().cost == other.plan().cost
        assert (one.plan().cost + Cost(mu_squared=beside)).fits(BUDGET)
        more = Cost(mu_squared=beside + one.plan().cost.mu_squared / 4)
        assert not (one.plan().cost + more).fits(BUDGET), "nothing of the budget is left"


def test_the_run_that_is_made_is_the_one_that_was_planned() -> None:
    for method in methods(BESIDE, basis=basis(3, 2)):
        planned = next(step for step in method.plan().steps if step.id == "release").cost
        run = method._run if isinstance(method, WhitenedGLM) else method._run(_sizes(0.01))
        other = method._run if isinstance(method, WhitenedGLM) else method._run(_sizes(0.9))
        assert run.design.entries == 2
        assert run.cost == other.cost == planned


def _sizes(mean: float) -> Any:
    from snugdp.mechanisms.objective.adaptive import Sizes

    return Sizes(1000.0, mean, 1.2)


@pytest.mark.parametrize("beside", [Fraction(1), Fraction(1, 10)])
def test_nothing_is_left_beside_too_much(beside: Fraction) -> None:
    with pytest.raises(ValueError, match="too small"):
        WhitenedLine(Design.of(LINE), BUDGET, beside)


def test_what_no_theorem_speaks_of_is_refused() -> None:
    for losses in ((Softmax(3),), (Logistic(), Logistic())):
        with pytest.raises(ValueError, match="two classes and for counts"):
            WhitenedGLM(Design.of(LABELS), BUDGET, losses=losses)
    for budget in (Budget(1, 0), Budget(1, 1e-6, "replace")):
        with pytest.raises(ValueError, match=r"delta|add_remove"):
            WhitenedLine(Design.of(LINE), budget)
    with pytest.raises(ValueError, match="basis"):
        WhitenedLine(Design.of(LINE), BUDGET, basis=basis(2, 2))


def table(seed: int, n: int, *, labels: bool = False, apart: float = 1.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, n)
    b = (1 - apart) * a + apart * rng.uniform(-1, 1, n)
    linear = a - 0.5 * b + 0.25
    y: Any = rng.random(n) < 1 / (1 + np.exp(-linear)) if labels else linear + rng.normal(size=n)
    return pl.DataFrame({"a": a, "b": b, "y": y})


def fitted(method: Any, frame: pl.DataFrame, schema: Schema, seed: int) -> WhitenedFit:
    outcome = method.fit(Secret(Rows(frame, schema)), ReleaseContext(Simulation(seed)))
    assert isinstance(outcome.value, WhitenedFit)
    return outcome.value


@pytest.mark.slow
@repeated
def test_intervals_cover_whatever_the_shape_of_the_rows() -> None:
    """Collinear columns, too. Of the slopes fewer than nine in ten would be very rare."""
    inside, runs = [], often(4, 20, 60)
    for seed in range(runs):
        for labels, apart in ((False, 1.0), (False, 0.1), (True, 1.0)):
            schema = LABELS if labels else LINE
            method = methods()[1 if labels else 0]
            fit = fitted(method, table(seed, 4000, labels=labels, apart=apart), schema, seed)
            for slope, truth in ((0, 1.0), (1, -0.5)):
                row = np.array([schema.coefficients(unit).values[slope] for unit in np.eye(3)])
                row -= schema.coefficients(np.zeros(3)).values[slope]
                scale = 1.0 if not labels else 1 / schema.target_units[1]
                assert fit.equation is not None
                found = fit.equation.contrast(fit.directions.T @ row * scale)
                inside.append(found.lower <= truth <= found.upper)
    assert sum(inside) >= {4: 20, 20: 104, 60: 328}[runs], f"{sum(inside)} of {len(inside)}"


def test_few_rows_say_nothing() -> None:
    fit = fitted(methods()[0], table(1, 40), LINE, 1)
    assert fit.equation is not None
    found = fit.equation.contrast(fit.directions.T @ np.array([1.0, 0.0, 0.0]))
    assert not found.is_bounded
    assert np.isfinite(fit.theta).all()


def test_without_intervals_the_run_has_their_share_and_loose_bounds_cost_little() -> None:
    wide = Schema({"a": Number(-20, 20), "b": Number(-20, 20), "y": Number(-8, 8)}, target="y")
    frame, design = table(1, 4000), Design.of(wide)
    with_them, without = (WhitenedLine(design, BUDGET, intervals=told) for told in (True, False))
    more, fewer = with_them.plan().steps, without.plan().steps
    assert [step.id for step in more if step not in fewer] == ["centre", "release", "errors"]
    assert [step.id for step in fewer if step not in more] == ["centre", "squares", "release", "level"]
    assert without.plan().proposal["m"] > with_them.plan().proposal["m"]
    fit = fitted(without, frame, wide, 1)
    assert fit.equation is None
    plain = Adaptive(design, BUDGET).fit(Secret(Rows(frame, wide)), ReleaseContext(Simulation(1))).value
    assert plain is not None
    whitened, unwhitened = (
        np.abs(np.array(wide.coefficients(each.theta).values)[:2] - [1.0, -0.5]).max() for each in (fit, plain)
    )
    assert whitened < 0.1 < unwhitened


def test_rows_of_another_design_end_like_any_private_failure() -> None:
    other = Schema({"a": Number(-1, 1), "y": Number(-8, 8)}, target="y")
    with pytest.raises(PrivateComputationError):
        methods()[0].fit(Secret(Rows(table(1, 10), other)), ReleaseContext(Simulation(1)))


def test_the_radius_is_one_that_about_a_share_of_the_rows_exceed() -> None:
    lengths = np.sort(np.random.default_rng(4).lognormal(-2, 0.5, 20_000).clip(0, 1))
    edges = 2.0 ** -(np.arange(33) / 2)
    counts = [int(((lengths < high) & (lengths >= low)).sum()) for high, low in pairwise(edges)]
    for share in (0.02, 0.5):
        radius = radius_from_counts(counts, 1.0, top=1.0, rows=20_000, fraction=share, per_octave=2)
        beyond = (lengths >= radius).mean()
        assert beyond <= share < (lengths >= radius / 2**0.5).mean()
    assert radius_from_counts([0] * 32, 1.0, top=1.0, rows=10, fraction=0.5, per_octave=2) == 1.0


def test_where_noise_hides_how_long_rows_are_the_gram_matrix_tells_it() -> None:
    """Rows that stayed as short as they are would tell less than the ridge."""
    radii = [fitted(methods()[0], table(seed, 150), LINE, seed).released["radius"] for seed in range(1, 7)]
    assert max(radii) < 0.4, "rows are 0.2 to 0.35 long, and 1 is the longest there might be"
    assert fitted(methods()[0], table(1, 1), LINE, 1).released["radius"] >= 0.125, "nor stretched without end"


@pytest.mark.parametrize("which", [0, 1])
def test_the_plan_says_with_how_many_rows_intervals_are_bounded(which: int) -> None:
    """Of a line and of labels: most with so many rows, few with a sixth or a third of them."""
    method, schema = methods()[which], (LINE, LABELS)[which]
    rows = next(note.params["rows"] for note in method.plan().forecast.notes if note.code == "intervals-bounded")

    def bounded(n: int) -> float:
        seen = []
        for seed in range(8):
            fit = fitted(method, table(seed, n, labels=which == 1), schema, seed)
            assert fit.equation is not None
            seen += [fit.equation.contrast(fit.directions.T @ row).is_bounded for row in np.eye(3)[:2]]
        return float(np.mean(seen))

    assert bounded(int(rows)) > 0.7
    assert bounded(int(rows) // (6, 3)[which]) < 0.4


@pytest.mark.parametrize("wide", [1, 2**0.5, 5])
def test_the_radius_of_labels_is_about_the_length_of_the_longest_rows(wide: float) -> None:
    """Noise is made for it: in the steps of lines it would be up to 1.4 times too long, in half of them 1.2 times."""
    schema = Schema({"a": Number(-wide, wide), "b": Number(-wide, wide), "y": Boolean()}, target="y")
    frame = table(1, 20_000, labels=True)
    fit = fitted(WhitenedGLM(Design.of(schema), BUDGET, losses=(Logistic(),)), frame, schema, 1)
    X, _ = next(schema.blocks(nw.from_native(frame, eager_only=True)))
    lengths = np.linalg.norm(X @ fit.directions, axis=1)
    assert np.mean(lengths > 1) < 0.1
    assert np.quantile(lengths, 0.98) > 0.8


def test_rare_long_rows_are_not_shortened_where_they_tell_the_most() -> None:
    """Levels that one row in twenty has: at half of the rows, nearly all of what they tell would be cut off."""
    counts = [0.0] * 32
    counts[6], counts[14] = 1000.0, 19_000.0  # lengths of about 0.1 and 0.007
    least = radius_from_counts(counts, 0.03, top=1.0, rows=20_000, fraction=0.5, per_octave=2)
    assert least_error(counts, 0.03, least, 20.0) > 8 * least
    noisy = [4.4 / 0.03, *counts[1:6], 0.0, *counts[7:]]
    assert least_error(noisy, 0.03, least, 20.0) == least, "noise in the first bin is no row"
    assert least_error([0.0] * 32, 0.03, 0.25, 20.0) == 0.25
    assert least_error(counts, 0.03, least, 1e9) == least, "where noise is all there is, it counts"
