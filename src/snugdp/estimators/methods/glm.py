"""The ways to fit a generalised linear model, by name. A new one is one more entry of ``GLM_METHODS``."""

from __future__ import annotations

from typing import Any

from snugdp.core.guarantee import Budget
from snugdp.estimators.methods.linear import Recipe
from snugdp.mechanisms.linear.base import Design, Method
from snugdp.mechanisms.objective.glm import GLMObjective
from snugdp.mechanisms.objective.glm_adaptive import AdaptiveGLM
from snugdp.mechanisms.objective.one_versus_rest import OneVersusRest
from snugdp.mechanisms.objective.softmax import Softmax, recommended
from snugdp.mechanisms.output.glm import OutputGLM
from snugdp.tables.losses.losses import Logistic, Loss, OneAgainst


def _auto(
    design: Design, budget: Budget, *, losses: tuple[Loss, ...], softmax: int | None = None, rows: int | None = None
) -> Method:
    """Look at the rows first; where the curvature is merely bounded, plain objective perturbation."""
    if softmax is not None or isinstance(losses[0], Logistic):
        return recommended(design, budget, classes=softmax or 2, rows=rows)
    if losses[0].kind == "sign_changing":
        return _objective(design, budget, losses=losses, rows=rows)
    return AdaptiveGLM(design, budget, losses=losses)


def _objective(
    design: Design,
    budget: Budget,
    *,
    losses: tuple[Loss, ...],
    softmax: int | None = None,
    rows: int | None = None,
    composable: bool = False,
    **proposals: Any,
) -> Method:
    first = losses[0]
    if softmax is not None:
        if composable:
            raise ValueError('a softmax model is not composable: leave that out, or use multi_class="ovr"')
        return Softmax(design, budget, classes=softmax, **proposals)
    if isinstance(first, OneAgainst):  # always composable
        return OneVersusRest(design, budget, classes=len(losses), loss=first.loss, **proposals)
    return GLMObjective(design, budget, loss=first, rows=rows, composable=composable, **proposals)


def _output(
    design: Design, budget: Budget, *, losses: tuple[Loss, ...], softmax: int | None = None, **proposals: Any
) -> Method:
    if softmax is not None or len(losses) > 1:
        raise ValueError('method "output" fits one model: for more than two classes use "auto" or "objective"')
    return OutputGLM(design, budget, loss=losses[0], **proposals)


GLM_METHODS: dict[str, Recipe] = {
    "auto": Recipe(_auto, rows=False),
    "objective": Recipe(_objective, ("ridge", "composable"), rows=False),
    "output": Recipe(_output, ("ridge", "shape", "test_share"), rows=False, lists=("ridge",)),
}
