"""Adapters for the vectors of splines, of class means and of many classes, by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from snugdp.accounting.objective.corners import sparsemax
from snugdp.mechanisms.objective.class_means import ClassMeans, narrower, octaves
from snugdp.tables.schema.hats import knot_images, smooth_factor
from tests.accounting.objective.corner_laws import corner, removal_delta
from tests.accounting.objective.test_corners import removal_loss


def _images(cells: int, smooth: float, order: int) -> tuple[Any, Any]:
    """R and the images of the knots: the product's for first differences, by a formula for others."""
    if order == 1:
        diagonal, beside = smooth_factor(cells, smooth)
        return np.diag(diagonal) + np.diag(beside, 1), knot_images(cells, smooth)
    D = np.diff(np.eye(cells + 1), n=order, axis=0)
    R = np.linalg.cholesky(np.eye(cells + 1) + smooth * D.T @ D).T
    inverse = np.linalg.inv(R)
    return R, inverse / np.linalg.norm(inverse, axis=1).max()


def _factor(cells: int, smooth: float, order: int) -> dict[str, Any]:
    R, images = _images(cells, smooth, order)
    return {"factor": R.tolist(), "longest": 1 / (R[-1, -1] * images[-1, -1])}


def _row(values: list[float], cells: int, smooth: float, order: int) -> list[float]:
    images = _images(cells, smooth, order)[1] / math.sqrt(len(values))
    places = [min(max(value, 0.0), 1.0) * cells for value in values]
    return [
        float(np.interp(place, range(cells + 1), images[:, entry])) for place in places for entry in range(cells + 1)
    ]


def _shape(sums: list[list[float]], deviation: float) -> dict[str, Any]:
    means = ClassMeans.read(np.array(sums), deviation)
    return {
        "rows": means.rows,
        "log_shares": np.log(means.shares).tolist(),
        "deviations": means.means.tolist(),
        "signal": means.signal,
    }


def _temperature(guess: float, signs: list[int]) -> float:
    ends = octaves(guess)
    for sign in signs:
        ends = narrower(ends, steep=sign > 0)
    return float(2.0 ** (sum(ends) / 2))


def _removal_loss(  # noqa: PLR0917
    rows: list[Any], row: list[Any], theta: list[list[float]], sigma: float, ridge: float, x_bound: float
) -> dict[str, float]:
    """Rows are shorter than 1, in units of their bound."""
    everybody = [*rows, row]
    x = np.array([each[0] for each in everybody]) / x_bound
    labels = np.array([each[1] for each in everybody])
    loss, bound = removal_loss(x, labels, np.array(theta) * x_bound, sigma / x_bound, ridge / x_bound**2)
    return {"loss": loss, "bound": bound}


def _corner(classes: int, m: float, kappa: float, t: float) -> float:
    return corner(float(t), classes, m, kappa)


def _ridge(  # noqa: PLR0917
    sigma: float, mean: float, y_bound: float, x_bound: float, rows: float, entries: int, least: float
) -> float:
    """The product's ridge follows the budget alone; this one, of the notes, follows released sizes of targets too."""
    noise = sigma / (mean * y_bound)
    return max(least, x_bound**2 / 2, x_bound * noise / 3, noise**2 * entries / rows)


FRONTIER: Mapping[str, Callable[..., Any]] = {
    "sparsemax_loss": sparsemax,
    "softmax_removal_loss": _removal_loss,
    "softmax_corner": _corner,
    "softmax_removal_delta": removal_delta,
    "regression_ridge": _ridge,
    "smooth_map": _factor,
    "additive_row": _row,
    "class_shape": _shape,
    "temperature": _temperature,
}
