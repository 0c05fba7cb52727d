"""Adapters for the vectors of bounds that are found in private, by kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

from snugdp.accounting import gaussian
from snugdp.accounting.objective import linear, removal
from snugdp.mechanisms.bounds.lengths import RowLengths
from snugdp.mechanisms.bounds.looks import grid
from snugdp.mechanisms.bounds.looks.looks import Looks
from snugdp.mechanisms.bounds.looks.zooms import Ranges, Reading
from snugdp.noise import Gaussian, tail
from snugdp.tables.passes.columns.looks import Doublings


def _cell(x: float | str) -> int:
    return int(np.argmax(Doublings().tally(np.array([float(x)]))))


def _threshold(columns: int, beta: float, cells: int, lengths: list[int], mirror: bool) -> dict[str, float]:
    sets = grid.CellSets(cells, tuple(lengths), mirror)
    return {"sets": len(sets), "z": sets.threshold(columns, beta)}


def _hull(counts: list[int], sigma: float, z: float) -> list[int] | None:
    sets = grid.doubling_sets()
    first, last = sets.hulls(np.array([counts], dtype=np.float64), sigma, sets.clear(sigma, z))
    return None if first[0] < 0 else [int(first[0]), int(last[0])]


def _first_range(hull: list[int]) -> dict[str, Any]:
    return _told(Reading.of_doublings(Ranges(*grid.ends((np.array(hull[:1]), np.array(hull[1:]))))))


def _zoom(counts: list[int], lower: float, upper: float, sigma: float, z: float) -> dict[str, Any] | None:
    ranges = Ranges(np.array([lower]), np.array([upper]))
    reading = Reading.of_bins(
        np.array([counts], dtype=np.float64), ranges, sigma, grid.bin_sets().clear(sigma, z), tails=None
    )
    return _told(reading) if reading.found[0] else None


def _told(reading: Reading) -> dict[str, Any]:
    return {
        "lower": reading.bounds.lower[0],
        "upper": reading.bounds.upper[0],
        "centre": reading.centre[0],
        "scale": reading.scale[0],
        "narrow": bool(reading.narrow[0]),
        "next": [reading.next.lower[0], reading.next.upper[0]],
    }


def _radius(counts: list[int], deviation: float, entries: int) -> float:
    return RowLengths(1 / Fraction(deviation) ** 2, 0.1).read(counts, entries)[0]


def _row_map(
    x: list[float | None], y: float, columns: list[list[Any]], target: list[float], radius: float
) -> dict[str, Any]:
    """12.6, as it is written: the product maps rows in blocks."""
    z = [
        (min(max(value, lower), upper) - centre) / scale if known and value is not None else 0.0
        for value, (lower, upper, centre, scale, known) in zip(x, columns, strict=True)
    ]
    weight = min(1.0, radius / math.hypot(*z, 1.0))
    aim = min(max((y - target[0]) / target[1], -1.0), 1.0)
    return {"x": [weight * entry for entry in (*z, 1.0)], "y": weight * aim, "weight": weight}


def _budget(epsilon: float, delta: float, features: int, shares: dict[str, float], narrow: int) -> dict[str, float]:
    part = {name: Fraction(str(share)) for name, share in shares.items()}
    whole = Fraction(linear.calibrate(epsilon, delta))
    looked = part["grid"] + part["zoom"] + 2 * part["again"]
    looks = Looks(tuple(f"x{i}" for i in range(features + 1)), (), looked * whole**2)
    before = (looked + part["radius"] + part["sizes"]) * whole**2
    run, budget = whole**2 - before, (Fraction(str(epsilon)), Fraction(str(delta)))
    return {
        "M": float(whole),
        "sigma_grid": float(looks.law(0, features + 1).sigma),
        "sigma_zoom": float(looks.law(1, features + 1).sigma),
        "sigma_again": float(looks.law(2, narrow).sigma),
        "sigma_radius": 1 / math.sqrt(part["radius"] * whole**2),
        "sigma_sizes": 1 / math.sqrt(part["sizes"] * whole**2),
        "mu_before": math.sqrt(before),
        "m": math.sqrt(run),
        "kappa": float(removal.largest_kappa(*budget, run, before)),
    }


def _level_threshold(mu_per_column: float, delta_per_column: float, rows: int) -> dict[str, float]:
    sigma = 1 / Fraction(str(mu_per_column))
    least = 1 + gaussian.threshold(sigma, delta_per_column)
    return {"threshold": least, "shown": tail(Gaussian(sigma), Fraction(least) - rows)}


def _level_recursion(mu: float, delta: float, rows: int) -> float:
    """The product shows levels with their counts, for which the threshold is as good: it has no use for this rule."""
    with mp.workdps(50):
        step, lost, chance = mp.mpf(str(mu)), mp.mpf(str(delta)), mp.mpf(0)

        def moved(p: Any) -> Any:
            return mp.ncdf(-mp.sqrt(2) * mp.erfinv(1 - 2 * p) + step) if 0 < p < 1 else p

        for _ in range(rows):
            chance = min(lost + moved(chance), moved(min(chance + lost, mp.mpf(1))), mp.mpf(1))
        return float(chance)


BOUNDS: Mapping[str, Callable[..., Any]] = {
    "grid_cell": _cell,
    "set_threshold": _threshold,
    "bounds_budget": _budget,
    "grid_hull": _hull,
    "first_range": _first_range,
    "zoom_read": _zoom,
    "radius_read": lambda counts, deviation, entries: RowLengths(1 / Fraction(deviation) ** 2, 0.1).read(
        counts, entries
    )[0],
    "row_map": _row_map,
    "level_threshold": _level_threshold,
    "level_recursion": _level_recursion,
}
