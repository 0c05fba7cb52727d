"""The rows of a table moved and stretched by released numbers, then shortened to a norm of their own.

Proof: ``affine.proof.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.rationals import Real
from snugdp.tables.layouts.arrays import WrappedLayout
from snugdp.tables.rowmap import Floats
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Coefficients, Layout


@dataclass(frozen=True)
class AffineLayout(WrappedLayout):
    """A layout whose features are (x - centre) * stretch, shortened to ``norm``; the constant stays 1. Public.

    Guarantee: the image of a row is a function of that row alone (``affine.proof.md``, Theorem 1). The row map does
    not depend on the centre or the stretch, so neither do sensitivities.
    """

    layout: Layout
    centre: tuple[float, ...]
    stretch: float
    norm: Real

    def __post_init__(self) -> None:
        width = len(self.layout.features) - self.layout.intercept
        if len(self.centre) != width:
            raise ValueError(f"the centre must have {width} entries, one for each feature without the constant")
        if any(self.centre) and not self.layout.intercept:
            raise ValueError("rows can be moved only where there is a constant that takes up the move")
        if not (np.isfinite(self.centre).all() and 0 < self.stretch < 2.0**100):
            raise ValueError("the centre must be finite, the stretch above 0 and below 2**100")

    @cached_property
    def _middle(self) -> Floats:
        return np.array(self.centre)

    def blocks(self, frame: Any) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """The moved and stretched rows, part by part; overwritten by the next ones."""
        width, moved = len(self.centre), np.empty((0, 0))
        for X, y in self.layout.blocks(frame):
            moved = moved if moved.shape == X.shape else np.empty_like(X)
            part = moved[:, :width]
            with np.errstate(all="ignore"):  # a warning would depend on private values
                np.subtract(X[:, :width], self._middle, out=part)
                np.multiply(part, self.stretch, out=part)
            moved[:, width:] = X[:, width:]
            yield moved, y

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of stretched rows in the user's units."""
        return self.layout.coefficients(undo_affine(theta, self.centre, self.stretch))


class AffineRows(Rows):
    """The rows of a table under another layout of the same columns. Private."""

    __slots__ = ()

    def __init__(self, rows: Rows, centre: Sequence[float], stretch: float, norm: Real) -> None:
        super().__init__(rows.data, AffineLayout(rows.schema, tuple(centre), stretch, norm), progress=False)


def undo_affine(theta: ArrayLike, centre: Sequence[float], stretch: float) -> Floats:
    """The same linear functions of rows as they were before; one function, or one in each row of a matrix.

    >>> undo_affine([3.0, 1.0], (0.25,), 2.0).tolist()
    [6.0, -0.5]
    """
    given = np.array(theta, dtype=np.float64)
    width = len(centre)
    given[..., :width] *= stretch
    if given.shape[-1] > width:
        given[..., width] -= given[..., :width] @ np.array(centre)
    return given


@dataclass(frozen=True)
class UnitlessLayout(WrappedLayout):
    """A layout whose linear functions are shown as they are, without the units of a target."""

    layout: Layout
    target_units = (0.0, 1.0)

    @property
    def norm(self) -> Real:
        """That of the layout."""
        return self.layout.norm

    def blocks(self, frame: Any) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """Those of the layout."""
        return self.layout.blocks(frame)

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """For entries in the user's units."""
        linear, (middle, half) = self.layout.coefficients(theta), self.layout.target_units
        return Coefficients(linear.names, linear.values / half, (linear.intercept - middle) / half)
