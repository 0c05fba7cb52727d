"""The methods of Figure 1: as the paper and the papers that it cites print them, and ours. NOT PRIVATE: seeded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.linear import LinearRegression
from snugdp.mechanisms.linear.base import Design
from snugdp.noise import Simulation
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.moments import Moments
from snugdp.tables.rowmap import RowMap
from snugdp_studies.paper.drawing import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, Line, Version
from snugdp_studies.paper.linear.experiment import NotPrivateFit, not_private_grid, not_private_ops_ptr_selection
from snugdp_studies.paper.linear.published import (
    NotPrivateSums,
    not_private_adaops,
    not_private_adassp,
    not_private_ops_balanced,
    not_private_output_perturbation,
)

Floats: TypeAlias = NDArray[np.float64]
Part: TypeAlias = tuple[Floats, Floats]
GRID = "OPS-PTR grid"


class Split(Protocol):
    """One split of a table: rows to fit on, public rows, and rows to measure the error on."""

    @property
    def train(self) -> Part: ...  # noqa: D102
    @property
    def public(self) -> Part: ...  # noqa: D102
    @property
    def test(self) -> Part: ...  # noqa: D102
    @property
    def rows_guess(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class Setting:
    """What a method is told besides the rows."""

    epsilon: float
    delta: float
    seed: int


@dataclass(frozen=True)
class Method:
    """One curve. ``fit`` gives coefficients, or None where nothing came of it: that predicts 0.

    Without a line it is in the table of numbers only.
    """

    name: str
    version: Version
    line: Line | None
    fit: Callable[[Split, Setting], Floats | None]


def _printed_ops_ptr(split: Split, setting: Setting) -> Floats | None:
    X, y = split.train
    design = Design(RowMap(X.shape[1], feature_bound=1, target_bound=1))
    moments = Moments(design.row_map.limits)
    for rows, target in design.row_map.blocks(X, y):
        moments.add(rows, rows, target)
    return not_private_ops_ptr_selection(
        Secret(moments),
        design,
        split.public,
        epsilon=setting.epsilon,
        delta=setting.delta,
        noise=Simulation(setting.seed),
    ).theta


Published: TypeAlias = Callable[[NotPrivateSums, float, float, Simulation], NotPrivateFit]


def _published(split: Split, setting: Setting, *, method: Published) -> Floats | None:
    return method(NotPrivateSums.of(*split.train), setting.epsilon, setting.delta, Simulation(setting.seed)).theta


def _ours(
    split: Split,
    setting: Setting,
    *,
    method: str,
    proposals: Mapping[str, Any] | None = None,
    rows: bool = False,
    validation: bool = False,
) -> Floats | None:
    model = LinearRegression(
        setting.epsilon,
        setting.delta,
        method=method,
        x_norm=1,
        y_bound=1,
        fit_intercept=False,
        proposals=None if proposals is None else dict(proposals),
        validation=split.public if validation else None,
        rows=split.rows_guess if rows else None,
        noise=Simulation(setting.seed),
    ).fit(*split.train)
    return np.asarray(model.coef_) if model.released_ else None


def _cited(name: str, line: Line, method: Published) -> Method:
    return Method(name, "as printed", line, partial(_published, method=method))


def _private(name: str, line: Line | None, **options: Any) -> Method:
    return Method(name, "honest", line, partial(_ours, **options))


_RIDGES = {"ridge": list(not_private_grid())}
METHODS = (
    Method("OPS-PTR", "as printed", Line("OPS-PTR (Algorithm 2 over 30 ridges)", RED, "o"), _printed_ops_ptr),
    _cited("OPS-Balanced", Line("OPS-Balanced", BLUE, "s"), not_private_ops_balanced),
    _cited("AdaOPS", Line("AdaOPS", GREEN, "^"), not_private_adaops),
    _cited("AdaSSP", Line("AdaSSP (not in the paper's figure)", PURPLE, "D", "--"), not_private_adassp),
    _cited("OutPert", Line("output perturbation", ORANGE, "v"), not_private_output_perturbation),
    _private("OPS-PTR", Line("OPS-PTR, corrected, ridge by a rule", RED, "o"), method="posterior"),
    _private(
        GRID,
        Line("OPS-PTR, corrected, best of 30 ridges", RED, "o", ":"),
        method="posterior",
        proposals=_RIDGES,
        validation=True,
    ),
    _private("OPS-Balanced", Line("OPS-Balanced, corrected", BLUE, "s"), method="ops_balanced", rows=True),
    _private("AdaOPS", Line("AdaOPS, corrected", GREEN, "^"), method="adaops"),
    _private("AdaSSP", Line("AdaSSP, exact accounting", PURPLE, "D", "--"), method="adassp"),
    _private("OutPert", Line("output perturbation after a test", ORANGE, "v"), method="output"),
    _private("auto", Line("snugdp's default, objective perturbation", BLACK, "*", width=2.4), method="auto"),
    _private("objective, fixed rule", None, method="objective"),
    _private("objective, private scale", None, method="objective", proposals={"rule": "scale"}),
    _private("objective, two stages", None, method="objective", proposals={"rule": "two_stage"}),
    _private("sufficient statistics, refined", None, method="sufficient"),
    _private("sufficient statistics, public validation", None, method="sufficient", validation=True),
    _private("gradient descent", None, method="descent", rows=True),
)
