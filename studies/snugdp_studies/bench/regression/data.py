"""The tables of the regression benchmark: read, scaled and split the same way for every method. None of it is private.

Columns are z-scored with the moments of the whole table and rows are scaled to norm 1; the target is centred by its
mean and divided by its largest size. A real user has to bring public bounds instead.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.simulation import shuffled

Floats = NDArray[np.float64]

SYNTHETIC = "synthetic"
FORMAT = (
    "a folder of tables named NAME.csv.gz or NAME.csv: numbers separated by commas, a header line or none, the target "
    f'in the last column. Or give "{SYNTHETIC}" for two small made-up tables'
)
_ENDS = (".csv", ".csv.gz")
_FEWEST = 50
_MADE_UP = {"even": (4000, 5, False), "heavy": (4000, 5, True)}  # rows, columns, whether the noise has heavy tails


@dataclass(frozen=True)
class Split:
    """One split of a table: 60 % to fit on, 10 % that count as public, 30 % to measure the error on."""

    train: tuple[Floats, Floats]
    public: tuple[Floats, Floats]
    test: tuple[Floats, Floats]

    @property
    def rows_guess(self) -> int:
        """The number of rows to fit on to one significant digit: what methods get that need a public guess."""
        return int(float(f"{len(self.train[1]):.0e}"))


def names(data: str | None) -> list[str]:
    """The tables of a folder."""
    if data is None:
        raise ValueError(f"say where the tables are with --data: {FORMAT}")
    if _made_up(data):
        return sorted(_MADE_UP)
    folder = Path(data)
    if not folder.is_dir():
        raise ValueError(f"{data} is no folder. --data takes {FORMAT}")
    found = sorted({name for path in folder.iterdir() if (name := _name(path)) is not None})
    if not found:
        raise ValueError(f"there is no table in {data}. --data takes {FORMAT}")
    return found


def chosen(data: str | None, asked: list[str] | None) -> list[str]:
    """The tables asked for, if they are there; all of them without a wish."""
    known = names(data)
    missing = [name for name in asked or [] if name not in known]
    if missing:
        raise ValueError(f"there is no table {', '.join(missing)}; there are {', '.join(known)}")
    return asked or known


@lru_cache(maxsize=4)
def load(data: str, name: str) -> tuple[Floats, Floats]:
    """Scaled rows and targets of one table."""
    if _made_up(data):
        return scaled(np.column_stack(made_up(*_MADE_UP[name])), name)
    path = next(path for end in _ENDS if (path := Path(data) / f"{name}{end}").exists())
    try:
        header = _has_header(path)
        values = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2)
    except (ValueError, OSError, EOFError, zlib.error, UnicodeError) as error:
        raise ValueError(f"{path.name} cannot be read ({error}). Needed: {FORMAT}") from None
    return scaled(values, path.name)


@lru_cache(maxsize=8)
def split(data: str, name: str, number: int) -> Split:
    """The split of this number: numpy's default generator, started at 1000 + number, shuffles the rows."""
    X, y = load(data, name)
    order = shuffled(1000 + number, len(y))
    ends = (int(0.6 * len(y)), int(0.7 * len(y)))
    train, public, test = ((X[part], y[part]) for part in np.split(order, ends))
    return Split(train, public, test)


def scaled(values: Floats, name: str) -> tuple[Floats, Floats]:
    """The rows and targets as every method gets them. Constant columns are dropped; a row of zeros stays one."""
    if values.shape[1] < 2 or len(values) < _FEWEST:
        raise ValueError(f"{name} is too small: at least {_FEWEST} rows and 2 columns are needed")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} has missing or infinite values: fill or drop them first")
    X, y = values[:, :-1], values[:, -1] - values[:, -1].mean()
    X = X[:, np.ptp(X, axis=0) > 0]
    if not X.shape[1] or not np.any(y):
        raise ValueError(f"{name} has nothing to learn: its target, or all else, is constant")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1.0), y / np.abs(y).max()


def made_up(rows: int, columns: int, heavy: bool = True) -> tuple[Floats, Floats]:
    """Rows of norm at most 1, evenly spread, and a linear target with noise: Student's t with 2 degrees, or uniform."""
    primes = [p for p in range(2, 20 * columns + 20) if all(p % q for q in range(2, p))][: columns + 1]
    spread = (np.arange(1, rows + 1)[:, None] * np.sqrt(primes)) % 1.0  # multiples of irrational numbers
    X = (2 * spread[:, :-1] - 1) / np.sqrt(columns)
    p = np.clip(spread[:, -1], 1e-9, 1 - 1e-9)
    noise = (2 * p - 1) / np.sqrt(2 * p * (1 - p)) if heavy else 2 * p - 1
    return X, X @ np.cos(np.arange(columns)) + 0.1 * noise


def _made_up(data: str) -> bool:
    return data == SYNTHETIC and not Path(data).exists()


def _name(path: Path) -> str | None:
    return next((path.name.removesuffix(end) for end in reversed(_ENDS) if path.name.endswith(end)), None)


def _has_header(path: Path) -> bool:
    """Whether the first line has something that is no number."""
    with gzip.open(path, "rt") if path.name.endswith(".gz") else path.open() as lines:
        first = lines.readline()
    try:
        [float(cell) for cell in first.split(",")]
    except ValueError:
        return True
    return False
