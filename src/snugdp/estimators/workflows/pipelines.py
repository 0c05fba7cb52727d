"""Steps of a pipeline that learn from private rows in front of a private model, and pay nothing for it.

What is looked at is public: types and parameters of steps, never a row. A model in a pipeline finds it among those who
called its fit.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from sklearn.utils import get_tags

from snugdp.estimators.workflows.callers import callers, function, given, parallel, stack_level
from snugdp.estimators.workflows.searches import PaidEstimator
from snugdp.secrecy.silence import attempt

_FITS = ("fit", "fit_transform", "fit_predict")
_SEEN: WeakSet[Any] = WeakSet()  # calls of joblib that were warned of
_DECLARED: dict[str, Callable[[Any], bool]] = {  # when a transformer of scikit-learn learns no more than shapes
    "CountVectorizer": lambda step: step.vocabulary is not None,
    "FrozenEstimator": lambda step: True,
    "GaussianRandomProjection": lambda step: step.n_components != "auto",
    "MissingIndicator": lambda step: step.features == "all",
    "OneHotEncoder": lambda step: _listed(step) and step.max_categories is None,
    "OrdinalEncoder": lambda step: _listed(step) and step.max_categories is None,
    "PolynomialFeatures": lambda step: True,
    "SimpleImputer": lambda step: step.strategy == "constant" and step.keep_empty_features,
    "SparseRandomProjection": lambda step: step.n_components != "auto" and step.density != "auto",
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    "TfidfTransformer": lambda step: not step.use_idf,
    "TfidfVectorizer": lambda step: step.vocabulary is not None and not step.use_idf,
}


class PrivacyWarning(UserWarning):
    """Something beside a private release uses the same rows and does not pay: the guarantee does not cover it.

    Examples
    --------
    >>> issubclass(PrivacyWarning, UserWarning)
    True
    """


def check_pipeline(pipeline: Any) -> tuple[str, ...]:
    """Name the steps that learn from the rows in front of a private model, and warn if there are any.

    A ``StandardScaler``, an imputer or an encoder that finds its own categories learns without noise, and what it
    learns reaches the release behind it. A private model in a pipeline warns by itself when it is fitted; this asks
    before. Steps that need no fit by their tags, that were told all they need (``OneHotEncoder`` with ``categories``,
    ``SimpleImputer`` of a constant that keeps empty features), ``FrozenEstimator`` and private ones are not among them.

    Guarantee: no row is looked at; the answer depends on types and parameters of steps alone.

    Parameters
    ----------
    pipeline : estimator
        A scikit-learn ``Pipeline``; or a ``TransformedTargetRegressor``, a search or another estimator around one.
        ``Pipeline``, ``FeatureUnion`` and ``ColumnTransformer`` are looked into, however deep.

    Returns
    -------
    tuple of str
        The steps, named as in ``set_params``.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> import snugdp
    >>> model = snugdp.LinearRegression(epsilon=1, x_norm=1, y_bound=1)
    >>> check_pipeline(make_pipeline(Normalizer(), model))
    ()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", PrivacyWarning)
    ...     check_pipeline(make_pipeline(StandardScaler(), model))
    ('standardscaler',)
    """
    found = dict(_unpaid(pipeline, ""))
    if found:
        _warn(found)
    return tuple(found)


def warn_of_pipeline() -> None:
    """If the fit that calls this is part of that of a pipeline, check the outermost one. It never fails."""
    _, found = attempt(_around)
    if found:
        _warn(found)


def _warn(found: dict[str, Any]) -> None:
    steps = ", ".join(f'"{name}" ({type(step).__name__})' for name, step in found.items())
    warnings.warn(
        f"in front of a private model the pipeline fits {steps} to the same rows, without noise and without paying: "
        "what is learned there reaches the release, and its guarantee does not cover it. Leave it to the private "
        "model, which scales and encodes by itself; or take snugdp.Prepare, snugdp.StandardScaler or "
        "snugdp.OneHotEncoder, which pay; or declare it, such as OneHotEncoder(categories=[...]); or learn it from "
        "public rows: sklearn.frozen.FrozenEstimator(StandardScaler().fit(public_rows)). "
        "snugdp.check_pipeline names such steps",
        PrivacyWarning,
        stacklevel=stack_level(),
    )


def _around() -> dict[str, Any]:
    """The steps of the outermost pipeline that is being fitted; in a search, for the first of its fits."""
    outermost = call = None
    for frame in callers():
        call = parallel(frame) or call
        owner = given(frame, "self") if function(frame) in _FITS else None
        outermost = owner if _is(owner, "Pipeline", "TransformedTargetRegressor") else outermost
    if outermost is None or (call is not None and call in _SEEN):
        return {}
    if call is not None:
        _SEEN.add(call)
    return dict(_unpaid(outermost, ""))


def _unpaid(thing: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Steps that learn in front of a private one, by their names."""
    if _is(thing, "Pipeline"):
        last = max((at for at, (_, step) in enumerate(thing.steps) if _is_private(step)), default=-1)
        for name, step in thing.steps[: max(last, 0)]:
            yield from _learning(step, path + name)
        for name, step in thing.steps[: last + 1]:
            yield from _unpaid(step, f"{path}{name}__")
        return
    if _is(thing, "TransformedTargetRegressor") and _is_private(thing.regressor):
        yield from _learning(thing.transformer, f"{path}transformer")
    if _is_private(thing):
        for name, part in thing.get_params(deep=False).items():
            if hasattr(part, "get_params") and not isinstance(thing, PaidEstimator):
                yield from _unpaid(part, f"{path}{name}__")


def _learning(step: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The step itself or those inside it, if they learn and do not pay."""
    if step is None or isinstance(step, str | PaidEstimator):
        return
    inside = _inside(step)
    if inside is None:
        if hasattr(step, "fit") and not _learns_nothing(step):
            yield path, step
        return
    for name, part in inside:
        yield from _learning(part, f"{path}__{name}")


def _inside(step: Any) -> list[tuple[str, Any]] | None:
    """The steps of a step; nothing if it has none."""
    if _is(step, "Pipeline"):
        return list(step.steps)
    if _is(step, "FeatureUnion"):
        return list(step.transformer_list)
    if _is(step, "ColumnTransformer"):
        return [*((name, part) for name, part, _ in step.transformers), ("remainder", step.remainder)]
    return None


def _learns_nothing(step: Any) -> bool:
    kind = type(step)
    rule = _DECLARED.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
    if rule is not None:
        return bool(attempt(lambda: rule(step))[1])
    tags = attempt(lambda: get_tags(step))[1]
    return tags is not None and not tags.requires_fit


def _listed(step: Any) -> bool:
    """Whether an encoder is told its categories."""
    return not isinstance(step.categories, str) and step.min_frequency is None


def _is_private(thing: Any) -> bool:
    """Whether it is private, or has something inside it that is."""
    parts = thing.get_params().values() if hasattr(thing, "get_params") else ()
    return any(isinstance(part, PaidEstimator) for part in (thing, *parts))


def _is(thing: Any, *names: str) -> bool:
    """Whether it is one of these of scikit-learn: whoever has one has imported it."""
    homes = {"Pipeline": "pipeline", "FeatureUnion": "pipeline"}
    modules = ((name, sys.modules.get(f"sklearn.{homes.get(name, 'compose')}")) for name in names)
    return any(module is not None and isinstance(thing, getattr(module, name)) for name, module in modules)
