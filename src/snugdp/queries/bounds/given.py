"""What a user may say about the bounds of a column: both ends, one of them, what was found before, or nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.found import Flag, FoundBounds, FoundNumber
from snugdp.tables.grid import Ends

if TYPE_CHECKING:
    pass

GivenBounds: TypeAlias = tuple[Real | None, Real | None] | FoundNumber | Literal["private"] | None
_MAX_BOUND = Fraction(10) ** 290
_ADVICE = (
    "bounds must be a pair (lower, upper) of public numbers, such as bounds=(0, 120), from outside the data, of which "
    'either may be None; or "private"'
)


def open_ends(bounds: GivenBounds) -> Ends | None:
    """The public ends of bounds that are not given in full; nothing where both are.

    >>> open_ends("private"), open_ends((0, None)), open_ends((0, 1))
    ((None, None), (0, None), None)
    """
    if bounds is None or isinstance(bounds, str):
        if bounds not in (None, "private"):
            raise ValueError(_ADVICE)
        return None, None
    if isinstance(bounds, FoundNumber):
        if bounds.flag is Flag.NOT_FOUND:
            raise ValueError("this column was not found, so its bounds say nothing: leave out bounds")
        return None
    if isinstance(bounds, FoundBounds):
        raise TypeError(
            'these are the bounds of all columns: give those of a single one, such as bounds=model.bounds_["age"]'
        )
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise ValueError(_ADVICE) from None
    for end, name in ((lower, "the lower bound"), (upper, "the upper bound")):
        if end is not None and abs(rational(end, name)) > _MAX_BOUND:
            raise ValueError("bounds must be between -1e290 and 1e290")
    return None if lower is not None and upper is not None else (lower, upper)


def both_ends(bounds: GivenBounds) -> tuple[Real, Real]:
    """Bounds that are given in full, or were found."""
    if isinstance(bounds, FoundNumber):
        return bounds.lower, bounds.upper
    return bounds  # type: ignore[return-value]  # what is wrong with them is said where a grid is made


def hull_of(bounds: GivenBounds) -> tuple[Real, Real]:
    """The same, but of what was found only where rows were seen: the bounds reach half as far again on each side."""
    if not isinstance(bounds, FoundNumber):
        return both_ends(bounds)
    if bounds.hull is not None:
        return bounds.hull
    margin = (bounds.upper - bounds.lower) / 4
    return bounds.lower + margin, bounds.upper - margin


def ends_as_floats(ends: Ends) -> tuple[float | None, float | None]:
    """Public ends for looks."""
    low, high = (None if end is None else float(rational(end, "a bound")) for end in ends)
    return low, high
