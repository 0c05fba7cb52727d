"""What a linear model predicts: how targets are bounded, read and scaled, and how good a linear function is for them.

What is refused here depends on shapes, declared types and parameters alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from snugdp.estimators.inputs import Floats, InputTable, NormBounds, eager, read, schema_table, target_of
from snugdp.estimators.labels import declared, labels_of
from snugdp.numerics.rationals import rational
from snugdp.tables.layouts.affine import UnitlessLayout
from snugdp.tables.schema.scaling import MAX_CLASSES, classes_in, codes, with_classes
from snugdp.tables.schema.schema import Layout, Number, Schema

if TYPE_CHECKING:
    from snugdp.tables.losses.losses import Logistic, Loss, SoftHinge, Softmax, TamedPoisson

_NORM_NEEDED = (
    "x_norm is needed: it bounds the Euclidean norm of a row of X. It decides how much noise hides one person, and "
    "must not come from the data: the largest row is somebody's. Or describe the columns of a table by "
    "schema=snugdp.Schema(...)"
)
_LOWEST_LOGARITHM = -1e6  # one that can be averaged


class Response(ABC):
    """What a model predicts, checked. All of it is public. ``classes``: of labels."""

    classes: NDArray[Any] | None = None

    @property
    @abstractmethod
    def losses(self) -> tuple[Loss, ...] | tuple[Softmax]:
        """One loss, or one for each class."""

    @abstractmethod
    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> NormBounds:
        """The public bounds, checked."""

    def read(self, X: Any, y: Any, bounds: NormBounds) -> InputTable:
        """A table to fit on."""
        return read(X, y, bounds)

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """Public targets as a fit scales them: between -1 and 1."""
        middle, half = layout.target_units
        return np.clip(np.nan_to_num((target_of(y) - middle) / half), -1.0, 1.0)

    @abstractmethod
    def value(self, linear: Floats, target: Floats) -> float:
        """How good a linear function is for scaled targets; the larger the better."""

    def shown(self, layout: Layout) -> Layout:
        """The layout in whose units coefficients are shown."""
        return UnitlessLayout(layout)


@dataclass(frozen=True)
class RealTarget(Response):
    """A number between bounds. Linear regression needs no ``loss``."""

    loss: Loss | None
    y_bound: Any

    @property
    def losses(self) -> tuple[Loss, ...]:
        """One, or none."""
        return () if self.loss is None else (self.loss,)

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> NormBounds:
        """As for a linear regression."""
        return NormBounds(schema, self.y_bound, intercept, x_norm)

    def value(self, linear: Floats, target: Floats) -> float:
        """Minus the mean squared error, in the units of the scaled target; predictions are clipped to it."""
        guesses = np.clip(np.nan_to_num(linear, nan=np.inf), -1.0, 1.0)
        return -float(np.mean((guesses - target) ** 2))

    def shown(self, layout: Layout) -> Layout:
        """The units of the target."""
        return layout


@dataclass(frozen=True)
class CountTarget(Response):
    """Counts from 0 to ``loss.most``, with rates up to ``loss.rate``."""

    loss: TamedPoisson

    @property
    def losses(self) -> tuple[Loss, ...]:
        """One."""
        return (self.loss,)

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> NormBounds:
        """Targets between 0 and the largest count; the target of a schema must have just these bounds."""
        most = rational(self.loss.most, "y_max")
        if schema is None:
            if x_norm is None:
                raise ValueError(_NORM_NEEDED)
            return NormBounds(None, (0, most), intercept, x_norm)
        checked = NormBounds(schema, None, intercept, x_norm)
        column = schema.columns[schema.target]
        ends = (column.lower, column.upper) if isinstance(column, Number) else (1, 0)
        if [rational(end, "bound") for end in ends] != [Fraction(0), most]:
            raise ValueError(f'the target "{schema.target}" holds counts: it must be Number(0, {most}) in the schema')
        return checked

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
class LabelBounds(NormBounds):
    """How the user bounds rows with labels: a schema that lists the classes, or classes and a norm."""

    classes: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.labels) > MAX_CLASSES:
            raise ValueError(f"there are more than {MAX_CLASSES} classes")

    def _check_bounds(self) -> None:
        if self.x_norm is None:
            raise ValueError(_NORM_NEEDED)
        super()._check_bounds()

    def _leave_out_bounds(self) -> None:
        if self.classes is not None:
            raise ValueError("the schema has all the classes: leave out classes")
        super()._leave_out_bounds()

    def _check_target(self) -> None:
        classes_in(self.schema)

    @cached_property
    def labels(self) -> NDArray[Any]:
        """All classes, in ascending order where they have one."""
        return declared(self.classes if self.schema is None else classes_in(self.schema))

    @cached_property
    def schema_layout(self) -> Schema:
        """The schema, its classes in order."""
        return with_classes(super().schema_layout, tuple(self.labels.tolist()))


@dataclass(frozen=True)
class ClassTarget(Response):
    """One of two or more classes. What is none of them counts as the first.

    ``together``: one softmax model for more than two classes, rather than one model for each against the others.
    """

    loss: Logistic | SoftHinge
    given: LabelBounds
    together: bool = False

    @property
    def classes(self) -> NDArray[Any]:  # type: ignore[override]  # known without being set
        """All of them."""
        return self.given.labels

    @property
    def losses(self) -> tuple[Loss, ...] | tuple[Softmax]:
        """One for two classes, otherwise that of a softmax model or one for each class."""
        count = len(self.classes)
        if count == 2:
            return (self.loss,)
        from snugdp.tables.losses.losses import OneAgainst, Softmax

        if self.together:
            return (Softmax(count),)
        return tuple(OneAgainst(self.loss, index, count) for index in range(count))

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> NormBounds:
        """As given."""
        return self.given

    def read(self, X: Any, y: Any, bounds: NormBounds) -> InputTable:
        """A table to fit on: labels become indices of classes, or codes between -1 and 1."""
        if y is None:
            return read(X, None, bounds)
        indices = self._indices(y)
        if bounds.schema is None:
            return read(X, codes(indices, len(self.classes)), bounds)
        layout = with_classes(bounds.schema_layout, tuple(range(len(self.classes))))
        values = np.maximum(indices, 0).astype(np.float64)
        return InputTable(schema_table(X, eager(X), layout.target, values), layout)

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """The codes of public labels."""
        return codes(self._indices(y), len(self.classes))

    def _indices(self, y: Any) -> NDArray[np.int64]:
        return labels_of(y, self.classes.tolist())

    def predicted(self, linear: Floats) -> NDArray[Any]:
        """The most probable class."""
        indices = (linear > 0).astype(np.int64) if linear.ndim == 1 else np.argmax(linear, axis=1)
        labels: NDArray[Any] = self.classes[indices]
        return labels

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
        indices = np.rint((target + 1.0) * (0.5 * (len(self.classes) - 1))).astype(np.int64)
        logarithms = self.logarithms(np.nan_to_num(linear))[np.arange(len(indices)), indices]
        return float(np.mean(np.maximum(logarithms, _LOWEST_LOGARITHM)))
