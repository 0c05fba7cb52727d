"""The conditional mean with intervals: one step of least squares from a pilot line, on whitened rows, all Gaussian.

A robust line pays for little noise with an estimand of its own. Here residuals are clipped far out, at a size that
hardly any of them has, and the noise of the Gram matrix multiplies what the pilot left over and not the whole line, so
that loose bounds on the target cost little. Proof: ``mean.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Outcome
from snugdp.inference.equation import NoisyEquation
from snugdp.mechanisms.inference.whitening import (
    Floats,
    WhitenedFit,
    WhitenedMethod,
    WhitenedParts,
    Whitening,
    constant_line,
    whitened_design,
)
from snugdp.mechanisms.linear.base import Design, Fit
from snugdp.mechanisms.linear.noisy_sums import (
    check_gradients,
    gradient_law,
    gram_law,
    hold,
    noisy_gradient,
    noisy_gram,
)
from snugdp.mechanisms.objective.perturbation import nothing_left, root_below
from snugdp.mechanisms.objective.scale import MeanTarget, SizeHistogram, TargetLooks
from snugdp.noise import Noise
from snugdp.numerics.rounded import clear
from snugdp.propose.forecast import Accuracy, Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Huber
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.rows import Rows

THEOREM = theorem("linear-mean/1")

# Of M squared: the mean of the targets, their sizes, the Gram matrix, the lengths, the Gram matrix of whitened rows,
# the pilot, the sizes of its residuals, both matrices of the covariance; the rest is the step.
_SHARES = tuple(Fraction(part, 100) for part in (1, 3, 6, 2, 12, 8, 4, 10))
_SHORTENED_SHARE = 0.5  # of the rows, about, are shortened, at most
_USUAL_CLIP = 6.0  # deviations of a residual
_CLEAR = 3.0  # deviations of noise
_CLIP_FACTOR = math.sqrt(2)  # the clip of the step, over the largest size that is seen,
_CLIP_FACTOR_WITH_CONSTANT = 2 * _CLIP_FACTOR  # and where there is an intercept, which a clipped tail would pull
_CLIP_BITS = 40
_TOLD = 0.45  # by a usual row, of what the Gram matrix must be
_GUESS = 0.2  # the size of a residual, as a part of the bound on targets


@dataclass(frozen=True)
class _MeanParts(WhitenedParts):
    """The looks at targets, and what follows by mu."""

    looks: TargetLooks
    matrix: Fraction
    pilot: Fraction
    residuals: Fraction
    step: Fraction

    @property
    def mu_squared(self) -> Fraction:
        """Of all of it."""
        others = (self.matrix, self.pilot, self.residuals, self.step)
        return self.whitening.mu_squared + self.looks.cost.mu_squared + sum(mu**2 for mu in others)


@lru_cache(maxsize=64)
def _mean_parts(design: Design, budget: Budget, beside: Fraction) -> _MeanParts:
    left = Fraction(gaussian.mu(budget.epsilon, budget.delta)) ** 2 - beside
    if left <= 0:
        raise nothing_left(beside)
    shares = _SHARES if design.row_map.constant else (Fraction(0), *_SHARES[1:])
    mus = [root_below(share * left) for share in (*shares, 1 - sum(shares))]
    noise = _USUAL_CLIP / float(mus[8])
    whitening = Whitening(design, gram=mus[2], radius=mus[3], pair=mus[7], share=_SHORTENED_SHARE, noise=noise)
    centre = MeanTarget(design, mus[0]) if mus[0] else None
    looks = TargetLooks(centre, SizeHistogram(design, mus[1]))
    return _MeanParts(whitening, looks, mus[4], mus[5], mus[6], mus[8])


@dataclass(frozen=True)
class WhitenedMean(WhitenedMethod):
    """Fit the conditional mean on whitened rows, and release what its standard errors are computed from; a ``Method``.

    Guarantee: that of ``WhitenedMethod`` (``mean.proof.md``, Theorem 1).

    >>> from snugdp.tables.schema.schema import Number, Schema
    >>> design = Design.of(Schema({"x": Number(0, 10), "y": Number(0, 1)}, target="y"))
    >>> [step.id for step in WhitenedMean(design, Budget(1, 1e-6)).plan().steps]
    ['centre', 'sizes', 'gram', 'radius', 'matrix', 'pilot', 'residuals', 'release', 'errors']
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gradients(self._rows_design)

    @property
    def _planned(self) -> _MeanParts:
        return _mean_parts(self.design, self.budget, self.beside)

    @property
    def _rows_design(self) -> Design:
        return whitened_design(self._whitening.directions)

    @property
    def _residuals(self) -> SizeHistogram:
        return SizeHistogram(self._rows_design, self._planned.residuals)

    def plan(self) -> Plan:
        """What will be done and what it costs."""
        parts = self._planned
        before, after = self._whitening.steps()
        matrix = StepNoise("whitened-gram-matrix", "gaussian")
        needed = self._whitening.note(_TOLD)
        return Plan(
            THEOREM.title,
            THEOREM,
            (
                *parts.looks.steps(),
                *before,
                Step("matrix", StepKind.STATISTIC, matrix, Cost(mu=parts.matrix)),
                Step("pilot", StepKind.STATISTIC, StepNoise("pilot-line", "gaussian"), Cost(mu=parts.pilot)),
                self._residuals.step("residuals", "residual-sizes", self._residuals.deviation),
                Step("release", StepKind.RELEASE, StepNoise("clipped-residuals", "gaussian"), Cost(mu=parts.step)),
                *after,
            ),
            {},
            Forecast(notes=(Note("conditional-mean"), needed)),
            self.budget,
        )

    def forecast(self, rows: int) -> Accuracy:
        """For rows spread evenly, and residuals of about a fifth of the bound on targets."""
        design = self._rows_design
        noise = _GUESS * self._clip_factor * design.entries / (max(rows, 1) * float(self._planned.step))
        return Accuracy(noise, noise**2 * float(design.x_squared))

    @property
    def _clip_factor(self) -> float:
        return _CLIP_FACTOR_WITH_CONSTANT if self.design.row_map.constant else _CLIP_FACTOR

    def fit(self, rows: Secret[Rows], context: ReleaseContext) -> Outcome[Fit]:
        """Pay, look, release."""
        return release(self.plan(), self, rows, context)

    def draw(self, data: Secret[Rows], noise: Noise) -> WhitenedFit:
        """Whiten, fit a pilot, and step from it to least squares."""
        parts, whitening, design = self._planned, self._whitening, self._rows_design
        centre, counts = parts.looks.draw(data, noise)  # 1, 2
        first = clip_from_counts(counts, float(parts.looks.sizes.mu), top=float(self.design.y_bound), factor=1.0)
        matrix, released = whitening.draw(data, noise)  # 3
        rows = whitening.whitened(data, matrix, "shorten")
        hold(rows)
        unit = float(design.unit) ** 2
        gram = unit * np.array(noisy_gram(rows, design, parts.matrix**2, noise.at("matrix")), dtype=np.float64)  # 4
        spread = unit * float(gram_law(design, parts.matrix**2).sigma)
        start = np.array([float(value) for value in constant_line(matrix, centre)])
        downhill, _ = self._descent(rows, start, first, parts.pilot, noise.at("pilot"))  # 5
        pilot = start + _solved(gram, downhill, spread)
        found = self._residuals.draw(rows, noise.at("residuals"), pilot.tolist())  # 6
        clip = clip_from_counts(found, float(parts.residuals), top=float(design.y_bound), factor=self._clip_factor)
        step, deviation = self._descent(rows, pilot, clip, parts.step, noise.at("release"))  # 7
        rest, scores, (more, own) = whitening.matrices(rows, Huber(_whole(clip)), pilot, noise.at("errors"))  # 8
        again, weight = rest + scores / clip**2, 2 * more**2 / (2 * more**2 + spread**2)
        both = weight * gram + (1 - weight) * again  # of two independent ones, the best mixture
        equation = NoisyEquation(both, step, scores, deviation**2, math.sqrt(weight) * spread, own, base=pilot)
        directions, details = np.array(matrix), {**released, "clip": clip, "centre": float(centre)}
        return WhitenedFit(directions @ (pilot + _solved(both, step, spread)), None, details, directions, equation)

    def _descent(self, rows: Secret[Rows], at: Floats, clip: float, mu: Fraction, noise: Noise) -> tuple[Floats, float]:
        """The sum of rows times their clipped residuals, with noise; and the deviation of that."""
        schema = noise.reveal(rows.map(lambda table: table.schema))  # a function of what was released
        work = FixedGradient(schema, at.tolist(), Huber(_whole(clip)))
        noisy = noisy_gradient(rows, work, mu**2, noise)
        unit = work.gradient_unit
        return np.array([-float(n * unit) for n in noisy]), float(gradient_law(work, mu**2).sigma * unit)


def clip_from_counts(counts: Sequence[float], mu: float, *, top: float, factor: float) -> float:
    """The upper edge of the highest bin, in half octaves, whose count is clear of its noise; times a factor.

    >>> round(clip_from_counts([3, -2, 1, 40, 300, 500], 0.5, top=8.0, factor=1.0), 9)
    2.828427125
    """
    least = clear(1, 1 / mu, _CLEAR)
    places = (place for place, count in enumerate(counts) if count > least)
    return float(top * 2.0 ** (-next(places, len(counts)) / 2) * factor)


def _whole(clip: float) -> Fraction:
    """On a grid, and above 0."""
    return max(Fraction(round(clip * 2**_CLIP_BITS), 2**_CLIP_BITS), Fraction(1, 2**_CLIP_BITS))


def _solved(gram: Floats, vector: Floats, spread: float) -> Floats:
    """The solution, with eigenvalues that noise alone may have made raised to its norm."""
    values, vectors = np.linalg.eigh(gram)
    floor = spread * math.sqrt(2 * len(values))
    solved: Floats = vectors @ ((vectors.T @ vector) / np.maximum(values, floor))
    return solved
