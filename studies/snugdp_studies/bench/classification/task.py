"""The classification contest: log-loss and share of wrong classes on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from snugdp_studies.bench.classification.methods import CONTENDERS
from snugdp_studies.bench.contest.report import Cell, Report, Summary
from snugdp_studies.bench.contest.run import Job, Plan
from snugdp_studies.bench.contest.tables import Floats, Scaling, Split, Tables, spread
from snugdp_studies.bench.contest.task import Task

Labels: TypeAlias = NDArray[np.int64]

MAX_CLASSES = 50
_LEAST = 1e-15  # a probability that is not 0


def made_up(rows: int, columns: int, classes: int = 2, slope: float = 4.0) -> tuple[Floats, Labels]:
    """Rows of norm at most 1, evenly spread, and labels from a logistic model; with a small slope the last is rare."""
    X, p = spread(rows, columns)
    noisy = slope * X @ np.cos(np.arange(columns)) * np.sqrt(columns) / 2 + np.log(p / (1 - p))
    edges = np.linspace(-2, 2, classes + 1)[1:-1] + (0.0 if slope > 3 else 2.0)
    return X, np.digitize(noisy, edges).astype(np.int64)


def built_in(name: str) -> tuple[Floats, Labels]:
    """A table that comes with scikit-learn."""
    from sklearn import datasets

    bunch: Any = getattr(datasets, f"load_{name.partition('-')[0]}")()
    X, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target)
    return X, y % 2 if name.endswith("-odd") else y


def target(last: Sequence[Any]) -> Labels:
    """Labels 0, 1, ... in the order of what stands in the last column."""
    classes, labels = np.unique(last, return_inverse=True)
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise ValueError(f"has {len(classes)} labels in its last column: 2 to {MAX_CLASSES} are needed")
    return np.asarray(labels, dtype=np.int64)


def measured(chances: Floats, labels: Labels) -> tuple[float, float]:
    """Mean log-loss and share of wrong classes. What is not a number is a probability of 0.

    >>> measured(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0]))
    (1.0397207708399179, 0.5)
    """
    known = np.nan_to_num(chances, nan=0.0)
    logs = np.log(np.clip(known[np.arange(len(labels)), labels], _LEAST, 1.0))
    return float(-np.mean(logs)), float(np.mean(np.argmax(known, axis=1) != labels))


class Classification(Task):
    """Logistic regression. A variant is a way to scale the rows."""

    name, variant, measures = "classification", "scaling", ("log_loss", "wrong")
    contenders = CONTENDERS
    tables = Tables(
        last="label in the last column, as text or a number",
        target=target,
        made={
            "synthetic": {
                "even": partial(made_up, 6000, 5),
                "rare": partial(made_up, 6000, 5, slope=2.0),
                "three": partial(made_up, 6000, 6, 3),
            },
            "sklearn": {
                name: partial(built_in, name) for name in ("breast_cancer", "digits", "digits-odd", "iris", "wine")
            },
        },
        instead='"synthetic" for small made-up tables, or "sklearn" for those that come with scikit-learn',
    )
    about = (
        "Rehearsals, NOT PRIVATE: seeded noise, and tables scaled with numbers taken from themselves. log_loss and "
        "wrong: on held-out rows, one for each split; seconds: the median of a fit"
    )
    notes = (
        "NOT PRIVATE: seeded noise, and tables scaled with their own numbers. norm: columns z-scored, rows of norm 1. "
        "box: columns between -1 and 1 by their least and largest values, over the root of their number. With an "
        "intercept. 60 % to fit on, 10 % public, 30 % to measure on.",
        "All methods get the bounds, the classes, epsilon and delta, and nothing else that depends on the table, but "
        "for descent, which gets the number of rows to one digit. Its rate is the best on the made-up tables, and the "
        "best of its three lengths is known only afterwards: together they are more than one honest peer.",
        "*: the best private log-loss. public: needs public rows of the same kind, so it is not ranked. reference: not "
        "private. ±: standard error. diffprivlib is held to pure epsilon.",
    )

    def scaling(self, variant: Scaling) -> Scaling:
        """The variant itself."""
        return variant

    def check(self, variants: Sequence[str]) -> None:
        """They are known scalings."""
        if not variants or any(name not in get_args(Scaling) for name in variants):
            raise ValueError(f"--scalings are {', '.join(get_args(Scaling))}")

    def noise_key(self, job: Job) -> tuple[object, ...]:
        """Everything but the data."""
        return job.dataset, job.variant, job.method, job.epsilon, job.number

    def measure(self, answer: Floats, split: Split) -> tuple[float, float]:
        """Log-loss and share of wrong classes."""
        return measured(answer, split.test[1])

    def title(self, cell: Cell) -> str:
        """The table, its scaling and epsilon."""
        return f"{cell.dataset} ({cell.variant}), epsilon {cell.epsilon:g}"

    def columns(self, cell: Cell, winner: Cell | None, group: Sequence[Cell]) -> dict[str, str]:
        """Log-loss and accuracy."""
        return {
            "log-loss": f"{cell.mean:.4f}",
            "±": f"{cell.deviation:.1g}",
            "accuracy": f"{1 - cell.second:.4f}",
            "s per fit": f"{cell.seconds:.3f}",
        }

    def extra(self, report: Report, method: str) -> float:
        """The share of cells whose accuracy is as good as every peer's, give or take half a percent of all rows."""
        pairs = [(mine, peers) for mine, group in report.pairs(method) if (peers := self.rivals(group))]
        return float(np.mean([mine.second - min(peer.second for peer in peers) <= 0.005 for mine, peers in pairs]))

    def summary(self, found: Summary, plan: Plan) -> dict[str, str]:
        """Both shares, and log-loss over the best peer's."""
        return {
            "log-loss as good as all peers": f"{found.near:.0%}",
            "accuracy too": f"{found.extra:.0%}",
            "log-loss over the best": f"{found.ratio:.3f}",
            "worst": f"{found.worst:.3f}",
        }


TASK = Classification()
