"""Rows bounded entry by entry, and some of their entries: what a choice of columns reads, and what is fitted on them.

``BoxSchema`` is for a matrix, ``EntrySchema`` for the entries of a ``Schema``. Both scale every entry to [-1, 1] by its
own public bound; with a support they keep only these entries and divide them by ``x_norm``, a public bound on the norm
of what was kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.layouts.arrays import (
    MAX_BLOCK_CELLS,
    Block,
    NumberLayout,
    WrappedLayout,
    columns_of,
    is_bound,
    one_for_each,
)
from snugdp.tables.schema.scaling import Affine, Floats, part_of_norm, scale_for
from snugdp.tables.schema.schema import Coefficients, Schema
from snugdp.tables.sources.sparse import SparseBlock

_MAX_BLOCK_ROWS = 1 << 20  # whole sums stay exact


@dataclass(frozen=True)
class BoxSchema(NumberLayout):
    """What is public about a matrix with bounded entries: names, a bound for every column, bounds on the target.

    ``x_bound``: b for entries in [-b, b], or one for every column; other entries are clipped. Entries are divided by
    their bounds, then by ``x_norm``; rows that are longer than 1 are shortened when statistics are taken. ``y_bound``:
    b, or (low, high). A missing value in a row counts as 0; a row without a target is left out.

    >>> BoxSchema(("a", "b", "c"), x_bound=2, y_bound=1).only((2, 0), 1).features
    ('c', 'a', 'intercept')
    >>> BoxSchema(("a",), x_bound=2, y_bound=10, x_norm=0.5).coefficients([0.5, 0.1])
    Coefficients(names=('a',), values=array([5.]), intercept=1.0)
    """

    names: tuple[str, ...]
    x_bound: Real | tuple[Real, ...]
    y_bound: Real | tuple[Real, ...]
    intercept: bool = True
    x_norm: Real = 1
    target_name: str | None = None

    def __post_init__(self) -> None:
        bounds = self.x_bound if isinstance(self.x_bound, tuple) else (self.x_bound,)
        if isinstance(self.x_bound, tuple) and len(bounds) != len(self.names):
            raise ValueError(f"x_bound must be one number, or one for each of the {len(self.names)} columns")
        for name, bound in (*(("x_bound", bound) for bound in set(bounds)), ("x_norm", self.x_norm)):
            if not is_bound(bound, name):
                raise ValueError(f"{name} must be greater than 0 and at most 1e290")
        self.aim  # noqa: B018  # invalid bounds on the target are refused here

    @cached_property
    def target(self) -> str:
        """A name for the target that no column has; a part of a table keeps that of the whole."""
        return self.target_name or super().target

    @cached_property
    def _factors(self) -> Floats:
        """What entries are multiplied with before they are clipped to [-1, 1]."""
        given = self.x_bound if isinstance(self.x_bound, tuple) else (self.x_bound,)
        return np.array([float(1 / rational(bound, "x_bound")) for bound in given])

    @cached_property
    def _norm(self) -> float:
        return float(rational(self.x_norm, "x_norm"))

    def per_entry(self, half: float) -> Floats:
        """Coefficients of 1 for entries in the user's units."""
        return half * self._factors / self._norm

    def only(self, support: tuple[int, ...], x_norm: Real) -> BoxSchema:
        """The same for some of the columns."""
        bounds = tuple(self.x_bound[place] for place in support) if isinstance(self.x_bound, tuple) else self.x_bound
        names = tuple(self.names[place] for place in support)
        return replace(self, names=names, x_bound=bounds, x_norm=x_norm, target_name=self.target)

    def scaled(self, values: NDArray[Any], places: NDArray[Any] | slice = slice(None)) -> Floats:
        """Entries of the given columns, scaled to [-1, 1] and divided by the norm."""
        factors = self._factors if len(self._factors) == 1 else self._factors[places]
        with np.errstate(all="ignore"):  # a warning would depend on private values
            out: Floats = np.multiply(values, factors, dtype=np.float64)
            np.clip(out, -1.0, 1.0, out=out)
            np.copyto(out, 0.0, where=np.isnan(out))
            if self._norm != 1.0:
                out /= self._norm
        return out

    def aims(self, y: Floats) -> Floats:
        """Scaled targets."""
        out = np.empty((1, len(y)))
        with np.errstate(all="ignore"):
            cast(Affine, scale_for(self.aim, 1)).write(y, out)
        image: Floats = out[0]
        return image

    def blocks(self, frame: Any) -> Iterator[tuple[Floats, Floats | None]]:
        """The scaled rows of a block of a matrix, dense or sparse, or of a frame, some at a time."""
        width = len(self.names)
        if isinstance(frame, Block | SparseBlock):
            frame = frame.with_targets()
            y, size = frame.y, len(frame)
        else:
            columns, y, size = columns_of(frame, self)
        rows = min(_MAX_BLOCK_ROWS, max(256, MAX_BLOCK_CELLS // (width + 1)))
        for start in range(0, size, rows):
            part = slice(start, min(start + rows, size))
            out = np.ones((part.stop - start, width + self.intercept))
            if isinstance(frame, SparseBlock):
                out[:, :width] = self.scaled(frame[part])
            elif isinstance(frame, Block):
                out[:, :width] = self.scaled(frame.X[part])
            else:
                for place, column in enumerate(columns):
                    out[:, place] = self.scaled(column[part], np.array([place]))
            yield out, None if y is None else self.aims(y[part])


@dataclass(frozen=True)
class EntrySchema(WrappedLayout):
    """The entries of the vectors of a schema, each scaled to [-1, 1]; or some of them, divided by ``x_norm``.

    >>> from snugdp.tables.schema.kinds import Category, Number
    >>> schema = Schema({"age": Number(0, 120), "city": Category(["Rome", "Oslo"]), "y": Number(0, 1)}, target="y")
    >>> EntrySchema(schema).only((2,), 1).features
    ('city=Oslo', 'intercept')
    """

    layout: Schema
    support: tuple[int, ...] | None = None
    x_norm: Real = 1
    norm = 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the entries, without the constant."""
        names = self.layout.features[: len(self.layout.features) - self.layout.intercept]
        return names if self.support is None else tuple(names[place] for place in self.support)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        return (*self.names, "intercept") if self.intercept else self.names

    @cached_property
    def _factor(self) -> float:
        return 1.0 / (part_of_norm(self.layout.parts) * float(rational(self.x_norm, "x_norm")))

    def only(self, support: tuple[int, ...], x_norm: Real) -> EntrySchema:
        """The same for some of the entries."""
        kept = support if self.support is None else tuple(self.support[place] for place in support)
        return EntrySchema(self.layout, kept, x_norm)

    def blocks(self, frame: Any) -> Iterator[tuple[Floats, Floats | None]]:
        """The scaled entries and targets of some rows, part by part."""
        width = len(self.layout.features) - self.intercept
        places = np.arange(width) if self.support is None else np.array(self.support)
        for X, y in self.layout.blocks(frame):
            for start in range(0, len(X), _MAX_BLOCK_ROWS):
                part = slice(start, start + _MAX_BLOCK_ROWS)
                out = np.ones((len(X[part]), len(places) + self.intercept))
                np.multiply(X[part][:, places], self._factor, out=out[:, : len(places)])
                yield out, None if y is None else y[part]

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of these entries in the user's units; other entries have none."""
        given, width = one_for_each(theta, self.features), len(self.names)
        whole = np.zeros(len(self.layout.features))
        places = np.arange(width) if self.support is None else np.array(self.support)
        whole[places] = given[:width] * self._factor
        if self.intercept:
            whole[-1] = given[-1]
        linear = self.layout.coefficients(whole)
        return Coefficients(self.names, linear.values[places], linear.intercept)


Box: TypeAlias = BoxSchema | EntrySchema
