"""How much the parts of a line count, once it was released: a step of least squares in a few directions.

A robust run with many entries has a tight scale, and pulls towards medians; its ridge pulls bends to nothing, and bends
share the constant. A line, its bends and the constant are three directions: next to no noise falls on them.
Proof: ``weighing.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Cost
from snugdp.mechanisms.linear.base import Design, of_design
from snugdp.mechanisms.linear.noisy_sums import Gradients, noisy_gradient, noisy_gram
from snugdp.mechanisms.linear.sufficient import FitUnits, NoisySpectrum, gradient_floats, gram_floats
from snugdp.noise import Noise
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.whitened import WhitenedRows
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows

Floats = NDArray[np.float64]

# Chosen on one half of the tables of R packages: docs/benchmarks.md.
_CLIP = 2.0  # of a residual, in mean sizes of a target
_LONG = (1.0, 0.5)  # what lines and bends say of a row, in mean sizes, at which it is as long as one may be
_ROOT = math.sqrt(2)  # a row of a usual length is no longer than 1
_RIDGE = 1.5  # times the norm of the noise of the matrix
_START = 0.5  # of bends: what they count for as long as nothing is told
_LEAST_SIZE = 2.0**-18  # of a target, in parts of its bound
_LEAST_WEIGHT, _MOST_WEIGHT = 2.0**-4, 4.0


@dataclass(frozen=True)
class LineParts:
    """The entries of a line that count together. ``constant``: what the last entry is in every row, if it is one.

    ``bends``: entries that may count more or less than the others, which are lines.
    """

    constant: float | None
    bends: tuple[int, ...]

    def directions(self, theta: Floats, unit: float) -> tuple[Floats, Floats]:
        """The constant, the lines and the bends, one in each column; and how much of them the line has."""
        constant, bends = self.constant, np.zeros(len(theta), dtype=np.bool_)
        bends[list(self.bends)] = True
        lines = ~bends
        columns, at = list[Floats](), list[float]()
        if constant is not None:
            lines[-1] = False
            columns.append(np.eye(len(theta))[-1] / (constant * _ROOT))
            at.append(float(theta[-1]) * constant * _ROOT)
        for part, long in ((lines, _LONG[0]), (bends, _LONG[1])):
            columns.append(np.where(part, theta, 0.0) / (long * unit * _ROOT))
            at.append(long * unit * _ROOT)
        return np.column_stack(columns), np.array(at)

    def start(self, at: Floats) -> Floats:
        """Where the step begins."""
        return np.concatenate([at[:-1], _START * at[-1:]])

    def weighed(self, theta: Floats, moves: Floats, found: Floats, at: Floats) -> tuple[Floats, dict[str, float]]:
        """The line after the step; no weight is 0, and none very large."""
        weights = np.clip(found[-2:] / at[-2:], _LEAST_WEIGHT, _MOST_WEIGHT)
        whole = np.concatenate([found[:-2], weights * at[-2:]])
        return theta + moves @ (whole - at), {"lines_weight": float(weights[0]), "bends_weight": float(weights[1])}


@dataclass(frozen=True)
class Weighing:
    """The weights of the constant, the lines and the bends of a line that was released before.

    Guarantee: ``cost``, when one row comes or goes, for any line and any size that were released before
    (``weighing.proof.md``, Theorem 1).
    """

    design: Design
    mu: Fraction

    def __post_init__(self) -> None:
        self.design.require_single_rows("weighing the parts of a line")

    @property
    def cost(self) -> Cost:
        """Of both releases."""
        return Cost(mu=self.mu)

    @property
    def step(self) -> Step:
        """The step of a plan."""
        return Step("weights", StepKind.RELEASE, StepNoise("weights-of-parts", "gaussian"), self.cost)

    def draw(
        self, data: Secret[Rows], theta: Floats, parts: LineParts, size: float, noise: Noise
    ) -> tuple[Floats, dict[str, float]]:
        """The line with its parts weighed, and their weights. ``size``: the mean one of targets, in bounds on them."""
        half, bound = self.mu**2 / 2, self.design.y_bound
        unit = max(size, _LEAST_SIZE) * float(bound)
        moves, at = parts.directions(theta, unit)  # 1
        matrix, design = tuple(map(tuple, moves.tolist())), Design(RowMap(len(at), 1, bound))
        rows = data.map(lambda table: WhitenedRows(of_design(table, self.design), matrix, "shorten"))  # 2
        spectrum = NoisySpectrum.of(gram_floats(noisy_gram(rows, design, half, noise.at("matrix")), design))  # 3
        clip, place = min(Fraction(_CLIP * unit), bound), noise.at("gradient")
        work = Gradients.of(rows, design, place).at(parts.start(at).tolist(), clip)
        cells, units = noisy_gradient(rows, work, half, place), FitUnits.of(design)  # 4
        uphill = gradient_floats(cells, clip, work.limits.target, design, units)
        step = units.theta(-spectrum.solve(uphill, _RIDGE * math.sqrt(2 * len(at) / float(half))))
        return parts.weighed(theta, moves, parts.start(at) + step, at)  # 5
