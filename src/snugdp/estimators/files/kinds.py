"""The estimators that can be saved: what of each is shown in a file, and how a fitted one is made again from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from snugdp.core.outcome import Outcome
from snugdp.estimators.files.student import student_of, with_student
from snugdp.propose.plan import Plan

_LINE = ("coef_names_", "coef_", "intercept_", "noise_scale_", "details_")
_SPARSE = ("support_", "ranking_", "selected_names_", *_LINE)
_COMPONENTS = (
    "n_components_", "n_samples_", "components_", "mean_", "explained_variance_", "explained_variance_ratio_",
    "noise_variance_", "spectrum_", "spectrum_error_", "route_", "details_",
)  # fmt: skip
_FINITE = ("coef_", "intercept_", "components_", "mean_")
LEFT_OUT = ("ledger", "noise", "progress", "schema", "validation", "queries", "teacher", "student", "n_jobs")


@dataclass(frozen=True)
class Kind:
    """One estimator. ``shown``: what a release leaves behind, in the user's units; ``keep``: makes it fitted again."""

    module: str
    shown: tuple[str, ...]
    keep: Callable[[Any, Outcome[Any], Plan, tuple[str, ...]], None]
    also: tuple[str, ...] = ()  # of some fits only

    def load(self, name: str) -> Any:
        """The class."""
        return getattr(import_module(f"snugdp.estimators.{self.module}"), name)

    def attributes(self, model: Any) -> dict[str, Any]:
        """What a fitted estimator shows."""
        return {name: getattr(model, name) for name in (*self.shown, *self.also) if hasattr(model, name)}


def _keep_line(model: Any, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
    bounds = model._bounds()
    layout = bounds.array_schema(names) if bounds.schema is None else bounds.layout
    model._keep(outcome, plan, model._budget(), layout)
    if model.released_:
        ways = len(getattr(model, "classes_", ()))
        shape = (len(layout.features),) if ways <= 2 else (ways, len(layout.features))
        _require(np.shape(model._fit.theta) == shape, "as many coefficients as there are features")


def _keep_sparse(model: Any, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
    bounds = model._bounds()
    box = bounds.box(names) if bounds.schema is None else bounds.entries
    model._keep(outcome, plan, model._budget(), box)
    if hasattr(model, "_declared"):
        model.classes_ = model._declared()
    if model.released_:
        places = model.support_.tolist()
        whole = len(set(places)) == len(places) == model._size(len(box.names)) and min(places) >= 0
        _require(whole and np.shape(model._theta) == (len(places) + box.intercept,), "one coefficient for each column")


def _keep_components(model: Any, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
    layout = model._bounds().layout(names)
    model._keep(outcome, plan, model._budget(), layout)
    if model.released_:
        _require(model.components_.shape == (model.n_components_, len(layout.features)), "components of all features")


def _keep_student(model: Any, outcome: Outcome[Any], plan: Plan, names: tuple[str, ...]) -> None:
    model._keep(outcome, plan, model._budget(), model._declared())


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"a released model has {what}")


_GLM = Kind("glm", _LINE, _keep_line, ("classes_", "best_proposal_"))
KINDS: dict[str, Kind] = {
    "LinearRegression": Kind("linear", _LINE, _keep_line, ("best_proposal_",)),
    "LogisticRegression": Kind("logistic", (*_LINE, "classes_"), _keep_line, ("best_proposal_",)),
    "PoissonRegression": Kind("poisson", _LINE, _keep_line, ("best_proposal_",)),
    "GLM": _GLM,
    "SparseLinearRegression": Kind("sparse.models", _SPARSE, _keep_sparse),
    "SparseLogisticRegression": Kind("sparse.models", (*_SPARSE, "classes_"), _keep_sparse),
    "PCA": Kind("pca.pca", _COMPONENTS, _keep_components),
    "PATEClassifier": Kind("pate.classifier", ("labels_", "answered_", "classes_"), _keep_student),
}


def kind_of(model: Any) -> tuple[str, Kind]:
    """The name of an estimator that can be saved, and how."""
    name = type(model).__name__
    if name in KINDS and type(model) is KINDS[name].load(name):
        return name, KINDS[name]
    raise TypeError(f"{name} cannot be saved; these can: {', '.join(KINDS)}")


def parameters_of(model: Any) -> dict[str, Any]:
    """The public arguments of the constructor that a file keeps."""
    found = {name: _plain(value) for name, value in model.get_params(deep=False).items() if name not in LEFT_OUT}
    if not isinstance(found.get("classes"), list | tuple | np.ndarray | None):  # such as a column of a table
        found["classes"] = model.classes_.tolist()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.floating | np.integer | np.bool_):
        return value.item()
    if isinstance(value, range):
        return list(value)
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    return value


def settle(model: Any, shown: Mapping[str, Any], kind: Kind) -> None:
    """Take the numbers of a file for those made again from its exact outcome, which they must be but for rounding."""
    found = kind.attributes(model)
    if found.keys() != shown.keys():
        raise ValueError("what is shown of the release is not what its exact outcome has")
    for name, value in shown.items():
        if not _alike(value, found[name]):
            raise ValueError(f'"{name.rstrip("_")}" is not what the exact outcome gives: the file was changed')
        if name in _FINITE and not np.isfinite(value).all():
            raise ValueError(f'"{name.rstrip("_")}" holds what is no finite number')
        setattr(model, name, value)


def _alike(given: Any, found: Any) -> bool:
    if type(given) is not type(found):
        return False
    if isinstance(found, dict):
        return given.keys() == found.keys() and all(_alike(given[key], found[key]) for key in found)
    if isinstance(found, np.ndarray):
        if given.shape != found.shape or given.dtype != found.dtype:
            return False
        return _near(given, found) if found.dtype.kind == "f" else bool(np.array_equal(given, found))
    if isinstance(found, float | np.floating):
        return _near(np.asarray(given), np.asarray(found))
    return bool(given == found)


def _near(given: Any, found: Any) -> bool:
    """But for the last bits, which may hang on the machine that added them up."""
    largest = float(np.max(np.abs(found), initial=0.0))
    near = np.isclose(given, found, rtol=1e-9, atol=1e-9 * largest if np.isfinite(largest) else 0.0, equal_nan=True)
    return bool(near.all())


__all__ = ["KINDS", "LEFT_OUT", "Kind", "kind_of", "parameters_of", "settle", "student_of", "with_student"]
