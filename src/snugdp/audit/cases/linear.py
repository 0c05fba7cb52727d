"""Linear regression by every method, through the estimator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from snugdp.audit.cases.faces import face
from snugdp.audit.cases.tables import (
    Table,
    foremost,
    more,
    number,
    odd_number,
    spread_out,
    with_targets,
)
from snugdp.audit.finding import Case
from snugdp.estimators.linear import LinearRegression

EPSILON, DELTA = 1, 0.05
_AXIS, _SLANTED = {1: [1.0], 2: [1.0, 0.0]}, {1: [-1.0], 2: [0.6, 0.8]}  # rows exactly at the bound

# What a name stands for: method, proposals, and whether noise a fifth too small must be seen. One perturbed objective
# with one coefficient has a density in closed form.
_FORMS: dict[str, tuple[str, Mapping[str, Any], bool | float]] = {
    "auto": ("auto", {}, False),
    "objective": ("objective", {}, True),
    "objective, two columns": ("objective", {}, False),
    "objective, pseudo-Huber": ("objective", {"loss": "pseudo_huber", "tau": 0.3}, True),
    "objective, Huber": ("objective", {"loss": "huber"}, True),
    "objective, private scale": ("objective", {"rule": "scale"}, False),
    "objective, two stages": ("objective", {"rule": "two_stage"}, False),
    "sufficient": ("sufficient", {"clip": 0.25}, True),
    "sufficient, statistics alone": ("sufficient", {"refinements": 0}, True),
    "adassp": ("adassp", {}, True),
    "posterior": ("posterior", {"ridge": 4.0}, False),
    "posterior, proposed": ("posterior", {"ridge": 4.0, "gamma": 0.05}, False),
    "ops_balanced": ("ops_balanced", {}, False),
    "adaops": ("adaops", {}, False),
    "output": ("output", {"ridge": 4.0}, False),
    "descent": ("descent", {"steps": 5, "clip": 0.25}, True),
}
_ATOMS = ("auto", "objective")  # their costs are curves of perturbed objectives, not sums of parts
_TIGHTEST = {"sufficient": (1, False), "descent": (1, True), "objective, pseudo-Huber": (1, True)}  # not pair 0, there
_NEED_ROWS = ("ops_balanced", "descent")


def cases() -> Iterator[Case[Table]]:
    """All of them. What must be seen is where the noise is all there is: other bounds have slack of their own."""
    for name, (method, proposals, tight) in _FORMS.items():
        yield _case(name, method, proposals, tight)


def _case(name: str, method: str, proposals: Mapping[str, Any], tight: bool | float) -> Case[Table]:
    width = 1 if method == "objective" and "two columns" not in name else 2
    given: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "method": method,
        "x_norm": 1,
        "y_bound": 1,
        "proposals": dict(proposals) or None,
        "rows": 40 if method in _NEED_ROWS else None,
        "fit_intercept": method in ("auto", "adassp"),
    }
    made = face(LinearRegression, given, n_features=width)
    place, back = _TIGHTEST.get(name, (0, False))
    return Case(
        name=f"linear: {name}",
        group="linear",
        run=made.run,
        cost=made.cost,
        worst=lambda: foremost(pairs(width), place, back=back),
        random=lambda generator: with_targets(generator, width, number, odd_number, least=1),
        tight=tight,
        parts=method not in _ATOMS and "posterior" not in name and "ops" not in name,
    )


def pairs(width: int) -> list[tuple[Table, Table]]:
    """A row at its bounds beside ordinary ones, beside rows that are all 0, and against the line of the others."""
    ordinary = spread_out(30, width)
    nothing = (np.zeros((4, width)), [0.0] * 4)
    steep = more(nothing, _SLANTED[width], 1.0, 3)
    return [
        (more(ordinary, _AXIS[width], 1.0), ordinary),
        (more(nothing, _SLANTED[width], 1.0), nothing),
        (more(steep, _SLANTED[width], -1.0), steep),
    ]
