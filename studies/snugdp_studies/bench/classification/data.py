"""The tables of the classification benchmark: read, scaled and split the same way for every method. None of it private.

``norm``, as in the regression benchmark: columns are z-scored with the moments of the whole table and rows are scaled
to norm 1. ``box``: columns are scaled to [-1, 1] by the least and the largest value of the whole table, as if those
were public bounds, and rows are divided by the root of the number of columns. A real user has to bring public bounds.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.simulation import shuffled

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]
Scaling: TypeAlias = Literal["norm", "box"]

SCALINGS: tuple[Scaling, ...] = ("norm", "box")
SYNTHETIC, BUILT_IN = "synthetic", "sklearn"
FORMAT = (
    "a folder of tables named NAME.csv.gz or NAME.csv: numbers separated by commas, a header line or none, the label "
    f'in the last column, as text or a number. Or give "{SYNTHETIC}" for small made-up tables, or "{BUILT_IN}" for '
    "those that come with scikit-learn"
)
_FEWEST = 50
_MOST_CLASSES = 50
_MADE_UP = {
    "even": (6000, 5, 2, 4.0),
    "rare": (6000, 5, 2, 2.0),
    "three": (6000, 6, 3, 4.0),
}  # rows, columns, classes, slope
_BUILT_IN = ("breast_cancer", "digits", "digits-odd", "iris", "wine")


@dataclass(frozen=True)
class Split:
    """One split of a table: 60 % to fit on, 10 % that count as public, 30 % to measure on. Labels are 0, 1, ..."""

    classes: int
    train: tuple[Floats, Places]
    public: tuple[Floats, Places]
    test: tuple[Floats, Places]

    @property
    def rows_guess(self) -> int:
        """The number of rows to fit on to one significant digit: what methods get that need a public guess."""
        return int(float(f"{len(self.train[1]):.0e}"))


def names(data: str | None) -> list[str]:
    """The tables of a folder."""
    if data is None:
        raise ValueError(f"say where the tables are with --data: {FORMAT}")
    if not Path(data).exists() and data in (SYNTHETIC, BUILT_IN):
        return sorted(_MADE_UP if data == SYNTHETIC else _BUILT_IN)
    if not Path(data).is_dir():
        raise ValueError(f"{data} is no folder. --data takes {FORMAT}")
    ends = (".csv.gz", ".csv")
    found = {path.name.removesuffix(end) for path in Path(data).iterdir() for end in ends if path.name.endswith(end)}
    if not found:
        raise ValueError(f"there is no table in {data}. --data takes {FORMAT}")
    return sorted(found)


def chosen(data: str | None, asked: list[str] | None) -> list[str]:
    """The tables asked for, if they are there; all of them without a wish."""
    known = names(data)
    missing = [name for name in asked or [] if name not in known]
    if missing:
        raise ValueError(f"there is no table {', '.join(missing)}; there are {', '.join(known)}")
    return asked or known


@lru_cache(maxsize=4)
def load(data: str, name: str, scaling: Scaling = "norm") -> tuple[Floats, Places]:
    """Scaled rows and labels of one table."""
    if not Path(data).exists():
        X, labels = made_up(*_MADE_UP[name]) if data == SYNTHETIC else _built_in(name)
        return scaled(X, scaling, name), np.unique(labels, return_inverse=True)[1]
    path = next(path for end in (".csv", ".csv.gz") if (path := Path(data) / f"{name}{end}").exists())
    try:
        X, cells = _cells(path)
    except (ValueError, OSError, EOFError, zlib.error, UnicodeError) as error:
        raise ValueError(f"{path.name} cannot be read ({error}). Needed: {FORMAT}") from None
    classes, places = np.unique(cells, return_inverse=True)
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise ValueError(f"{path.name} has {len(classes)} labels in its last column: 2 to {_MOST_CLASSES} are needed")
    return scaled(X, scaling, path.name), places


@lru_cache(maxsize=8)
def split(data: str, name: str, number: int, scaling: Scaling = "norm") -> Split:
    """The split of this number: numpy's default generator, started at 1000 + number, shuffles the rows."""
    X, y = load(data, name, scaling)
    order = shuffled(1000 + number, len(y))
    ends = (int(0.6 * len(y)), int(0.7 * len(y)))
    train, public, test = ((X[part], y[part]) for part in np.split(order, ends))
    return Split(int(y.max()) + 1, train, public, test)


def scaled(X: Floats, scaling: Scaling, name: str) -> Floats:
    """The rows as every method gets them, of norm at most 1. Constant columns are dropped; a row of zeros stays one."""
    if len(X) < _FEWEST or X.shape[1] < 1:
        raise ValueError(f"{name} is too small: at least {_FEWEST} rows and 2 columns are needed")
    if not np.all(np.isfinite(X)):
        raise ValueError(f"{name} has missing or infinite values: fill or drop them first")
    X = X[:, np.ptp(X, axis=0) > 0]
    if not X.shape[1]:
        raise ValueError(f"{name} has nothing to learn from: all its columns are constant")
    if scaling == "box":
        low, high = X.min(axis=0), X.max(axis=0)
        return np.asarray((2 * (X - low) / (high - low) - 1) / np.sqrt(X.shape[1]))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norms > 0, norms, 1.0))


def made_up(rows: int, columns: int, classes: int = 2, slope: float = 4.0) -> tuple[Floats, Places]:
    """Rows of norm at most 1, evenly spread, and labels from a logistic model; with a small slope the last is rare."""
    primes = [p for p in range(2, 20 * columns + 60) if all(p % q for q in range(2, p))][: columns + 1]
    spread = (np.arange(1, rows + 1)[:, None] * np.sqrt(primes)) % 1.0  # multiples of irrational numbers
    X = (2 * spread[:, :-1] - 1) / np.sqrt(columns)
    p = np.clip(spread[:, -1], 1e-9, 1 - 1e-9)
    noisy = slope * X @ np.cos(np.arange(columns)) * np.sqrt(columns) / 2 + np.log(p / (1 - p))
    edges = np.linspace(-2, 2, classes + 1)[1:-1] + (0.0 if slope > 3 else 2.0)
    return X, np.digitize(noisy, edges).astype(np.int64)


def _built_in(name: str) -> tuple[Floats, Places]:
    from sklearn import datasets

    bunch: Any = getattr(datasets, f"load_{name.partition('-')[0]}")()
    X, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target)
    return X, y % 2 if name.endswith("-odd") else y


def _cells(path: Path) -> tuple[Floats, list[str]]:
    """The numbers of all columns but the last, and the text of the last."""
    with gzip.open(path, "rt") if path.name.endswith(".gz") else path.open() as lines:
        rows = [row for row in csv.reader(lines) if row]
    if rows and _is_header(rows[0][:-1]):
        rows = rows[1:]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("its rows have different lengths")
    X = np.array([[float(cell) for cell in row[:-1]] for row in rows]).reshape(len(rows), -1)
    return X, [row[-1].strip() for row in rows]


def _is_header(cells: list[str]) -> bool:
    """Whether one of them is no number."""
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return True
    return False
