"""The noise behind the answers of a run: what was drawn less what was private, in units in which it is about normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from snugdp.audit.laws import reference
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Law
from snugdp.noise.recording import Site, private_inputs

Floats = NDArray[np.float64]

_LEVEL = 1  # at which gradients are read
_OFTEN = 0.1  # a coin that falls so seldom says little, and is far from normal
_EXTREME = 1e-15


def residuals(site: Site) -> Floats:
    """One number for every draw at this site, about standard normal if its law is right; none where nothing is seen."""
    inside = private_inputs(site)
    if site.method == "add":
        factor = Fraction(inside[1]) if len(inside) > 1 else Fraction(1)
        return _normal(site.law, [float((site.answer - inside[0]) / factor)]) if factor else np.empty(0)
    if site.method == "add_integers":
        return _normal(site.law, [float(int(a) - int(b)) for a, b in zip(site.answer, inside[0], strict=True)])
    if site.method in ("at_least", "reach", "chance"):
        return _coins(site, inside[0])
    if site.method == "posterior":
        return _white(site, *inside)
    if site.method == "minimiser" and site.law is not None:
        gradient, _ = inside[0].gradient(site.answer, _LEVEL)
        return np.array([float(-value) for value in gradient]) / reference.spread(site.law)
    return np.empty(0)


def fineness(site: Site) -> float:
    """About how many random bits the answer shows."""
    if site.method == "add_integers" and site.law is not None:
        return len(site.answer) * max(0.0, math.log2(reference.spread(site.law)))
    if site.method == "add" and site.law is not None:
        return max(0.0, math.log2(reference.spread(site.law)) - float(site.number("grid")))
    if site.method in ("posterior", "minimiser"):
        return len(site.answer) * max(0.0, math.log2(_least_spread(site)) - float(site.number("grid")))
    return 0.0


def _least_spread(site: Site) -> float:
    """What a coefficient varies by at least, whatever the others are: the noise over the largest curvature."""
    if site.method == "minimiser":
        assert isinstance(site.drawn, Gaussian)
        return float(site.drawn.sigma / private_inputs(site)[0].smoothness)
    unit, ridge, precision = (Fraction(site.number(name)) for name in ("unit", "ridge", "precision"))
    gram = private_inputs(site)[0]
    trace = unit * sum((Fraction(row[place]) for place, row in enumerate(gram)), Fraction(0))
    return 1 / math.sqrt(float(precision * (trace + ridge)))


def _normal(law: Law | None, values: Sequence[float]) -> Floats:
    """Residuals as the normal numbers of the same probability; whole ones by their size alone."""
    assert law is not None
    x = np.asarray(values, dtype=np.float64)
    if isinstance(law, DiscreteLaplace | DiscreteGaussian):
        spread = reference.spread(law) * (math.sqrt(2) if isinstance(law, DiscreteLaplace) else 1)
        return np.clip(x / spread, -6, 6)
    return np.asarray(special.ndtri(np.clip(reference.below(law, x), _EXTREME, 1 - _EXTREME)))


def _coins(site: Site, inside: Any) -> Floats:
    """Decisions that could have gone either way: one or zero, less their chance, over its deviation."""
    answers = np.atleast_1d(np.asarray(site.answer, dtype=np.float64))
    if site.method == "chance":
        chances = np.array([min(max(float(inside), 0.0), 1.0)])
    else:
        assert site.law is not None
        law, at = site.law, site.number("threshold")
        values = inside.tolist() if isinstance(inside, np.ndarray) else [inside]
        chances = np.array([_reaching(law, at, value) for value in values])
    open_ = (chances > _OFTEN) & (chances < 1 - _OFTEN)
    p = np.where(open_, chances, 0.5)
    return np.where(open_, (answers - p) / np.sqrt(p * (1 - p)), 0.0)


def _reaching(law: Law, at: Fraction, value: int | Fraction | float) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        return 1.0 if value > 0 else 0.0
    need = (at - Fraction(value)) / Fraction(reference.spread(law))
    if abs(need) > 40:
        return 0.0 if need > 0 else 1.0
    return reference.tail(law, float(at - Fraction(value)))


def _white(site: Site, gram: Any, cross: Any) -> Floats:
    unit, ridge, precision = (float(site.number(name)) for name in ("unit", "ridge", "precision"))
    system = unit * np.array(gram, dtype=np.float64) + ridge * np.eye(len(cross))
    mean = np.linalg.solve(system, unit * np.array(cross, dtype=np.float64))
    theta = np.array([float(value) for value in site.answer])
    white: Floats = np.linalg.cholesky(precision * system).T @ (theta - mean)
    return white
