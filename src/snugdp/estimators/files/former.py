"""Model files of version 1, which held class names for ids, the path of a proof, and the plan as text."""

from __future__ import annotations

from typing import Any

from snugdp.propose.forecast import Forecast
from snugdp.propose.plan import StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.serial.codec import encode

_KINDS = {"test": StepKind.TEST, "select": StepKind.SELECT, "release": StepKind.RELEASE}
_THEOREMS = {  # by where their proofs were
    "ptr/spine.proof.md#theorem-a0": "release/1",
    "ptr/spine.proof.md#theorem-a1": "test-and-release/1",
    "ptr/recipe.proof.md#theorem-1": "recipe/1",
    "mechanisms/median.proof.md#theorem-1": "median/1",
    "mechanisms/quantile.proof.md#theorem-1": "quantile/1",
    "mechanisms/trimmed_mean.proof.md#theorem-1": "trimmed-mean/1",
    "mechanisms/stable.proof.md#lemma-1": "discrete-laplace/1",
    "mechanisms/mode.proof.md#theorem-1": "mode/1",
    "mechanisms/vote.proof.md#theorem-5": "vote/1",
    "mechanisms/vote.proof.md#theorem-4": "vote-tested/1",
    "mechanisms/exponential_grid.proof.md#theorem-1": "bounds/1",
    "mechanisms/adaptive.proof.md#theorem-1": "linear-adaptive/1",
    "mechanisms/objective.proof.md#theorem-2": "linear-objective/1",
    "mechanisms/sufficient.proof.md#theorem-1": "linear-adassp/1",
    "mechanisms/sufficient.proof.md#theorem-2": "linear-statistics/1",
    "mechanisms/descent.proof.md#theorem-1": "linear-descent/1",
    "mechanisms/output.proof.md#theorem-1": "linear-output/1",
    "mechanisms/posterior.proof.md#theorem-1": "linear-posterior/1",
    "mechanisms/glm_objective.proof.md#theorem-2": "glm-objective/1",
    "mechanisms/glm_adaptive.proof.md#theorem-1": "glm-adaptive/1",
    "mechanisms/glm_output.proof.md#theorem-1": "glm-output/1",
    "mechanisms/glm_classes.proof.md#theorem-1": "one-versus-rest/1",
    "mechanisms/softmax.proof.md#theorem-2": "softmax/1",
    "mechanisms/sparse.proof.md#theorem-1": "sparse/1",
    "mechanisms/components.proof.md#theorem-1": "pca-gauss/1",
    "mechanisms/components.proof.md#theorem-2": "pca-staged/1",
    "mechanisms/projector.proof.md#theorem-2": "pca-projector/1",
    "mechanisms/projector.proof.md#theorem-3": "pca-dual/1",
    "ptr/select.proof.md#theorem-1": "select/1",
    "ptr/select.proof.md#theorem-2": "select-all/1",
    "ptr/select.proof.md#theorem-3-one-test-before-all-runs": "select-tested/1",
    "mechanisms/gnmax/labels.proof.md#theorem-1": "labels/1",
    "mechanisms/gnmax/labels.proof.md#theorem-2": "labels-confident/1",
    "mechanisms/gnmax/sharp.proof.md#theorem-2": "labels-distance/1",
    "mechanisms/gnmax/gnss.proof.md#theorem-1": "labels-smooth/1",
    "mechanisms/gnmax/renyi.proof.md#theorem-1": "labels-renyi/1",
    "estimators/pate.proof.md#theorem-1": "pate/1",
}


def upgraded(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of version 2. What the text of the plan said about noise and forecasts stays in that text."""
    promise, whole = given["guarantee"], {"name": "release", "atoms": []} | given["cost"]
    where = promise["proof"] if isinstance(promise, dict) else given["plan"].rpartition(" ")[2]
    if where not in _THEOREMS:
        raise ValueError("the proof that this file names is not known to this version: fit the model again")
    if isinstance(promise, dict):
        promise = {**promise, "theorem": _THEOREMS[where]}
        del promise["proof"]
    return {
        **given,
        "guarantee": promise,
        "title": theorem(_THEOREMS[where]).title,
        "theorem": _THEOREMS[where],
        "proposal": encode({}),
        "steps": [_step(place, step) for place, step in enumerate(given.get("steps", [whole]), 1)],
        "forecast": encode(Forecast()),
    }


def _step(place: int, given: dict[str, Any]) -> dict[str, Any]:
    parts = {name: value for name, value in given.items() if name not in ("name", "noise")}
    kind = _KINDS.get(given["name"], StepKind.STATISTIC)
    return {"id": f"step-{place}", "kind": kind.value, "noise": encode(StepNoise("former")), **parts}
