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

from snugdp.estimators.inputs import Floats, InputTable, NormBounds, eager, one_column, read, schema_table, target_of
from snugdp.estimators.labels import as_numbers, declared, labels_of
from snugdp.estimators.open.tables import OpenTarget, target_name
from snugdp.numerics.rationals import rational
from snugdp.tables.cells.columns import label_texts
from snugdp.tables.layouts.affine import UnitlessLayout
from snugdp.tables.layouts.arrays import ArraySchema
from snugdp.tables.schema.kinds import Boolean, Category, Column, Undeclared
from snugdp.tables.schema.scaling import MAX_CLASSES, classes_in, codes, with_classes
from snugdp.tables.schema.schema import Layout, Number, Schema

if TYPE_CHECKING:
    from snugdp.core.guarantee import Budget
    from snugdp.mechanisms.linear.base import Design, Method
    from snugdp.tables.losses.losses import Logistic, Loss, SoftHinge, Softmax, TamedPoisson

_LOWEST_LOGARITHM = -1e6  # one that can be averaged


def bounded(y_bound: Any) -> Number:
    """The bounds of a target: b for [-b, b], or (low, high)."""
    return ArraySchema(("x",), 1, y_bound).aim


class Response(ABC):
    """What a model predicts, checked. All of it is public. ``classes``: of labels."""

    classes: NDArray[Any] | None = None
    joint = False  # whether a long row is shortened together with its target
    counts = False  # whether the target holds counts

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

    @abstractmethod
    def open_target(self, y: Any, schema: Schema | None) -> OpenTarget:
        """What is public about the target of a table whose bounds are found privately."""

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """Public targets as a fit scales them: between -1 and 1, and NaN where there is none."""
        middle, half = layout.target_units
        return np.clip((target_of(y) - middle) / half, -1.0, 1.0)

    @abstractmethod
    def value(self, linear: Floats, target: Floats) -> float:
        """How good a linear function is for scaled targets; the larger the better."""

    def shown(self, layout: Layout) -> Layout:
        """The layout in whose units coefficients are shown."""
        return UnitlessLayout(layout)

    def settled(self, declared: Schema | None) -> Response:
        """The same with what is known of the target once it was looked at."""
        return self


class OpenResponse(Response):
    """A target of which something has to be found privately before there is a loss for it."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """None yet."""
        return ()

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> NormBounds:
        """There are none yet."""
        raise ValueError("the bounds of the target are not known before a fit")

    def value(self, linear: Floats, target: Floats) -> float:
        """There is nothing to compare with yet."""
        raise ValueError("the loss is not known before a fit")

    @abstractmethod
    def settled(self, declared: Schema | None) -> Response:
        """The same with what was found, as the declared target says; as it is before that."""

    @abstractmethod
    def after(self, design: Design, budget: Budget, declared: Schema, *, beside: Fraction, rows: float) -> Method:
        """The fit for what was found; what it costs does not depend on that."""


@dataclass(frozen=True)
class RealTarget(Response):
    """A number between bounds. Linear regression needs no ``loss``."""

    loss: Loss | None
    y_bound: Any

    @property
    def losses(self) -> tuple[Loss, ...]:
        """One, or none."""
        return () if self.loss is None else (self.loss,)

    @property
    def joint(self) -> bool:  # type: ignore[override]  # known without being set
        """Of a line: a multiple of a row and its target lies on the same line."""
        return self.loss is None

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> NormBounds:
        """As for a linear regression."""
        return NormBounds(schema, self.y_bound, intercept, x_norm)

    def open_target(self, y: Any, schema: Schema | None) -> OpenTarget:
        """A number, between bounds if there are some."""
        own: Column = Number() if self.y_bound is None else bounded(self.y_bound)
        if schema is not None:
            if self.y_bound is not None:
                raise ValueError("the schema has the bounds of the target: leave out y_bound")
            own = schema.columns[str(schema.target)]
            if isinstance(own, Category):
                raise TypeError(f'the target "{schema.target}" must be a Number or a Boolean, not a Category')
        if y is None or isinstance(y, str):
            return OpenTarget(own, own, None, y)
        return OpenTarget(own, own, target_of(y), target_name(y))

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
    counts = True

    @property
    def losses(self) -> tuple[Loss, ...]:
        """One."""
        return (self.loss,)

    def bounds(self, schema: Any, x_norm: Any, intercept: Any) -> NormBounds:
        """Targets between 0 and the largest count; the target of a schema must have just these bounds."""
        most = rational(self.loss.most, "y_max")
        if schema is None:
            return NormBounds(None, (0, most), intercept, x_norm)
        checked = NormBounds(schema, None, intercept, x_norm)
        column = schema.columns[schema.target]
        ends = [column.end("lower"), column.end("upper")] if isinstance(column, Number) else []
        if ends != [Fraction(0), most]:
            raise ValueError(f'the target "{schema.target}" holds counts: it must be Number(0, {most}) in the schema')
        return checked

    def open_target(self, y: Any, schema: Schema | None) -> OpenTarget:
        """Counts from 0 to the largest."""
        kind = Number(0, rational(self.loss.most, "y_max"))
        if schema is not None and schema.columns[str(schema.target)] != Number():
            self.bounds(schema, None, True)  # the target must have just these bounds, if it has any
        values = None if y is None or isinstance(y, str) else target_of(y)
        return OpenTarget(kind, kind, values, target_name(y))

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
class OpenCountTarget(OpenResponse):
    """Counts from 0 to the largest, which is found. ``rate``: the largest rate, half of that if it is not given."""

    rate: Fraction | None = None
    counts = True

    def open_target(self, y: Any, schema: Schema | None) -> OpenTarget:
        """Numbers from 0 on."""
        kind = Number(lower=0)
        if schema is not None and schema.columns[str(schema.target)] not in (kind, Number(), Undeclared()):
            raise ValueError(f'the target "{schema.target}" holds counts: it must be Number(0, y_max) in the schema')
        values = None if y is None or isinstance(y, str) else target_of(y)
        return OpenTarget(kind, kind, values, target_name(y))

    def settled(self, declared: Schema | None) -> Response:
        """Counts up to the largest that was found."""
        column = None if declared is None or declared.target is None else declared.columns[declared.target]
        if not isinstance(column, Number) or column.is_open:
            return self
        return CountTarget(self._loss(_most(column)))

    def _loss(self, most: Fraction) -> TamedPoisson:
        from snugdp.tables.losses.losses import TamedPoisson

        return TamedPoisson(most, most / 2 if self.rate is None else self.rate)

    def after(self, design: Design, budget: Budget, declared: Schema, *, beside: Fraction, rows: float) -> Method:
        """One run, planned for counts up to 1."""
        from snugdp.mechanisms.objective.standardised import StandardisedGLM

        column, planned = declared.columns[str(declared.target)], (self._loss(Fraction(1)),)
        found = self._loss(_most(column))
        return StandardisedGLM(design, budget, losses=planned, beside=beside, rows=rows, found=found)


def _most(column: Column) -> Fraction:
    """The largest count that a declared target has."""
    return rational(getattr(column, "upper", None), "y_max")  # type: ignore[arg-type]  # None is refused there


@dataclass(frozen=True)
class LabelBounds(NormBounds):
    """How the user bounds rows with labels: a schema that lists the classes, or classes and a norm."""

    classes: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.labels) > MAX_CLASSES:
            raise ValueError(f"there are more than {MAX_CLASSES} classes")

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
class OpenClassTarget(OpenResponse):
    """One of several classes, which are found. ``together``: as in ``ClassTarget``."""

    loss: Logistic | SoftHinge
    together: bool = False

    def open_target(self, y: Any, schema: Schema | None) -> OpenTarget:
        """A category whose levels are found; labels beside the rows are read as they would be in a table."""
        kind = Category()
        if schema is not None and not schema.columns[str(schema.target)].is_open:
            raise TypeError(f'the target "{schema.target}" must be a Boolean or a Category: its values are the classes')
        if y is None or isinstance(y, str):
            return OpenTarget(kind, kind, None, y)
        return OpenTarget(kind, kind, label_texts(one_column(y, "label")), target_name(y))

    def settled(self, declared: Schema | None) -> Response:
        """The classes that were found, or those that a declared type has."""
        column = None if declared is None or declared.target is None else declared.columns[declared.target]
        if declared is None or not isinstance(column, Category | Boolean) or column.is_open:
            return self
        return ClassTarget(self.loss, LabelBounds(None, 1, True, 1, classes_in(declared)), self.together)

    def after(self, design: Design, budget: Budget, declared: Schema, *, beside: Fraction, rows: float) -> Method:
        """One model for two classes; for more, one softmax model or one for each."""
        from snugdp.mechanisms.objective.standardised import StandardisedClasses

        count = len(classes_in(declared))
        return StandardisedClasses(
            design, budget, loss=self.loss, together=self.together, classes=count, beside=beside, rows=rows
        )

    def most(self, design: Design, budget: Budget, beside: Fraction) -> int:
        """So many classes can be told apart with this budget."""
        from snugdp.mechanisms.objective.standardised import StandardisedClasses

        two = StandardisedClasses(design, budget, loss=self.loss, together=self.together, classes=2, beside=beside)
        return two.most


@dataclass(frozen=True)
class ClassTarget(Response):
    """One of two or more classes. Rows with none of them are left out.

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
        values = as_numbers(indices)
        return InputTable(schema_table(X, eager(X), layout.target, values), layout)

    def open_target(self, y: Any, schema: Schema | None) -> OpenTarget:
        """One of the classes; labels beside the rows become their indices."""
        classes = self.classes.tolist()
        own: Column = Boolean() if all(isinstance(label, bool) for label in classes) else Category(tuple(classes))
        indices = Category(tuple(range(len(classes))))
        if y is None or isinstance(y, str):
            return OpenTarget(indices, own, None, y)
        return OpenTarget(indices, own, as_numbers(self._indices(y)), target_name(y))

    def scaled(self, y: Any, layout: Layout) -> Floats:
        """The codes of public labels; NaN for none of the classes."""
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
