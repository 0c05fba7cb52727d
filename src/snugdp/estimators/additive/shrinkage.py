"""Line or curve: every curve is shrunk towards its line as far as its bends look like noise. Post-processing.

A fit releases the coefficients of bends, and how much noise was added to its objective. Bends of a straight effect are
noise alone, of a size that released numbers tell but for two factors: how much the rows say (``curvature``), and how
much larger the noise is than where all columns are unrelated (``louder``). Both are those that make all released bends
together most likely. The size of the true bends of a column is not known either: all sizes count, from 0 on, as far as
its released bends make them likely. That tells which part of what was released is no noise. Where it is most, all bends
are kept as they are; where it is little, none is. They are not shrunk one by one: where rows hold a few values only,
the line and the bends share an effect, and without some of them it would be another. How far the true bends may lie
from what is likely is the width of the curve's band. All of it is a function of what was released, and costs nothing.
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
_LOUDER = np.geomspace(1.0, 8.0, 7)  # the noise of bends, as against unrelated columns
_SIZES = np.concatenate([[0.0], np.geomspace(1e-2, 1e3, 26)])  # of true bends, in units of noise over ridge
_BELIEF = np.log(np.concatenate([[0.5], np.full(26, 0.5 / 26)]))  # half: no bends at all
_LABELS = 0.25  # the largest curvature of a logistic loss, and the largest variance of its slope
_SHARP = 2  # how fast a curve goes from its line to all of its bends
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

    def tried(curvature: float, louder: float) -> _Noise:
        return _Noise(ridge, louder * sigma**2, louder * variance * weight, curvature * most * weight)

    choices = [tried(curvature, louder) for curvature in _CURVATURES for louder in _LOUDER]
    noise = max(choices, key=lambda one: sum(part.evidence(one, prior) for part in parts))
    whole = theta.copy()
    spread = {}
    for (name, (at, scale)), part in zip(curved.items(), parts, strict=True):
        whole[at + 1 : at + scale.kind.cells], spread[name] = part.kept(noise, prior)
    return SettledBends(whole, spread)


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

    def kept(self, noise: _Noise, prior: Floats) -> tuple[Floats, Floats]:
        """All bends, or none of them, or a part of all where that is in doubt; and the covariance of line and bends."""
        seen, variance, left = self._seen(noise)
        weights = softmax(self._likely(noise, prior))
        trusted = (prior * left[:, None]) ** 2 / (variance[:, None] + (prior * left[:, None]) ** 2)
        means = seen[:, None] * trusted
        spread_of_means = (means - (means @ weights)[:, None]) ** 2
        own = (trusted * (variance / left**2)[:, None] + spread_of_means) @ weights
        energy = np.maximum(self.scale.bends.squares, _FLAT) * seen**2
        sure = float(energy @ (trusted @ weights)) / max(float(energy.sum()), _NOTHING)
        part = sure**_SHARP / (sure**_SHARP + (1 - sure) ** _SHARP)
        turned, cells = self.scale.bends.turned, self.scale.kind.cells
        spread = np.zeros((cells, cells))
        spread[0, 0] = noise.of(1.0)[0]
        spread[1:, 1:] = (turned * own) @ turned.T
        return part * self.theta[1:], spread
