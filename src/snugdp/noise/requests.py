"""What can be asked of a source of noise. A request is checked when it is made, and reads its private value in one way.

What is refused is public, and refused before anything is drawn. The first field of most requests is private; all
fields that are not a ``Secret`` are public. ``noise.base`` makes a method of ``Noise`` from each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from fractions import Fraction
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from snugdp.noise import checks
from snugdp.noise.exact.minimiser import Problem, check_minimiser
from snugdp.noise.exact.posterior import check_posterior
from snugdp.noise.exact.stopping import check_stopping
from snugdp.noise.exact.weighted import Groups
from snugdp.noise.laws import Continuous, DiscreteGaussian, DiscreteLaplace, Finite, Gaussian, Law
from snugdp.noise.number import finite, number
from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.secret import Secret

if TYPE_CHECKING:
    from snugdp.accounting.selection.laws import Law as RunLaw

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Request(Generic[T_co]):
    """One question to a source of noise, with an answer of type ``T_co``.

    ``method``: its name in ``Noise``. ``laws``: those of the noise that it takes. ``inside`` reads the private value;
    whatever that holds, nothing is raised.
    """

    method: ClassVar[str]
    laws: ClassVar[Any] = None

    def __post_init__(self) -> None:
        if self.laws is not None:
            checks.known(self.law, self.laws)  # type: ignore[attr-defined]  # a field of the subclass

    @property
    def noise_law(self) -> Law | None:
        """The law of the noise, where the request names one."""
        law = getattr(self, "law", None)
        return law if isinstance(law, get_args(Law)) else None

    @property
    def arguments(self) -> dict[str, Any]:
        """All fields by name, in order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def secrets(self) -> dict[str, Secret[Any]]:
        """The private fields."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, Secret)}

    @property
    def public(self) -> tuple[tuple[str, Any], ...]:
        """The public fields that were given, but the law of the noise."""
        apart = (Secret, type(None), type(self.noise_law))
        return tuple((name, value) for name, value in self.arguments.items() if not isinstance(value, apart))

    def ask(self, source: Any) -> T_co:
        """The answer of a source, by its method of this name."""
        answer: T_co = getattr(source, self.method)(**self.arguments)
        return answer


@dataclass(frozen=True)
class Add(Request[Fraction]):
    """The value plus noise (times a private stretch), rounded to the nearest multiple of ``2**grid``.

    A discrete law takes a whole number (or the whole part of another), the grid of whole numbers and no stretch.
    """

    method, laws = "add", Law
    value: Secret[int | Fraction]
    law: Law
    _: KW_ONLY
    grid: int = 0
    stretch: Secret[int | Fraction] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_grid(self.law, self.grid, self.stretch is not None)

    def inside(self) -> Fraction | int:
        """The value: the whole part of it for a discrete law."""
        value = checks.opened(self.value)
        return checks.whole(value) if isinstance(self.law, DiscreteLaplace | DiscreteGaussian) else finite(value)

    def factor(self) -> Fraction | int:
        """What the noise is multiplied with."""
        return 1 if self.stretch is None else checks.spread(checks.opened(self.stretch))


@dataclass(frozen=True)
class AddIntegers(Request[list[int]]):
    """Every value plus noise of its own, rounded to whole numbers."""

    method, laws = "add_integers", Law
    values: Secret[NDArray[np.int64]] | Secret[list[int]]
    law: Law

    def inside(self) -> list[int]:
        """The values."""
        return checks.integers(checks.opened(self.values))


@dataclass(frozen=True)
class AtLeast(Request[bool]):
    """Whether the value plus noise reaches the threshold. The value may be infinite."""

    method, laws = "at_least", Law
    value: Secret[int | Fraction | float]
    law: Law
    threshold: Real

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", rational(self.threshold, "threshold"))

    def inside(self) -> Fraction | float:
        """The value; infinite where it is not finite, and minus infinity where it is not a number."""
        return number(checks.opened(self.value))


@dataclass(frozen=True)
class Argmax(Request[int]):
    """The position of the largest score after every score has got noise of its own."""

    method, laws = "argmax", Continuous
    scores: Secret[Sequence[int | Fraction]]
    law: Continuous

    def inside(self) -> list[Fraction]:
        """The scores."""
        return checks.check_scores(checks.opened(self.scores))


@dataclass(frozen=True)
class Argmaxes(Request[NDArray[np.int64]]):
    """In every row of a table the position of the largest score, after every cell has got noise of its own."""

    method, laws = "argmaxes", Continuous
    scores: Secret[NDArray[np.int64]]
    law: Continuous

    def inside(self) -> NDArray[np.int64]:
        """The table of scores."""
        return checks.check_whole(checks.opened(self.scores), 2)


@dataclass(frozen=True)
class Reach(Request[NDArray[np.bool_]]):
    """For every value whether it reaches the threshold after it has got noise of its own."""

    method, laws = "reach", Continuous
    values: Secret[NDArray[np.int64]]
    law: Continuous
    threshold: Real

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", rational(self.threshold, "threshold"))

    def inside(self) -> NDArray[np.int64]:
        """The values."""
        return checks.check_whole(checks.opened(self.values), 1)


@dataclass(frozen=True)
class KeysAbove(Request[list[tuple[Any, int]]]):
    """The keys whose counts reach the threshold after each has got noise of its own, with these counts, in order.

    ``counts``: keys, each once and in an order that is a function of their set, and how often each of them occurs. The
    other keys, and how many there are, stay inside. Gaussian noise is rounded to whole numbers.
    """

    method, laws = "keys_above", Finite | Gaussian
    counts: Secret[tuple[Sequence[Any], NDArray[np.int64]]]
    law: Finite | Gaussian
    threshold: int

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_threshold(self.threshold, self.law)

    def inside(self) -> tuple[Sequence[Any], NDArray[np.int64]]:
        """The keys and their counts."""
        keys, counts = checks.opened(self.counts)
        return keys, counts

    def above(self, noise: NDArray[np.int64]) -> list[tuple[Any, int]]:
        """The answer with this noise."""
        keys, counts = self.inside()
        sums = counts + noise
        shown = sums >= self.threshold
        return list(zip(compress(keys, shown.tolist()), sums[shown].tolist(), strict=True))


@dataclass(frozen=True)
class PosteriorDraw(Request[list[Fraction]]):
    """N(A^-1 c, (precision A)^-1) on multiples of ``2**grid``; A = unit gram + ridge I, c = unit cross.

    The gram is a sum of squares of rows: symmetric, positive semidefinite.
    """

    method = "posterior"
    gram: Secret[list[list[int]]]
    cross: Secret[list[int]]
    _: KW_ONLY
    unit: Fraction
    ridge: Fraction
    precision: Fraction
    grid: int

    def __post_init__(self) -> None:
        check_posterior(self.unit, self.ridge, self.precision, self.grid)


@dataclass(frozen=True)
class MinimiserDraw(Request[list[Fraction]]):
    """The minimiser of F(theta) + b . theta, with b of this law, on multiples of ``2**grid``."""

    method = "minimiser"
    problem: Secret[Problem]
    law: Gaussian
    _: KW_ONLY
    grid: int

    def __post_init__(self) -> None:
        check_minimiser(self.law, self.grid)


@dataclass(frozen=True)
class Choice(Request[int]):
    """A uniform position among ``n``."""

    method = "choice"
    n: int

    def __post_init__(self) -> None:
        checks.check_count(self.n)


@dataclass(frozen=True)
class WeightedChoice(Request[int]):
    """A position with probability proportional to ``2**weight * exp(-rate * level)``, by its group; 0 if there is none.

    How many groups there are is private.
    """

    method = "weighted_choice"
    groups: Secret[Groups]
    rate: Fraction

    def __post_init__(self) -> None:
        checks.check_rate(self.rate)

    def inside(self) -> Groups:
        """The groups that are not empty."""
        groups: Groups = checks.opened(self.groups)
        return groups.nonempty()


@dataclass(frozen=True)
class Scattering(Request[NDArray[np.int64]]):
    """Independent uniform positions among ``parts``, one for each of a private number of rows."""

    method = "scatter"
    n: Secret[int]
    parts: int

    def __post_init__(self) -> None:
        checks.check_scatter(checks.opened(self.n), self.parts)

    def ask(self, source: Any) -> NDArray[np.int64]:
        """The answer of a source."""
        positions: NDArray[np.int64] = source.scatter(self.inside(), self.parts)
        return positions

    def inside(self) -> int:
        """The number of rows."""
        return int(checks.opened(self.n))


@dataclass(frozen=True)
class Chance(Request[bool]):
    """One coin of a private probability. What is below 0 counts as 0, and what is above 1 as 1."""

    method = "chance"
    probability: Secret[Fraction]

    def inside(self) -> Fraction:
        """The probability."""
        return finite(checks.opened(self.probability))


@dataclass(frozen=True)
class StoppingTime(Request[int]):
    """A hidden number of runs of this law, or 0 where it is above ``most``. For selections alone.

    It must never be shown: whoever knows it has not been promised anything.
    """

    method = "stopping"
    law: RunLaw
    most: int

    def __post_init__(self) -> None:
        check_stopping(self.law, self.most)


@dataclass(frozen=True)
class Reveal(Request[T]):
    """The value without noise: only for what a test has certified to be the same on all neighbours."""

    method = "reveal"
    value: Secret[T]
