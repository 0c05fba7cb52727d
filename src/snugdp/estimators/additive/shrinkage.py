"""Line or curve: curves are shrunk towards their lines where all bends look like noise. Post-processing.

A fit releases the coefficients of bends, and how much noise was added to its objective. Bends of a straight effect are
noise alone, of a size that released numbers tell but for one factor: how much the rows say (``curvature``). It is the
one that makes all released bends together most likely. The size of the true bends of a column is not known either: all
sizes count, from 0 on, as far as its released bends make them likely. That tells which part of what was released is no
noise.

The curves of a fit were made for each other. Where rows hold a few values only, a line and its bends share an effect;
where a column hardly moves, bends share the constant; where columns are related, one makes up for another. To drop the
bends of one column and keep those of another may cost far more than their noise. So how much of its bends a column
keeps is mostly a matter of the column that bends most surely, and a little of its own. How far the true bends may lie
from what is kept is the width of a curve's band. All of it is a function of what was released, and costs nothing.
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

# Chosen on five kinds of made-up tables and eight tables from R packages: docs/benchmarks.md.
_SHARP = 2  # how fast curves go from lines to all of their bends
_KEPT = 6.0  # bends are kept in doubt: they cost little where they are noise, and much where they are missed
_SHARED = 0.75  # of how sure the bends of a column are is how sure they are of the surest one
_FLAT = 1e-9  # the least mean square of a bend
_NOTHING = 1e-300


@dataclass(frozen=True, eq=False)
class SettledBends:
    """The coefficients with shrunken bends. ``spread``: by column, the covariance of its line and bends."""

    theta: Floats
    spread: Mapping[str, Floats]


def settled(theta: Floats, layout: CurvedLayout, rows: float, released: Mapping[str, float]) -> SettledBends | None:
    """What is kept of one linear function; None where released numbers do not tell how much noise there is."""
    curved = {name: at for name, at in layout.curved.items() if at[1].kind.cells > 1}
    ridge, sigma = released.get("ridge"), released.get("sigma")
    if theta.ndim != 1 or not curved or not ridge or not sigma:
        return None
    steepest = released.get("tau")
    variance, most = (_LABELS, _LABELS) if steepest is None else (steepest**2, 1.0)
    weight = rows * layout.scaled**2
    parts = [_Column(theta[at : at + scale.kind.cells], scale) for at, scale in curved.values()]
    prior = _SIZES * sigma / ridge

    choices = [_Noise(ridge, sigma**2, variance * weight, curvature * most * weight) for curvature in _CURVATURES]
    noise = max(choices, key=lambda one: sum(part.evidence(one, prior) for part in parts))
    sure = np.array([part.sure(noise, prior) for part in parts])
    kept = _kept(sure.max() ** _SHARED * sure ** (1 - _SHARED))
    whole, spread = theta.copy(), {}
    for (name, (at, scale)), part, share in zip(curved.items(), parts, kept.tolist(), strict=True):
        whole[at + 1 : at + scale.kind.cells] *= share
        spread[name] = part.spread(noise, prior, share)
    return SettledBends(whole, spread)


def _kept(sure: Floats) -> Floats:
    """How much of its bends a column keeps, of which so much is no noise.

    >>> _kept(np.array([0.05, 0.25, 0.5, 0.9])).round(2).tolist()
    [0.09, 0.8, 0.97, 1.0]
    """
    odds = (_KEPT * sure) ** _SHARP
    found: Floats = odds / (odds + (1 - sure) ** _SHARP)
    return found


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

    def spread(self, noise: _Noise, prior: Floats, kept: float) -> Floats:
        """The covariance of the line and the bends, around the line and what is kept of the bends."""
        seen, variance, left = self._seen(noise)
        trusted, weights = self._trusted(noise, prior)
        off = trusted * (seen / left)[:, None] - kept * seen[:, None]
        own = (trusted * (variance / left**2)[:, None] + off**2) @ weights
        turned, cells = self.scale.bends.turned, self.scale.kind.cells
        spread = np.zeros((cells, cells))
        spread[0, 0] = noise.of(1.0)[0]
        spread[1:, 1:] = (turned * own) @ turned.T
        return spread
