"""Adapters for the vectors of persons with several rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from flint import arb, fmpq
from scipy.special import ndtri

from snugdp.accounting import composition
from snugdp.accounting.composition import Atom
from snugdp.accounting.objective import glm
from snugdp.accounting.objective.growth import Family, Growth, bound_along, removal_deltas
from snugdp.accounting.objective.run import Kind, RunCost
from snugdp.mechanisms.persons.sensitivity import of_weighted_rows
from snugdp.numerics import balls
from snugdp.tables.persons import WEIGHT, weigh_rows
from snugdp.tables.sources import open_source
from tests.accounting.atoms import exact
from tests.accounting.objective.person_laws import Person, allowed, hockey, in_the_plane
from tests.tables.persons.tables import content

Adapter = Callable[..., Any]
_KINDS: dict[str, tuple[Family, Kind]] = {"class_T": ("class_t", "class_t"), "logistic": ("logistic", "logistic")}
_CELLS = 512
_LINE = np.linspace(-9.0, 9.0, 721)


def _growth(loss: str, m: float, kappa: float) -> Growth:
    return Growth(_KINDS[loss][0], exact(m) ** 2, exact(kappa))


def _run(loss: str, m: Fraction, kappa: Fraction) -> RunCost:
    return RunCost(m**2, kappa, _KINDS[loss][1], unit="person")


def _total(loss: str, m: float, kappa: float, c: float) -> float:
    tau = exact(c) * exact(m) / exact(kappa)
    with balls.precision(128):
        return float(_growth(loss, m, kappa).total(fmpq(tau.numerator, tau.denominator)).mid())


def _tradeoff(loss: str, m: float, kappa: float, alpha: float) -> float:
    """By the tangents along the path that begins there."""
    growth = _growth(loss, m, kappa)
    times, deviates = growth.path
    start = np.interp(-ndtri(alpha), deviates[::-1], times[::-1])
    bound = bound_along(growth, growth.deviates(np.array([start]), _CELLS)[0])
    with balls.precision(128):
        return float((bound.delta + balls.exp(balls.ball(bound.loss)) * arb(alpha)).mid())


def _profile(loss: str, m: float, kappa: float, e: float) -> float:
    (delta,) = removal_deltas(_growth(loss, m, kappa), [exact(e)], _CELLS)
    return float(delta.mid())


def _critical(m: float, kappa: float) -> dict[str, float]:
    return {loss: float(_run(loss, exact(m), exact(kappa)).critical_loss) for loss in _KINDS}


def _added(m: float, alpha: float) -> float:
    """By the bound that is its tangent: the least over all of them is the curve."""
    c = -float(ndtri(alpha / 2))
    at = m * c - m**2 / 2
    atom = _run("class_T", exact(m), exact(m)).atom
    return float(allowed(atom.add, np.array([at]))[0]) + math.exp(at) * alpha


@dataclass(frozen=True)
class NotAbove:
    """A number that may be smaller than the reference by a little, and larger by far less."""

    value: float
    below: float = 0.008
    above: float = 2e-4

    def agrees(self, expected: float) -> bool:
        return expected * (1 - self.below) <= self.value <= expected * (1 + self.above)


@dataclass(frozen=True)
class NotBelow:
    """The same the other way round."""

    value: float
    above: float = 0.008
    below: float = 2e-4

    def agrees(self, expected: float) -> bool:
        return expected * (1 - self.below) <= self.value <= expected * (1 + self.above)


def _calibration(
    epsilon: float, delta: float, weight: float, row_norm: float, loss: str, *, tau: float = 1.0, m_factor: float = 1.0
) -> dict[str, Any]:
    """A run on rows of weight 1, then ``for_persons``, has the m and the kappa that were asked for."""
    kind, e, d, w = _KINDS[loss][1], exact(epsilon), exact(delta), exact(weight)
    m = Fraction(glm.calibrate(e, d, kind, unit="person")) * exact(m_factor)
    plain, kappa = glm.free_kappa(e, m**2, kind, "person"), glm.largest_kappa(e, d, m**2, kind, unit="person")
    sigma, size = w * exact(row_norm) * exact(tau) / m, exact(row_norm) ** 2
    ridge = w * size / kappa
    run = RunCost((exact(row_norm) * exact(tau) / sigma) ** 2, size / ridge, kind).for_persons(w)
    assert (run.m_squared, run.kappa) == (m**2, kappa)
    return {
        "m": float(m),
        "sigma": float(sigma),
        "kappa_plain": float(plain),
        "ridge_plain": float(w * size / plain),
        "kappa": NotAbove(float(kappa)),
        "ridge": NotBelow(float(ridge)),
    }


def _pair(
    loss: str, rows: list[list[float]], weights: list[float], *, m: float, kappa: float, e: float, direction: str
) -> dict[str, Any]:
    """The exact pair, and the bound: that of the library must not be below it."""
    angles, offsets = np.array(rows).T
    person = Person(np.array(weights), np.ones(len(weights)), angles, offsets)
    laws = in_the_plane(_KINDS[loss][0], person, m, kappa, _LINE)
    run, at = _run(loss, exact(m), exact(kappa)), np.array([e])
    pair, branches = (laws, run.atom.remove) if direction == "remove" else (laws[::-1], run.atom.add)
    truth, bound = float(hockey(*pair, at)[0]), float(allowed(branches, at)[0])
    assert truth <= bound
    if direction == "add" or not run.person:
        return {"exact": truth, "bound": NotBelow(bound, above=0.01)}  # a line, where the curve bends
    (delta,) = removal_deltas(run.person.growth, [exact(e)], _CELLS)
    return {"exact": truth, "bound": min(float(run.person.at_zero), float(delta.mid()))}


def _weights(rows: list[int], k: int, rho: float) -> dict[str, Any]:
    """The weights of rows in a table, and the error formula of the notes."""
    table = pl.DataFrame({"person": np.repeat(np.arange(len(rows)), rows)})
    found = content(weigh_rows(open_source(table), ["person"], "person", k, 0), ("person", "weight"))
    by_person = {int(person): weight / WEIGHT for person, weight in found}
    each = np.array([by_person[person] for person in range(len(rows))])
    total = sum(min(one, k) for one in rows)
    spread = sum(w**2 * one * (1 + (one - 1) * rho) for w, one in zip(each, rows, strict=True))
    return {
        "row_weight": each.tolist(),
        "person_total": [w * one for w, one in zip(each, rows, strict=True)],
        "total": total,
        "noise_over_signal": k / total,
        "sampling": spread / total**2,
    }


def _gram(rows: list[list[float]], weight: float, ridge: float) -> dict[str, float]:
    x = np.array(rows)
    gram = weight * x.T @ x
    rank, total = min(x.shape), weight * len(rows)
    trace = float(np.trace(gram))
    return {
        "frobenius": float(np.linalg.norm(gram)),
        "bound": math.sqrt(of_weighted_rows(exact(total), Fraction(1)).l2_squared),
        "logdet": float(np.linalg.slogdet(np.eye(x.shape[1]) + gram / ridge)[1]),
        "logdet_bound": rank * math.log1p(trace / (rank * ridge)),
    }


def _composed(loss: str, m: float, kappa: float, mu: float, epsilon: float) -> dict[str, float]:
    atom = _run(loss, exact(m), exact(kappa)).atom

    def delta(atom: Atom) -> float:
        return composition.delta(mu_squared=exact(mu) ** 2, atoms=(atom,), epsilon=exact(epsilon))

    return {"remove": delta(Atom(atom.remove, atom.remove)), "add": delta(Atom(atom.add, atom.add))}


PERSONS: Mapping[str, Adapter] = {
    "person_growth": _total,
    "person_tradeoff": _tradeoff,
    "person_profile": _profile,
    "person_critical": _critical,
    "person_add_tradeoff": _added,
    "person_calibration": _calibration,
    "person_exact_pair": _pair,
    "person_weights": _weights,
    "person_gram": _gram,
    "person_composed": _composed,
}
