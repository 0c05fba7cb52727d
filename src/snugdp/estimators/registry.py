"""The estimators, in one table: whoever needs to know all of them looks here, and loads those that are used.

Besides its lines here an estimator has a file, a page among the docs and tests. Ids are for ever
(``serial/registry.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

# For type checkers and for the reference, which would not take names from a plain TYPE_CHECKING by ``import *``.
if bool(TYPE_CHECKING):
    from snugdp.estimators.additive.models import AdditiveClassifier, AdditiveRegressor
    from snugdp.estimators.glm import GLM
    from snugdp.estimators.linear import LinearRegression
    from snugdp.estimators.logistic import LogisticRegression
    from snugdp.estimators.pate.classifier import PATEClassifier
    from snugdp.estimators.pca.pca import PCA
    from snugdp.estimators.poisson import PoissonRegression
    from snugdp.estimators.sparse.models import SparseLinearRegression, SparseLogisticRegression
    from snugdp.estimators.transformers.one_hot_encoder import OneHotEncoder
    from snugdp.estimators.transformers.prepare import Prepare
    from snugdp.estimators.transformers.standard_scaler import StandardScaler

__all__ = [
    "GLM", "PCA", "AdditiveClassifier", "AdditiveRegressor", "LinearRegression", "LogisticRegression", "OneHotEncoder",
    "PATEClassifier", "PoissonRegression", "Prepare", "SparseLinearRegression", "SparseLogisticRegression",
    "StandardScaler",
]  # fmt: skip

_LINE = ("coef_names_", "coef_", "intercept_", "noise_scale_", "details_")
_SPARSE = ("support_", "ranking_", "selected_names_", *_LINE)
_COMPONENTS = (
    "n_components_", "n_samples_", "components_", "mean_", "explained_variance_", "explained_variance_ratio_",
    "noise_variance_", "spectrum_", "spectrum_error_", "route_", "details_",
)  # fmt: skip
_BEST = ("best_proposal_",)
LEFT_OUT = ("ledger", "noise", "progress", "schema", "validation", "queries", "teacher", "student", "n_jobs")
"""Parameters that neither a model file nor a report tells as such."""


class EstimatorEntry(NamedTuple):
    """One estimator. ``shown``: what a release leaves behind, in the user's units; ``also``: of some fits only.

    ``methods``: where its methods are, by name. ``command``: its word on the command line, if it has one.
    """

    id: str
    name: str
    module: str
    title: str
    shown: tuple[str, ...]
    also: tuple[str, ...] = ()
    methods: str = ""
    command: str = ""

    def load(self) -> Any:
        """The class."""
        return getattr(import_module(self.module), self.name)

    def all_methods(self) -> Mapping[str, Any]:
        """Its methods, by name."""
        module, _, name = self.methods.partition(":")
        methods: Mapping[str, Any] = getattr(import_module(f"snugdp.estimators.{module}"), name) if module else {}
        return methods

    def attributes(self, model: Any) -> dict[str, Any]:
        """What a fitted estimator shows."""
        return {name: getattr(model, name) for name in (*self.shown, *self.also) if hasattr(model, name)}


def _entry(own: str, name: str, module: str, title: str, *parts: Any, **more: Any) -> EstimatorEntry:
    return EstimatorEntry(own, name, f"snugdp.estimators.{module}", title, *parts, **more)


ESTIMATORS = (
    _entry("linear-regression/1", "LinearRegression", "linear", "Linear regression",
           _LINE, _BEST, methods="methods.linear:METHODS", command="linear"),
    _entry("logistic-regression/1", "LogisticRegression", "logistic", "Logistic regression",
           (*_LINE, "classes_"), _BEST, methods="methods.glm:GLM_METHODS", command="logistic"),
    _entry("poisson-regression/1", "PoissonRegression", "poisson", "Poisson regression",
           _LINE, _BEST, methods="methods.glm:GLM_METHODS", command="poisson"),
    _entry("glm/1", "GLM", "glm", "Generalised linear model",
           _LINE, ("classes_", *_BEST), methods="methods.glm:GLM_METHODS"),
    _entry("additive-regressor/1", "AdditiveRegressor", "additive.models", "Additive regression",
           _LINE, _BEST, methods="methods.linear:METHODS", command="additive"),
    _entry("additive-classifier/1", "AdditiveClassifier", "additive.models", "Additive classification",
           (*_LINE, "classes_"), _BEST, methods="methods.glm:GLM_METHODS", command="additive"),
    _entry("sparse-linear-regression/1", "SparseLinearRegression", "sparse.models", "Sparse linear regression",
           _SPARSE, methods="methods.linear:METHODS", command="sparse"),
    _entry("sparse-logistic-regression/1", "SparseLogisticRegression", "sparse.models", "Sparse logistic regression",
           (*_SPARSE, "classes_"), methods="sparse.models:LABEL_METHODS", command="sparse"),
    _entry("pca/1", "PCA", "pca.pca", "Principal components",
           _COMPONENTS, methods="pca.pca:METHODS", command="pca"),
    _entry("pate-classifier/1", "PATEClassifier", "pate.classifier", "A student of private teachers",
           ("labels_", "answered_", "classes_")),
    _entry("prepare/1", "Prepare", "transformers.prepare", "Preparation of a table", ("bounds_",)),
    _entry("standard-scaler/1", "StandardScaler", "transformers.standard_scaler", "Standard scaler",
           ("mean_", "scale_", "var_", "n_samples_seen_")),
    _entry("one-hot-encoder/1", "OneHotEncoder", "transformers.one_hot_encoder", "One-hot encoder", ("bounds_",)),
)  # fmt: skip
BY_NAME = {entry.name: entry for entry in ESTIMATORS}
BY_ID = {entry.id: entry for entry in ESTIMATORS}


def entry_of(model: Any) -> EstimatorEntry | None:
    """The entry of an estimator; None if it is not of one of these very classes."""
    return entry_of_class(type(model))


def entry_of_class(kind: type) -> EstimatorEntry | None:
    """The entry of a class; None if it is none of these."""
    entry = BY_NAME.get(kind.__qualname__)
    return entry if entry is not None and kind.__module__ == entry.module and entry.load() is kind else None
