"""Principal components by every method, through the estimator."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from snugdp.audit.finding import Case
from snugdp.estimators.pca.pca import PCA
from snugdp_studies.audit.cases.fitting import fitting
from snugdp_studies.audit.cases.tables import Floats, Generator, entries, foremost, near, odd_entries

Rows: TypeAlias = tuple[Floats]
EPSILON, DELTA = 1, 0.05
ENTRIES = 3

# What a name stands for, and whether noise a fifth too small must be seen: tests of gaps have slack of their own.
_FORMS: dict[str, tuple[dict[str, Any], bool | float]] = {
    "gauss": ({"method": "gauss"}, True),
    "gauss, private centre": ({"method": "gauss", "center": "private"}, True),
    "crossing": ({"method": "auto"}, True),
    "crossing, by components": ({"method": "crossing", "focus": "components"}, True),
    "crossing, share of variance": ({"method": "crossing", "n_components": 0.8, "rows": 40}, True),
    "projector": ({"method": "projector"}, False),
    "projector, as many as stand out": ({"method": "projector", "n_components": "auto"}, False),
    "dual": ({"method": "dual"}, False),
}


_BLOCK = 8192  # rows
_WORST: dict[str, Callable[[], list[tuple[Rows, Rows]]]] = {
    "gauss": lambda: pairs() + many_rows()[2:],
    "gauss, private centre": lambda: foremost(pairs(), 2),
    "projector": lambda: pairs() + many_rows()[:2],
    "projector, as many as stand out": lambda: pairs() + many_rows()[:2],
    "dual": lambda: pairs() + many_rows()[:2],
}


def cases() -> Iterator[Case[Rows]]:
    """All of them."""
    for name, (form, tight) in _FORMS.items():
        given: dict[str, Any] = {"n_components": 1, "epsilon": EPSILON, "delta": DELTA, "x_norm": 1, **form}
        yield fitting(
            f"pca: {name}",
            PCA,
            given,
            n_features=ENTRIES,
            group="pca",
            worst=_WORST.get(name, pairs),
            random=random_pair,
            tight=tight,
            parts="projector" not in name and "dual" not in name,
        )


def pairs() -> list[tuple[Rows, Rows]]:
    """A row at its bound: across the first component, along it, and where two are as large as each other."""
    along, across = np.eye(ENTRIES)[0], np.eye(ENTRIES)[1]
    strong, even = np.tile(along, (60, 1)), np.tile(np.eye(ENTRIES), (4, 1))
    half = (along + across) / np.sqrt(2) * (1 - 2.0**-40)
    return [
        ((np.vstack([strong, half]),), (strong,)),
        ((np.vstack([even, across]),), (even,)),
        ((np.vstack([strong[:9], across]),), (strong[:9],)),
    ]


def many_rows() -> list[tuple[Rows, Rows]]:
    """So many rows along one axis that it stands out, and a row across it; more rows than are read at once, one far."""
    along, across = np.eye(ENTRIES)[:2]
    strong, zeros = np.tile(along, (2000, 1)), np.zeros((_BLOCK, ENTRIES))
    half = (along + across) / np.sqrt(2) * (1 - 2.0**-40)
    return [
        ((np.vstack([strong, half]),), (strong,)),
        ((np.vstack([strong, across]),), (strong,)),
        ((np.vstack([zeros, 1e9 * across]),), (zeros,)),
    ]


def random_pair(generator: Generator) -> tuple[Rows, Rows]:
    """Any neighbours."""
    first, second = near(
        generator,
        lambda g: entries(g, ENTRIES),
        lambda g: odd_entries(g, ENTRIES),
        relation="add_remove",
        least=1,
        most=60,
    )
    return (np.array(first, dtype=np.float64),), (np.array(second, dtype=np.float64),)
