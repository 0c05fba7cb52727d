"""Layer S: every method of a source of noise against the law that it declares, one site at a time.

Any object with the methods of ``Noise`` can be tested: ours, a changed one, somebody else's. Each finding includes its
power check: a scale that is wrong by a few per cent, another shape, a shift or a wrong tie must be found by the same
statistic in the same sample.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from snugdp.accounting import selection
from snugdp.audit.finding import Finding
from snugdp.audit.laws.goodness import cells_p, normal_p, rate_p, verdict
from snugdp.noise import (
    Continuous,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Finite,
    Gaussian,
    Gumbel,
    Laplace,
    Law,
    Noise,
)
from snugdp.noise.exact.weighted import Groups
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws import reference, samples

Floats = NDArray[np.float64]

REAL: tuple[Continuous, ...] = (Laplace(4), Gaussian(4), Gumbel(4))
WHOLE: tuple[Law, ...] = (DiscreteLaplace("9/2"), DiscreteGaussian("49/3"))
SMALL: tuple[Law, ...] = (Gaussian("3/10"), DiscreteLaplace("1/2"), DiscreteGaussian("1/4"), DiscreteGaussian(1))
_DISTANCES = (-1.4, -0.5, 0.0, 0.5, 1.4)  # from the threshold, in spreads
_TIES = 4000  # decisions exactly on the threshold, so that a tie that fails is found
_FINE = -24
_ONE = Gaussian(1)
_GRAM = ((900_000, 310_000, -150_000), (310_000, 420_000, 90_000), (-150_000, 90_000, 260_000))
_CROSS = (310_000, -77_000, 5)
_UNIT, _RIDGE, _GAMMA = Fraction(1, 1 << 18), Fraction(1, 20), Fraction(5, 2)
_GRID = -26  # of vectors

_SLOPES, _TARGETS = ((3, 1), (-1, 2), (2, -2)), (Fraction(1, 4), Fraction(-3, 8), Fraction(7, 8))

Site = Callable[[Noise, samples.LawEffort], Iterator[Finding]]


def laws(
    source: Noise | None = None, effort: samples.LawEffort = samples.QUICK, only: tuple[str, ...] = ()
) -> list[Finding]:
    """What every site of this source was found to draw. ``only``: names of sites, all of them if there are none."""
    noise = Exact() if source is None else source
    unknown = set(only) - set(SITES)
    if unknown:
        raise ValueError(f"there are no such sites: {', '.join(sorted(unknown))}; there are {', '.join(SITES)}")
    return [finding for name, site in SITES.items() if name in only or not only for finding in site(noise, effort)]


def add(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Numbers one at a time: a large value on a fine grid, a stretch, a coarse grid, and discrete laws."""
    value = 10**6 + Fraction(1, 3)
    for law in REAL:
        n = max(samples.size(min(reference.information(law), 1.6), effort.single), samples.SHAPES)
        drawn = [noise.add(Secret(value), law, grid=_FINE) - value for _ in range(n)]
        yield samples.real_noise("add", np.array(drawn, dtype=np.float64), law, effort.single)
    stretch, law = Fraction(5, 3), Gaussian("1/50")
    n = max(samples.size(2, effort.single), samples.SHAPES)
    drawn = [noise.add(Secret(-7), law, grid=_FINE - 6, stretch=Secret(stretch)) + 7 for _ in range(n)]
    yield samples.real_noise(
        "add with a stretch", np.array(drawn, dtype=np.float64) / float(stretch), law, effort.single
    )
    n, step = samples.size(1.9, effort.single), Fraction(2) ** 3
    drawn = [(noise.add(Secret(8000), Gaussian(20), grid=3) - 8000) / step for _ in range(n)]
    yield samples.whole_noise("add on a coarse grid", _whole(drawn), Gaussian("5/2"), effort.single)
    for other in WHOLE:
        n = samples.size(0.9 * reference.information(other), effort.single)
        drawn = [noise.add(Secret(10**30), other) - 10**30 for _ in range(n)]
        yield samples.whole_noise("add", _whole(drawn), other, effort.single)


def add_integers(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Many whole numbers at once, of every law, narrow and wide."""
    for law in (*REAL, *WHOLE, *SMALL):
        deviation = effort.many if not isinstance(law, Gumbel) else effort.single / 2
        n = samples.size(_narrow_information(law), deviation)
        values = np.arange(n) - 500
        released = noise.add_integers(Secret(values), law)
        yield samples.whole_noise("add_integers", np.array(released, dtype=np.int64) - values, law, deviation)


def at_least(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Decisions one at a time, far from the threshold and exactly on it."""
    for law in (*REAL, *WHOLE):
        counts = []
        for x, n in _places(law, effort.coin):
            reached = sum(noise.at_least(Secret(Fraction(9)), law, 9 + x) for _ in range(n))
            counts.append((float(x), reached, n))
        yield _decided("at_least", law, counts, effort.coin)


def reach(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Decisions, many at once."""
    for law in REAL:
        counts = []
        for x, n in _places(law, effort.many):
            reached = noise.reach(Secret(np.full(n, -3)), law, -3 + x)
            counts.append((float(x), int(reached.sum()), n))
        yield _decided("reach", law, counts, effort.many)


def argmax(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """The largest of noisy scores, one at a time."""
    scores: list[int | Fraction] = [10**9, 10**9 + 5, 10**9 + Fraction(17, 2), 10**9 + 5]
    for law in REAL:
        n = samples.size(_wins_information([float(score - 10**9) for score in scores], law), effort.coin)
        wins = np.bincount([noise.argmax(Secret(scores), law) for _ in range(n)], minlength=4)
        yield _won("argmax", law, wins, [float(score - 10**9) for score in scores], effort.coin)


def argmaxes(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """The largest of noisy scores in many rows at once; the columns are even, but for their noise."""
    row = [-3, 2, 6, 2]
    for law in REAL:
        n = samples.size(_wins_information([float(score) for score in row], law), effort.many)
        wins = np.bincount(noise.argmaxes(Secret(np.tile(row, (n, 1))), law), minlength=4)
        yield _won("argmaxes", law, wins, [float(score) for score in row], effort.many)


def chance(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Coins of a private probability."""
    by = effort.single
    for probability in (Fraction(1, 3), Fraction(1, 2), Fraction(10**40 + 1, 10**41)):
        p = float(probability)
        n = samples.size(p / (1 - p), by)
        heads = sum(noise.chance(Secret(probability)) for _ in range(n))
        planted = {f"x {factor:.3g}": rate_p(heads, n, p / factor) for factor in (1 - by, 1 + by)}
        yield verdict("S", "chance", f"a coin of {p:.4g}", {"rate": rate_p(heads, n, p)}, planted)
    ends = ((Fraction(0), False), (Fraction(1), True), (Fraction(-2), False), (Fraction(9, 2), True))
    right = all(noise.chance(Secret(p)) is face for p, face in ends for _ in range(200))
    told_so = "as claimed" if right else "not so"
    yield Finding("S", "chance", "no chance at 0 and below, certainty from 1 on", told_so, right)


def weighted_choice(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Positions by their levels, as a contest with Gumbel noise has them; then in groups with counts and weights."""
    law, levels = Gumbel(4), np.array([13, 8, 4, 8])
    ones, zeros = np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    n = samples.size(_wins_information((-levels).tolist(), law), effort.coin)
    singles = Secret(Groups(np.arange(4), ones, levels, zeros))
    wins = np.bincount([noise.weighted_choice(singles, Fraction(1, 4)) for _ in range(n)], minlength=4)
    yield _won("weighted_choice", law, wins, (-levels).tolist(), effort.coin)
    count, weight = np.array([1, 4, 2, 1]), np.array([3, 0, 1, 0])
    starts = np.cumsum(count) - count
    groups = Secret(Groups(starts, count, levels, weight))
    drawn = np.array([noise.weighted_choice(groups, Fraction(1, 4)) for _ in range(n)])
    places = np.bincount(drawn, minlength=8)
    each = np.repeat(np.exp(-levels / 4) * 2.0**weight, count)
    plain = np.repeat(np.exp(-levels / 4), count)
    clean = {"cells": cells_p(places, each / each.sum())}
    planted = {"weights ignored": cells_p(places, plain / plain.sum())}
    yield verdict("S", "weighted_choice", "2^weight exp(-rate level), in groups", clean, planted)


def keys_above(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Keys of a large count, which are all shown, and of a small one, of which few are."""
    law, n = Finite(-3, (1, 3, 9, 14, 6, 2, 1)), samples.size(1, effort.many)
    keys = list(range(n))
    drawn = [count - 50 - law.lowest for _, count in noise.keys_above(Secret((keys, np.full(n, 50))), law, 9)]
    cells = np.bincount(drawn, minlength=len(law.weights))
    shares = np.array(law.weights) / law.total
    planted = {
        "narrower": cells_p(cells, np.array([1, 2, 9, 17, 5, 1, 1]) / 36),
        "mirrored": cells_p(cells, shares[::-1]),
    }
    yield verdict("S", "keys_above", "a finite law", {"cells": cells_p(cells, shares)}, planted)
    for noisy, at, p in ((law, 3, float(law.at_least(2))), (Gaussian(2), 4, float(stats.norm.sf(2.5 / 2)))):
        shown = len(noise.keys_above(Secret((keys, np.ones(n, dtype=np.int64))), noisy, at))
        close = {"one row more": rate_p(shown, n, p * 1.2), "fewer": rate_p(shown, n, p / 1.2)}
        name = type(noisy).__name__.lower()
        yield verdict("S", "keys_above", f"{name} noise, threshold {at}", {"rate": rate_p(shown, n, p)}, close)


def choice(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Uniform positions, one at a time."""
    for n in (3, 7, 64):
        draws = samples.size(2 / n, effort.single)
        counts = np.bincount([noise.choice(n) for _ in range(draws)], minlength=n)
        yield _uniform("choice", counts, n)


def scatter(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Uniform positions, many at once; among very many a rest would show in the lower half."""
    for parts in (3, 7, 400):
        places = noise.scatter(samples.size(4 / parts, effort.many), parts)
        yield _uniform("scatter", np.bincount(places, minlength=parts), parts)
    parts = (1 << 65) // 9
    places = noise.scatter(samples.size(1, effort.many), parts)
    yield _uniform("scatter", np.bincount((places / parts * 16).astype(np.int64), minlength=16), 16, of="sixteenths")


def stopping(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Hidden numbers of runs; another mean must be seen, and so must a cut that is made too early."""
    half = Fraction(-1, 2)
    pairs: dict[str, tuple[Any, Any]] = {
        "geometric": (selection.geometric(5), selection.geometric(8)),
        "logarithmic": (selection.logarithmic(5), selection.logarithmic(8)),
        "negative binomial": (
            selection.truncated_negative_binomial(half, 5),
            selection.truncated_negative_binomial(half, 40),
        ),
        "poisson": (selection.poisson(5), selection.poisson(8)),
    }
    for name, (law, other) in pairs.items():
        n = round(1200 / effort.coin)
        counts = np.bincount([noise.stopping(law, 40) for _ in range(n)], minlength=41)
        clean = {"cells": cells_p(counts, _stops(law, 40)), "within the cut": 1.0 if len(counts) == 41 else 0.0}
        planted = {
            "another mean": cells_p(counts, _stops(other, 40)),
            "a cut at 8": cells_p(np.where(np.arange(len(counts)) > 8, 0, counts), _stops(law, 40)),
        }
        yield verdict("S", "stopping", f"{name} of mean 5, cut at 40", clean, planted)


def posterior(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """One system of three unknowns that is far from diagonal, at a precision that is not 1."""
    n = samples.size(2 * len(_CROSS), effort.slow)
    gram, cross = Secret([list(row) for row in _GRAM]), Secret(list(_CROSS))
    drawn = [noise.posterior(gram, cross, unit=_UNIT, ridge=_RIDGE, precision=_GAMMA, grid=_GRID) for _ in range(n)]
    theta = np.array(drawn, dtype=np.float64)
    system = float(_UNIT) * np.array(_GRAM) + float(_RIDGE) * np.eye(len(_CROSS))
    mean = np.linalg.solve(system, float(_UNIT) * np.array(_CROSS))
    factor = np.linalg.cholesky(float(_GAMMA) * system)
    white = (theta - mean) @ factor
    turned = white @ np.linalg.inv(factor.T) @ factor  # as if L^-1 had been taken for L^-T
    planted = {
        **_other_scales(white, effort.slow),
        "the transposed factor": normals_p(turned)["correlations"],
        "Sigma for its root": normals_p(white @ np.linalg.inv(factor))["scale"],
        "a precision of half": normals_p(white / math.sqrt(2))["scale"],
        "a moved centre": normals_p(white + 2 * effort.slow)["place"],
    }
    yield verdict("S", "posterior", "N(A^-1 c, (gamma A)^-1), exactly", normals_p(white), planted)


def minimiser(noise: Noise, effort: samples.LawEffort) -> Iterator[Finding]:
    """Of a quadratic and of a function with curved gradients: -grad F at what is released is N(0, sigma**2)."""
    sigma = Fraction(7, 4)
    for problem in (Curved(((3, 1, 0), (1, 2, -1), (0, -1, 2)), (), ()), Curved(((1, 0), (0, 2)), _SLOPES, _TARGETS)):
        n = samples.size(2 * problem.dimension, effort.slow)
        inside = Secret(problem)
        drawn = [noise.minimiser(inside, Gaussian(sigma), grid=_GRID) for _ in range(n)]
        tilts = -np.array([problem.floats(np.array(theta, dtype=np.float64)) for theta in drawn])
        white = tilts / float(sigma)
        planted = {
            **_other_scales(white, effort.slow),
            "one draw for all": normals_p(np.repeat(white[:, :1], problem.dimension, axis=1))["correlations"],
            "a moved centre": normals_p(white + 2 * effort.slow)["place"],
        }
        kind = "quadratic" if not problem.targets else "curved"
        yield verdict("S", "minimiser", f"grad F = -N(0, {sigma}^2), exactly ({kind})", normals_p(white), planted)


SITES: dict[str, Site] = {
    "add": add,
    "add_integers": add_integers,
    "at_least": at_least,
    "reach": reach,
    "argmax": argmax,
    "argmaxes": argmaxes,
    "chance": chance,
    "keys_above": keys_above,
    "choice": choice,
    "weighted_choice": weighted_choice,
    "scatter": scatter,
    "stopping": stopping,
    "posterior": posterior,
    "minimiser": minimiser,
}


def _whole(drawn: list[Fraction]) -> Any:
    return np.array([int(value) if value.denominator == 1 else 1 << 62 for value in drawn], dtype=np.int64)


def _narrow_information(law: Law) -> float:
    """What one whole draw says about the scale: less where most of them are zero."""
    _, chances, score = reference.cell_scores(law)
    return float(score**2 @ chances)


def _places(law: Law, deviation: float) -> list[tuple[int, int]]:
    """Distances from the threshold, and how many decisions to ask for at each."""
    places = [round(distance * reference.spread(law)) for distance in _DISTANCES]
    about = sum(samples.decision_information(law, x) for x in places) / len(places)
    n = samples.size(about, deviation) // len(places) + 1
    whole = isinstance(law, DiscreteLaplace | DiscreteGaussian)
    return [(x, max(n, _TIES) if whole and not x else n) for x in places]


def _decided(case: str, law: Law, counts: list[tuple[float, int, int]], deviation: float) -> Finding:
    clean = {f"at {x:.3g}": rate_p(reached, n, reference.tail(law, x)) for x, reached, n in counts}
    clean["scale"] = samples.decisions(counts, law)
    planted = {
        f"x {factor:.3g}": samples.decisions(counts, reference.scaled(law, 1 / factor))
        for factor in (1 - deviation, 1 + deviation)
    }
    x, reached, n = counts[2]
    if isinstance(law, DiscreteLaplace | DiscreteGaussian):
        planted["a tie that fails"] = rate_p(reached, n, reference.tail(law, x + 1))
    planted["no noise"] = min(rate_p(n * (far <= 0), n, reference.tail(law, far)) for far, _, n in counts)
    return verdict("S", case, f"value + {samples.told(law)} >= threshold, exactly", clean, planted)


def _won(case: str, law: Continuous, wins: Any, scores: list[float], deviation: float) -> Finding:
    n = int(wins.sum())
    planted = {
        f"x {factor:.3g}": _scale_of_wins(wins, scores, law, 1 / factor) for factor in (1 - deviation, 1 + deviation)
    }
    best = np.zeros(len(scores))
    best[int(np.argmax(scores))] = n
    planted["one draw for all"] = cells_p(best, reference.winning(scores, law))
    clean = {"cells": cells_p(wins, reference.winning(scores, law)), "scale": _scale_of_wins(wins, scores, law, 1.0)}
    return verdict("S", case, f"the largest of scores with {samples.told(law)} each", clean, planted)


def _scale_of_wins(wins: Any, scores: list[float], law: Continuous, factor: float) -> float:
    """p-value of the scale behind the wins, by what each winner says about it."""
    at, score = _wins_score([score / factor for score in scores], law)
    return normal_p(float(score @ wins) / math.sqrt(float(wins.sum()) * float(score**2 @ at)))


def _wins_information(scores: list[float], law: Continuous) -> float:
    at, score = _wins_score(scores, law)
    return float(score**2 @ at)


def _wins_score(scores: list[float], law: Continuous) -> tuple[Floats, Floats]:
    """How often each wins, and what that says about the scale."""
    at, wide, narrow = (reference.winning([score / by for score in scores], law) for by in (1.0, 1.01, 0.99))
    score = (wide - narrow) / (0.02 * at)
    return at, score - float(score @ at)


def _uniform(case: str, counts: Any, parts: int, of: str = "places") -> Finding:
    even = np.full(len(counts), 1 / parts) if len(counts) == parts else np.append(np.full(parts, 1 / parts), 0.0)
    tilted = even[:parts] * np.where(np.arange(parts) < parts // 2, 1.3, 1.0)
    clean = {"cells": cells_p(counts, even[: len(counts)]), "within": 1.0 if len(counts) == parts else 0.0}
    planted = {"a fuller lower half": cells_p(counts[:parts], tilted / tilted.sum())}
    return verdict("S", case, f"uniform over {parts} {of}", clean, planted)


def _stops(law: Any, most: int) -> list[float]:
    """The probabilities of 0 .. most from textbook formulas, with what is above in 0."""
    k = np.arange(1, most + 1)
    if hasattr(law, "eta"):
        gamma, eta = float(law.gamma), float(law.eta)
        if eta == 0:
            weights = stats.logser.pmf(k, 1 - gamma)
        else:
            sizes = np.exp(special.gammaln(k + eta) - special.gammaln(k + 1)) / special.gamma(eta)
            weights = (1 - gamma) ** k * sizes / (gamma**-eta - 1)
    else:
        weights = stats.poisson.pmf(k, float(law.runs))
    return [1 - float(weights.sum()), *weights.tolist()]


# ---- draws of whole vectors


def normals_p(white: Floats) -> dict[str, float]:
    """p-values of what should be independent standard normals: scale, place, correlations, lengths, each coordinate."""
    n, d = white.shape
    pairs = [(i, j) for i in range(d) for j in range(i)]
    found = {
        "scale": samples.scale_p(white.ravel(), _ONE),
        "place": samples.place_p(white.ravel(), _ONE),
        "lengths": samples.uniform_p(stats.chi2(d).cdf((white**2).sum(axis=1))),
        "correlations": min(
            (normal_p(math.sqrt(n) * float(np.mean(white[:, i] * white[:, j]))) for i, j in pairs), default=1.0
        ),
    }
    found |= {f"scale of {i}": samples.scale_p(white[:, i], _ONE) for i in range(d)}
    return found


def _other_scales(white: Floats, deviation: float) -> dict[str, float]:
    return {f"x {1 + by:.3g}": samples.scale_p((1 + by) * white.ravel(), _ONE) for by in (-deviation, deviation)}


@dataclass(frozen=True)
class Curved:
    """theta' A theta / 2 + sum of sqrt(1 + (x . theta - y)**2): a ``Problem`` whose gradient is easy to enclose."""

    system: tuple[tuple[int, ...], ...]
    slopes: tuple[tuple[int, ...], ...]
    targets: tuple[Fraction, ...]

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return len(self.system)

    @property
    def modulus(self) -> Fraction:
        """Below the smallest eigenvalue of A, which is above 0.1 for all systems here."""
        return Fraction(1, 10)

    @property
    def smoothness(self) -> Fraction:
        """Above the largest eigenvalue of the Hessian."""
        curved = sum(v * v for row in self.slopes for v in row)
        return Fraction(sum(abs(v) for row in self.system for v in row) + curved)

    def floats(self, theta: Floats) -> Floats:
        """The gradient."""
        total = np.array(self.system, dtype=np.float64) @ theta
        for slope, target in zip(self.slopes, self.targets, strict=True):
            u = float(np.dot(slope, theta)) - float(target)
            total = total + np.array(slope) * u / math.sqrt(1 + u * u)
        return np.asarray(total, dtype=np.float64)

    def solve(self, b: Floats) -> Floats:
        """Newton's method, from zero."""
        theta: Floats = np.zeros(self.dimension)
        for _ in range(40):
            step = np.linalg.solve(self._hessian(theta), self.floats(theta) + b)
            theta = theta - step
            if float(np.abs(step).max()) < 1e-13:
                break
        return theta

    def gradient(self, theta: Sequence[Fraction], level: int) -> tuple[list[Fraction], Fraction]:
        """Exact, but for the roots, which are known to ever more bits."""
        bits = 60 << level
        total = [sum((a * t for a, t in zip(row, theta, strict=True)), Fraction(0)) for row in self.system]
        for slope, target in zip(self.slopes, self.targets, strict=True):
            u = sum((a * t for a, t in zip(slope, theta, strict=True)), -target)
            share = Fraction(math.floor(u * (1 << bits)), math.isqrt(math.floor((1 + u * u) * (1 << (2 * bits)))))
            total = [sofar + a * share for sofar, a in zip(total, slope, strict=True)]
        error = Fraction(4 * sum(abs(v) for row in self.slopes for v in row), 1 << bits)
        return total, error

    def correct(self, theta: Sequence[Fraction], residual: Floats) -> Floats:
        """A Newton step."""
        hessian = self._hessian(np.array(theta, dtype=np.float64))
        return np.asarray(-np.linalg.solve(hessian, residual), dtype=np.float64)

    def _hessian(self, theta: Floats) -> Floats:
        total = np.array(self.system, dtype=np.float64)
        for slope, target in zip(self.slopes, self.targets, strict=True):
            u = float(np.dot(slope, theta)) - float(target)
            total += np.outer(slope, slope) * (1 + u * u) ** -1.5
        return np.asarray(total, dtype=np.float64)
