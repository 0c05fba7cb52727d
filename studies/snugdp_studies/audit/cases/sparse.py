"""Models on few of many columns: every way to choose them, and fits beside the choice."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from snugdp.audit.finding import Case
from snugdp.estimators.sparse.models import SparseLinearRegression, SparseLogisticRegression
from snugdp_studies.audit.cases import tables
from snugdp_studies.audit.cases.fitting import fitting

EPSILON, DELTA = 1, 0.05
ENTRIES, CHOSEN, BLOCKS = 4, 1, 24
CLASSES = ("no", "yes")

_VOTES: dict[str, Any] = {"selection": "votes", "blocks": BLOCKS, "selection_share": 0.6, "fit_intercept": False}
_LINEAR: dict[str, dict[str, Any]] = {
    "gumbel": {},
    "gumbel, then statistics": {"method": "adassp", "selection_share": 0.6, "fit_intercept": False},
    "gumbel, two columns": {"n_features_to_select": 2, "method": "adassp", "selection_share": 0.4},
    "gaussian": {"selection": "gaussian", "row_norm": 1, "method": "adassp", "fit_intercept": False},
    "votes": {**_VOTES, "method": "adassp"},
}
_LABELS: dict[str, dict[str, Any]] = {
    "gumbel": {},
    "objective": {"method": "objective"},
    "output": {"method": "output", "fit_intercept": False},
    "votes": {**_VOTES, "method": "output"},
}
# Targets that pull as far apart as they can, ordinary ones and odd ones.
_NUMBERED: tuple[Any, ...] = (-1.0, 1.0), tables.number, tables.odd_number
_LABELLED: tuple[Any, ...] = CLASSES, tables.any_of(*CLASSES), tables.any_of(*CLASSES, None, "nobody", 1)


def cases() -> Iterator[Case[tables.Table]]:
    """All of them. A choice and a fit share one budget: no pair is known that is worst for both."""
    return (make() for make in MAKERS.values())


def _case(name: str, model: type[Any], form: dict[str, Any]) -> Case[tables.Table]:
    given: dict[str, Any] = {"n_features_to_select": CHOSEN, "epsilon": EPSILON, "delta": DELTA, **form}
    ends, target, odd = _LABELLED if "classes" in form else _NUMBERED
    voted = form.get("selection") == "votes"
    return fitting(
        name,
        model,
        given,
        n_features=ENTRIES,
        group="sparse",
        worst=partial(voted_pairs if voted else pairs, *ends),
        # Rows are sent to blocks by lots, which go by their places: the row that differs is the last.
        random=partial(tables.with_targets, d=ENTRIES, target=target, odd=odd, least=1, most=50, ordered=voted),
        tight=form.get("selection") == "gaussian",
        parts=form.get("selection") == "gaussian",
        apart=partial(tables.apart_with_targets, classes=form.get("classes")) if voted else None,
    )


def pairs(low: Any, high: Any) -> list[tuple[tables.Table, tables.Table]]:
    """A row that moves all scores at once: up for one column and down for the others."""
    X, y = tables.spread_out(20, ENTRIES)
    ordinary = X, [high if value > 0 else low for value in y]
    # All sums are positive and about as large: the row takes the lead of one column, or gives it.
    even = tables.more((np.zeros((1, ENTRIES)), [low]), (1.0,) * ENTRIES, high, 6)
    return [
        (tables.more(even, (1.0, -1.0, -1.0, -1.0), high), even),
        (tables.more(ordinary, (1.0, -1.0, -1.0, -1.0), high), ordinary),
        (tables.more(even, (1.0, 0.0, 0.0, 0.0), low), even),
    ]


def voted_pairs(low: Any, high: Any) -> list[tuple[tables.Table, tables.Table]]:
    """So few rows in a block that the last one changes its vote, and a lead that passes in about every second case."""
    first, rival = np.eye(ENTRIES)[:2]
    pairs = []
    for rows in (16, 22, 6):
        table: tables.Table = np.vstack([np.tile(first, (rows, 1)), rival[None]]), [high] * (rows + 1)
        pairs += [(tables.more(table, rival.tolist(), low), table), (tables.more(table, first.tolist(), high), table)]
    X = np.zeros((48, ENTRIES))
    X[0:24:2, 0], X[25:48:2, 1] = 1.0, 0.9
    even: tables.Table = X, [high] * 48
    pairs.append((even, tables.without(even, 24)))  # a row in the middle goes: all others stay in their blocks
    alone: tables.Table = 0.9 * rival[None], [high]
    return [*pairs, (tables.more(alone, first.tolist(), high), alone)]  # a lead of one vote, or a tie


MAKERS: dict[str, Callable[[], Case[tables.Table]]] = {
    f"sparse {kind}: {name}": partial(_case, f"sparse {kind}: {name}", model, {**given, **form})
    for kind, model, given, forms in (
        ("linear", SparseLinearRegression, {"y_bound": 1}, _LINEAR),
        ("logistic", SparseLogisticRegression, {"classes": CLASSES}, _LABELS),
    )
    for name, form in forms.items()
}
"""Each case by itself: some take seconds to plan."""
