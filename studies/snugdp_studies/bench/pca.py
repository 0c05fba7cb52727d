"""Private principal components beside Analyze Gauss and scikit-learn: lost variance and fit times.

The tables are digits, and made-up rows with a known spectrum. The fits for lost variance are rehearsals, NOT PRIVATE:
their noise is seeded. The number of rows counts as public, for all alike.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from snugdp.core.guarantee import Budget
from snugdp.estimators.pca.pca import PCA
from snugdp.mechanisms.components.base import ComponentsMethod, Rank, Task
from snugdp.mechanisms.components.crossing import AnalyzeGauss, Crossing
from snugdp.mechanisms.components.projector import Dual, Projector
from snugdp.noise import Gaussian, Simulation
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.points import MatrixSchema, MatrixSource
from snugdp.tables.passes.vectors.scatter import Scatter
from snugdp.tables.rows import Rows
from snugdp_studies.bench.contest.run import noise_start
from snugdp_studies.bench.contest.speed import Timing, one_thread, timed
from snugdp_studies.bench.contest.tables import Floats, spread

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
EPSILONS = (0.5, 1.0, 2.0, 4.0)
GAUSS = "gauss"
_MORE = 4  # times as many draws of Analyze Gauss, to which all are compared
Fitted: TypeAlias = tuple[Floats, str]  # vectors, and the kind of matrix that was released in the end
METHODS: dict[str, Callable[[Task], ComponentsMethod]] = {
    GAUSS: AnalyzeGauss,
    "crossing": Crossing,
    "projector": lambda task: Projector(task, describe=Fraction(0)),
    "dual": Dual,
}
SKLEARN = "scikit-learn PCA"
GOALS = (
    "Goals: at most 1.07 of Analyze Gauss on average where a method falls back on it, at most 0.65 where it does not."
)
GOAL = "Goal: at most 3 times scikit-learn's PCA."


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


@dataclass(frozen=True)
class PCACell:
    """One method on one table: the mean lost variance over the draws, in units of one row, and what it did.

    ``ratio``: to Analyze Gauss. ``used``: the share of draws that ended otherwise than in a matrix. ``captured``: the
    share of the leading variance. ``k``: the number of components, the most frequent if it was chosen.
    """

    table: str
    k: int
    gap: float
    epsilon: float
    method: str
    lost: float
    ratio: float
    used: float
    captured: float


def run(
    draws: int = 60,
    epsilons: Sequence[float] = EPSILONS,
    methods: Iterable[str] = tuple(METHODS),
    tables: Iterable[str] = tuple(CASES),
    delta: float = 1e-6,
) -> Iterator[PCACell]:
    """Every method on every table, for a given number of components."""
    for name in tables:
        for k in CASES[name]:
            for epsilon in epsilons:
                yield from _contest(sample(name), k, Budget(epsilon, delta), draws, methods)


def chosen(
    draws: int = 60,
    epsilons: Sequence[float] = EPSILONS,
    methods: Iterable[str] = ("crossing", "projector"),
    tables: Iterable[str] = tuple(CASES),
    delta: float = 1e-6,
) -> Iterator[PCACell]:
    """The same with the number of components chosen in private, beside Analyze Gauss with that number.

    Draws that chose another number than most are left out.
    """
    for name in tables:
        for epsilon in epsilons:
            for method in methods:
                table, budget = sample(name), Budget(epsilon, delta)
                fits = _fits(table, "auto", budget, method, draws)
                numbers = [vectors.shape[1] for vectors, _ in fits]
                k = max(set(numbers), key=numbers.count)
                own = [(vectors, route) for vectors, route in fits if vectors.shape[1] == k]
                yield _cell(table, budget, method, own, _lost(table, _fits(table, k, budget, GAUSS, _MORE * draws)))


def _contest(table: Sample, k: int, budget: Budget, draws: int, methods: Iterable[str]) -> Iterator[PCACell]:
    base = _fits(table, k, budget, GAUSS, _MORE * draws)
    for method in methods:
        fits = base if method == GAUSS else _fits(table, k, budget, method, draws)
        yield _cell(table, budget, method, fits, _lost(table, base))


def _fits(table: Sample, wanted: int | str, budget: Budget, method: str, draws: int) -> list[Fitted]:
    task = Task(table.layout, budget, Rank.of(wanted, len(table.spectrum)), rows=len(table.rows))
    one = METHODS[method](task)
    starts = (noise_start(f"{table.name}, {wanted}", method, float(budget.epsilon), 1.0, i) for i in range(draws))
    found = [one.fit(table.data, ReleaseContext(Simulation(start))).value for start in starts]
    return [(fit.vectors, fit.route) for fit in found if fit is not None]


def _lost(table: Sample, fits: Sequence[Fitted]) -> float:
    return fmean(table.lost(vectors) for vectors, _ in fits)


def _cell(table: Sample, budget: Budget, method: str, fits: Sequence[Fitted], base: float) -> PCACell:
    k = fits[0][0].shape[1]
    lost = _lost(table, fits)
    used = fmean(route != GAUSS for _, route in fits)
    captured = 1 - lost / float(table.spectrum[:k].sum())
    return PCACell(table.name, k, table.gap(k), float(budget.epsilon), method, lost, lost / base, used, captured)


@dataclass(frozen=True)
class PCASummary:
    """The average ratio to Analyze Gauss where a method always fell back on it, and where it never did."""

    method: str
    fallback: float | None
    large: float | None
    worst: float


def summaries(cells: Sequence[PCACell]) -> list[PCASummary]:
    """One for each method but Analyze Gauss itself."""
    found = []
    for method in dict.fromkeys(cell.method for cell in cells if cell.method != GAUSS):
        own = [cell for cell in cells if cell.method == method]
        ends = ([cell.ratio for cell in own if cell.used == share] for share in (0.0, 1.0))
        fallback, large = (fmean(ratios) if ratios else None for ratios in ends)
        found.append(PCASummary(method, fallback, large, max(cell.ratio for cell in own)))
    return found


def fit_times(rows: int = 1_000_000, columns: int = 20, repeats: int = 3) -> list[Timing]:
    """Every fit in turn, ``repeats`` times over and twice in a row, with exact noise."""
    X, _ = spread(rows, columns)
    decomposition: Any = importlib.import_module("sklearn.decomposition")
    k = min(5, columns - 1)
    jobs: dict[str, Callable[[], object]] = {SKLEARN: lambda: decomposition.PCA(k).fit(X)}
    for method in ("crossing", "gauss", "projector", "dual"):
        jobs[method] = partial(_fit, X, k, method=method)
    jobs["crossing, k chosen"] = partial(_fit, X, "auto", method="crossing")
    jobs["crossing, private mean"] = partial(_fit, X, k, method="crossing", center="private")
    with one_thread():
        return timed(f"{rows:,} x {columns}", jobs, repeats, twice=True)


def _fit(X: Floats, n_components: int | str, **options: Any) -> PCA:
    return PCA(n_components, epsilon=1, delta=1e-6, x_norm=1, **options).fit(X)
