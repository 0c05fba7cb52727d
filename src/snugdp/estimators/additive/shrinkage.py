"""Line or curve: curves are shrunk towards their lines where all bends look like noise. Post-processing.

So are those of labels; for numbers as answers what bends count for is released after the fit, and only bands are made.

A fit releases the coefficients of bends, and how much noise was added to its objective. Bends of a straight effect are
noise alone, of a size that released numbers tell but for one factor: how much the rows say (``curvature``). It is the
one that makes all released bends together most likely. The size of the true bends of a column is not known either: all
sizes count, from 0 on, as far as its released bends make them likely. That tells which part of what was released is no
noise.

The curves of a fit were made for each other. Where rows hold a few values only, a line and its bends share an effect;
where a column hardly moves, bends share the constant; where columns are related, one makes up for another. To drop the
bends of one column, or of all, may cost far more than their noise. So all columns keep the same part of their bends: by
the column that bends most surely, and more where there are so many rows for so much noise that bends can cost little.
How far the true bends may lie from what is kept is the width of a curve's band. All of it is a function of what was
released, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from snugdp.tables.layouts.curved import CurvedLayout, StandardCurve

Floats = NDArray[np.float64]
_CURVATURES = np.geomspace(0.1, 1.0, 6)  # in parts of the largest
_SIZES = np.concatenate([[0.0], np.geomspace(1e-2, 1e3, 26)])  # of true bends, in units of noise over ridge
_BELIEF = np.log(np.concatenate([[0.5], np.full(26, 0.5 / 26)]))  # half: no bends at all
_LABELS = 0.25  # the largest curvature of a logistic loss, and the largest variance of its slope

# Chosen on five kinds of made-up tables and nineteen tables from R packages: docs/benchmarks.md.
_SURE_FACTOR = 5.0  # bends are kept in doubt: as noise they cost little, and much where they are missed
_SIGNAL = 12.0  # rows * m / entries, at which half of them is kept, whatever they look like,
_MOST_ODDS = 2.0  # and with many more rows two thirds: a third of what is missed, or less than half of the noise
_FLAT = 1e-9  # the least mean square of a bend, and the least that may be noise
_NOTHING = 1e-300


@dataclass(frozen=True, eq=False)
class SettledBends:
    """The coefficients with shrunken bends. ``spread``: by column, the covariance of its line and bends."""

    theta: Floats
    spread: Mapping[str, Floats]


def settled(theta: Floats, layout: CurvedLayout, rows: float, released: Mapping[str, float]) -> SettledBends | None:
    """What is kept of one linear function, bends that were weighed as they are.

    None where released numbers do not tell how much noise there is.
    """
    curved = {name: at for name, at in layout.curved.items() if at[1].kind.cells > 1}
    ridge, sigma, m = (released.get(name) for name in ("ridge", "sigma", "m"))
    if theta.ndim != 1 or not curved or not ridge or not sigma or not m:
        return None
    weighed = released.get("bends_weight")
    times, line = _times(len(theta), layout, released), released.get("lines_weight", 1.0)
    theta = theta / times
    steepest = released.get("tau")
    variance, most = (_LABELS, _LABELS) if steepest is None else (steepest**2, 1.0)
    weight = rows * layout.scaled**2
    parts = [_Column(theta[at : at + scale.kind.cells], scale) for at, scale in curved.values()]
    prior = _SIZES * sigma / ridge
    choices = [_Noise(ridge, sigma**2, variance * weight, curvature * most * weight) for curvature in _CURVATURES]
    noise = max(choices, key=lambda one: sum(part.evidence(one, prior) for part in parts))
    kept = weighed or _kept(max(part.sure(noise, prior) for part in parts), rows * m / len(theta))
    whole, spread, stretch = theta * times, {}, released.get("stretch", 1.0)
    for (name, (at, scale)), part in zip(curved.items(), parts, strict=True):
        whole[at + 1 : at + scale.kind.cells] *= 1.0 if weighed else kept
        spread[name] = stretch**2 * part.spread(noise, prior, kept, line)
    return SettledBends(whole, spread)


def _times(entries: int, layout: CurvedLayout, released: Mapping[str, float]) -> Floats:
    """What each released coefficient was multiplied with, noise and all.

    Of labels, to give back what a ridge took; of numbers, the weights of lines and bends.
    """
    times = np.full(entries, released.get("stretch", 1.0))
    for at, scale in layout.curved.values():
        times[at] *= released.get("lines_weight", 1.0)
        times[at + 1 : at + scale.kind.cells] *= released.get("bends_weight", 1.0)
    return times


def _kept(sure: float, signal: float) -> float:
    """How much of all bends is kept, where so much of those of one column is no noise.

    >>> [round(_kept(sure, 1.0), 2) for sure in (0.05, 0.25, 0.5, 0.9)]
    [0.07, 0.74, 0.96, 1.0]
    >>> round(_kept(0.05, 48.0), 2)
    0.67
    """
    odds = (_SURE_FACTOR * sure / max(1 - sure, _FLAT)) ** 2 + min((signal / _SIGNAL) ** 2, _MOST_ODDS)
    return 1 - 1 / (1 + odds)


@dataclass(frozen=True)
class _Noise:
    """Of coefficients whose entries have some mean square."""

    ridge: float
    added: float
    sampled: float
    information: float

    def of(self, squares: Any) -> tuple[Any, Any]:
        """Its variance, and the part of a coefficient that the ridge leaves."""
        total = self.information * squares + self.ridge
        return (self.added + self.sampled * squares) / total**2, self.information * squares / total


@dataclass(frozen=True, eq=False)
class _Column:
    """The released line and bends of one number."""

    theta: Floats
    scale: StandardCurve

    def _seen(self, noise: _Noise) -> tuple[Floats, Floats, Floats]:
        """Along the axes of the bends: what was released, the variance of its noise, what the ridge left."""
        bends = self.scale.bends
        variance, left = noise.of(np.maximum(bends.squares * self.scale.bend**2, _FLAT))
        return bends.turned.T @ self.theta[1:], variance, left

    def _likely(self, noise: _Noise, prior: Floats) -> Floats:
        """The logarithm of how likely every size of true bends is, and of what was seen, together."""
        seen, variance, left = self._seen(noise)
        whole = variance[:, None] + (prior * left[:, None]) ** 2
        found: Floats = _BELIEF - 0.5 * (np.log(whole) + seen[:, None] ** 2 / whole).sum(axis=0)
        return found

    def evidence(self, noise: _Noise, prior: Floats) -> float:
        """How likely what was released is."""
        return float(logsumexp(self._likely(noise, prior)))

    def _trusted(self, noise: _Noise, prior: Floats) -> tuple[Floats, Floats]:
        """The part of what was seen that is no noise, for every axis and size; and how likely the sizes are."""
        _, variance, left = self._seen(noise)
        true = (prior * left[:, None]) ** 2
        return true / (variance[:, None] + true), softmax(self._likely(noise, prior))

    def sure(self, noise: _Noise, prior: Floats) -> float:
        """The part that is no noise of what the released bends are in predictions, in mean squares."""
        trusted, weights = self._trusted(noise, prior)
        energy = np.maximum(self.scale.bends.squares, _FLAT) * self._seen(noise)[0] ** 2
        return float(energy @ (trusted @ weights)) / max(float(energy.sum()), _NOTHING)

    def spread(self, noise: _Noise, prior: Floats, kept: float, line: float) -> Floats:
        """The covariance of the line, which counts ``line`` times, and the bends, around what is kept of them."""
        seen, variance, left = self._seen(noise)
        trusted, weights = self._trusted(noise, prior)
        off = trusted * (seen / left)[:, None] - kept * seen[:, None]
        own = (trusted * (variance / left**2)[:, None] + off**2) @ weights
        turned, cells = self.scale.bends.turned, self.scale.kind.cells
        spread = np.zeros((cells, cells))
        spread[0, 0] = line**2 * noise.of(1.0)[0]
        spread[1:, 1:] = (turned * own) @ turned.T
        return spread
