"""What is public about a model: its classes or the bounds of its target, what it can be asked, and its fingerprint."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from snugdp.core.outcome import NotPrivate
from snugdp.estimators.base import refused
from snugdp.estimators.labels import declared
from snugdp.estimators.registry import entry_of
from snugdp.ledger.question import plain, qualified
from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.silence import attempt
from snugdp.tables.found import FoundNumber
from snugdp.tables.schema.schema import Boolean, Number

_BOUNDS = (
    "bounds is needed to score predictions of a number: the smallest and the largest target that counts, such as "
    "bounds=(0, 200), from outside the data. One row can move an error without bounds by any amount"
)
_STEEP = 2.0**30  # of entries times the lengths of a row and of the coefficients
_NOT_A_MODEL = "model must be a fitted estimator with a predict method, as snugdp and scikit-learn have them"


def require_model(model: Any) -> None:
    """Whether it is a model that can be asked."""
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise TypeError(_NOT_A_MODEL)
    if getattr(model, "released_", True) is False:
        looked = bool(getattr(model, "_looks", False))
        refused(type(model).__name__, getattr(model, "_without_test", "auto"), looked=looked)


def require_private(model: Any) -> None:
    """A rehearsal of a fit shows the rows that it was made on."""
    if isinstance(getattr(model, "outcome_", None), NotPrivate):
        raise ValueError(  # noqa: TRY004  not about a type
            "this model is a rehearsal (random_state, or noise=Simulation) and NOT PRIVATE: a release of its scores "
            "would be no better. Fit it without these, or rehearse the scores too, by noise=snugdp.Simulation(...)"
        )


def is_ours(model: Any) -> bool:
    """Whether it is an estimator of this library, which reads its rows cell by cell."""
    return entry_of(model) is not None


def is_linear(model: Any) -> bool:
    """Whether it is a linear model of ours, which is proved to score each row by itself; others are trusted to."""
    return is_ours(model) and _theta(model) is not None


def _theta(model: Any) -> Any:
    """The released coefficients, in the units of the fit."""
    return getattr(getattr(model, "_fit", None), "theta", getattr(model, "_theta", None))


def is_steep(model: Any, bounds: tuple[float, float]) -> bool:
    """Whether rounding may move the answer of a linear model of ours by more than a millionth of the scale."""
    theta = _theta(model)
    if theta is None:
        return False
    layout = getattr(model, "_layout", None)
    longest = float(getattr(layout, "longest", getattr(layout, "norm", 1))) + 1
    farthest = max(abs(float(end)) for end in (*bounds, *(_own_bounds(model) or ())))
    narrow = max(1.0, farthest / (bounds[1] - bounds[0]))  # a scale that is narrow for the numbers on it
    return bool(np.shape(theta)[-1] * longest * (np.linalg.norm(theta) + 1) * narrow > _STEEP)


def is_pipeline(model: Any) -> bool:
    """Whether it may take text: a pipeline, or a transformer of columns before a model."""
    return any(hasattr(model, name) for name in ("steps", "transformers", "named_steps"))


def classes_of(model: Any, given: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """The classes in their order; None for a model of numbers."""
    own = getattr(model, "classes_", None)
    if own is None:
        return None if given is None else tuple(declared(given).tolist())
    if given is not None:
        raise ValueError("the model has its classes: leave out classes")
    return tuple(np.asarray(own).tolist())


def bounds_of(model: Any, given: tuple[Real, Real] | None) -> tuple[float, float]:
    """The bounds of a target that is a number, as given or as the model has them."""
    ends = given if given is not None else _seen_bounds(model) or _own_bounds(model)
    if ends is None or not isinstance(ends, tuple | list) or len(ends) != 2:
        raise ValueError(_BOUNDS)
    low, high = (float(rational(end, "bounds")) for end in ends)
    if not low < high:
        raise ValueError("bounds must be a pair (low, high) with low < high")
    return low, high


def _seen_bounds(model: Any) -> tuple[float, float] | None:
    """Where targets were seen when their bounds were found in private: released, and narrower than the bounds."""
    found = getattr(model, "bounds_", None)
    number = None if found is None else found.columns.get(found.declared.target)
    hull = number.hull if isinstance(number, FoundNumber) else None
    return hull if hull is not None and hull[0] < hull[1] else None


def _own_bounds(model: Any) -> tuple[Any, ...] | None:
    """Those of a fit: public, or found in private and released."""
    found, schema = getattr(model, "bounds_", None), getattr(model, "schema", None)
    if found is not None and isinstance(number := found.columns.get(found.declared.target), FoundNumber):
        return number.lower, number.upper
    column = None if schema is None or schema.target is None else schema.columns[schema.target]
    if isinstance(column, Number) and not column.is_open:
        return column.lower, column.upper
    if isinstance(column, Boolean):
        return 0, 1
    if (most := getattr(model, "y_max", None)) is not None:
        return 0, most
    bound = getattr(model, "y_bound", None)
    if bound is None:
        return None
    return tuple(bound) if isinstance(bound, tuple | list) else (-bound, bound)


def target_of_model(model: Any) -> str | None:
    """The name of the target that a model was fitted on, if its schema or what was found has one."""
    found, schema = getattr(model, "bounds_", None), getattr(model, "schema", None)
    for declared_ in (None if found is None else found.declared, schema):
        if (name := getattr(declared_, "target", None)) is not None:
            return str(name)
    return None


def fingerprint(model: Any) -> list[Any]:
    """What tells a model from another one in the key of a release."""
    worked, body = attempt(lambda: pickle.dumps(model, protocol=4))
    own = hashlib.sha256(body).hexdigest() if worked and body is not None else plain(model)
    if is_ours(model):
        shown = {name: getattr(model, name) for name in ("coef_", "intercept_", "classes_") if hasattr(model, name)}
        own = plain(shown) if shown else own
    return [qualified(type(model)), own]
