"""Quantiles beside OpenDP's, beside the exponential mechanism in floats, and beside propose, test, release."""

import importlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import snugdp
from snugdp.core.guarantee import Budget
from snugdp.mechanisms.order_statistics.rank_draw import Points, RankDraw, RankTarget
from snugdp.noise import Simulation
from snugdp.propose.share import Share
from snugdp.tables.grid import Grid, StepGrid
from snugdp_studies.bench.statistics.columns import Floats, MadeUp, ages, lognormal, normal, pareto

EPSILONS = (0.1, 0.5, 1.0)
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
MANY = {"5 at once": QUANTILES, "19 at once": tuple(round(0.05 * place, 2) for place in range(1, 20))}
CANDIDATES = 20_001  # of OpenDP: evenly spread between the bounds, or all multiples of the step
DELTA = 1e-6
INCOMES, INCOME_BOUNDS, NEAR = 100_000, (0, 500_000), 3  # the example of the README, and how near an answer should be
GOALS = "Goals: at most 1.05 times the float mechanism; 19 of 20 medians of the README example off by less than 3."


@dataclass(frozen=True)
class Errors:
    """Mean absolute errors of one question about one column, by contender; and how often a test refused."""

    column: str
    question: str
    epsilon: float
    means: dict[str, float]
    refused: float = 0.0
    doubt: float = 0.0  # how far our draws are from their law, in standard errors


def tables() -> list[MadeUp]:
    """Those of the comparison."""
    return [lognormal(), normal(20_000), ages(), pareto(5_000), normal(200), pareto(200)]


def single(runs: int, peer_runs: int, columns: Sequence[MadeUp] | None = None) -> Iterator[Errors]:
    """One quantile at a time, pure. Ours and the float mechanism by their laws, exactly; ours by draws as well."""
    for column in tables() if columns is None else columns:
        for q in QUANTILES:
            truth = _true(column.values, q)
            peer = _Peer(column, q) if peer_runs else None
            for epsilon in EPSILONS:
                expected, deviation = law_error(column, q, epsilon, truth)
                drawn = _mean_error(_ours(column, q, epsilon, runs), truth)
                means = {"snugdp": expected}
                means["float, same constant"] = float_error(column, q, epsilon / (2 * max(q, 1 - q)), truth)
                means["float, usual constant"] = float_error(column, q, epsilon / 2, truth)
                if peer is not None:
                    means["OpenDP"] = _mean_error(peer.answers(epsilon, peer_runs), truth)
                tested, refused = _tested(column, q, epsilon, runs)
                means["test"] = _mean_error(tested, truth)
                doubt = abs(drawn - expected) / max(deviation / math.sqrt(runs), 1e-12 * column.upper)
                yield Errors(column.name, f"{q:g}", epsilon, means, refused, doubt)


def several(runs: int, columns: Sequence[MadeUp] | None = None) -> Iterator[Errors]:
    """Several quantiles for one budget, beside the float mechanism on equal parts of it; errors averaged over them."""
    for column in tables() if columns is None else columns:
        for question, qs in MANY.items():
            truths = [_true(column.values, q) for q in qs]
            for epsilon in EPSILONS:
                query = snugdp.Quantiles(q=qs, bounds=column.bounds, step=column.step, epsilon=epsilon)
                noise = Simulation(29)
                answers = np.array([query.release(column.values, noise=noise).value for _ in range(runs)])
                rates = [epsilon / len(qs) / (2 * max(q, 1 - q)) for q in qs]
                parts = [float_error(column, *each) for each in zip(qs, rates, truths, strict=True)]
                means = {
                    "snugdp": float(np.mean(np.abs(answers - truths))),
                    "float, equal parts": float(np.mean(parts)),
                }
                yield Errors(column.name, question, epsilon, means)


def readme_example(runs: int) -> tuple[float, float]:
    """The share of medians that are off by less than 3, and the mean error, on the incomes of the README."""
    incomes = 20_000 + 0.4 * np.arange(INCOMES)
    query, noise = snugdp.Median(bounds=INCOME_BOUNDS, epsilon=0.5), Simulation(31)
    middle = (incomes[INCOMES // 2 - 1] + incomes[INCOMES // 2]) / 2
    off = np.abs(np.array([query.release(incomes, noise=noise).value for _ in range(runs)], dtype=np.float64) - middle)
    return float(np.mean(off < NEAR)), float(np.mean(off))


def law_error(column: MadeUp, q: float, epsilon: float, truth: float) -> tuple[float, float]:
    """The expected error of our draw, and its standard deviation: sums over the law of all points of the grid."""
    bounds = column.bounds
    grid = StepGrid.between(bounds, column.step) if column.step else Grid.between(bounds)
    target, points = RankTarget.quantile(Fraction(str(q))), Points(grid.lower, grid.upper)
    draw = RankDraw.paid_by(Share.pure(Budget(epsilon)), target, points)
    groups = draw.groups(grid.cells(column.values, None)).whole()
    first, count, level, weight = (one.astype(np.float64) for one in groups.arrays)
    log_mass = np.log(count) + weight * math.log(2) - float(draw.rate) * level
    mass = np.exp(log_mass - log_mass.max())
    middle = truth / float(grid.unit)
    low, high = first - middle, first + count - 1 - middle
    square = (low**2 + low * high + high**2) / 3  # of a uniform number between the ends
    inside = (low < 0) & (high > 0)
    off = np.where(inside, (low**2 + high**2) / np.maximum(2 * (high - low), 1), np.abs(low + high) / 2)
    mean, second = (float(mass @ each / mass.sum()) for each in (off, square))
    unit = float(grid.unit)
    return mean * unit, math.sqrt(max(second - mean**2, 0.0)) * unit


def float_error(column: MadeUp, q: float, rate: float, truth: float) -> float:
    """The expected error of the exponential mechanism between sorted rows, uniform inside an interval; exactly."""
    rows = np.sort(np.clip(column.values, *column.bounds))
    ends = np.concatenate([[column.lower], rows, [column.upper]])
    low, high = ends[:-1], ends[1:]
    with np.errstate(divide="ignore"):
        log_weight = np.log(high - low) - rate * np.abs(np.arange(len(rows) + 1) - q * len(rows))
    weight = np.exp(log_weight - log_weight.max())
    near, far = np.abs(low - truth), np.abs(high - truth)
    inside = (low < truth) & (truth < high)
    spread = np.where(inside, (near**2 + far**2) / np.maximum(2 * (high - low), 1e-300), (near + far) / 2)
    return float(weight @ spread / weight.sum())


def _true(values: Floats, q: float) -> float:
    """The row of rank ceil(q n)."""
    return float(np.sort(values)[max(math.ceil(q * len(values)), 1) - 1])


def _mean_error(answers: Sequence[float], truth: float) -> float:
    return float(np.mean(np.abs(np.array(answers) - truth))) if len(answers) else math.nan


def _ours(column: MadeUp, q: float, epsilon: float, runs: int) -> list[float]:
    query = snugdp.Quantile(q=q, bounds=column.bounds, step=column.step, epsilon=epsilon)
    noise = Simulation(17)
    return [float(query.release(column.values, noise=noise).value or 0.0) for _ in range(runs)]


def _tested(column: MadeUp, q: float, epsilon: float, runs: int) -> tuple[list[float], float]:
    """By propose, test, release, with a beta from public quantities: the number of rows is public there."""
    query = snugdp.Quantile(
        q=q, bounds=column.bounds, step=column.step, epsilon=epsilon, delta=DELTA, method="test",
        neighbours="replace", rows=len(column.values),
    )  # fmt: skip
    noise = Simulation(19)
    found = [query.release(column.values, noise=noise).value for _ in range(runs)]
    kept = [value for value in found if value is not None]
    return kept, 1 - len(kept) / runs


class _Peer:
    """OpenDP's quantile of a column, which scores a list of candidates."""

    def __init__(self, column: MadeUp, q: float) -> None:
        try:
            self._dp: Any = importlib.import_module("opendp.prelude")
        except ImportError as missing:
            raise ImportError("this comparison needs OpenDP: pip install opendp; or give --peer-runs 0") from missing
        self._dp.enable_features("contrib")
        number = round((column.upper - column.lower) / column.step) + 1 if column.step else CANDIDATES
        self._candidates = np.linspace(column.lower, column.upper, number).tolist()
        self._rows, self._q = column.values.tolist(), q
        self._unit = self._made(1.0).map(1)  # the epsilon of a scale of 1

    def _made(self, scale: float) -> Any:
        dp = self._dp
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
        given = {"candidates": self._candidates, "alpha": self._q, "scale": scale}
        return dp.m.make_private_quantile(domain, dp.symmetric_distance(), dp.max_divergence(), **given)

    def answers(self, epsilon: float, runs: int) -> list[float]:
        """So many of them."""
        made = self._made(self._unit / epsilon)
        return [float(made(self._rows)) for _ in range(runs)]
