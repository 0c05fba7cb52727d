"""Rows standardised by released numbers: clipped, centred, divided by their scale, and shortened to a released radius.

With ``joint``, for a line, a long row is shortened together with its constant and its target: what was a line stays
one, where shortening the row alone would bend it. Proof: ``standardised.proof.md``; the numbers in the comments are
those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.tables.cells import inferred
from snugdp.tables.found import Flag, FoundBounds, FoundLevels, FoundNumber
from snugdp.tables.layouts.arrays import one_for_each
from snugdp.tables.schema import missing as gaps
from snugdp.tables.schema import scaling
from snugdp.tables.schema.kinds import Boolean, Column, Date, DType, Number, Spline
from snugdp.tables.schema.scaling import Bits, DateScale, Floats, Indicated, OneHot, Scale, Sign
from snugdp.tables.schema.schema import Coefficients, entry_names

_ROOT = math.sqrt(2)  # the size of a sine whose square is 1 in the mean
_GLM_NORM = 2  # the longest row, in units of the constant
_PREDICTION_REACH = 2  # a row to predict from may be so many times longer: what was learned holds a little further out
_TARGET_HALF_WIDTH = 4  # of what a scaled target can say, in distances from its centre to a bound
_MIN_UNKNOWN_SHARE = 0.05  # of the rows are in no level: too few to learn from
_LEAST_SHARE = 0.02  # a rarer level is not stretched any further
_USUAL_SHARE = 0.1  # of missing cells, where nobody looked: columns with public bounds, and booleans
_MAX_ENTRY = 1e100  # an entry to predict from
_ROUNDED = 1 + 1e-9  # more than all roundings of a length together
_BITS = 16  # of an entry, where the length of a row is measured
_EXACT = 1 << 53  # whole numbers up to here are floats


@dataclass(frozen=True)
class Standard:
    """A number: clipped, less its centre, divided by its scale; what is no number becomes 0."""

    found: FoundNumber
    width = 1

    def read(self, column: nw.Series[Any]) -> Floats:
        """The column as floats."""
        return scaling.floats(column)

    def missing(self, raw: NDArray[Any]) -> Bits | None:
        """Which cells are missing; None where none is."""
        return scaling.not_numbers(raw)

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        image, found = out[0], self.found
        if found.flag is Flag.NOT_FOUND:
            image[:] = 0.0
            return
        np.copyto(image, raw)  # single precision is widened first
        np.clip(image, found.lower, found.upper, out=image)  # 1
        np.subtract(image, found.centre, out=image)
        np.divide(image, found.scale, out=image)
        if image.size and np.isnan(image.max()):  # one look at the block; the image of a row stays its own
            np.copyto(image, 0.0, where=np.isnan(image))


class StandardDate(DateScale[Standard]):
    """A date between bounds that were found."""

    size = _ROOT


@dataclass(frozen=True)
class StandardLevels(OneHot):
    """A category: at the place of its level, one over the standard deviation of that entry; 0 everywhere else.

    ``weights``: of the levels, for rows in none of them where there are hardly any: such a row has the mean of the
    images of all levels, as nothing could be learned of it; without weights it has 0 everywhere.
    """

    factors: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()

    def write(self, raw: NDArray[Any], out: Floats) -> None:
        """The images of some rows."""
        outside = (raw < 0) | (raw >= len(self.values)) if self.weights else None
        for place, (image, factor) in enumerate(zip(out, self.factors, strict=True)):
            np.multiply(raw == place, factor, out=image)
            if outside is not None:
                np.copyto(image, factor * self.weights[place], where=outside)


AnyScale: TypeAlias = Sign | Standard | StandardDate | StandardLevels | Indicated


class ShownEntry(NamedTuple):
    """An entry of a vector in the user's units: ``slope * (x - centre)``."""

    name: str
    slope: float
    centre: float


@dataclass(frozen=True)
class StandardisedLayout:
    """What is public about a table whose columns were looked at. ``constant``: whether a line has an intercept.

    ``joint``: a row with its constant, and its target with it, has norm at most 1. Otherwise the features alone are
    shortened, to twice the constant, which stays 1. ``usual``: a row in no level is a usual one where there are hardly
    any such rows; otherwise it has no entries.

    Guarantee: the image of a row is a function of that row and of released numbers alone
    (``standardised.proof.md``, Theorem 1). The row map depends on the number of entries alone, and so do sensitivities.
    """

    bounds: FoundBounds
    constant: bool = True
    joint: bool = True
    usual: bool = True

    def __post_init__(self) -> None:
        if any(isinstance(kind, Spline) for kind in self.columns.values()):
            raise ValueError(
                "splines need public bounds of all columns, the target among them: declare them in a schema"
            )

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns that are read."""
        return self.bounds.declared.columns

    @property
    def target(self) -> str | None:
        """The column to be predicted."""
        return self.bounds.declared.target

    @property
    def missing(self) -> gaps.Policies:
        """What becomes of rows with missing cells."""
        return self.bounds.declared.missing

    @property
    def intercept(self) -> bool:
        """Whether a constant 1 is the last entry of every vector: in a joint row it is an entry like the others."""
        return self.constant and not self.joint

    @property
    def norm(self) -> int:
        """The norm to which longer rows are shortened."""
        return 1 if self.joint else _GLM_NORM

    @property
    def scaled(self) -> float:
        """What standardised entries are multiplied with."""
        return self.norm / self.bounds.radius

    @cached_property
    def _factor(self) -> float:
        return self.scaled

    @cached_property
    def _scales(self) -> dict[str, AnyScale]:
        used = {name: kind for name, kind in self.columns.items() if name != self.target}
        return {name: self._with_indicator(name, self._scale(name, kind)) for name, kind in used.items()}

    def _with_indicator(self, name: str, scale: Any) -> AnyScale:
        """The column, and an entry for whether it is missing, where that is asked for, unless it hardly happens."""
        found = self.bounds.columns.get(name)
        share = None if found is None else found.missing
        if gaps.policy_of(self.missing, name) != "indicator" or share == 0:
            return cast(AnyScale, scale)
        kept = _kept(_USUAL_SHARE if share is None else share)
        whole = replace(scale, weights=()) if isinstance(scale, StandardLevels) else scale
        return Indicated(whole, 1 / math.sqrt(kept * (1 - kept)))

    def _scale(self, name: str, kind: Column) -> AnyScale:
        if isinstance(kind, Boolean):
            return Sign(1.0)
        found = self.bounds[name]
        if isinstance(found, FoundNumber):
            number = Standard(found)
            return StandardDate(number, tuple(kind.parts)) if isinstance(kind, Date) else number
        factors = tuple(1 / math.sqrt(p * (1 - p)) for p in (_kept(share) for share in found.shares))
        return StandardLevels(found.values, 1.0, factors, _weights(found) if self.usual else ())

    @cached_property
    def _entries(self) -> tuple[ShownEntry, ...]:
        found: list[ShownEntry] = []
        for name, whole in self._scales.items():
            found += self._entries_of(name, whole.scale if isinstance(whole, Indicated) else whole)
            if isinstance(whole, Indicated):
                found.append(ShownEntry(gaps.entry_name(name), whole.limit, 0.0))
        return tuple(found)

    def _entries_of(self, name: str, scale: Any) -> list[ShownEntry]:
        if isinstance(scale, Standard | StandardDate):
            number = scale.found if isinstance(scale, Standard) else scale.number.found
            first, *turns = entry_names(name, self.columns[name])
            return [_entry(first, number), *(ShownEntry(turn, _ROOT, 0.0) for turn in turns)]
        if isinstance(scale, StandardLevels):
            pairs = zip(scale.values, scale.factors, strict=True)
            return [ShownEntry(f"{name}={value}", factor, 0.0) for value, factor in pairs]
        return [ShownEntry(name, 2.0, 0.5)]

    @property
    def usual_levels(self) -> dict[str, tuple[float, ...]]:
        """The weights of levels in the image of a row in none of them, of categories where that is not 0."""
        scales = self._scales.items()
        return {name: scale.weights for name, scale in scales if isinstance(scale, StandardLevels) and scale.weights}

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        names = tuple(entry.name for entry in self._entries)
        return (*names, "intercept") if self.constant else names

    @property
    def spans(self) -> dict[str, slice]:
        """Where the entries of every column are in a vector."""
        return scaling.spans(self._scales)

    @property
    def flat(self) -> tuple[int, ...]:
        """The entries of columns in which one value was found: all rows, or nearly all, have the same there."""
        columns = self.bounds.columns
        return tuple(
            own.start for name, own in self.spans.items() if name in columns and columns[name].flag is Flag.CONSTANT
        )

    @property
    def usual_square(self) -> float:
        """The square of the usual length of a row, before it is scaled and without a constant that stays 1."""
        return max(len(self.features) - (self.constant and not self.joint), 1)

    @property
    def longest(self) -> float:
        """No vector of a row without a constant, and before it is shortened, is longer than this."""
        return _ROUNDED * self._factor * math.sqrt(sum(map(_square, self._scales.values())))

    @cached_property
    def target_units(self) -> tuple[float, float]:
        """The centre of the target, and how many of its units a scaled target of 1 is."""
        if self.target is None:
            return 0.0, 1.0
        found = self.bounds.columns.get(self.target)
        if not isinstance(found, FoundNumber):
            return (0.5, 0.5) if isinstance(self.columns[self.target], Boolean) else (0.0, 1.0)
        half = max(found.upper - found.centre, found.centre - found.lower)
        return found.centre, half * (_TARGET_HALF_WIDTH if self.columns[self.target].is_open else 1)

    @property
    def target_skew(self) -> float:
        """How many times longer the one side of what was seen of the target is than the other; 1 if it was not seen."""
        found = None if self.target is None else self.bounds.columns.get(self.target)
        if not isinstance(found, FoundNumber) or found.hull is None:
            return 1.0
        shorter, longer = sorted((found.centre - found.hull[0], found.hull[1] - found.centre))
        return longer / shorter if shorter > 0 else math.inf

    @cached_property
    def _aim(self) -> tuple[str, Scale] | None:
        if self.target is None:
            return None
        kind = self.columns[self.target]
        if not isinstance(kind, Number):
            return self.target, scaling.target_scale(kind)
        centre, half = self.target_units
        return self.target, scaling.Affine(centre, 1 / half, 1.0)

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare the names and declared types of a table with what is expected; text may spell what was found."""
        self.bounds.declared.check({name: inferred(dtype) for name, dtype in types.items()})

    def blocks(self, frame: Any) -> Iterator[tuple[Floats, Floats | None]]:
        """The vectors and scaled targets of some rows, part by part."""
        for X, y in self._standardised(frame, self._aim):
            with np.errstate(all="ignore"):  # a warning would depend on private values
                image = shortened(X, y) if self.joint else (X, y)
            yield image

    def predictors(self, frame: Any) -> Iterator[Floats]:
        """The vectors of rows without targets, part by part.

        Those of a line are not shortened; others only where they are far longer than those of a fit. Where an entry is
        the same in all rows they are shortened as in the fit: there that entry told how much, and got a slope for it.
        """
        most = (1 if self.flat else _PREDICTION_REACH) * self.norm
        for X, _ in self._standardised(frame, None):
            np.clip(X, -_MAX_ENTRY, _MAX_ENTRY, out=X)
            if not self.joint:
                features = X[:, :-1] if self.constant else X
                lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
                features *= (most / np.maximum(lengths, most))[:, None]
            yield X

    def _standardised(self, frame: Any, target: tuple[str, Scale] | None) -> Iterator[tuple[Floats, Floats | None]]:
        scales: Any = self._scales
        missing = self.missing if target is not None or self.target is None else "centre"
        needed = [name for name in scales if gaps.policy_of(missing, name) == "drop" and self._is_used(name)]
        for X, y in scaling.blocks(frame, scales, self.constant, target, needed):
            out = X.copy(order="K")
            part = out[:, :-1] if self.intercept else out
            with np.errstate(all="ignore"):
                np.multiply(part, self._factor, out=part)  # 2
            yield out, y

    def _is_used(self, name: str) -> bool:
        """A column that was not found is left out, and drops no rows."""
        found = self.bounds.columns.get(name)
        return found is None or found.flag is not Flag.NOT_FOUND

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of vectors in the user's units; it holds where no column is clipped."""
        given, (middle, half) = one_for_each(theta, self.features), self.target_units
        slopes = np.array([entry.slope for entry in self._entries])
        values = half * self._factor * slopes * self._shown(given[:-1] if self.constant else given)
        constant = half * given[-1] * (self._factor if self.joint else 1.0) if self.constant else 0.0
        centres = np.array([entry.centre for entry in self._entries])
        names = tuple(entry.name for entry in self._entries)
        return Coefficients(names, values, float(middle + constant - values @ centres))

    def _shown(self, theta: Floats) -> Floats:
        """What belongs to the entries that are shown."""
        return theta


def usual_square(scale: AnyScale) -> float:
    """The mean square of the image of a column."""
    return float(scale.width)


def _square(scale: AnyScale | Scale) -> float:
    """That of the longest image of a cell; where a cell is missing, all entries are 0 but the one that says so."""
    if isinstance(scale, Indicated):
        return max(_square(scale.scale), scale.limit**2)
    if isinstance(scale, StandardDate):
        return _square(scale.number) + _ROOT**2 * len(scale.parts)
    if isinstance(scale, StandardLevels):
        return max(scale.factors, default=0.0) ** 2
    if not isinstance(scale, Standard):
        return float(getattr(scale, "longest", 1.0))
    found = scale.found
    absent = found.flag is Flag.NOT_FOUND
    return 0.0 if absent else (max(found.upper - found.centre, found.centre - found.lower) / found.scale) ** 2


def _entry(name: str, number: FoundNumber) -> ShownEntry:
    """A number in the user's units; one that hardly ever changes has no slope, and counts as the step to its bound."""
    if number.flag is Flag.NOT_FOUND:
        return ShownEntry(name, 0.0, number.centre)
    if number.flag is Flag.CONSTANT:
        return ShownEntry(f"{name} beyond {number.centre:.6g}", (number.upper - number.centre) / number.scale, 0.0)
    return ShownEntry(name, 1 / number.scale, number.centre)


def _weights(found: FoundLevels) -> tuple[float, ...]:
    """The shares of levels among rows in one of them, where hardly any other rows were seen; otherwise none."""
    known = sum(found.shares)
    if found.flag is Flag.PUBLIC or known < 1 - _MIN_UNKNOWN_SHARE:
        return ()
    return tuple(share / known for share in found.shares)


def _kept(share: float) -> float:
    return min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)


def shortened(X: Floats, y: Floats | None) -> tuple[Floats, Floats | None]:
    """Rows of norm at most about 1, each with its target: both are multiplied with one number."""
    factor = np.minimum(1.0, 1.0 / np.sqrt(np.maximum(squared_lengths(X), 4.0**-_BITS)))  # 4
    X *= factor[:, None]
    return X, None if y is None else y * factor


def squared_lengths(X: Floats) -> Floats:
    """Of rows in whole cells, which add up exactly in whatever order.

    A float norm would depend on the place of a row in its block.
    """
    most = float(math.isqrt(_EXACT // max(X.shape[1], 1)))
    cells = X * 2.0**_BITS
    np.trunc(cells, out=cells)
    squares: Floats = np.einsum("ij,ij->i", cells, cells)
    if squares.size and not squares.max() <= most**2:  # otherwise no entry is larger
        np.clip(cells, -most, most, out=cells)  # 3
        squares = np.einsum("ij,ij->i", cells, cells)
    squares *= 4.0**-_BITS
    return squares
