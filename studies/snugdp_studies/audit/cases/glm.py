"""Generalised linear models by every method: labels of two and of more classes, counts, and numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from snugdp.audit.finding import Case
from snugdp.estimators.additive.models import AdditiveClassifier
from snugdp.estimators.glm import GLM
from snugdp.estimators.logistic import LogisticRegression
from snugdp.estimators.poisson import PoissonRegression
from snugdp.tables.losses.losses import Huber, LogCosh, Logistic, PseudoHuber, SoftHinge, TamedPoisson
from snugdp_studies.audit.cases import tables
from snugdp_studies.audit.cases.fitting import fitting

EPSILON, DELTA = 1, 0.05
TWO, THREE, MOST = ("no", "yes"), ("a", "b", "c"), 4
_SURE = 480  # rows
_UP = {1: [1.0], 2: [0.6, 0.8]}


def cases() -> Iterator[Case[tables.Table]]:
    """All of them. Where the cost is that of a perturbed objective or follows a test, its slack may hide some noise."""
    return (make() for make in MAKERS.values())


_LOGISTIC: dict[str, dict[str, Any]] = {
    "auto": {"classes": TWO},
    "auto, bounds found": {"classes": TWO, "x_norm": None},
    "intervals": {"classes": TWO, "inference": True},
    "objective": {"classes": TWO, "method": "objective", "fit_intercept": False},
    "objective, composable": {"classes": TWO, "method": "objective", "proposals": {"composable": True}},
    "output": {"classes": TWO, "method": "output", "fit_intercept": False},
    "output, one ridge, round": {"classes": TWO, "method": "output", "proposals": {"ridge": 4.0, "shape": "iso"}},
    "output, as curved as the rows": {
        "classes": TWO,
        "method": "output",
        "proposals": {"ridge": 4.0, "shape": "hessian"},
        "fit_intercept": False,
    },
    "softmax": {"classes": THREE, "method": "objective", "fit_intercept": False},
    "softmax, auto": {"classes": THREE},
    "one against the rest": {"classes": THREE, "method": "objective", "multi_class": "ovr", "fit_intercept": False},
    "one against the rest, auto": {"classes": THREE, "multi_class": "ovr"},
    "softmax, bounds found": {"classes": THREE, "x_norm": None},
}
_COUNTS: dict[str, dict[str, Any]] = {
    "auto": {},
    "intervals": {"inference": True},
    "auto, bounds found": {"x_norm": None},
    "objective": {"method": "objective", "fit_intercept": False},
    "output": {"method": "output", "proposals": {"ridge": 20.0}, "fit_intercept": False},
}
_LOSSES: dict[str, dict[str, Any]] = {
    "soft hinge": {"loss": SoftHinge(0.5), "classes": TWO, "method": "objective", "fit_intercept": False},
    "soft hinge, auto": {"loss": SoftHinge(0.5), "classes": TWO},
    "logistic": {"loss": Logistic(), "classes": TWO, "method": "objective"},
    "tamed Poisson": {"loss": TamedPoisson(MOST, 6), "method": "objective", "fit_intercept": False},
    "pseudo-Huber": {"loss": PseudoHuber(0.3), "y_bound": 1, "method": "objective", "fit_intercept": False},
    "log-cosh, auto": {"loss": LogCosh(0.3), "y_bound": 1},
    "Huber": {"loss": Huber(0.3), "y_bound": 1, "method": "objective", "fit_intercept": False},
}


def _case(name: str, model: type[Any], form: dict[str, Any]) -> Case[tables.Table]:
    given: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "x_norm": 1, **form}
    target, odd = _targets(given)
    if model is PoissonRegression:
        given |= {"y_max": MOST, "rate_max": 6}
    ends, width = _ends(given), 1 if _one_run(given) else 2
    return fitting(
        name,
        model,
        given,
        n_features=width,
        group="glm",
        worst=lambda: tables.foremost(pairs(width, *ends), 0, back=name == "logistic: objective") + _sure(name, given),
        random=partial(tables.with_targets, d=width, target=target, odd=odd, least=1, most=30),
        # Slopes of counts change their sign, and a bound on their curvature is all that is used: it has slack.
        tight=_one_run(given) and not isinstance(given.get("loss"), TamedPoisson) and model is not PoissonRegression,
        parts=False,
    )


def _with_found_target(name: str, model: type[Any], labels: Sequence[Any], more: dict[str, Any]) -> Case[tables.Table]:
    """Classes, or the largest count, found with all bounds, and a fit on them, as one release."""
    X, y = tables.spread_out(40 * len(labels), 2)
    order = np.argsort(np.argsort(y)) * len(labels) // len(y)
    many: tables.Table = X, [labels[place] for place in order]
    few: tables.Table = np.ones((6, 2)), [labels[0]] * 6
    rare = tables.more(few, [1.0, 0.0], labels[-1], 2)
    rows = [([1.0, 0.0], labels[-1]), ([0.5, -0.5], "nobody"), ([1e300, -1e300], labels[0]), ([np.nan, np.inf], None)]
    return fitting(
        name,
        model,
        {"epsilon": EPSILON, "delta": DELTA, **more},
        n_features=2,
        group="glm",
        worst=lambda: [(tables.more(table, *row), table) for table in (many, rare, few) for row in rows],
        random=partial(
            tables.with_targets,
            d=2,
            target=tables.any_of(*labels),
            odd=tables.any_of(*labels, None, "nobody", 7),
            most=80,
        ),
        tight=False,
        parts=False,
    )


def _one_run(given: dict[str, Any]) -> bool:
    """Whether one perturbed objective is all there is: with one coefficient its density has a closed form."""
    plain = given.get("method") == "objective" and not given.get("fit_intercept", True)
    return plain and len(given.get("classes", TWO)) == 2


def _ends(given: dict[str, Any]) -> tuple[Any, Any]:
    """Targets that pull as far apart as they can."""
    if "classes" in given:
        return given["classes"][0], given["classes"][-1]
    return (-1.0, 1.0) if "y_bound" in given else (0.0, float(MOST))


def pairs(width: int, low: Any, high: Any) -> list[tuple[tables.Table, tables.Table]]:
    """A row at its bound with the target that the others do not have, beside ordinary ones, and across all others."""
    X, y = tables.spread_out(20, width)
    ordinary = X, [high if value > 0 else low for value in y]
    same = (np.tile(np.array([_UP[width]]), (6, 1)), [low] * 6)
    few = (np.zeros((2, width)), [low, high])
    flat = tables.more(tables.more(few, [1.0, 0.0][:width], low, 20), [1.0, 0.0][:width], high, 20)
    return [
        (tables.more(same, _UP[width], high), same),
        (tables.more(ordinary, _UP[width], low), ordinary),
        (tables.more(few, _UP[width], high), few),
        (tables.more(flat, [0.0, 1.0][-width:], high), flat),
    ]


def _sure(name: str, given: dict[str, Any]) -> list[tuple[tables.Table, tables.Table]]:
    """So many rows of one label that they are nearly sure of it, and one of the other: it pulls with all its might.

    Other directions have more curvature, so this one is what a test of the smallest curvature sees. For a ridge of 4
    or less.
    """
    if not name.startswith("logistic: output"):
        return []
    low, high = given["classes"]
    others = [[0.6, -0.8], [-0.6, -0.8]] if given.get("fit_intercept", True) else [[1.0, 0.0]]
    rows = tables.more((np.zeros((2, 2)), [low, high]), [0.0, 1.0], high, _SURE)
    for row in others:
        rows = tables.more(tables.more(rows, row, low, _SURE // 8), row, high, _SURE // 8)
    return [(tables.more(rows, [0.0, 1.0], low), rows)]


def _count(generator: tables.Generator) -> float:
    return float(generator.integers(0, MOST + 1))


def _targets(given: dict[str, Any]) -> tuple[Callable[[tables.Generator], Any], Callable[[tables.Generator], Any]]:
    """Targets, and odd ones."""
    if "classes" in given:
        return tables.any_of(*given["classes"]), tables.any_of(*given["classes"], None, "nobody", 1, *tables.ODD[:3])
    return (
        (tables.number, tables.odd_number)
        if "y_bound" in given
        else (_count, tables.any_of(0.0, float(MOST), 0.5, -1.0, *tables.ODD))
    )


MAKERS: Mapping[str, Callable[[], Case[tables.Table]]] = {
    f"{kind}: {name}": partial(_case, f"{kind}: {name}", model, given)
    for kind, model, forms in (
        ("logistic", LogisticRegression, _LOGISTIC),
        ("poisson", PoissonRegression, _COUNTS),
        ("glm", GLM, _LOSSES),
    )
    for name, given in forms.items()
} | {
    name: partial(_with_found_target, name, model, labels, more)
    for name, model, labels, more in (
        ("logistic: classes found", LogisticRegression, TWO, {}),
        ("logistic: three classes found", LogisticRegression, THREE, {}),
        ("logistic: one against the rest, classes found", LogisticRegression, THREE, {"multi_class": "ovr"}),
        ("additive: classes found", AdditiveClassifier, TWO, {"cells": 2}),
        ("poisson: counts found", PoissonRegression, (0, 1, 2, 4), {}),
    )
}
"""Each case by itself: some take seconds to plan."""
