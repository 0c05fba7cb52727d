"""The last draws of a walk, integrated instead of sampled: what is left to chance is only what came before them.

The last draws that do not look at each other's answers are one normal vector if their noise is Gaussian; its hockey
stick has a closed form. A posterior at the end is drawn many times, and a minimiser with one coefficient has a known
distribution function. All are means over the answers, so their mean over runs is the same as without them, and far
fewer runs are needed. A run that was refused is left as it is: with another last answer it might have gone on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.density.parts import part
from snugdp.audit.equality import equal
from snugdp.audit.finding import Case
from snugdp.audit.replay import Path, loss_of
from snugdp.noise import Gaussian
from snugdp.noise.exact.minimiser import Problem
from snugdp.noise.recording import Impossible, Replay, Site, Transcript, Witness, private_inputs

Data = TypeVar("Data")
Floats = NDArray[np.float64]
Law = Callable[[Floats], Floats]
_DRAWS = 400  # of a posterior
_FINE = Fraction(1, 1000)  # of a deviation: cells as good as none
_FAR = (1, 1, 10, 10, 1000)  # times as wide as the noise: an answer that decides anything is found out
_ATTEMPTS = 6  # to see a run that is not refused
_QUANTILES = np.linspace(-7.0, 7.0, 15)  # of the tilt of a minimiser
_BETWEEN = 6  # cells between two of them
_TOLERANCE = 1e-9  # by which floats may overstate a loss


def hockey(mu: float, epsilon: Floats) -> Floats:
    """The delta at every epsilon of N(mu, 1) against N(0, 1).

    >>> hockey(1.0, np.array([0.0, 1.0])).round(6).tolist()
    [0.382925, 0.126937]
    """
    from scipy.special import log_ndtr, ndtr

    if mu <= 0:
        return stick(0.0, epsilon)
    with np.errstate(over="ignore"):
        found = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
        result: Floats = np.clip(found, 0.0, 1.0)
    return result


def stick(loss: float, epsilon: Floats) -> Floats:
    """1 - e^(epsilon - loss) where that is positive; 1 where the loss is infinite or not a number."""
    if math.isnan(loss) or loss == math.inf:
        return np.ones_like(epsilon)
    found: Floats = -np.expm1(np.minimum(epsilon - (loss - _TOLERANCE * (1 + abs(loss))), 0.0))
    return found


def deltas(run: Path, epsilon: Floats, last: int = 0) -> Floats:
    """The delta at every epsilon that this run stands for; ``last`` draws at its end are one normal vector."""
    if run.reason:
        return np.ones_like(epsilon)
    last = 0 if run.refused else min(last, normal_end(run.here))
    if last:
        before = loss_of(run.pairs[:-last])
        square = sum((part(*pair).mu_squared for pair in run.pairs[-last:]), Fraction(0))
        return _shifted(lambda at: hockey(math.sqrt(square), at), before, epsilon)
    if run.refused or not run.pairs:
        return stick(run.loss, epsilon)
    if run.pairs[-1][0].method == "posterior":
        return _shifted(_posterior(*run.pairs[-1]), loss_of(run.pairs[:-1]), epsilon)
    if whole(run, 0):
        return _shifted(_minimiser(*run.pairs[-1]), loss_of(run.pairs[:-1]), epsilon)
    return stick(run.loss, epsilon)


def whole(run: Path, last: int) -> bool:
    """Whether no chance comes before the last draws, so that every run is like this one.

    A choice or a number of runs does not look at data, but what comes after it may look at the choice.
    """
    if run.refused or run.reason or not run.pairs:
        return False
    last = min(last, normal_end(run.here)) or int(_one_coefficient(run.pairs[-1][0]))
    return bool(last) and all(one.method == "reveal" for one, _ in run.pairs[:-last])


def again(first: Path, run: Path, last: int) -> bool:
    """Whether this run asks what the first one asked, and no chance comes before: then its deltas are the same."""
    if not (whole(first, last) and whole(run, last)) or len(first.pairs) != len(run.pairs):
        return False
    sides = [(a, b) for one, two in zip(first.pairs, run.pairs, strict=True) for a, b in zip(one, two, strict=True)]
    return all(a.drawn == b.drawn and _same_inside(a, b) for a, b in sides)


def _same_inside(one: Site, two: Site) -> bool:
    """The same private numbers; of a minimiser, the same slopes at two points."""
    if one.method != "minimiser":
        return equal(private_inputs(one), private_inputs(two))
    (first,), (second,) = private_inputs(one), private_inputs(two)
    return all(first.gradient(at, 1)[0] == second.gradient(at, 1)[0] for at in (one.answer, two.answer))


def independent_end(case: Case[Data], data: Data, seed: int, shrink: float = 1.0) -> int:
    """How many draws at the end do not look at each other's answers: found out by changing these answers, a lot.

    None of them may decide whether something is released, or the last of them is not always the last.
    """
    for attempt in range(_ATTEMPTS):
        witness = Witness(seed + attempt, shrink=shrink)
        if not case.run(data, witness).refused:
            break
    else:
        return 0
    given = witness.transcript()
    last = normal_end(given)
    while last and not all(_unmoved(case, data, given, last, seed, shrink, far) for far in _FAR):
        last -= 1
    return last


def normal_end(given: Transcript) -> int:
    """How many draws at the end add Gaussian noise, on a grid far finer than it."""
    count = 0
    for site in reversed(given.sites):
        if not _normal(site):
            break
        count += 1
    return count


def _normal(site: Site) -> bool:
    if site.method not in ("add", "add_integers") or len(site.inputs) > 1 or not isinstance(site.drawn, Gaussian):
        return False
    width = Fraction(2) ** site.number("grid") if site.method == "add" else Fraction(1)
    return width <= _FINE * site.drawn.sigma


def _unmoved(  # noqa: PLR0917
    case: Case[Data], data: Data, given: Transcript, last: int, seed: int, shrink: float, far: int
) -> bool:
    """Whether other answers at the end, from noise ``far`` times as wide, leave what is private there as it was."""
    other = Witness(seed + far, shrink=far)
    moved = tuple(replace(site, answer=_again(other, site)) for site in given.sites[-last:])
    replay = Replay(Transcript(given.sites[:-last] + moved, given.lots), seed, shrink=shrink)
    try:
        refused = case.run(data, replay).refused
    except Impossible:
        return False
    if refused or not replay.finished:
        return False
    pairs = zip(given.sites[-last:], replay.transcript().sites[-last:], strict=True)
    return all(equal(private_inputs(a), private_inputs(b)) for a, b in pairs)


def _again(source: Witness, site: Site) -> Any:
    assert site.drawn is not None
    if site.method == "add":
        return source.add(site.inputs[0], site.drawn, grid=site.number("grid"))
    return source.add_integers(site.inputs[0], site.drawn)


def _shifted(delta: Law, before: float, epsilon: Floats) -> Floats:
    if math.isnan(before) or before == math.inf:
        return np.ones_like(epsilon)
    if before == -math.inf:
        return np.zeros_like(epsilon)
    return delta(epsilon - before)


def _posterior(here: Site, there: Site) -> Law:
    ends = _posterior_losses(here, there)
    return lambda at: np.asarray(np.mean([stick(one, at) for one in ends], axis=0))


def _minimiser(here: Site, there: Site) -> Law:
    """The two laws on cells of the only coefficient: a delta that is certainly there, and hardly below all of it."""
    (one,), (two,) = private_inputs(here), private_inputs(there)
    sigma = here.drawn.sigma if isinstance(here.drawn, Gaussian) else Fraction(1)
    coarse = np.sort([float(one.solve(np.array([z * float(sigma)]))[0]) for z in _QUANTILES])
    ends = np.interp(np.arange(_BETWEEN * (len(coarse) - 1) + 1) / _BETWEEN, np.arange(len(coarse)), coarse)
    chances = [_cells(problem, ends, sigma) for problem in (one, two)]

    def law(at: Floats) -> Floats:
        found: Floats = np.maximum(chances[0][:, None] - np.exp(at) * chances[1][:, None], 0.0).sum(axis=0)
        return found

    return law


def _cells(problem: Problem, ends: Floats, sigma: Fraction) -> Floats:
    """The chances of the cells: the minimiser is below t where the tilt is above minus the slope at t."""
    from scipy.special import ndtr

    slopes = np.array([float(problem.gradient([Fraction(t)], 1)[0][0] / sigma) for t in ends.tolist()])
    edges = np.concatenate([[-np.inf], slopes, [np.inf]])
    low, high = edges[:-1], edges[1:]
    found: Floats = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return found


def _one_coefficient(site: Site) -> bool:
    return site.method == "minimiser" and len(site.answer) == 1


def _posterior_losses(here: Site, there: Site) -> list[float]:
    """The losses of fresh draws of a posterior. The generator starts from the answer: another run, other draws."""
    (A, c), (B, e) = (system(site) for site in (here, there))
    precision = float(here.number("precision"))
    start = np.random.default_rng([abs(hash(value)) for value in here.answer])
    mean, other = np.linalg.solve(A, c), np.linalg.solve(B, e)
    normal = start.normal(size=(_DRAWS, len(c)))
    steps = np.linalg.solve(np.linalg.cholesky(A).T, normal.T).T / math.sqrt(precision)
    away = mean + steps - other
    quadratic = precision * np.einsum("ij,jk,ik->i", away, B, away)
    ratio = np.linalg.slogdet(A)[1] - np.linalg.slogdet(B)[1]
    found: list[float] = ((ratio + quadratic - (normal**2).sum(axis=1)) / 2).tolist()
    return found


def system(site: Site) -> tuple[Floats, Floats]:
    """The matrix and the right side of the equations that the mean of a posterior solves."""
    gram, cross = private_inputs(site)
    unit, ridge = site.number("unit"), site.number("ridge")
    matrix = np.array([[float(unit * int(value)) for value in row] for row in gram]) + float(ridge) * np.eye(len(gram))
    return matrix, np.array([float(unit * int(value)) for value in cross])
