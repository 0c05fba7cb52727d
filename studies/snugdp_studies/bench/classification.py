"""Classification beside peers: log-loss and share of wrong classes on held-out rows, and fit times.

What a contender gets is fixed for all tables: nothing is tuned to one. A fit gives the probabilities of all classes for
the test rows.
"""

import importlib
import math
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from snugdp.accounting import gaussian
from snugdp.estimators.logistic import LogisticRegression
from snugdp.noise import Gaussian, Simulation
from snugdp.secrecy.secret import Secret
from snugdp_studies.bench.contest.run import (
    Contender,
    ContestCell,
    ContestPlan,
    ContestReport,
    ContestSetting,
    ContestSummary,
    ContestTask,
)
from snugdp_studies.bench.contest.speed import Timing, one_thread, table, timed
from snugdp_studies.bench.contest.tables import Floats, Scaling, Tables, TableSplit, Targets, spread

Labels: TypeAlias = NDArray[np.int64]

GOAL = "Goal: at most 3 times scikit-learn's LogisticRegression for auto."
MAX_CLASSES = 50
_TIMED = ("auto", "objective", "output")
_CELLS = 2.0**20  # of a gradient, for each unit
_LEAST = 1e-15  # a probability that is not 0


def ours(split: TableSplit, setting: ContestSetting, *, method: str, **proposals: Any) -> Floats:
    """A fit by ``LogisticRegression``, in rehearsal: the noise is seeded."""
    model: Any = LogisticRegression(
        setting.epsilon,
        setting.delta,
        method=method,
        classes=range(split.classes),
        x_norm=1,
        proposals=proposals or None,
        noise=Simulation(setting.noise),
    ).fit(*split.train)
    return np.asarray(model.predict_proba(split.test[0]))


def descent(split: TableSplit, setting: ContestSetting, *, steps: int, rate: float) -> Floats:
    """Full-batch noisy gradient descent on the cross-entropy, with exact Gaussian accounting.

    All steps together are one Gaussian release of mu(epsilon, delta). No gradient has to be clipped: one of two classes
    is at most the root of 2 long, the length of a row with its constant, and one of more classes at most 2. ``rate``:
    in units of 1 over the largest curvature of the mean loss. The mean is over a public guess of the number of rows.
    """
    (X, y), noise = split.train, Simulation(setting.noise)
    rows, binary = np.column_stack([X, np.ones(len(X))]), split.classes == 2
    sigma = (math.sqrt(2) if binary else 2.0) * math.sqrt(steps) / gaussian.mu(setting.epsilon, setting.delta)
    law = Gaussian(Fraction(sigma * _CELLS))
    theta = np.zeros((rows.shape[1], 1 if binary else split.classes))
    aims = y[:, None] == (np.array([1]) if binary else np.arange(split.classes))
    for _ in range(steps):
        chances = _chances(rows @ theta)[:, 1:] if binary else _chances(rows @ theta)
        gradient = rows.T @ (chances - aims)
        cells = noise.add_integers(Secret([round(value * _CELLS) for value in gradient.ravel().tolist()]), law)
        theta -= rate * (2.0 if binary else 1.0) * np.array(cells).reshape(theta.shape) / _CELLS / split.rows_guess
    return _chances(np.column_stack([split.test[0], np.ones(len(split.test[0]))]) @ theta)


def _chances(linear: Floats) -> Floats:
    """Probabilities of all classes; one column is that of log-odds of the second of two."""
    both = np.column_stack([np.zeros(len(linear)), linear]) if linear.shape[1] == 1 else linear
    return np.asarray(np.exp(both - np.logaddexp.reduce(both, axis=1, keepdims=True)))


def diffprivlib(split: TableSplit, setting: ContestSetting) -> Floats:
    """The objective perturbation of diffprivlib: pure epsilon."""
    models: Any = importlib.import_module("diffprivlib.models")
    model = models.LogisticRegression(
        epsilon=setting.epsilon, data_norm=math.sqrt(2), random_state=setting.noise % 2**32, max_iter=1000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*split.train)
        return _of_all(model, split)


def plain(rows: tuple[Floats, Targets], split: TableSplit) -> Floats:
    """Scikit-learn's logistic regression without privacy."""
    linear: Any = importlib.import_module("sklearn.linear_model")
    if len(np.unique(rows[1])) < 2:
        return uniform(split)
    return _of_all(linear.LogisticRegression(max_iter=1000).fit(*rows), split)


def uniform(split: TableSplit) -> Floats:
    """The same chance for every class."""
    return np.full((len(split.test[1]), split.classes), 1 / split.classes)


def _of_all(model: Any, split: TableSplit) -> Floats:
    """Probabilities with a column for classes that were not among the rows."""
    chances = np.zeros((len(split.test[1]), split.classes))
    chances[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(split.test[0])
    return chances


_ALL = (
    Contender("auto", "ours", partial(ours, method="auto")),
    Contender("objective", "ours", partial(ours, method="objective")),
    Contender("output", "ours", partial(ours, method="output"), binary=True),
    Contender("output-hessian", "ours", partial(ours, method="output", shape="hessian"), binary=True),
    Contender("descent-20", "peer", partial(descent, steps=20, rate=4.0)),
    Contender("descent-50", "peer", partial(descent, steps=50, rate=4.0)),
    Contender("descent-200", "peer", partial(descent, steps=200, rate=4.0)),
    Contender("diffprivlib", "peer", diffprivlib, binary=True),
    Contender("trivial", "peer", lambda split, setting: uniform(split)),
    Contender("scikit-learn-public", "public", lambda split, setting: plain(split.public, split)),
    Contender("scikit-learn", "reference", lambda split, setting: plain(split.train, split)),
)
CONTENDERS = {each.name: each for each in _ALL}


def made_up(rows: int, columns: int, classes: int = 2, slope: float = 4.0) -> tuple[Floats, Labels]:
    """Rows of norm at most 1, evenly spread, and labels from a logistic model; with a small slope the last is rare."""
    X, p = spread(rows, columns)
    noisy = slope * X @ np.cos(np.arange(columns)) * np.sqrt(columns) / 2 + np.log(p / (1 - p))
    edges = np.linspace(-2, 2, classes + 1)[1:-1] + (0.0 if slope > 3 else 2.0)
    return X, np.digitize(noisy, edges).astype(np.int64)


def groups(rows: int, columns: int, classes: int, *, apart: float, factors: int = 0) -> tuple[Floats, Labels]:
    """Normal rows around a mean for each class, the first classes more frequent; ``factors``: that columns share."""
    random = np.random.default_rng([rows, columns, classes])
    share = np.arange(1, classes + 1) ** -0.5
    y = random.choice(classes, rows, p=share / share.sum())
    X = random.normal(size=(classes, columns))[y] * apart + random.normal(size=(rows, columns))
    return X + random.normal(size=(rows, factors)) @ random.normal(size=(factors, columns)), y.astype(np.int64)


def ordered(rows: int, columns: int, classes: int) -> tuple[Floats, Labels]:
    """Classes that are parts of one noisy linear function: their means lie on a line."""
    random = np.random.default_rng([rows, columns, classes, 1])
    X = random.normal(size=(rows, columns)) * np.exp(random.normal(size=columns) / 2)
    score = X @ random.normal(size=columns) / math.sqrt(columns) + random.logistic(size=rows) / 2
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)).astype(np.int64)


def words(rows: int, columns: int, classes: int) -> tuple[Floats, Labels]:
    """Roots of the counts of a few words of each row, whose frequencies the class has."""
    random = np.random.default_rng([rows, columns, classes, 2])
    frequencies = random.dirichlet(np.full(columns, 0.3), classes)
    y = random.integers(0, classes, rows)
    return np.sqrt(random.multinomial(8, frequencies[y])), y.astype(np.int64)


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


class Classification(ContestTask):
    """Logistic regression. A variant is a way to scale the rows."""

    name, variant, measures = "classification", "scaling", ("log_loss", "wrong")
    noise_of = ("dataset", "variant", "method", "epsilon", "number")
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
            "classes": {
                "groups-3": partial(groups, 1500, 8, 3, apart=0.6),
                "groups-10": partial(groups, 10_000, 15, 10, apart=0.5),
                "groups-26": partial(groups, 60_000, 16, 26, apart=0.8),
                "factors-7": partial(groups, 8000, 24, 7, apart=0.5, factors=5),
                "ordered-4": partial(ordered, 4000, 10, 4),
                "words-8": partial(words, 3000, 50, 8),
            },
            "sklearn": {
                name: partial(built_in, name) for name in ("breast_cancer", "digits", "digits-odd", "iris", "wine")
            },
        },
        instead='"synthetic" or "classes" (3 to 26 of them) for made-up tables, or "sklearn" for those of scikit-learn',
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

    def measure(self, answer: Floats, split: TableSplit) -> tuple[float, float]:
        """Log-loss and share of wrong classes."""
        return measured(answer, split.test[1])

    def title(self, cell: ContestCell) -> str:
        """The table, its scaling and epsilon."""
        return f"{cell.dataset} ({cell.variant}), epsilon {cell.epsilon:g}"

    def columns(self, cell: ContestCell, winner: ContestCell | None, group: Sequence[ContestCell]) -> dict[str, str]:
        """Log-loss and accuracy."""
        return {
            "log-loss": f"{cell.mean:.4f}",
            "±": f"{cell.deviation:.1g}",
            "accuracy": f"{1 - cell.second:.4f}",
            "s per fit": f"{cell.seconds:.3f}",
        }

    def extra(self, report: ContestReport, method: str) -> float:
        """The share of cells whose accuracy is as good as every peer's, give or take half a percent of all rows."""
        pairs = [(mine, peers) for mine, group in report.pairs(method) if (peers := self.rivals(group))]
        return float(np.mean([mine.second - min(peer.second for peer in peers) <= 0.005 for mine, peers in pairs]))

    def summary(self, found: ContestSummary, plan: ContestPlan) -> dict[str, str]:
        """Both shares, and log-loss over the best peer's."""
        return {
            "log-loss as good as all peers": f"{found.near:.0%}",
            "accuracy too": f"{found.extra:.0%}",
            "log-loss over the best": f"{found.ratio:.3f}",
            "worst": f"{found.worst:.3f}",
        }


TASK = Classification()


def fit_times(
    rows: int = 1_000_000, columns: int = 20, repeats: int = 2, methods: Sequence[str] | None = None
) -> list[Timing]:
    """Every fit in turn, ``repeats`` times over, with exact noise; with an intercept."""
    X, y = made_up(rows, columns)
    linear: Any = importlib.import_module("sklearn.linear_model")
    jobs: dict[str, Callable[[], object]] = {
        "scikit-learn (lbfgs)": lambda: linear.LogisticRegression().fit(X, y),
        "scikit-learn (newton-cholesky)": lambda: linear.LogisticRegression(solver="newton-cholesky").fit(X, y),
    }
    jobs |= {name: partial(fit, X, y, method=name) for name in _TIMED if methods is None or name in methods}
    with one_thread():
        return timed(f"{rows:,} x {columns}", jobs, repeats, twice=True)


def fit(X: Floats, y: Labels, **options: Any) -> LogisticRegression:
    """One private fit."""
    model: LogisticRegression = LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], x_norm=1, **options).fit(X, y)
    return model


def show_times(rows: Sequence[Timing], console: Console) -> None:
    """Print fit times and ratios."""
    console.print(GOAL, highlight=False)
    console.print(table(rows, "scikit-learn"))
