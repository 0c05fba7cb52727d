"""The ways to fit a generalised linear model, by name. A new one is one more entry of ``GLM_METHODS``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from snugdp.core.guarantee import Budget
from snugdp.estimators.methods.linear import Recipe
from snugdp.mechanisms.linear.base import Design, Method
from snugdp.mechanisms.objective.adaptive import AdaptiveGLM, recommended
from snugdp.mechanisms.objective.glm import GLMObjective, Losses
from snugdp.mechanisms.objective.standardised import StandardisedGLM
from snugdp.mechanisms.output.glm import OutputGLM
from snugdp.tables.losses.losses import Logistic, Softmax


def _auto(
    design: Design, budget: Budget, *, losses: Losses, rows: int | None = None, beside: Fraction = Fraction(0)
) -> Method:
    """Look at the rows first; where the curvature is merely bounded, plain objective perturbation."""
    first = losses[0]
    if beside:
        return AdaptiveGLM(design, budget, losses=losses, beside=beside)
    if isinstance(first, Logistic | Softmax):
        return recommended(design, budget, losses=losses, rows=rows)
    if first.kind == "sign_changing":
        return GLMObjective(design, budget, losses=losses, rows=rows)
    return AdaptiveGLM(design, budget, losses=losses)


def _auto_after(
    design: Design, budget: Budget, *, losses: Losses, beside: Fraction, found_rows: float
) -> StandardisedGLM:
    return StandardisedGLM(design, budget, losses=losses, beside=beside, rows=found_rows)


def _output(design: Design, budget: Budget, *, losses: Losses, **proposals: Any) -> Method:
    first = losses[0]
    if isinstance(first, Softmax) or len(losses) > 1:
        raise ValueError('method "output" fits one model: for more than two classes use "auto" or "objective"')
    return OutputGLM(design, budget, loss=first, **proposals)


def _inference_after(
    design: Design,
    budget: Budget,
    *,
    losses: Losses,
    beside: Fraction,
    found_rows: float,
    basis: tuple[tuple[float, ...], ...],
) -> Method:
    from snugdp.mechanisms.inference.glm import WhitenedGLM

    return WhitenedGLM(design, budget, losses=losses, beside=beside, basis=basis)


GLM_INFERENCE: dict[str, Recipe] = {"auto": Recipe("inference.glm:WhitenedGLM", after=_inference_after)}
"""The ways to fit a model of labels or counts with intervals."""

GLM_METHODS: dict[str, Recipe] = {
    "auto": Recipe(_auto, rows=False, after=_auto_after, persons=True),
    "objective": Recipe(GLMObjective, ("ridge", "composable"), rows=False, persons=True),
    "output": Recipe(_output, ("ridge", "shape", "test_share"), rows=False, lists=("ridge",), several=True),
}
