"""What fits with intervals have in common: whitened rows before the run, and both matrices of its covariance after it.

Noise that is the same in all directions is too much where rows are short: where columns are collinear, or fill little
of their bounds. So a few hundredths of the budget buy X'X with noise, and rows are turned and stretched by its inverse
root, to a radius that a given share of them exceeds. Proof: ``whitened.proof.md``, whose line numbers the comments
carry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Budget, Cost
from snugdp.inference.equation import NoisyEquation
from snugdp.mechanisms.linear.base import Design, Fit, check_budget, of_design
from snugdp.mechanisms.linear.noisy_sums import law_for, noisy_gram, symmetric
from snugdp.mechanisms.objective.perturbation import ObjectiveRun, Point
from snugdp.noise import Gaussian, Noise
from snugdp.numerics.rounded import clear
from snugdp.propose.forecast import Note
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.whitened import Long, WhitenedRows
from snugdp.tables.losses.losses import Loss
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.passes.derivatives.sandwich import SandwichPass
from snugdp.tables.passes.vectors.distances import NormPass
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = tuple[tuple[float, ...], ...]
Cells: TypeAlias = list[list[int]]

_FLOOR = 0.2  # of the norm of the Gram matrix's noise is added to its eigenvalues
_BINS, _PER_OCTAVE = 32, 2
_FINE = 2  # times as many bins where rows are left out: noise is made for the radius, and none are to be longer
_CLEAR_DEVIATIONS, _SURE_DEVIATIONS = 3.0, 4.5  # deviations of noise; a radius far too small ruins a line
_MIN_RADIUS = 0.125  # of the root mean square length, which follows from the Gram matrix: no radius is smaller
_MIN_UNSEEN_RADIUS = 0.125  # where noise hides how long rows are: shorter ones would be stretched without end
_ABOVE = 1 - 1e-9
_POINT = 1 << 40  # the centre of a run is rounded to multiples of one over this


@dataclass(frozen=True)
class WhitenedFit(Fit):
    """A linear function with what its intervals are made from: the equation that its whitened coefficients satisfy.

    ``directions``: a column for each of them; ``theta`` is this matrix times the whitened coefficients.
    """

    directions: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    equation: NoisyEquation | None = None


def whitened_design(directions: int) -> Design:
    """That of rows in so many directions: norm 1, no constant."""
    return Design(RowMap(directions, 1, 1))


@dataclass(frozen=True)
class Whitening:
    """X'X with noise, and the lengths of rows that it whitens; and, after a run, both matrices of its covariance.

    ``gram``, ``radius``, ``pair``: mu of each; without these matrices there are no standard errors, and ``pair`` is 0.
    ``share``: of rows, about, that are longer than the radius. ``noise``: where rows are shortened, the deviation of
    the noise of the run in that of a residual, for a row of norm 1; then fewer rows are, if that is expected to pay.
    ``basis``: orthonormal columns that span what is identified; public, or a function of what was released.

    Guarantee: the cost of its steps, when one row comes or goes (``whitened.proof.md``, Lemmas 1 and 2).
    """

    design: Design
    gram: Fraction
    radius: Fraction
    pair: Fraction
    share: float
    noise: float | None = None
    basis: Matrix | None = None

    def __post_init__(self) -> None:
        self.design.require_single_rows("whitened rows")
        if self.basis is not None and (len(self.basis) != self.design.entries or not self.basis[0]):
            raise ValueError("the basis must have a row for each entry, and at least one column")

    @property
    def directions(self) -> int:
        """How many there are."""
        return self.design.entries if self.basis is None else len(self.basis[0])

    def note(self, told: float) -> Note:
        """With so many rows, spread evenly over all directions, most intervals are bounded.

        The Hessian must be two deviations of its noise, and what that takes off its least eigenvalue. ``told``: what a
        row of a usual length adds to the Hessian's trace, over that noise where mu is 1.
        """
        each = (2 + math.sqrt(2 * self.directions)) / (told * self.pair)
        return Note("intervals-bounded", {"rows": math.ceil(each * self.directions), "own": math.ceil(each)})

    def steps(self) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        """Those before the run, and those after it."""
        lengths = StepNoise("row-lengths", "gaussian", float(1 / self.radius), "rows")
        both = StepNoise("covariance-matrices", "gaussian")
        return (
            Step("gram", StepKind.STATISTIC, StepNoise("gram-matrix", "gaussian"), Cost(mu=self.gram)),
            Step("radius", StepKind.STATISTIC, lengths, Cost(mu=self.radius)),
        ), (Step("errors", StepKind.RELEASE, both, Cost(mu=self.pair)),) * bool(self.pair)

    @property
    def mu_squared(self) -> Fraction:
        """Of all steps together."""
        return self.gram**2 + self.radius**2 + self.pair**2

    def draw(self, data: Secret[Rows], noise: Noise) -> tuple[Matrix, dict[str, float]]:
        """The matrix that rows are multiplied with; and the radius and about the number of rows."""
        return self.follow(self.draw_gram(data, noise), data, noise)

    def draw_gram(self, data: Secret[Rows], noise: Noise) -> Cells:
        """X'X with noise, in cells squared."""
        return noisy_gram(data, self.design, self.gram**2, noise.at("gram"))  # 1

    def follow(self, gram: Cells, data: Secret[Rows], noise: Noise) -> tuple[Matrix, dict[str, float]]:
        """The same as ``draw``, once X'X was released."""
        basis = np.eye(self.design.entries) if self.basis is None else np.array(self.basis)
        floats = np.array([[float(n * self.design.unit**2) for n in line] for line in gram])
        values, vectors = np.linalg.eigh(basis.T @ floats @ basis)
        square = float(self.design.x_squared)
        floor = _FLOOR * square / float(self.gram) * math.sqrt(2 * len(values))
        roots = (vectors / np.sqrt(np.maximum(values, 0.0) + floor)) @ vectors.T
        wide = basis @ roots * math.sqrt(floor / square)  # 2; no row is longer than 1
        spread = _as_matrix(wide)
        fine = self.noise is None
        counts = data.map(lambda table: _lengths(of_design(table, self.design), spread, fine))
        noisy = noise.at("radius").add_integers(counts, Gaussian(1 / self.radius))  # 3
        rows = max(float(sum(noisy)), _CLEAR_DEVIATIONS * math.sqrt(len(noisy)) / float(self.radius))
        usual = math.sqrt(floor / square * float((1 - floor / (np.maximum(values, 0.0) + floor)).sum()) / rows)
        per_octave = _PER_OCTAVE * _FINE**fine
        skipped = _sure_places(usual / math.sqrt(self.share), per_octave, len(noisy)) if fine else 0
        top = 2.0 ** (-skipped / per_octave)
        radius = radius_from_counts(
            noisy[skipped:],
            float(self.radius),
            top=top,
            rows=rows,
            fraction=self.share,
            per_octave=per_octave,
            sure=_CLEAR_DEVIATIONS if fine else _SURE_DEVIATIONS,
        )
        unseen = not fine and radius == top  # or rows are about as long as that, which the matrix tells as well
        radius = min(max(usual, _MIN_UNSEEN_RADIUS) if unseen else max(radius, _MIN_RADIUS * usual), 1.0)
        if self.noise is not None:
            radius = least_error(noisy, float(self.radius), radius, self.noise * math.sqrt(self.directions))
        return _as_matrix(wide / radius), {"radius": radius, "rows": rows}

    def whitened(self, data: Secret[Rows], matrix: Matrix, long: Long) -> Secret[Rows]:
        """The rows in their directions."""
        return data.map(lambda table: WhitenedRows(of_design(table, self.design), matrix, long))  # 4

    def fit(
        self, rows: Secret[Rows], run: ObjectiveRun, matrix: Matrix, theta: Point, *, start: Point, noise: Noise
    ) -> tuple[Floats, Floats, NoisyEquation | None]:
        """Both matrices at what a run released, ``theta``: that in all entries, the directions, and the equation."""
        point, directions = np.array([float(value) for value in theta]), np.array(matrix)
        if not self.pair:
            return directions @ point, directions, None
        moved = point - np.array([float(value) for value in start])
        loss: Any = run.loss
        hessian, scores, deviations = self.matrices(rows, loss, point, noise.at("errors"))
        equation = NoisyEquation(
            hessian, float(run.ridge) * moved, scores, float(run.sigma) ** 2, *deviations, base=point
        )
        return directions @ point, directions, equation

    def matrices(
        self, rows: Secret[Rows], loss: Loss, point: Floats, noise: Noise
    ) -> tuple[Floats, Floats, tuple[float, float]]:
        """The Hessian and the covariance of the gradients, with noise; the deviations of that on their diagonals.

        Of clipped squares the first is what the second, over the squared clip, leaves of the Gram matrix.
        """
        schema = noise.reveal(rows.map(lambda table: table.schema))  # a function of what was released
        work = SandwichPass(FixedGradient(schema, point.tolist(), loss))
        law = law_for(work.limit_squared, self.pair**2)
        both = rows.map(lambda table: work.matrices(table.state(work)))
        parts = (both.map(lambda pair: pair[0]), both.map(lambda pair: pair[1]))
        noisy = [symmetric(part, law, noise) for part in parts]  # 6
        first, second = (
            np.array([[float(n * unit) for n in line] for line in each])
            for each, unit in zip(noisy, work.units, strict=True)
        )
        deviations = tuple(float(law.sigma * unit) for unit in work.units)
        return first, second, (deviations[0], deviations[1])


def constant_line(matrix: Matrix, centre: Fraction) -> tuple[Fraction, ...]:
    """The line that is the same everywhere, in whitened coefficients."""
    line = np.zeros(len(matrix))
    line[-1] = float(centre)
    solved = np.linalg.lstsq(np.array(matrix), line, rcond=None)[0] if centre else np.zeros(len(matrix[0]))
    return tuple(Fraction(round(value * _POINT), _POINT) for value in solved.tolist())


def radius_from_counts(
    counts: Sequence[float],
    mu: float,
    *,
    top: float,
    rows: float,
    fraction: float,
    per_octave: int,
    sure: float = _CLEAR_DEVIATIONS,
) -> float:
    """The smallest edge of a bin that about a fraction of the rows exceed, from noisy counts from the top down.

    A beginning of the list counts as empty while it is no more than that, or than ``sure`` deviations of its noise.
    Where all of it is, nothing is known of the rows, and the radius is the top.

    >>> radius_from_counts([3, -2, 1, 40, 300, 500], 0.5, top=8.0, rows=840.0, fraction=0.5, per_octave=2)
    1.4142135623730951
    """
    total, place = 0.0, 0
    for place, count in enumerate(counts):
        total += count
        if total > max(fraction * rows, clear(place + 1, 1 / mu, sure)):
            break
    else:
        place = 0
    return float(top * 2.0 ** (-place / per_octave))


def least_error(counts: Sequence[float], mu: float, least: float, noise: float) -> float:
    """The edge of a bin, from ``least`` on, at which the error of a line on rows that are shortened to it is smallest.

    Counts are noisy, from length 1 down, two bins an octave. Of rows of length l, shortened by k, the sum of (k l)^2
    is what they tell, in all directions together; the variance of their sum of residuals has that of k^4 l^2 in it, and
    the noise grows with the radius. ``noise``: that of a row of norm 1 in all directions together, in residuals. Only
    bins that are sure to hold rows count, as noise in the first ones would look like rows that tell much.

    >>> round(least_error([0, 0, 0, 0, 0, 300, 0, 0, 0, 9700], 0.1, 2**-4.5, 5.0), 4)  # rare long rows tell the most
    0.1768
    >>> round(least_error([0, 0, 0, 0, 0, 0, 0, 4000, 6000, 0], 0.1, 2**-4.0, 5.0), 4)
    0.0884
    """
    sure = clear(1, 1 / mu, _SURE_DEVIATIONS)
    places = [place for place, count in enumerate(counts) if count > sure]
    if not places:
        return least
    edges = 2.0 ** (-np.arange(len(counts)) / _PER_OCTAVE)
    rows, lengths = np.array([float(counts[place]) for place in places]), edges[places] * 2 ** (-0.5 / _PER_OCTAVE)
    radii = np.array([edge for edge in edges if edge >= least * _ABOVE])[::-1, None]
    short = np.minimum(radii / lengths, 1.0)
    told = (short * lengths) ** 2 @ rows
    errors = (noise**2 * radii[:, 0] ** 2 + (short**2 * lengths) ** 2 @ rows) / told**2
    return float(radii[np.argmin(errors), 0])


def _sure_places(length: float, per_octave: int, bins: int) -> int:
    """How many bins lie wholly beyond a length, from 1 down, but for the last.

    Of all rows no more than a share are longer than their root mean square over the root of that share (Chebyshev), so
    these bins need not be counted, nor their noise.

    >>> _sure_places(0.4, 4, 64), _sure_places(3.0, 4, 64), _sure_places(0.0, 4, 64)
    (5, 0, 0)
    """
    if length <= 0:  # the matrix is nothing but noise, and tells nothing of lengths
        return 0
    return min(max(math.floor(-per_octave * math.log2(length)), 0), bins - 1)


def _lengths(rows: Rows, matrix: Matrix, fine: bool) -> list[int]:
    spread = WhitenedRows(rows, matrix, "keep")
    return spread.state(NormPass(spread.schema, None, _BINS * _FINE**fine, fine)).values()


def _as_matrix(values: Floats) -> Matrix:
    return tuple(tuple(line) for line in values.tolist())


@dataclass(frozen=True)
class WhitenedParts:
    """What a budget affords: the whitening, in all directions, and whatever else is released."""

    whitening: Whitening


@dataclass(frozen=True)
class WhitenedMethod:
    """What fits on whitened rows are given. Nothing is tested, and nothing is refused.

    ``beside``: mu squared of a Gaussian release that somebody else makes of the same budget. ``basis``: orthonormal
    columns that span what is identified, such as levels relative to a reference level; public, or a function of what
    was released. Without one, all directions are.

    Guarantee: ``plan().cost``, which fits the budget together with ``beside``. Add/remove neighbours.
    """

    design: Design
    budget: Budget
    beside: Fraction = Fraction(0)
    basis: Matrix | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        self._whitening  # noqa: B018  # what is wrong is told here, in public

    @property
    def _planned(self) -> WhitenedParts:
        """All parts, without a basis."""
        raise NotImplementedError

    @property
    def _whitening(self) -> Whitening:
        return replace(self._planned.whitening, basis=self.basis)
