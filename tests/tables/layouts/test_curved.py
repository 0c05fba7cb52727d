"""Rows of lines and bends: the image of a row is its own, whatever its block, and curves are what they say."""

import math

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from snugdp.tables.found import Flag, FoundBounds, FoundNumber
from snugdp.tables.layouts.curved import CurvedLayout, Curves, StandardCurve, bends_between, usual_density
from snugdp.tables.schema.schema import Boolean, Number, Schema

HOSTILE = [0.0, -0.0, 1.0, -1.5, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, 3.3, 2.5, -40.0]
DECLARED = Schema(
    {**{name: Number() for name in ("a", "b", "c", "gone", "one")}, "d": Number(0, 4), "e": Boolean(), "y": Number()},
    target="y",
    missing={"a": "indicator"},
)
FOUND = {
    "a": FoundNumber(-9, 13, 0.5, 0.7, hull=(-1, 2.5)),
    "b": FoundNumber(-1e308, 1e308, 0.0, 5e-324),  # quotients overflow
    "c": FoundNumber(0, 1, 1, 0.25, hull=(0, 1)),
    "gone": FoundNumber(-1, 1, 0, 0.5, Flag.NOT_FOUND),
    "one": FoundNumber(0, 3, 0, 1, Flag.CONSTANT),
    "d": FoundNumber(0, 4, 2, 2 / 3, Flag.PUBLIC),
    "y": FoundNumber(-1, 4, 1, 1),
}


def layout_of(joint: bool = True, rows: float = 1e5, straight: tuple[str, ...] = ()) -> CurvedLayout:
    return CurvedLayout(FoundBounds(DECLARED, FOUND, rows, 2.0), True, joint, curves=Curves(6, straight, 0.2))


def rows_of(count: int, seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    cells = {name: draw.choice(HOSTILE, count) for name in DECLARED.columns if name != "e"}
    return pd.DataFrame({**cells, "e": draw.choice([True, False], count), "y": draw.normal(size=count)})


def images(layout: CurvedLayout, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    parts = [(X.copy(), y.copy()) for X, y in layout.blocks(nw.from_native(frame, eager_only=True)) if y is not None]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


@pytest.mark.parametrize("joint", [True, False])
def test_the_image_of_a_row_is_its_own(joint: bool) -> None:
    layout = layout_of(joint)
    for seed in range(5):
        frame = rows_of(40, seed)
        X, y = images(layout, frame)
        shuffled = np.random.default_rng(seed).permutation(40)
        for kept in (shuffled, shuffled[:1], shuffled[3:9]):
            part, target = images(layout, frame.iloc[kept])
            np.testing.assert_array_equal(part, X[kept])
            np.testing.assert_array_equal(target, y[kept])


@pytest.mark.parametrize("joint", [True, False])
def test_a_curved_row_has_as_many_entries_as_names(joint: bool) -> None:
    layout = layout_of(joint)
    X, _ = images(layout, rows_of(3, 1))
    assert X.shape[1] == len(layout.features) == len(set(layout.features))
    assert set(layout.curved) == {"a", "c", "d"}
    assert set(layout_of(joint, straight=("a",)).curved) == {"c", "d"}
    assert layout.curved["a"][1].tails == (True, True)
    assert layout.curved["d"][1].tails == (False, False)


def test_coefficients_are_the_function_that_rows_are_read_with() -> None:
    layout = layout_of()
    frame = pd.DataFrame({name: [0.0, 0.0, 0.0] for name in DECLARED.columns})
    frame["a"], frame["e"] = [-1.6, 0.31, 2.6], True
    theta = np.random.default_rng(3).normal(size=len(layout.features))
    (X,) = layout.predictors(nw.from_native(frame, eager_only=True))
    with np.errstate(all="ignore"):  # one column has a scale near 0
        shown = layout.coefficients(theta)
    given = dict(zip(shown.names, shown.values.tolist(), strict=True))
    kind = layout.curved["a"][1].kind
    knots = np.array([given[f"a at {knot:.6g}"] for knot in kind.knots])
    first, last = kind.knots[0], kind.knots[-1]
    expected = [
        np.interp(x, kind.knots, knots)
        + given[f"a below {first:.6g}"] * min(x - first, 0)
        + given[f"a above {last:.6g}"] * max(x - last, 0)
        for x in frame["a"]
    ]
    _, half = layout.target_units
    np.testing.assert_allclose(np.diff(half * (X @ theta)), np.diff(expected), rtol=1e-9)


def test_bends_are_unrelated_to_the_line() -> None:
    for low, high in ((-1.73, 1.73), (-3.0, 3.0), (-0.8, 3.0), (-0.2, 0.3)):
        bends = bends_between(16, low, high)
        z, weights = usual_density(low, high)
        place = (z - low) * (16 / (high - low))
        hats = np.maximum(0, 1 - np.abs(place[:, None] - np.arange(17)))
        on_rows = hats @ bends.images
        np.testing.assert_allclose(weights @ on_rows, 0, atol=1e-9)
        np.testing.assert_allclose((weights * z) @ on_rows, 0, atol=1e-9)
        turned = on_rows @ bends.turned
        np.testing.assert_allclose(turned.T @ (weights[:, None] * turned), np.diag(bends.squares), atol=1e-9)
    z, weights = usual_density(-3.0, 3.0)
    assert weights @ z == pytest.approx(0, abs=1e-6)
    assert weights @ z**2 == pytest.approx(1, abs=0.1)


def test_bends_are_shorter_where_rows_are_few() -> None:
    lengths = [layout_of(rows=rows).bend for rows in (1.0, 1e2, 1e3, 1e9)]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (0.02, 1.0)
    scale = layout_of().curved["a"][1]
    assert isinstance(scale, StandardCurve)
    out = np.empty((scale.width, 500))
    scale.write(np.linspace(-20, 20, 500), out)
    assert (out**2).sum(axis=0).max() <= scale.longest
