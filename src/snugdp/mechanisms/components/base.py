"""What all ways to principal components have in common: the public task, noisy matrices, and the result.

Proof: ``base.proof.md``, whose line numbers the comments carry. Sums of squares are counted in units of what one
person can add, which is what one row can add unless persons have several; what gets noise is in whole cells, and public
bases are of whole numbers, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import index
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Outcome, Unit
from snugdp.mechanisms.linear.noisy_sums import law_for, symmetric
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.eigenvalues import departure, shifted, to_grid
from snugdp.numerics.rationals import rational, root_above
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.points import Shift
from snugdp.tables.passes.base import row_map
from snugdp.tables.passes.vectors.scatter import Scatter
from snugdp.tables.rowmap import RowMap
from snugdp.tables.schema.schema import Layout

Floats: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.int64]

LEAST_MU = Fraction(1, 10**15)  # with less, squares and fourth powers of the noise would leave the floats
LARGEST_MU = Fraction(10**101)  # with more, so would its square
COUNT, MEAN = Fraction(1, 100), Fraction(1, 20)  # of mu**2
_MAX_AUTOMATIC = 20  # components, unless more are asked for
_MISSES = 0.05  # how often a band may miss
_BASIS_BITS = 50  # of the entries of a public basis


@dataclass(frozen=True)
class Rank:
    """How many components: a number, a share of the sum of squares, or where the spectrum falls most.

    Guarantee: the choice is a function of released numbers, so it costs nothing.

    >>> values = np.array([9.0, 8.0, 1.0, 0.5])
    >>> Rank.of("auto", 4).choose(values), Rank.of(0.9, 4).choose(values), Rank.of(3, 4).choose(values)
    (2, 2, 3)
    """

    number: int | None
    share: Fraction | None
    most: int

    @classmethod
    def of(cls, wanted: Any, entries: int) -> Rank:
        """As the user says it, for rows of so many entries."""
        if isinstance(wanted, str):
            if wanted != "auto":
                raise ValueError('n_components must be a whole number, a share between 0 and 1, or "auto"')
            return cls(None, None, max(1, min(_MAX_AUTOMATIC, entries - 1)))
        if isinstance(wanted, float | Fraction | np.floating) and 0 < wanted < 1:
            return cls(None, rational(float(wanted), "n_components"), max(1, entries - 1))
        try:
            number = index(wanted)
        except TypeError:
            number = 0
        if isinstance(wanted, bool) or not 1 <= number <= entries:
            raise ValueError(
                f'n_components must be a whole number from 1 to {entries}, the number of features, or "auto", or a '
                "share of the variance above 0 and below 1"
            )
        return cls(number, None, number)

    def choose(self, values: Floats, gaps: Floats | None = None) -> int:
        """The number of components, from a noisy spectrum in descending order and, where they differ, its gaps."""
        if self.number is not None:
            return self.number
        if self.share is not None:
            kept = np.maximum(values, 0.0)
            reached = np.cumsum(kept) >= float(self.share) * max(float(values.sum()), 1e-300)
            return int(np.argmax(reached)) + 1 if reached.any() else len(values)
        falls = values[:-1] - values[1:] if gaps is None else gaps
        return int(np.argmax(falls[: self.most])) + 1 if len(falls) else 1


@dataclass(frozen=True)
class Start:
    """What is released first: about how many rows there are, and the centre. None: public, or not asked for."""

    count: float | None = None
    shift: Shift | None = None


@dataclass(frozen=True)
class ComponentsView:
    """From where rows are looked at, and what one person can add to a sum of squares, in cells squared. Public."""

    shift: Shift | None
    unit: int
    entries: int


@dataclass(frozen=True, eq=False)
class Components:
    """What was released. Sums of squares are in units of what one row can add.

    ``vectors``: orthonormal columns, in the coordinates of the scaled rows. ``totals``: the sum of squares along each.
    ``spectrum``: released eigenvalues, all of them or those of the components; ``band``: all of them are wrong by less,
    in 19 of 20 cases. ``trace``: the whole sum of squares. ``route``: which kind of matrix was released in the end.
    """

    vectors: Floats
    totals: Floats
    spectrum: Floats
    band: float
    trace: float
    start: Start
    route: str
    released: Mapping[str, float] = field(default_factory=dict)

    def times(self, rows: int) -> Components:
        """The same in units of what one row can add, from units of what so many can add."""
        if rows == 1:
            return self
        plain = () if self.route != "projector" else ("noise",)  # a projector has no units
        numbers = {name: value if name in plain else value * rows for name, value in self.released.items()}
        totals, spectrum = self.totals * rows, self.spectrum * rows
        return replace(
            self, totals=totals, spectrum=spectrum, band=self.band * rows, trace=self.trace * rows, released=numbers
        )


@dataclass(frozen=True)
class Task:
    """The public side of a fit: rows without a target, a budget, how many components, and what comes first.

    ``rows``: the number of rows, where it is public; otherwise a hundredth of mu**2 releases it. ``moves``: a
    twentieth of mu**2 releases the mean, and rows are taken from there. ``max_rows``: of a person, who comes or goes
    with all of them; 1 where that is a row.
    """

    layout: Layout
    budget: Budget
    rank: Rank
    rows: int | None = None
    moves: bool = False
    bits: int | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.budget.neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError('principal components are proved for neighbours="add_remove" only')
        if self.layout.target is not None or self.layout.intercept:
            raise ValueError("principal components need rows without a target and without a constant")
        self.mu_squared(Fraction(0))  # refuses a bad budget

    @cached_property
    def row_map(self) -> RowMap:
        """How rows become integers."""
        return row_map(self.layout, self.bits)

    @property
    def entries(self) -> int:
        """The number of entries of a row."""
        return self.row_map.entries

    @property
    def unit(self) -> int:
        """What one person can add to a sum of squares, in cells squared."""
        return self.max_rows * self.row_map.norm_squared

    @property
    def protects(self) -> Unit:
        """Whom a method for this task protects, before rows of persons are thought of."""
        return Unit.ROW if self.max_rows == 1 else Unit.PERSON

    def in_rows(self, deviation: float) -> float:
        """A deviation in units of what one person can add, in rows."""
        return deviation * self.max_rows

    def view(self, start: Start) -> ComponentsView:
        """The rows from the centre that was released, or from that of the layout."""
        return ComponentsView(start.shift, self.unit, self.entries)

    def mu_squared(self, failure: Fraction) -> Fraction:
        """The Gaussian part of the budget when ``failure`` of its delta is spent otherwise, rounded down."""
        mu = _affordable(self.budget.epsilon, self.budget.delta - failure)
        if self.budget.delta <= 0:
            raise ValueError("Gaussian noise needs a delta above 0; 1e-6 is typical")
        if mu < LEAST_MU:
            raise ValueError(
                "the budget is too small: it leaves a mu below 1e-15, and the noise would drown 10**15 rows. Give a "
                "larger epsilon or delta"
            )
        if mu > LARGEST_MU:
            raise ValueError("the budget is too large: nothing is private at such an epsilon. Give one below 1e200")
        return mu**2

    @property
    def shares(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of mu**2: the count, the mean, and what is left."""
        count, mean = COUNT * (self.rows is None), MEAN * self.moves
        return count, mean, 1 - count - mean

    def steps(self, mu_squared: Fraction, *main: Step) -> tuple[Step, ...]:
        """The steps of a plan."""
        count, mean, _ = (share * mu_squared for share in self.shares)
        first: list[Step] = []
        if mean:
            noise = StepNoise("row-sum", "gaussian", self.in_rows(1 / math.sqrt(mean)), "rows")
            first.append(Step("mean", StepKind.STATISTIC, noise, Cost(mu_squared=mean)))
        if count:
            noise = StepNoise("row-count", "gaussian", self.in_rows(1 / math.sqrt(count)), "rows")
            first.append(Step("rows", StepKind.STATISTIC, noise, Cost(mu_squared=count)))
        return (*first, *main)

    def begin(self, data: Secret[Scatter], mu_squared: Fraction, noise: Noise) -> Start:
        """Release the number of rows and the mean, as far as they are not public.

        Guarantee: Gaussian DP with the shares' mu (``base.proof.md``, Lemma 1).
        """
        count, mean, _ = (share * mu_squared for share in self.shares)
        sums: list[int] = []
        if mean:
            law = law_for(self.max_rows * self.unit, mean)  # 1.
            sums = noise.at("mean").add_integers(data.map(lambda s: s.sums()[0]), law)
        found = float(self.rows) if self.rows is not None else 1.0
        if count:
            counted = noise.at("rows").add_integers(
                data.map(lambda s: [s.count()]), law_for(self.max_rows**2, count)
            )  # 2.
            found = float(max(1, counted[0]))
        return Start(found if count else None, self._centre(sums, found) if mean else None)

    def _centre(self, sums: list[int], count: float) -> Shift:
        """The mean of the scaled rows, from noisy sums: inside the bound, and from where the layout begins."""
        mean = np.array([float(self.row_map.unit * value) for value in sums]) / max(count, 1.0)
        bound = float(rational(self.layout.norm, "norm"))
        mean *= min(1.0, bound / max(float(np.linalg.norm(mean)), 1e-300))
        before = np.array(getattr(self.layout, "shift", ()) or np.zeros(len(mean)))
        return tuple(float(value) for value in before + mean)


@lru_cache(maxsize=64)
def _affordable(epsilon: Fraction, delta: Fraction) -> Fraction:
    return Fraction(gaussian.mu(epsilon, delta))


class ComponentsMethod(Protocol):
    """One way to find components: made from a task; all of it public and checked when it is made."""

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        ...

    def fit(self, data: Secret[Scatter], context: ReleaseContext) -> Outcome[Components]:
        """Pay and release."""
        ...


def noisy_cells(data: Secret[Scatter], view: ComponentsView, mu_squared: Fraction, noise: Noise) -> list[list[int]]:
    """X'X in cells squared, with noise.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``base.proof.md``, Lemma 2).
    """
    law = law_for(view.unit**2, mu_squared)  # 3.
    return symmetric(data.map(lambda s: s.gram(view.shift)), law, noise)


def noisy_matrix(data: Secret[Scatter], view: ComponentsView, mu_squared: Fraction, noise: Noise) -> Floats:
    """The same in units of what one row can add."""
    return floats(noisy_cells(data, view, mu_squared, noise), view.unit)


def noisy_block(
    data: Secret[Scatter], view: ComponentsView, vectors: Floats, mu_squared: Fraction, noise: Noise
) -> Floats:
    """V'X'XV for a few public vectors, in units of what one row can add.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``base.proof.md``, Lemma 3).
    """
    basis = to_grid(vectors, _BASIS_BITS)
    sensitivity = (1 + departure(basis, _BASIS_BITS)) * view.unit + vectors.shape[1]
    law = Gaussian(root_above(sensitivity**2 / mu_squared))  # 4.
    block = data.map(lambda s: shifted(s.between(view.shift, basis, basis), 2 * _BASIS_BITS))
    return floats(symmetric(block, law, noise), view.unit)


def noisy_crossing(
    data: Secret[Scatter], view: ComponentsView, blocks: tuple[Floats, Labels], mu_squared: Fraction, noise: Noise
) -> tuple[Floats, float]:
    """The entries of V'X'XV between different blocks of a public basis V, and the deviation of their noise.

    ``blocks``: the basis, and the block of each of its vectors. In units of what one row can add; 0 inside blocks.

    Guarantee: mu-Gaussian DP under add/remove, for all tables (``base.proof.md``, Lemma 4).
    """
    vectors, labels = blocks
    basis, number = to_grid(vectors, _BASIS_BITS), len(set(labels.tolist()))
    upper = [(i, j) for i, j in zip(*np.triu_indices(view.entries, 1), strict=True) if labels[i] != labels[j]]
    whole = (1 + departure(basis, _BASIS_BITS)) * view.unit
    sensitivity = whole * root_above(Fraction(number - 1, 2 * number)) + math.isqrt(len(upper)) + 1
    law = Gaussian(root_above(sensitivity**2 / mu_squared))  # 5.

    def entries(scatter: Scatter) -> list[int]:
        cells = shifted(scatter.between(view.shift, basis, basis), 2 * _BASIS_BITS)
        return [cells[i][j] for i, j in upper]

    noisy = np.zeros((view.entries, view.entries))
    for (i, j), value in zip(upper, noise.add_integers(data.map(entries), law), strict=True):
        noisy[i, j] = noisy[j, i] = value / view.unit
    return noisy, float(law.sigma / view.unit)


def floats(cells: list[list[int]], unit: int) -> Floats:
    """A released matrix in other units, as floats."""
    return np.array([[value / unit for value in row] for row in cells])


def decomposed(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, descending, and eigenvectors of a released matrix."""
    values, vectors = np.linalg.eigh(np.nan_to_num((matrix + matrix.T) / 2))
    return values[::-1].copy(), vectors[:, ::-1].copy()


def edge(entries: int, sure: float = _MISSES) -> float:
    """What the norm of symmetric Gaussian noise of deviation 1 exceeds in ``sure`` of the cases at most."""
    return math.sqrt(2 * entries) + math.sqrt(2 * math.log(2 / sure))
