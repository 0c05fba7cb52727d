"""The tables of the benchmark of principal components: digits, and made-up rows with a known spectrum."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import Gaussian, Simulation
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.points import MatrixSchema, MatrixSource
from snugdp.tables.passes.scatter import Scatter
from snugdp.tables.rows import Rows

Floats = NDArray[np.float64]

DIGITS = "digits"
_MADE_UP: dict[str, tuple[int, int, tuple[float, ...], float]] = {  # rows, entries, leading variances, the others
    "spiked": (20_000, 50, (1.0,), 0.001),
    "flat": (20_000, 50, (1.0, 1.0, 1.0), 0.001),
    "graded 3:2:1": (20_000, 50, (3.0, 2.0, 1.0), 0.001),
    "graded 9:4:1": (20_000, 50, (9.0, 4.0, 1.0), 0.001),
    "flat, 2,000 rows": (2_000, 50, (1.0, 1.0, 1.0), 0.001),
    "flat with a floor": (20_000, 20, (1.0, 1.0, 1.0), 0.4),
}
CASES: dict[str, tuple[int, ...]] = {  # numbers of components
    DIGITS: (1, 3, 5),
    "spiked": (1,),
    "flat": (3,),
    "graded 3:2:1": (3,),
    "graded 9:4:1": (2, 3),
    "flat, 2,000 rows": (3,),
    "flat with a floor": (3,),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of norm 1 and what is true of them, in units of one row."""

    name: str
    rows: Floats
    layout: MatrixSchema
    data: Secret[Scatter] = field(repr=False)
    matrix: Floats
    spectrum: Floats

    def lost(self, vectors: Floats) -> float:
        """The part of the leading sum of squares that these vectors miss."""
        k = vectors.shape[1]
        return float(self.spectrum[:k].sum() - np.trace(vectors.T @ self.matrix @ vectors))

    def gap(self, k: int) -> float:
        """How far the k-th eigenvalue is above the next."""
        return float(self.spectrum[k - 1] - self.spectrum[k])


@lru_cache(maxsize=16)
def sample(name: str) -> Sample:
    """The table of this name. It is made once: its exact sums are kept."""
    rows = _digits() if name == DIGITS else _normal(*_MADE_UP[name])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    layout = MatrixSchema(tuple(f"x{place}" for place in range(rows.shape[1])), 1)
    matrix = rows.T @ rows
    table = Scatter(Rows(MatrixSource(rows, layout), layout, progress=False))
    return Sample(name, rows, layout, Secret(table), matrix, np.linalg.eigvalsh(matrix)[::-1])


def _digits() -> Floats:
    sets: Any = importlib.import_module("sklearn.datasets")
    return np.asarray(sets.load_digits().data, dtype=np.float64)


def _normal(rows: int, entries: int, leading: tuple[float, ...], floor: float) -> Floats:
    """Independent normal entries, those of the leading directions larger."""
    zeros = Secret(np.zeros(rows * entries, dtype=np.int64))
    drawn = np.array(Simulation(rows + entries).add_integers(zeros, Gaussian(1 << 20)), dtype=np.float64)
    deviations = np.sqrt(np.array([*leading, *[floor] * (entries - len(leading))]))
    table: Floats = drawn.reshape(rows, entries) * deviations
    return table
