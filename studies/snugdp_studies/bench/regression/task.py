"""The regression contest: mean squared errors on held-out rows.

The target is centred by its mean and divided by its largest size. A real user has to bring public bounds instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from snugdp_studies.bench.contest.report import Cell, Report, Summary, geometric
from snugdp_studies.bench.contest.run import Job, Plan
from snugdp_studies.bench.contest.tables import Floats, Split, Tables, spread
from snugdp_studies.bench.contest.task import Task
from snugdp_studies.bench.regression.methods import CONTENDERS


def made_up(rows: int, columns: int, heavy: bool = True) -> tuple[Floats, Floats]:
    """Rows of norm at most 1, evenly spread, and a linear target with noise: Student's t with 2 degrees, or uniform."""
    X, p = spread(rows, columns)
    noise = (2 * p - 1) / np.sqrt(2 * p * (1 - p)) if heavy else 2 * p - 1
    return X, X @ np.cos(np.arange(columns)) + 0.1 * noise


def target(last: Sequence[Any]) -> Floats:
    """The numbers of the last column, centred and divided by the largest size."""
    try:
        y = np.array([float(cell) for cell in last])
    except ValueError as error:
        raise ValueError(f"cannot be read ({error}): its last column must be numbers") from None
    if not np.all(np.isfinite(y)):
        raise ValueError("has missing or infinite values: fill or drop them first")
    y = y - y.mean()
    if not np.any(y):
        raise ValueError("has nothing to learn: its target is constant")
    return np.asarray(y / np.abs(y).max())


class Regression(Task):
    """Linear regression. A variant is a factor by which the bound on targets is too large."""

    name, variant, measures = "regression", "factor", ("errors", "refused")
    contenders = CONTENDERS
    tables = Tables(
        last="target in the last column",
        target=target,
        made={"synthetic": {"even": partial(made_up, 4000, 5, False), "heavy": partial(made_up, 4000, 5, True)}},
        instead='"synthetic" for two small made-up tables',
    )
    about = (
        "Rehearsals, NOT PRIVATE: seeded noise, and tables scaled with numbers taken from themselves. errors: mean "
        "squared errors on held-out rows, one for each split; seconds: the median of a fit"
    )
    notes = (
        "NOT PRIVATE: seeded noise, and tables scaled with their own moments. Columns are z-scored, rows have norm 1, "
        "the target is centred by its mean and divided by its largest size; no intercept. 60 % to fit on, 10 % public, "
        "30 % to measure the mean squared error on.",
        "All methods get the bounds, epsilon and delta, and nothing else that depends on the table, but for two: "
        "descent and ops_balanced get the number of rows to one digit, as a public guess. A refused fit predicts 0.",
        "*: the best private method. public: needs public rows of the same kind, so it is not ranked. reference: not "
        "private. ±: standard error. diffprivlib is held to pure epsilon.",
    )

    def check(self, variants: Sequence[float]) -> None:
        """The first is the bound itself."""
        if not all(factor > 1 for factor in variants[1:]):
            raise ValueError("--loose is a factor above 1: how many times too large the bound on targets is")

    def noise_key(self, job: Job) -> tuple[object, ...]:
        """Everything but the data."""
        return job.dataset, job.method, job.epsilon, job.variant, job.number

    def measure(self, answer: Floats | None, split: Split) -> tuple[float, float]:
        """The mean squared error, and whether the fit was refused: that predicts 0, as one would without a model."""
        X, y = split.test
        with np.errstate(all="ignore"):  # a peer may answer with anything
            mse = float(np.mean((y if answer is None else y - X @ answer) ** 2))
        return mse if np.isfinite(mse) else np.inf, float(answer is None)

    def title(self, cell: Cell) -> str:
        """The table, epsilon, and how loose the bound is."""
        loose = "" if cell.variant == 1 else f", bound on targets {cell.variant:g} times too large"
        return f"{cell.dataset}, epsilon {cell.epsilon:g}{loose}"

    def columns(self, cell: Cell, winner: Cell | None, group: Sequence[Cell]) -> dict[str, str]:
        """The error and what it is over the best."""
        found = {
            "error": f"{cell.mean:.4g}",
            "±": f"{cell.deviation:.1g}",
            "over best": _ratio(cell.mean / winner.mean if winner else None),
            "s per fit": f"{cell.seconds:.3f}",
        }
        if any(any(each.measured[1]) for each in group):
            found["refused"] = f"{sum(cell.measured[1]):.0f}"
        return found

    def rivals(self, group: Sequence[Cell]) -> list[Cell]:
        """All that are ranked."""
        return [cell for cell in group if self.contenders[cell.method].ranked]

    def extra(self, report: Report, method: str) -> float | None:
        """The geometric mean of its error with the loose bound over that with the tight one."""
        means = {(c.dataset, c.epsilon, c.variant): c.mean for c in report.cells if c.method == method}
        return geometric([means[d, e, f] / means[d, e, 1.0] for d, e, f in means if f != 1])

    def parts(self, variants: Sequence[float]) -> Sequence[float]:
        """Each bound apart."""
        return variants

    def part_title(self, part: float) -> str:
        """Which bound."""
        return "all cells" if part == 1 else f"bound {part:g} times"

    def summary(self, found: Summary, plan: Plan) -> dict[str, str]:
        """How near, and what a loose bound costs."""
        row = {
            "best or within 1 %": f"{found.near:.0%}",
            "error over the best peer": _ratio(found.ratio),
            "worst": _ratio(found.worst),
        }
        loose = {f"bound {factor:g} times too large costs": _ratio(found.extra) for factor in plan.variants[1:]}
        return row | loose


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value < 1000 else f"{value:.1e}"


TASK = Regression()
