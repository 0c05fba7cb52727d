"""What learns in front of a private model without paying is named; what was told all it needs is not."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  scikit-learn asks for it
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import snugdp
from snugdp import LinearRegression, PrivacyWarning, Simulation, check_pipeline
from snugdp.estimators.workflows import pipelines
from tests.estimators.checks import no_warnings

RNG = np.random.default_rng(6)
X = RNG.uniform(-0.5, 0.5, (60, 3))
Y = X @ [0.5, -0.5, 0.2]
LABELS = (Y > 0).astype(int)


class Own(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of the user's: nobody knows what it learns."""

    def fit(self, X: Any, y: Any = None) -> Own:
        return self

    def transform(self, X: Any) -> Any:
        return X


class OwnStateless(Own):
    """One that says so."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class OwnPolynomials(PolynomialFeatures):  # type: ignore[misc]
    """A subclass may learn what its base does not."""


LEARNING = [
    StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), PowerTransformer(), QuantileTransformer(),
    SimpleImputer(), SimpleImputer(strategy="constant"), KNNImputer(), IterativeImputer(), MissingIndicator(),
    OneHotEncoder(), OneHotEncoder(categories=[[1, 2]], min_frequency=2), OrdinalEncoder(), TargetEncoder(),
    PCA(), TruncatedSVD(), SelectKBest(), VarianceThreshold(), KBinsDiscretizer(), SplineTransformer(),
    CountVectorizer(), TfidfVectorizer(), TfidfVectorizer(vocabulary=["a"]), TfidfTransformer(),
    GaussianRandomProjection(), SparseRandomProjection(2), Own(), OwnPolynomials(),
]  # fmt: skip
DECLARED = [
    FunctionTransformer(), Normalizer(), Binarizer(), HashingVectorizer(), PolynomialFeatures(),
    OneHotEncoder(categories=[[1, 2]]), OrdinalEncoder(categories=[[1, 2]]),
    SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True), MissingIndicator(features="all"),
    SplineTransformer(knots=np.array([[0.0], [1.0]])), CountVectorizer(vocabulary=["a"]),
    TfidfTransformer(use_idf=False), TfidfVectorizer(vocabulary=["a"], use_idf=False), GaussianRandomProjection(2),
    SparseRandomProjection(2, density=0.5), FrozenEstimator(StandardScaler().fit(X)), OwnStateless(), "passthrough",
    snugdp.PCA(2, x_norm=1),
]  # fmt: skip


def model(**given: Any) -> LinearRegression:
    return LinearRegression(**{"method": "adassp", "x_norm": 1, "y_bound": 1, "noise": Simulation(1), **given})


def named(pipeline: Any) -> tuple[str, ...]:
    """What is found, and whether the warning says the same."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = check_pipeline(pipeline)
    assert len(said) == bool(found)
    for warning in said:
        assert warning.category is PrivacyWarning
        assert warning.filename == __file__
        assert all(f'"{name}"' in str(warning.message) for name in found)
    return found


@pytest.mark.parametrize("step", LEARNING, ids=repr)
def test_what_learns_is_named(step: Any) -> None:
    assert named(Pipeline([("first", step), ("model", model())])) == ("first",)


@pytest.mark.parametrize("step", DECLARED, ids=repr)
def test_what_was_told_all_it_needs_is_not(step: Any) -> None:
    assert named(Pipeline([("first", step), ("model", model())])) == ()


def columns(*steps: Any, remainder: Any = "drop") -> ColumnTransformer:
    return ColumnTransformer([(f"c{at}", step, [at]) for at, step in enumerate(steps)], remainder=remainder)


NESTED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "columns": (columns(StandardScaler(), "drop", Normalizer()), ("s__c0",)),
    "remainder": (columns("drop", remainder=StandardScaler()), ("s__remainder",)),
    "union": (FeatureUnion([("a", PCA(1)), ("b", "passthrough"), ("c", Normalizer())]), ("s__a",)),
    "pipeline": (Pipeline([("a", Normalizer()), ("b", SimpleImputer())]), ("s__b",)),
    "deep": (columns(Pipeline([("a", SimpleImputer()), ("b", OneHotEncoder())])), ("s__c0__a", "s__c0__b")),
    "nothing": (columns(Normalizer(), "passthrough", remainder="passthrough"), ()),
    "private": (columns(snugdp.PCA(1, x_norm=1)), ()),
}


@pytest.mark.parametrize(("step", "found"), NESTED.values(), ids=NESTED)
def test_steps_are_looked_into(step: Any, found: tuple[str, ...]) -> None:
    assert named(Pipeline([("s", step), ("model", model())])) == found


def test_what_is_around_a_pipeline_is_looked_into() -> None:
    inner = Pipeline([("scale", StandardScaler()), ("model", model())])
    assert named(Pipeline([("first", Normalizer()), ("rest", inner)])) == ("rest__scale",)
    assert named(Pipeline([("first", MinMaxScaler()), ("rest", inner)])) == ("first", "rest__scale")
    assert named(GridSearchCV(inner, {})) == ("estimator__scale",)
    target = TransformedTargetRegressor(regressor=inner, transformer=StandardScaler())
    assert named(target) == ("transformer", "regressor__scale")
    assert named(TransformedTargetRegressor(regressor=Ridge(), transformer=StandardScaler())) == ()


def test_what_comes_after_or_without_a_private_model_is_not_its_matter() -> None:
    private = snugdp.PCA(2, x_norm=1, noise=Simulation(1))
    assert named(make_pipeline(private, StandardScaler(), Ridge())) == ()
    assert named(make_pipeline(StandardScaler(), private, Ridge())) == ("standardscaler",)
    assert named(make_pipeline(private, StandardScaler(), model())) == ("standardscaler",)
    assert named(make_pipeline(StandardScaler(), Ridge())) == ()
    assert named(model()) == named(Ridge()) == named(None) == named("nonsense") == ()


def test_teachers_are_private_each_with_their_own_rows() -> None:
    teacher = make_pipeline(StandardScaler(), LogisticRegression())
    pate = snugdp.PATEClassifier(teacher, n_teachers=2, classes=[0, 1], queries=X[:3])
    assert named(pate) == ()
    assert named(make_pipeline(Normalizer(), pate)) == ()


MODELS: dict[str, Any] = {
    "linear": model(),
    "logistic": snugdp.LogisticRegression(method="objective", x_norm=1, classes=[0, 1], noise=Simulation(1)),
    "poisson": snugdp.PoissonRegression(method="objective", x_norm=1, y_max=2, noise=Simulation(1)),
    "sparse": snugdp.SparseLogisticRegression(1, method="objective", classes=[0, 1], noise=Simulation(1)),
    "pca": snugdp.PCA(2, x_norm=1, noise=Simulation(1)),
    "pate": snugdp.PATEClassifier(
        LogisticRegression(), n_teachers=2, classes=[0, 1], queries=X[:3], test="none", noise=Simulation(1)
    ),
}


@pytest.mark.parametrize("last", MODELS.values(), ids=MODELS)
def test_every_private_model_warns_when_it_is_fitted(last: Any) -> None:
    with pytest.warns(PrivacyWarning, match=r'"standardscaler" \(StandardScaler\)') as said:
        make_pipeline(StandardScaler(), last).fit(X, LABELS)
    (warning,) = (one for one in said if one.category is PrivacyWarning)
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        make_pipeline(Normalizer(), last).fit(X, LABELS)
        last.fit(X, LABELS)


def test_every_way_to_fit_a_pipeline_warns() -> None:
    inner = make_pipeline(StandardScaler(), snugdp.PCA(2, x_norm=1, noise=Simulation(1)))
    scaled = make_pipeline(StandardScaler(), model())
    ways: dict[str, Any] = {
        "fit_transform": lambda: inner.fit_transform(X),
        "a step in the middle": lambda: make_pipeline(inner, Ridge()).fit(X, Y),
        "a pipeline in another": lambda: make_pipeline(Normalizer(), scaled).fit(X, Y),
        "columns": lambda: make_pipeline(columns(StandardScaler()), model()).fit(pd.DataFrame(X), Y),
        "a search": lambda: GridSearchCV(scaled, {"linearregression__x_norm": [1, 2]}, cv=2).fit(X, Y),
        "validation": lambda: cross_val_score(scaled, X, Y, cv=2),
        "targets": lambda: TransformedTargetRegressor(regressor=model(), transformer=StandardScaler()).fit(X, Y),
    }
    for way, fit in ways.items():
        with pytest.warns(PrivacyWarning) as said:
            fit()
        assert {one.filename for one in said if one.category is PrivacyWarning} == {__file__}, way


def test_it_is_said_once_for_all_fits_of_a_search_and_once_for_the_last() -> None:
    scaled = make_pipeline(StandardScaler(), model())
    with pytest.warns(PrivacyWarning) as said:
        GridSearchCV(scaled, {"linearregression__x_norm": [1, 2, 3]}, cv=3).fit(X, Y)
    assert len(said) == 2


def test_memory_of_a_pipeline_changes_nothing(tmp_path: Path) -> None:
    with pytest.warns(PrivacyWarning):
        make_pipeline(StandardScaler(), model(), memory=str(tmp_path)).fit(X, Y)


def test_the_warning_and_the_fit_do_not_depend_on_the_rows() -> None:
    said = []
    for rows in (X, X * 1e300, X[:2], np.zeros((3, 3))):
        with pytest.warns(PrivacyWarning) as caught:
            make_pipeline(MaxAbsScaler(), model()).fit(rows, np.zeros(len(rows)))
        said.append([str(one.message) for one in caught])
    assert said[1:] == said[:-1]


def test_a_mistake_in_looking_is_not_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "callers", lambda: sys.exit("whatever goes wrong here"))
    with no_warnings():
        make_pipeline(StandardScaler(), model()).fit(X, Y)


def test_steps_with_odd_parameters_do_not_fail() -> None:
    class Odd(Own):
        def __sklearn_tags__(self) -> Any:
            raise RuntimeError("no tags")

    assert named(make_pipeline(Odd(), model())) == ("odd",)
    assert named(Pipeline([("first", OneHotEncoder(categories=None)), ("last", model())])) == ()
