"""The tables of a contest: read, scaled and split the same way for every method. None of it is private.

``norm``: columns are z-scored with the moments of the whole table and rows are scaled to norm 1. ``box``: columns are
scaled to [-1, 1] by the least and the largest value of the whole table, as if those were public bounds, and rows are
divided by the root of the number of columns. A real user has to bring public bounds.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.simulation import shuffled

Floats: TypeAlias = NDArray[np.float64]
Targets: TypeAlias = NDArray[Any]
Scaling: TypeAlias = Literal["norm", "box"]

MIN_ROWS = 50
SUFFIXES = (".csv", ".csv.gz")


@dataclass(frozen=True, eq=False)
class Tables:
    """What a task reads: the name of its last column, how that becomes a target, and tables that need no file.

    ``target`` gets the last column and raises a ValueError if there is nothing to learn from it. ``made``: tables by
    the name of their collection, which is given in place of a folder.
    """

    last: str
    target: Callable[[Any], Targets]
    made: Mapping[str, Mapping[str, Callable[[], tuple[Floats, Targets]]]]
    instead: str

    @property
    def format(self) -> str:
        """What a folder of tables looks like."""
        return (
            "a folder of tables named NAME.csv.gz or NAME.csv: numbers separated by commas, a header line or none, the "
            f"{self.last}. Or give {self.instead}"
        )

    def collection(self, data: str) -> Mapping[str, Callable[[], tuple[Floats, Targets]]] | None:
        """The made-up tables of this name, unless there is a folder of that name."""
        return None if Path(data).exists() else self.made.get(data)

    def names(self, data: str | None) -> list[str]:
        """The tables of a folder."""
        if data is None:
            raise ValueError(f"say where the tables are with --data: {self.format}")
        if (made := self.collection(data)) is not None:
            return sorted(made)
        if not Path(data).is_dir():
            raise ValueError(f"{data} is no folder. --data takes {self.format}")
        files = [path.name for path in Path(data).iterdir()]
        names = {name.removesuffix(end) for name in files for end in SUFFIXES if name.endswith(end)}
        if not names:
            raise ValueError(f"there is no table in {data}. --data takes {self.format}")
        return sorted(names)

    def chosen(self, data: str | None, asked: list[str] | None) -> list[str]:
        """The tables asked for, if they are there; all of them without a wish."""
        known = self.names(data)
        if missing := [name for name in asked or [] if name not in known]:
            raise ValueError(f"there is no table {', '.join(missing)}; there are {', '.join(known)}")
        return asked or known


@dataclass(frozen=True)
class TableSplit:
    """One split of a table: 60 % to fit on, 10 % that count as public, 30 % to measure on."""

    train: tuple[Floats, Targets]
    public: tuple[Floats, Targets]
    test: tuple[Floats, Targets]
    classes: int = 0

    @property
    def rows_guess(self) -> int:
        """The number of rows to fit on to one significant digit: what methods get that need a public guess."""
        return int(float(f"{len(self.train[1]):.0e}"))


@lru_cache(maxsize=4)
def load(tables: Tables, data: str, name: str, scaling: Scaling = "norm") -> tuple[Floats, Targets]:
    """Scaled rows and targets of one table."""
    last: Any
    made = tables.collection(data)
    if made is not None:
        X, last = made[name]()
    else:
        path = next(path for end in SUFFIXES if (path := Path(data) / f"{name}{end}").exists())
        name = path.name
        try:
            X, last = _cells(path)
        except (ValueError, OSError, EOFError, zlib.error, UnicodeError) as error:
            raise ValueError(f"{name} cannot be read ({error}). Needed: {tables.format}") from None
    try:
        return scaled(X, scaling), tables.target(last)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


@lru_cache(maxsize=8)
def split(tables: Tables, data: str, name: str, number: int, scaling: Scaling = "norm") -> TableSplit:
    """The split of this number: numpy's default generator, started at 1000 + number, shuffles the rows."""
    X, y = load(tables, data, name, scaling)
    order = shuffled(1000 + number, len(y))
    ends = (int(0.6 * len(y)), int(0.7 * len(y)))
    train, public, test = ((X[part], y[part]) for part in np.split(order, ends))
    return TableSplit(train, public, test, int(y.max()) + 1 if y.dtype.kind == "i" else 0)


def scaled(X: Floats, scaling: Scaling) -> Floats:
    """The rows as every method gets them, of norm at most 1. Constant columns are dropped; a row of zeros stays one."""
    if len(X) < MIN_ROWS or X.shape[1] < 1:
        raise ValueError(f"is too small: at least {MIN_ROWS} rows and 2 columns are needed")
    if not np.all(np.isfinite(X)):
        raise ValueError("has missing or infinite values: fill or drop them first")
    X = X[:, np.ptp(X, axis=0) > 0]
    if not X.shape[1]:
        raise ValueError("has nothing to learn from: all its columns are constant")
    if scaling == "box":
        low, high = X.min(axis=0), X.max(axis=0)
        return np.asarray((2 * (X - low) / (high - low) - 1) / np.sqrt(X.shape[1]))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norms > 0, norms, 1.0))


def spread(rows: int, columns: int) -> tuple[Floats, Floats]:
    """Made-up rows of norm at most 1, evenly spread, and as many numbers between 0 and 1."""
    primes = [p for p in range(2, 20 * columns + 60) if all(p % q for q in range(2, p))][: columns + 1]
    even = (np.arange(1, rows + 1)[:, None] * np.sqrt(primes)) % 1.0  # multiples of irrational numbers
    return (2 * even[:, :-1] - 1) / np.sqrt(columns), np.clip(even[:, -1], 1e-9, 1 - 1e-9)


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
    """Whether one of them is not a number."""
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return True
    return False
