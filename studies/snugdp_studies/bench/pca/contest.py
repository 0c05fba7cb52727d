"""Lost variance of private principal components beside Analyze Gauss, on the same rows and budgets.

The fits are rehearsals, NOT PRIVATE: their noise is seeded. The number of rows counts as public, for all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import TypeAlias

from snugdp.core.guarantee import Budget
from snugdp.mechanisms.components.base import ComponentsMethod, Rank, Task
from snugdp.mechanisms.components.crossing import AnalyzeGauss, Crossing
from snugdp.mechanisms.components.projector import Dual, Projector
from snugdp.noise import Simulation
from snugdp.release.context import ReleaseContext
from snugdp_studies.bench.contest.task import noise_start
from snugdp_studies.bench.pca.data import CASES, Floats, Sample, sample

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
GOALS = (
    "Goals: at most 1.07 of Analyze Gauss on average where a method falls back on it, at most 0.65 where it does not."
)


@dataclass(frozen=True)
class Cell:
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
) -> Iterator[Cell]:
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
) -> Iterator[Cell]:
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


def _contest(table: Sample, k: int, budget: Budget, draws: int, methods: Iterable[str]) -> Iterator[Cell]:
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


def _cell(table: Sample, budget: Budget, method: str, fits: Sequence[Fitted], base: float) -> Cell:
    k = fits[0][0].shape[1]
    lost = _lost(table, fits)
    used = fmean(route != GAUSS for _, route in fits)
    captured = 1 - lost / float(table.spectrum[:k].sum())
    return Cell(table.name, k, table.gap(k), float(budget.epsilon), method, lost, lost / base, used, captured)


@dataclass(frozen=True)
class Summary:
    """The average ratio to Analyze Gauss where a method always fell back on it, and where it never did."""

    method: str
    fallback: float | None
    large: float | None
    worst: float


def summaries(cells: Sequence[Cell]) -> list[Summary]:
    """One for each method but Analyze Gauss itself."""
    found = []
    for method in dict.fromkeys(cell.method for cell in cells if cell.method != GAUSS):
        own = [cell for cell in cells if cell.method == method]
        ends = ([cell.ratio for cell in own if cell.used == share] for share in (0.0, 1.0))
        fallback, large = (fmean(ratios) if ratios else None for ratios in ends)
        found.append(Summary(method, fallback, large, max(cell.ratio for cell in own)))
    return found
