"""Caps on what a person contributes, found in private, beside the best cap in hindsight and beside rows that are kept.

Made-up panels: persons with Zipf, geometric and lognormal numbers of rows, each row in a random one of some cells. For
every panel the mean absolute error of a count given the cap is exact, and so is the law of a cap that is drawn; where
it is read from noisy counts, these are simulated a hundred times. Rows that are kept, and caps on cells, are drawn
once.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, logsumexp

from snugdp import Budget
from snugdp.mechanisms.persons.tail_choice import MIN_NUMBERS, TailChoice, restored
from snugdp.mechanisms.persons.totals import FINE, PersonVectors, TotalsBlock, divided
from snugdp.mechanisms.statistics.joint import deviation
from snugdp.noise import DiscreteLaplace
from snugdp.propose.share import Share
from snugdp.queries.statistics.base import budget_shares
from snugdp.queries.statistics.persons import better_share
from snugdp.release.persons import LARGEST_CAP
from snugdp.tables.persons.totals import Totals

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

SHAPES: dict[str, Callable[[np.random.Generator, int], Integers]] = {
    "Zipf, 2.2": lambda rng, n: rng.zipf(2.2, n),
    "geometric, mean 6": lambda rng, n: rng.geometric(1 / 6, n),
    "lognormal, median 3.7": lambda rng, n: np.maximum(1, np.rint(np.exp(rng.normal(1.3, 1.0, n)))).astype(np.int64),
}
CELLS = (1, 10, 50, 200)
_NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
_GONE = 20  # of the longest persons
_READINGS = 100  # of a cap from noisy counts
_DRAWS = 20  # of a release under each of them
_LONGEST = 10**6  # rows of a person
_GRID = tuple(Fraction(round(4 * 2 ** (step / 4)), 4) for step in range(45))  # caps that are tried in hindsight


@dataclass(frozen=True)
class CapError:
    """Mean absolute errors of a count, over that of the best cap in hindsight with the whole budget.

    ``private``: with a cap found in private, and with what it is estimated to cut off added again where that is done;
    ``alone``: without. ``gaussian``: ``alone`` with Gaussian noise throughout, over the best cap with such noise, which
    is another number where noise is pure. ``largest``: with the public bound. ``ten``: with a public cap of 10.
    ``kept``: with the best number of kept rows, as OpenDP bounds persons. ``bounded``: with the best numbers of cells
    and of rows in each, as PipelineDP does. ``others``: these two with the noise of those libraries, by name.
    ``floor``: no choice of a cap alone for the same part of the budget stays below it both here and on the same panel
    without its 20 longest persons; not a number below 50 cells.
    """

    shape: str
    cells: int
    noise: str
    best_cap: float
    best: float
    private: float
    alone: float
    gaussian: float
    largest: float
    ten: float
    kept: float
    bounded: float
    others: dict[str, float]
    floor: float = math.nan


def run(
    people: int = 10_000, tables: int = 5, epsilon: float = 1.0, delta: float = 1e-6, *, first: int = 0
) -> Iterator[CapError]:
    """All shapes and numbers of cells; errors are means over so many panels, from the ``first`` on."""
    budget = Budget(epsilon, delta)
    for cells in CELLS:
        for shape in SHAPES:
            yield _mean([_measured(shape, cells, people, seed, budget) for seed in range(first, first + tables)])


def _measured(shape: str, cells: int, people: int, seed: int, budget: Budget) -> CapError:
    rng = np.random.default_rng(seed)
    rows = np.minimum(SHAPES[shape](rng, people), _LONGEST)
    who = np.repeat(np.arange(people), rows)
    cell = rng.integers(0, cells, len(who))
    totals, truth = gathered(who, cell, cells), np.bincount(cell, minlength=cells)
    share = better_share(budget_shares(budget), cells, LARGEST_CAP)
    errors = {cap: _error(share, cap, cells, totals, truth) for cap in _GRID}
    best_cap = min(errors, key=errors.__getitem__)
    best = errors[best_cap]
    kept = _kept(rng, who, cell, cells)
    gaussian = Share.gaussian(budget)
    unit = _block(gaussian).unit_noise
    both = {"OpenDP": _moved(kept, truth), "PipelineDP": _moved(_bounded(rng, totals, cells), truth)}
    others = {
        name: min(_gaussian(lost, length * sigma) for length, lost in both[name]) for name, sigma in rivals(budget)
    }
    readings = np.random.default_rng([seed, 1])  # each panel has noise of its own
    private, alone = _in_private(share, cells, totals, truth, readings)
    return CapError(
        shape, cells, "pure" if share.is_pure else "Gaussian", float(best_cap), best,
        private / best,
        alone / best,
        _by_gaussian(gaussian, cells, totals, truth, readings) if share.is_pure else alone / best,
        _error(share, Fraction(LARGEST_CAP), cells, totals, truth) / best,
        _error(share, Fraction(10), cells, totals, truth) / best,
        min(_expected(share, lost, most) for most, lost in both["OpenDP"]) / best,
        min(_gaussian(lost, length * unit) for length, lost in both["PipelineDP"]) / best,
        {name: error / best for name, error in others.items()},
        math.nan
        if cells < MIN_NUMBERS or share.is_pure
        else _floor(share, cells, totals, np.array(list(errors.values()))),
    )  # fmt: skip


def gathered(who: Integers, cell: Integers, cells: int) -> Totals:
    """The rows of persons, counted by cell."""
    pairs, counts = np.unique(who * cells + cell, return_counts=True)
    person = np.unique(pairs // cells, return_inverse=True)[1]
    return Totals(person, pairs % cells, (counts,), np.zeros(person[-1] + 1, dtype=bool))


def _block(share: Share) -> TotalsBlock:
    return TotalsBlock((0,), ((1,),), (Fraction(1),), share, "release")


def _error(share: Share, cap: Fraction, cells: int, totals: Totals, truth: Integers) -> float:
    """The mean absolute error of a count under a public cap."""
    sums = np.array(_block(share).cut(cap, cells, totals), dtype=np.float64) / FINE
    return _expected(share, sums - truth, float(cap))


def _expected(share: Share, lost: Floats, cap: float) -> float:
    """The mean of |what is lost + noise|, for noise of this share under a cap."""
    law = _block(share).noise(Fraction(cap), 1).laws[0]
    if isinstance(law, DiscreteLaplace):
        scale = float(law.scale) / FINE
        return float(np.mean(np.abs(lost) + scale * np.exp(-np.abs(lost) / scale)))
    return _gaussian(lost, deviation(law) / FINE)


def _gaussian(lost: Floats, sigma: float) -> float:
    spread = sigma * np.sqrt(2 / np.pi) * np.exp(-(lost**2) / (2 * sigma**2))
    return float(np.mean(spread + lost * erf(lost / (sigma * np.sqrt(2)))))


def _in_private(
    share: Share, cells: int, totals: Totals, truth: Integers, rng: np.random.Generator
) -> tuple[float, float]:
    """The mean over the caps that may be found; and without what is added again."""
    drawn, rest = divided(share, cells, in_private=True)
    vectors = PersonVectors((_block(rest),), cells, LARGEST_CAP, in_private=True, share=drawn)
    if isinstance(vectors.cap_choice, TailChoice):
        return _read(vectors, vectors.cap_choice, totals, truth, rng)
    scores = np.array([float(score) for score in vectors.cap_choice.scores(vectors.above(totals))])
    chances = np.exp(scores - logsumexp(scores))
    likely = [place for place in range(len(chances)) if chances[place] > 1e-9]
    error = sum(
        float(chances[place]) * _error(rest, vectors.candidates[place], cells, totals, truth) for place in likely
    )
    return error, error


def _by_gaussian(share: Share, cells: int, totals: Totals, truth: Integers, rng: np.random.Generator) -> float:
    """The error with a cap found in private over that of the best one."""
    best = min(_error(share, cap, cells, totals, truth) for cap in _GRID)
    return _in_private(share, cells, totals, truth, rng)[1] / best


def _read(
    vectors: PersonVectors, choice: TailChoice, totals: Totals, truth: Integers, rng: np.random.Generator
) -> tuple[float, float]:
    """The means over readings of noisy counts, each with some draws of the release."""
    block, counts = vectors.blocks[0], np.array(vectors.between(totals), dtype=float)
    cut, errors = {}, []
    for noisy in counts + float(choice.law.sigma) * rng.standard_normal((_READINGS, len(counts))):
        reading = choice.read(np.rint(noisy).tolist())
        cap = vectors.candidates[reading.place]
        if cap not in cut:
            cut[cap] = np.array(block.cut(cap, vectors.cells, totals), dtype=np.float64) / FINE
        sigma = block.unit_noise * float(cap)
        drawn = cut[cap] + sigma * rng.standard_normal((_DRAWS, vectors.cells))
        whole = float(np.abs(restored(drawn, reading.lost, sigma) - truth).mean())
        errors.append((whole, _gaussian(cut[cap] - truth, sigma)))
    both = np.mean(errors, axis=0)
    return float(both[0]), float(both[1])


def _floor(share: Share, cells: int, totals: Totals, errors: Floats) -> float:
    """The best that is left to a choice that hardly tells the panel from the one without its longest persons."""
    drawn, _ = divided(share, cells, in_private=True)
    assert drawn is not None
    longest = np.argsort(_block(share).lengths(totals))[-_GONE:]
    here = ~np.isin(totals.person, longest)
    fewer = Totals(totals.person[here], totals.cell[here], (totals.values[0][here],), totals.too_many)
    truth = np.bincount(fewer.cell, fewer.values[0], minlength=cells).astype(np.int64)
    without = np.array([_error(share, cap, cells, fewer, truth) for cap in _GRID])
    moved = _GONE * math.sqrt(drawn.mu_squared)
    return max(1.0, two_points(errors / errors.min(), without / without.min(), moved))


def two_points(first: Floats, second: Floats, moved: float) -> float:
    """The least value of the larger one of two expected errors, for choices that tell two tables apart no better than
    normal deviates that are ``moved`` apart (``mechanisms/persons/persons.proof.md``, Theorem 6).

    >>> round(two_points(np.array([1.0, 2.0]), np.array([2.0, 1.0]), 0.0), 3)
    1.5
    """
    x = np.linspace(-8, 8 + moved, 2_001)
    one, other = (np.exp(-((x - middle) ** 2) / 2) / math.sqrt(2 * math.pi) for middle in (0.0, moved))
    found = 0.0
    for weight in np.linspace(0.02, 0.98, 25):
        best = (weight * np.outer(first, one) + (1 - weight) * np.outer(second, other)).min(axis=0)
        found = max(found, float(best.sum() * (x[1] - x[0])))
    return found


def _moved(counts: dict[float, Integers], truth: Integers) -> list[tuple[float, Floats]]:
    """What is lost of every count, by the length that noise has to hide."""
    return [(length, (each - truth).astype(np.float64)) for length, each in counts.items()]


def _bounded(rng: np.random.Generator, totals: Totals, cells: int) -> dict[float, Integers]:
    """The counts of at most so many random cells of each person, and of at most so many rows in each."""
    order = np.lexsort((rng.random(len(totals.person)), totals.person))
    person, cell, rows = totals.person[order], totals.cell[order], totals.values[0][order]
    place = np.arange(len(person)) - np.searchsorted(person, person)
    found: dict[float, Integers] = {}
    for some in [most for most in _NUMBERS if most <= 2 * cells]:
        for each in _NUMBERS:
            kept = np.bincount(cell, np.where(place < some, np.minimum(rows, each), 0), minlength=cells)
            length = float(each * np.sqrt(min(some, cells)))
            if length not in found or kept.sum() > found[length].sum():
                found[length] = kept.astype(np.int64)
    return found


def _kept(rng: np.random.Generator, who: Integers, cell: Integers, cells: int) -> dict[float, Integers]:
    """The counts of at most so many random rows of each person."""
    order = np.lexsort((rng.random(len(who)), who))
    sorted_who = who[order]
    first = np.searchsorted(sorted_who, sorted_who)
    place = np.arange(len(who)) - first
    return {most: np.bincount(cell[order][place < most], minlength=cells) for most in _NUMBERS}


def rivals(budget: Budget) -> Iterator[tuple[str, float]]:
    """The standard deviation of Gaussian noise for one row by other libraries, as far as they are installed."""
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    try:
        import opendp.prelude as dp
    except ImportError:
        pass
    else:
        dp.enable_features("contrib")
        space = dp.atom_domain(T=int), dp.absolute_distance(T=float)

        def made(scale: float) -> Any:
            return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale)), delta)

        scale = dp.binary_search_param(made, d_in=1.0, d_out=(epsilon, delta), T=float)
        yield "OpenDP", float(scale)
    try:
        computations = importlib.import_module("pipeline_dp.dp_computations")
    except ImportError:
        return
    yield "PipelineDP", float(computations.compute_sigma(epsilon, delta, 1.0))


def _mean(found: list[CapError]) -> CapError:
    first = found[0]
    means = {
        name: float(np.mean([getattr(one, name) for one in found]))
        for name in ("best_cap", "best", "private", "alone", "gaussian", "largest", "ten", "kept", "bounded", "floor")
    }
    others = {name: float(np.mean([one.others[name] for one in found])) for name in first.others}
    return CapError(first.shape, first.cells, first.noise, **means, others=others)
