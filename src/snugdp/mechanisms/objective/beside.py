"""The default fits beside another Gaussian release of the same budget. Proof: ``support/sparse.proof.md``, Lemma 1.

They know what else the budget pays for, and choose noise and ridge for all of it together: a smaller budget for the fit
alone would ask for far more ridge.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from snugdp.accounting import gaussian
from snugdp.accounting.objective import glm
from snugdp.core.guarantee import Budget, Cost
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.adaptive import _CENTRE, _RIDGE, _SHARE, Adaptive, _Parts
from snugdp.mechanisms.objective.glm import company_run
from snugdp.mechanisms.objective.glm_adaptive import _CENTRE as _MIDDLE
from snugdp.mechanisms.objective.glm_adaptive import _RADIUS, _SPARED, AdaptiveGLM, stretched_design
from snugdp.mechanisms.objective.glm_adaptive import _Parts as _LabelParts
from snugdp.mechanisms.objective.perturbation import affordable, least_sharp_ridge, root_below
from snugdp.mechanisms.objective.scale import MeanTarget, SizeHistogram
from snugdp.mechanisms.objective.spread import MeanRow, RowRadius
from snugdp.tables.losses.losses import Loss

_LAST = Fraction(1, 1 << 60)
_NOTHING = "the budget affords nothing beside the selection: give a larger epsilon, or a smaller selection_share"


@lru_cache(maxsize=64)
def _parts(design: Design, budget: Budget, beside: Fraction) -> _Parts:
    """As in ``adaptive.py``, of what is left of M squared; the ridge is that of a run beside all Gaussian releases."""
    total = Fraction(gaussian.mu(budget.epsilon, budget.delta / 2)) ** 2
    left = 1 - beside / total if total else Fraction(0)
    if left <= 0:
        raise ValueError(_NOTHING)
    shares = (_SHARE * left, (_CENTRE if design.row_map.constant else Fraction(0)) * left)
    (m,), _ = affordable(budget, [left - sum(shares)])
    sizes, centre = (root_below(total * share) for share in shares)
    gaussians = root_below(beside + sizes**2 + centre**2) + _LAST
    least, sharp = least_sharp_ridge(design, budget, m, gaussians)
    ridge = max(least, _RIDGE * design.x_squared)
    mean = MeanTarget(design, centre) if centre else None
    parts = _Parts(m, gaussians, ridge, sharp, SizeHistogram(design, sizes), mean)
    if not (parts.run(design, design.y_bound).cost + parts.before + Cost(mu_squared=beside)).fits(budget):
        raise ValueError(_NOTHING)
    return parts


@dataclass(frozen=True)
class AdaptiveBeside(Adaptive):
    """``Adaptive`` with room left in the budget for a Gaussian release of mu squared ``beside``, made by somebody else.

    Guarantee: ``plan().cost`` plus a Gaussian ``beside`` fits the budget (``support/sparse.proof.md``, Lemma 1).
    """

    beside: Fraction = Fraction(0)

    @cached_property
    def _parts(self) -> _Parts:
        return _parts(self.design, self.budget, self.beside)


@lru_cache(maxsize=64)
def _label_parts(design: Design, budget: Budget, loss: Loss, beside: Fraction) -> _LabelParts:
    """As in ``glm_adaptive.py``, of what is left of M squared."""
    square = Fraction(glm.calibrate(budget.epsilon, budget.delta * _SPARED, loss.kind)) ** 2 - beside
    if square <= 0:
        raise ValueError(_NOTHING)
    centre = MeanRow(design, root_below(_MIDDLE * square)) if design.row_map.constant else None
    radius = RowRadius(root_below(_RADIUS * square))
    before = _LabelParts(centre, radius, ()).before.mu_squared
    run = company_run(stretched_design(design), budget, loss, root_below(square - before), before + beside)
    parts = _LabelParts(centre, radius, (run,))
    if not (parts.before + parts.after + Cost(mu_squared=beside)).fits(budget):
        raise ValueError(_NOTHING)
    return parts


@dataclass(frozen=True, init=False)
class LabelsBeside(AdaptiveGLM):
    """``AdaptiveGLM`` for two classes, with room left in the budget for a Gaussian release of mu squared ``beside``.

    Guarantee: ``plan().cost`` plus a Gaussian ``beside`` fits the budget (``support/sparse.proof.md``, Lemma 1).
    """

    beside: Fraction

    def __init__(self, design: Design, budget: Budget, *, loss: Loss, beside: Fraction) -> None:
        object.__setattr__(self, "beside", beside)
        super().__init__(design, budget, losses=[loss])

    @cached_property
    def _parts(self) -> _LabelParts:
        return _label_parts(self.design, self.budget, self.losses[0], self.beside)
