"""Raw tables in their own units: those of a folder, as the literature uses them, and made-up ones of several kinds.

Nothing is scaled: units, outliers, heaps and constants are what bounds have to be found for.
"""

import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_regression

from snugdp_studies.bench.contest.tables import SUFFIXES

Floats: TypeAlias = NDArray[np.float64]
Table: TypeAlias = tuple[Floats, Floats]

MADE_UP = "synthetic"
_TARGETS = {"california_housing": "median_house_value", "diamonds": "price"}  # elsewhere the last column
_ORDERS: Mapping[str, Sequence[str]] = {  # of diamonds, from the worst to the best
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": "JIHGFED",
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
_COLUMNS, _SEED = 10, 22


def names(data: str) -> list[str]:
    """The tables of a folder, or the kinds that are made up."""
    if data == MADE_UP and not Path(data).exists():
        return list(KINDS)
    if not Path(data).is_dir():
        raise ValueError(f'{data} is no folder. --data takes a folder of NAME.csv or NAME.csv.gz, or "{MADE_UP}"')
    files = [path.name for path in Path(data).iterdir()]
    found = {name.removesuffix(end) for name in files for end in SUFFIXES if name.endswith(end)}
    if not found:
        raise ValueError(f"there is no table in {data}: it should hold files named NAME.csv or NAME.csv.gz")
    return sorted(found)


def load(data: str, name: str, rows: int, number: int = 0) -> Table:
    """Features and target. ``rows`` and ``number`` are for made-up tables: how long, and which of its kind.

    A table that is not in the folder is made up.
    """
    for path in (Path(data) / f"{name}{end}" for end in SUFFIXES):
        if path.exists():
            return read(path, name)
    return KINDS[name](rows, np.random.default_rng([_SEED, list(KINDS).index(name), rows, number]))


def read(path: Path, name: str) -> Table:
    """Numbers and ordered categories of rows without a gap; columns of other text are left out."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        heads, *rows = [row for row in csv.reader(lines) if row]
    if all(_is_number(cell) for cell in heads):
        heads, rows = [str(place) for place in range(len(heads))], [heads, *rows]
    known = {head: [str(level) for level in _ORDERS.get(head, ())] for head in heads}
    used = [place for place, head in enumerate(heads) if known[head] or all(_is_number(row[place]) for row in rows)]
    whole = [row for row in rows if all(row[place].strip() for place in used)]
    table = np.array([[_number(row[place], known[heads[place]]) for place in used] for row in whole], dtype=np.float64)
    kept = [heads[place] for place in used]
    target = kept.index(_TARGETS[name]) if _TARGETS.get(name) in kept else len(kept) - 1
    if len(kept) < 2 or len(table) < 2:
        raise ValueError(f"{path.name} needs a target and at least one other column of numbers")
    return np.delete(table, target, axis=1), table[:, target]


def _number(cell: str, levels: list[str]) -> float:
    return levels.index(cell) + 1.0 if levels else float(cell)


def _is_number(cell: str) -> bool:
    """Or a gap."""
    try:
        return not cell.strip() or np.isfinite(float(cell))
    except ValueError:
        return False


# ---- made up: columns of several kinds, and a target that is linear in most of them


def literature(rows: int, draw: np.random.Generator) -> Table:
    """The synthetic table of the literature on linear regression, which has 22,000 rows."""
    X, y = make_regression(rows, _COLUMNS, n_informative=_COLUMNS, noise=10.0, random_state=int(draw.integers(2**31)))
    return X, y


def units(rows: int, draw: np.random.Generator) -> Table:
    """Normal columns in units from 1e-3 to 1e4."""
    X = draw.standard_normal((rows, _COLUMNS))
    scales, y = 10.0 ** draw.uniform(-3, 4, _COLUMNS), X @ draw.standard_normal(_COLUMNS)
    return (X + 3 * draw.standard_normal(_COLUMNS)) * scales, _noisy(y, draw) * 10.0 ** draw.uniform(-2, 4) + 50


def outliers(rows: int, draw: np.random.Generator) -> Table:
    """The same, but one row in 500 is off by a factor of 10,000."""
    X, y = units(rows, draw)
    return np.where(draw.random((rows, 1)) < 0.002, X * 1e4, X), y


def heavy(rows: int, draw: np.random.Generator) -> Table:
    """Student's t and log-normal columns, and noise with heavy tails."""
    half = _COLUMNS // 2
    X = np.hstack([draw.standard_t(3, (rows, half)), np.exp(draw.standard_normal((rows, _COLUMNS - half)))])
    y = X @ draw.standard_normal(_COLUMNS)
    return X, y + 0.5 * np.median(np.abs(y)) * draw.standard_t(3, rows)


def heaps(rows: int, draw: np.random.Generator) -> Table:
    """Counts, columns that are mostly zero, years, and rare marks."""
    sizes = np.exp(draw.normal(3, 1, (rows, 3)))
    mostly_zero = np.where(draw.random((rows, 3)) < 0.8, 0.0, sizes)
    years, marks = draw.integers(1950, 2020, (rows, 2)), draw.random((rows, 2)) < 0.05
    X = np.hstack([draw.poisson(2, (rows, 3)), mostly_zero, years, marks]).astype(np.float64)
    return X, np.round(_noisy(_standard(X) @ draw.standard_normal(X.shape[1]), draw), 1)


def narrow(rows: int, draw: np.random.Generator) -> Table:
    """A constant, and columns that vary far less than they are large, such as time stamps."""
    stamps = 1.5e9 + 3e6 * draw.standard_normal((rows, 3))
    X = np.hstack([np.full((rows, 1), 7.0), 1e5 + 30 * draw.standard_normal((rows, 3)), stamps, draw.random((rows, 3))])
    return X, _noisy(_standard(X) @ draw.standard_normal(X.shape[1]), draw)


def skewed(rows: int, draw: np.random.Generator) -> Table:
    """A log-normal target."""
    X = draw.standard_normal((rows, _COLUMNS))
    return X, np.exp(0.35 * X @ draw.standard_normal(_COLUMNS) + 0.5 * draw.standard_normal(rows))


def households(rows: int, draw: np.random.Generator) -> Table:
    """Incomes, debts, ages, counts, a code, and a target in money."""
    income, age = np.exp(draw.normal(10.5, 0.8, rows)), draw.integers(18, 90, rows)
    debts = np.where(draw.random(rows) < 0.4, 0.0, income * np.exp(draw.normal(-1, 1, rows)))
    children, second = draw.poisson(1.2, rows), draw.random(rows) < 0.5
    X = np.column_stack([income, age, debts, children, second, draw.integers(10_000, 99_999, rows)])
    return X, 0.25 * income + 200 * age - 0.1 * debts + 1500 * second + 8000 * np.exp(draw.normal(0, 0.5, rows))


def _standard(X: Floats) -> Floats:
    return np.asarray((X - X.mean(axis=0)) / np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0))


def _noisy(y: Floats, draw: np.random.Generator) -> Floats:
    return np.asarray(y + 0.5 * y.std() * draw.standard_normal(len(y)))


KINDS: Mapping[str, Callable[[int, np.random.Generator], Table]] = {
    make.__name__: make for make in (literature, units, outliers, heavy, heaps, narrow, skewed, households)
}
