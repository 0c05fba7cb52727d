"""A start for models of three classes or more: the mean row of every class, and how steep a rule they make.

A plain release of sums by class has half the sensitivity of a softmax run at its worst, and with few rows all that can
be learned of the classes is where their means lie. So a part of the budget buys the sums first. Where rows are few, the
rest buys them once more and the linear rule of the means is the model; elsewhere a softmax run starts from that rule
and is pulled back to it, not to 0. Proof: ``class_means.proof.md``, whose line numbers the comments carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Unit
from snugdp.mechanisms.linear.base import Design, one_of_each
from snugdp.mechanisms.objective.perturbation import SoftmaxModel, coefficients_of, root_below
from snugdp.mechanisms.objective.scale import DesignRelease
from snugdp.mechanisms.objective.shrinkage import beyond_start
from snugdp.noise import Gaussian, Noise
from snugdp.propose.plan import Step
from snugdp.secrecy.secret import Secret
from snugdp.tables.losses.losses import Softmax
from snugdp.tables.passes.derivatives.class_means import STEEPNESS_CELLS, ClassSumPass, SteepnessPass
from snugdp.tables.rowmap import Floats
from snugdp.tables.rows import Rows

# Chosen on iris, wine, digits and five other tables from R packages or made up: docs/benchmarks.md.
_SUMS_SHARE, _SLOPE_SHARE = Fraction(20, 100), Fraction(5, 100)  # of M squared
_MIN_SAMPLE = 1.2  # rows times mu over coefficients: below that a softmax run adds more noise than it learns
_FEW_ROWS_RIDGE = 0.03  # ridge for few rows, times (B entries / m)**2 / rows
_LEAST_SHARE = 0.02  # of the rows that a class would have if all were equal
_TOP_SIGNAL, _LEAST_SIGNAL = 0.5, 3.0  # of squared means, in parts of those of rows; at least, in deviations of noise
_GUESS = 0.45  # of the slope that rows with the same variance in every direction would ask for
_WITHIN = 0.25  # of the mean square of rows: no less of it is taken for variance within classes
_SQUARE = 0.85  # of the largest square of a row: their mean where it is not known
_OCTAVES, _HALVINGS = 7, 4  # the slope is looked for in so many octaves, so often
_LOOKS = Fraction(math.isqrt(_HALVINGS - 1) + 1)  # not below the root of how often
_SEEN = 0.06  # of the rows: the most that the noise of a look at the slope may be
_USUAL = 3.0  # deviations of a score, to which it is clipped
_MAX_START = 1000.0  # no coefficient of a start is larger
_FLATTER = 0.15  # rows times mu over coefficients: below that means are hardly more than noise, their rule flatter
_START_BITS = 20


@dataclass(frozen=True)
class ClassSums(DesignRelease):
    """The sum of the rows of each class, and with the constant their number.

    Guarantee: cost mu when one row comes or goes, however many classes (``class_means.proof.md``, Theorem 1).
    """

    classes: int

    @property
    def deviation(self) -> Fraction:
        """Of the noise on a sum, in units of scaled rows."""
        return self.design.x_bound / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise) -> Floats:
        """The released sums, a row for each class."""
        unit = self.design.unit
        sums = rows.map(lambda r: _class_sums(one_of_each(r, self.design), self.classes))
        noisy = noise.add_integers(sums, Gaussian(self.deviation / unit))
        return np.array([float(value * unit) for value in noisy]).reshape(self.classes, -1)


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """What noisy sums say of the classes: ``rows``, ``shares``, and means around the ``middle`` less their noise.

    ``signal``: the mean squared distance of the means from the middle, less what noise makes up.
    """

    rows: float
    shares: Floats
    middle: Floats
    means: Floats
    signal: float

    @classmethod
    def read(cls, sums: Floats, deviation: float, longest: float = 2.0) -> ClassMeans:
        """From sums whose last entries are numbers of rows; ``deviation``: of the noise of every entry."""
        classes, width = len(sums), sums.shape[1] - 1
        rows = max(float(sums[:, -1].sum()), math.sqrt(classes) * deviation)
        counts = _counts(sums[:, -1], rows, deviation)
        shares = counts / counts.sum()
        middle = sums[:, :-1].sum(axis=0) / (rows + math.sqrt(classes) * deviation)
        away, noise = sums[:, :-1] / counts[:, None] - middle, (deviation / counts) ** 2
        signal = float((shares * ((away**2).sum(axis=1) - width * noise)).sum())
        unsure = math.sqrt(float((shares**2 * noise**2).sum()) * 2 * width)
        sure = min(_TOP_SIGNAL * longest**2, max(signal - unsure, _LEAST_SIGNAL * unsure))
        return cls(rows, shares, middle, away * (sure / (sure + width * noise))[:, None], signal)

    @property
    def scores(self) -> Floats:
        """The linear scores of the classes, a row of coefficients and a constant for each."""
        constants = -(self.means @ self.middle) - (self.means**2).sum(axis=1) / 2
        scores: Floats = np.clip(np.column_stack([self.means, constants]), -_MAX_START, _MAX_START)
        return scores

    def guess(self, square: float) -> float:
        """How steep log-odds are along the scores if rows vary as much in every direction, but for a factor.

        ``square``: the mean square of the lengths of rows.
        """
        return _GUESS * len(self.middle) / max(square - self.signal, _WITHIN * square)

    def curvature(self, square: float) -> float:
        """About that of all losses along a coefficient, if rows vary as much in every direction."""
        return float(self.rows * square / len(self.middle) * (self.shares * (1 - self.shares)).mean())

    def theta(self, slope: float) -> Floats:
        """The rule of the means, with log-odds so steep."""
        rule = slope * self.scores
        rule[:, -1] += np.log(self.shares)
        return np.clip(rule, -_MAX_START, _MAX_START)


@dataclass(frozen=True, eq=False)
class _Steepness:
    """Whether a rule of class means is too steep at a slope; ``scale``: of what a row says. Private, before noise."""

    design: Design
    means: ClassMeans
    scale: float

    def at(self, rows: Secret[Rows], slope: float) -> Secret[list[int]]:
        """One sum over the rows."""
        scores = tuple(tuple(row) for row in self.means.scores.tolist())
        offsets = tuple(np.log(self.means.shares).tolist())

        def summed(given: Rows) -> list[int]:
            known = one_of_each(given, self.design)
            return known.state(SteepnessPass(known.schema, scores, offsets, slope, self.scale, known.bits)).values()

        return rows.map(summed)


@dataclass(frozen=True)
class SlopeSearch(DesignRelease):
    """The slope of a rule of class means at which log-loss is least, by halving: each look is one noisy sum.

    Guarantee: cost mu for all looks together, whatever the rule (``class_means.proof.md``, Theorem 2).
    """

    @property
    def deviation(self) -> Fraction:
        """Of the noise of a look, in rows."""
        return _LOOKS / self.mu

    def draw(self, rows: Secret[Rows], noise: Noise, means: ClassMeans, square: float) -> float:
        """The released slope, or the guess where rows are too few to look for it."""
        guess = means.guess(square)
        apart = means.means[:, None] - means.means[None]
        widest = math.sqrt(float((apart**2).sum(axis=2).max()))
        longest = min(float(self.design.row_map.feature_bound), _USUAL * 2 * math.sqrt(square / len(means.middle)))
        if float(self.deviation) > _SEEN * means.rows or not widest * longest > 0:
            return guess
        law, ends = Gaussian(STEEPNESS_CELLS * self.deviation), octaves(guess)
        look = _Steepness(self.design, means, widest * longest)
        for _ in range(_HALVINGS):
            (noisy,) = noise.add_integers(look.at(rows, _middle(ends)), law)
            ends = narrower(ends, steep=noisy > 0)
        return _middle(ends)


@dataclass(frozen=True)
class ClassStart:
    """What comes before a softmax run of three classes or more: sums by class, and the slope of their rule."""

    sums: ClassSums
    slope: SlopeSearch

    @classmethod
    def of(cls, design: Design, loss: object, square: Fraction) -> ClassStart | None:
        """For its shares of M squared; None for two classes, without a constant, and for persons with several rows."""
        if not isinstance(loss, Softmax) or loss.classes < 3 or design.protects is not Unit.ROW:
            return None
        if not design.row_map.constant or design.entries < 2:
            return None
        sums = ClassSums(design, root_below(_SUMS_SHARE * square), loss.classes)
        return cls(sums, SlopeSearch(design, root_below(_SLOPE_SHARE * square)))

    def for_classes(self, classes: int) -> ClassStart:
        """The same for another number of classes, at the same cost."""
        return replace(self, sums=replace(self.sums, classes=classes))

    @property
    def cost(self) -> Cost:
        """Of both."""
        return self.sums.cost + self.slope.cost

    @property
    def steps(self) -> tuple[Step, ...]:
        """Of a plan."""
        return (
            self.sums.step("sums", "class-sums", self.sums.deviation),
            self.slope.step("slope", "class-slope", self.slope.deviation),
        )

    def draw(
        self, run: SoftmaxModel, rows: Secret[Rows], noise: Noise, square: float = _SQUARE
    ) -> tuple[Floats, dict[str, float]]:
        """Coefficients of all classes, and the public numbers of the run or of the sums that took its place.

        ``square``: the mean square of the lengths of rows, in parts of the longest allowed; released or guessed.
        """
        longest = float(run.design.row_map.feature_bound)
        first, one = self.sums.draw(rows, noise.at("sums")), float(self.sums.mu) ** 2  # 1
        means = ClassMeans.read(first, float(self.sums.deviation), longest)
        sample = means.rows * math.sqrt(one + float(run.run.m_squared)) / first.size
        few = sample < _MIN_SAMPLE  # 2
        if few:
            again = replace(self.sums, mu=root_below(run.run.m_squared))
            two = float(again.mu) ** 2
            both = (one * first + two * again.draw(rows, noise.at("release"))) / (one + two)  # 3
            means = ClassMeans.read(both, float(run.design.x_bound) / math.sqrt(one + two), longest)
        slope = self.slope.draw(rows, noise.at("slope"), means, square * longest**2)  # 4
        if few:
            slope *= min(1.0, sample / _FLATTER)
        rule, about = means.theta(slope), {"rows": means.rows, "slope": slope}
        if few:
            return rule, about
        last = replace(run, ridge=max(run.ridge, _ridge(run, means.rows)))
        scale = 1 << _START_BITS
        start = [Fraction(round(value * scale), scale) for value in rule.ravel().tolist()]
        found = coefficients_of([last], rows, noise.at("release"), start)  # 5
        curvature = means.curvature(square * longest**2)
        moved = beyond_start(found, rule, ridge=float(last.ridge), sigma=float(last.sigma), curvature=curvature)
        numbers = {name: value for name, value in last.released.items() if name != "noise_at_most"}  # of the run alone
        return moved, {**numbers, **about}


def _counts(noisy: Floats, rows: float, deviation: float) -> Floats:
    """Rows of each class, shrunk towards equal shares as far as noise alone could have made them differ."""
    equal = rows / len(noisy)
    apart = noisy - equal
    square = float(apart @ apart)
    kept = max(0.0, 1 - (len(noisy) - 1) * deviation**2 / square) if square else 0.0
    return np.maximum(equal + kept * apart, max(_LEAST_SHARE * equal, deviation))


def octaves(guess: float) -> tuple[float, float]:
    """Between which powers of two the slope is looked for: seven octaves, up to twice the guess."""
    high = math.log2(2 * guess)
    return high - _OCTAVES, high


def narrower(ends: tuple[float, float], *, steep: bool) -> tuple[float, float]:
    """The half of an interval in which the slope lies, where its middle is too steep or not steep enough."""
    low, high = ends
    middle = (low + high) / 2
    return (low, middle) if steep else (middle, high)


def _middle(ends: tuple[float, float]) -> float:
    return float(2.0 ** ((ends[0] + ends[1]) / 2))


def _ridge(run: SoftmaxModel, rows: float) -> Fraction:
    few = _FEW_ROWS_RIDGE * float(run.design.x_squared) * (run.design.entries / float(run.m)) ** 2 / rows
    return Fraction(round(few * 4096), 4096)


def _class_sums(rows: Rows, classes: int) -> list[int]:
    return rows.state(ClassSumPass(rows.schema, classes, rows.bits)).values()
