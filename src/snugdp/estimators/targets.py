"""What is predicted: labels, counts or numbers. How targets are read and bounded, and what a linear function says.

What is refused here depends on shapes, declared types and parameters alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.grids import squares
from snugdp.estimators.inputs import FitBounds, InputTable, read, target_of
from snugdp.estimators.labels import declared, labels_of
from snugdp.numerics.rationals import rational
from snugdp.tables.losses.losses import Logistic, Loss, OneAgainst, SoftHinge, Softmax, TamedPoisson
from snugdp.tables.schema.scaling import MAX_CLASSES, classes_in, codes, with_classes
from snugdp.tables.schema.schema import Layout, Number, Schema

Floats = NDArray[np.float64]

_NORM = (
    "x_norm is needed: it bounds the Euclidean norm of a row of X. It decides how much noise hides one person, and "
    "must not come from the data: the largest row is somebody's. Or describe the columns of a table by "
    "schema=snugdp.Schema(...)"
)
_LOWEST = -1e6  # a logarithm that can be averaged


class Response(Protocol):
    """What a model predicts. All of it is public."""

    @property
    def losses(self) -> tuple[Loss, ...] | tuple[Softmax]:
        """One loss, or one for each class."""
        ...

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> FitBounds:
        """The public bounds, checked."""
        ...

    def read(self, X: Any, y: Any, bounds: FitBounds) -> InputTable:
        """A table to fit on."""
        ...

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """Public targets as a fit scales them."""
        ...

    def value(self, linear: Floats, target: Floats) -> float:
        """How good a linear function is for scaled targets; the larger the better."""
        ...


@dataclass(frozen=True)
class LabelBounds(FitBounds):
    """How the user bounds rows with labels: a schema that lists the classes, or classes and a norm."""

    classes: Any = None
    numbered: bool = False  # whether the column of a table holds places among the classes

    def __post_init__(self) -> None:
        if self.schema is not None and self.classes is not None:
            raise ValueError("the schema has all the classes: leave out classes")
        if self.schema is None and self.x_norm is None:
            raise ValueError(_NORM)
        super().__post_init__()
        if len(self.labels) > MAX_CLASSES:
            raise ValueError(f"there are more than {MAX_CLASSES} classes")

    def _check_target(self) -> None:
        classes_in(self.schema)

    @cached_property
    def labels(self) -> NDArray[Any]:
        """All classes, in ascending order where they have one."""
        return declared(self.classes if self.schema is None else classes_in(self.schema))

    @property
    def layout(self) -> Schema:
        """The schema, its classes in order."""
        values = range(len(self.labels)) if self.numbered else self.labels.tolist()
        return with_classes(super().layout, tuple(values))


@dataclass(frozen=True)
class ClassTarget:
    """One of two or more classes. What is none of them counts as the first.

    ``together``: one softmax model for more than two classes, rather than one model for each against the others.
    """

    loss: Logistic | SoftHinge
    given: LabelBounds
    together: bool = False

    @property
    def classes(self) -> NDArray[Any]:
        """All of them."""
        return self.given.labels

    @property
    def losses(self) -> tuple[Loss, ...] | tuple[Softmax]:
        """One for two classes, otherwise that of a softmax model or one for each class."""
        count = len(self.classes)
        if count == 2:
            return (self.loss,)
        if self.together:
            return (Softmax(count),)
        return tuple(OneAgainst(self.loss, place, count) for place in range(count))

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> FitBounds:
        """As given."""
        return self.given

    def read(self, X: Any, y: Any, bounds: FitBounds) -> InputTable:
        """A table to fit on: labels become places among the classes, or codes between -1 and 1."""
        if not isinstance(bounds, LabelBounds):
            raise TypeError("labels need bounds that list the classes")
        if y is None:
            return read(X, None, bounds)
        places = self._places(y)
        if bounds.schema is not None:
            return read(X, np.maximum(places, 0).astype(np.float64), replace(bounds, numbered=True))
        return read(X, codes(places, len(self.classes)), bounds)

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """The codes of public labels."""
        return codes(self._places(y), len(self.classes))

    def _places(self, y: Any) -> NDArray[np.int64]:
        return labels_of(y, self.classes.tolist())

    def predicted(self, linear: Floats) -> NDArray[Any]:
        """The most probable class."""
        places = (linear > 0).astype(np.int64) if linear.ndim == 1 else np.argmax(linear, axis=1)
        found: NDArray[Any] = self.classes[places]
        return found

    def logarithms(self, linear: Floats) -> Floats:
        """Of the probabilities of all classes, one row each; those of single models are brought to a sum of 1."""
        if linear.ndim == 1:
            return -np.stack([np.logaddexp(0.0, linear), np.logaddexp(0.0, -linear)], axis=1)
        single = linear if self.together else -np.logaddexp(0.0, -linear)
        return np.asarray(single - np.logaddexp.reduce(single, axis=1, keepdims=True), dtype=np.float64)

    def probabilities(self, linear: Floats) -> Floats:
        """Of all classes, one row each."""
        return np.exp(self.logarithms(linear))

    def value(self, linear: Floats, target: Floats) -> float:
        """The mean log-likelihood."""
        places = np.rint((target + 1.0) * (0.5 * (len(self.classes) - 1))).astype(np.int64)
        found = self.logarithms(np.nan_to_num(linear))[np.arange(len(places)), places]
        return float(np.mean(np.maximum(found, _LOWEST)))


@dataclass(frozen=True)
class CountTarget:
    """CountTarget from 0 to ``most``, with rates up to ``rate``."""

    loss: TamedPoisson

    @property
    def losses(self) -> tuple[Loss, ...]:
        """One."""
        return (self.loss,)

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> FitBounds:
        """Targets between 0 and the largest count; the target of a schema must have just these bounds."""
        most = rational(self.loss.most, "y_max")
        if schema is None:
            if x_norm is None:
                raise ValueError(_NORM)
            return FitBounds(None, x_norm, (0, most), intercept)
        found = FitBounds(schema, x_norm, None, intercept)
        column = schema.columns[schema.target]
        ends = (column.lower, column.upper) if isinstance(column, Number) else (1, 0)
        if [rational(end, "bound") for end in ends] != [Fraction(0), most]:
            raise ValueError(f'the target "{schema.target}" holds counts: it must be Number(0, {most}) in the schema')
        return found

    def read(self, X: Any, y: Any, bounds: FitBounds) -> InputTable:
        """A table to fit on."""
        return read(X, y, bounds)

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """CountTarget between -1 and 1."""
        return _clipped(y, layout)

    def rates(self, linear: Floats) -> Floats:
        """The exponential of the linear function, at most ``rate``."""
        top = float(np.log(float(self.loss.curvature)))
        return np.exp(np.clip(linear, -700.0, top))

    def value(self, linear: Floats, target: Floats) -> float:
        """The mean log-likelihood but for a constant."""
        rates = self.rates(np.nan_to_num(linear))
        counts = float(rational(self.loss.most, "y_max")) * 0.5 * (target + 1.0)
        return float(np.mean(counts * np.log(rates) - rates))


@dataclass(frozen=True)
class RealTarget:
    """A number between bounds."""

    loss: Loss
    y_bound: Any

    @property
    def losses(self) -> tuple[Loss, ...]:
        """One."""
        return (self.loss,)

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> FitBounds:
        """As for a linear regression."""
        return FitBounds(schema, x_norm, self.y_bound, intercept)

    def read(self, X: Any, y: Any, bounds: FitBounds) -> InputTable:
        """A table to fit on."""
        return read(X, y, bounds)

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """RealTarget between -1 and 1."""
        return _clipped(y, layout)

    def value(self, linear: Floats, target: Floats) -> float:
        """Minus the mean squared error."""
        return squares(linear, target)


def _clipped(y: Any, layout: Layout) -> Floats:
    middle, half = layout.target_units
    return np.clip(np.nan_to_num((target_of(y) - middle) / half), -1.0, 1.0)
