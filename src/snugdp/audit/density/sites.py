"""How likely the answer of a draw is on given data: the logarithm of a probability, or of a density.

A difference of two of them, for the same answer and two data sets, is the privacy loss of that draw. Cells that are far
finer than the noise have a density; both data sets see the same cells, so their widths cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp.audit.density.laws import cell_mass, reaching, whole_mass, winning
from snugdp.audit.equality import equal
from snugdp.noise import DiscreteGaussian, DiscreteLaplace, Finite, Law
from snugdp.noise.exact.minimiser import Problem
from snugdp.noise.exact.weighted import Groups
from snugdp.noise.recording import Site, private_inputs

_ONE = Fraction(1)
_LOG_2_PI = math.log(2 * math.pi)
_LEVEL = 1  # at which gradients are read: far more digits than a float has
_STEP = Fraction(1, 2**20)  # of central differences: their error is that squared, times a third derivative


def log_probability(site: Site) -> float:
    """The logarithm of the probability (or density) of the recorded answer, given the private inputs of the site.

    Minus infinity where the answer is impossible. Draws that look at no data have 0.

    >>> from snugdp.noise import Gaussian
    >>> from snugdp.noise.recording import Witness
    >>> from snugdp.secrecy.secret import Secret
    >>> witness = Witness(1)
    >>> passed = witness.at_least(Secret(3), Gaussian(1), 3)
    >>> round(math.exp(log_probability(witness.transcript().sites[0])), 12)
    0.5
    """
    if site.method not in _METHODS:
        raise ValueError(f"the audit does not know the draw {site.method!r}: teach it in audit/density/sites.py")
    return _METHODS[site.method](site, *private_inputs(site))


def _add(site: Site, value: Any, stretch: Any = None) -> float:
    law, gap, width = _law(site), site.answer - Fraction(value), Fraction(2) ** site.number("grid")
    if stretch is None:
        return _moved(law, gap, width)
    factor = abs(Fraction(stretch))
    if not factor:
        return 0.0 if -width / 2 < gap <= width / 2 else -math.inf
    return _moved(law, gap / Fraction(stretch), width / factor)


def _moved(law: Law, gap: Fraction, width: Fraction = _ONE) -> float:
    if isinstance(law, DiscreteLaplace | DiscreteGaussian):
        return whole_mass(law, int(gap)) if gap == int(gap) else -math.inf
    return cell_mass(law, gap, width)


def _add_integers(site: Site, values: Any) -> float:
    law, gaps = _law(site), [int(a) - int(v) for a, v in zip(site.answer, values, strict=True)]
    mass = {gap: _moved(law, Fraction(gap)) for gap in dict.fromkeys(gaps)}  # histograms have many of the same
    return math.fsum(mass[gap] for gap in gaps)


def _at_least(site: Site, value: Any) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0 if site.answer == (value > 0) else -math.inf
    return reaching(_law(site), site.number("threshold") - Fraction(value), bool(site.answer))


def _reach(site: Site, values: Any) -> float:
    law, at = _law(site), site.number("threshold")
    pairs = zip(values.tolist(), np.asarray(site.answer).tolist(), strict=True)
    return math.fsum(reaching(law, at - value, reached) for value, reached in pairs)


def _keys_above(site: Site, counts: Any) -> float:
    """Every key that was shown with its count, and every other one that is there and was not."""
    at, shown, total = site.number("threshold"), dict(site.answer), 0.0
    for key, count in zip(counts[0], counts[1].tolist(), strict=True):
        total += _counted(site, shown.pop(key) - count) if key in shown else _unseen(site, at - count)
    return -math.inf if shown else total


def _counted(site: Site, gap: int) -> float:
    law = dict(site.public).get("law")
    return log_of(law.chance(gap)) if isinstance(law, Finite) else _moved(_law(site), Fraction(gap))


def _unseen(site: Site, gap: int) -> float:
    """Of noise below the gap: a rounded count is below it if the noise is below it by half."""
    law = dict(site.public).get("law")
    if isinstance(law, Finite):
        return log_of(1 - law.at_least(gap))
    return reaching(_law(site), gap - Fraction(1, 2), False)


def log_of(chance: Fraction) -> float:
    """The logarithm of a probability; minus infinity of none."""
    return math.log(chance.numerator) - math.log(chance.denominator) if chance else -math.inf


def _argmax(site: Site, scores: Any) -> float:
    return _won(site, list(scores), int(site.answer))


def _argmaxes(site: Site, scores: Any) -> float:
    rows = zip(scores.tolist(), np.asarray(site.answer).tolist(), strict=True)
    return math.fsum(_won(site, row, place) for row, place in rows)


def _won(site: Site, scores: Sequence[Any], place: int) -> float:
    return winning([Fraction(score) for score in scores], _law(site), place)  # type: ignore[arg-type]  # continuous


def _weighted_choice(site: Site, groups: Groups) -> float:
    """Of one position, whatever groups it is in."""
    all_of_them, rate = groups.whole().nonempty(), float(site.number("rate"))
    least = all_of_them.level.min(initial=np.iinfo(np.int64).max)
    logs = math.log(2) * all_of_them.weight - rate * (all_of_them.level - least).astype(np.float64)
    holds = (all_of_them.first <= site.answer) & (site.answer - all_of_them.first < all_of_them.count)
    if not holds.any():
        return -math.inf
    total = np.logaddexp.reduce(logs + np.log(all_of_them.count.astype(np.float64)))
    return float(np.logaddexp.reduce(logs[holds]) - total)


def _chance(site: Site, probability: Any) -> float:
    p = min(max(Fraction(probability), Fraction(0)), _ONE)
    return log_of(p if site.answer else 1 - p)


def _reveal(site: Site, value: Any) -> float:
    return 0.0 if equal(value, site.answer) else -math.inf


def _posterior(site: Site, gram: Any, cross: Any) -> float:
    """The log-density of N(A^-1 c, (precision A)^-1) at theta; A = unit gram + ridge I, c = unit cross.

    The residual A theta - c is exact; floats come after.
    """
    unit, ridge, precision = (site.number(name) for name in ("unit", "ridge", "precision"))
    rows = [[unit * int(v) + (ridge if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(gram)]
    residual = [
        sum((a * t for a, t in zip(row, site.answer, strict=True)), Fraction(0)) - unit * int(c)
        for row, c in zip(rows, cross, strict=True)
    ]
    matrix = np.array([[float(value) for value in row] for row in rows])
    left = np.array([float(value) for value in residual])
    sign, logarithm = np.linalg.slogdet(matrix)
    square = float(precision) * float(left @ np.linalg.solve(matrix, left))
    if sign <= 0:
        return math.nan
    return (len(left) * (math.log(precision) - _LOG_2_PI) + float(logarithm) - square) / 2


def _minimiser(site: Site, problem: Problem) -> float:
    """The log-density at theta of the argmin of F + b . theta, with b of N(0, sigma**2 I).

    b is minus the gradient of F, and the Hessian turns the density of b into that of theta.
    """
    sigma = _law(site).sigma  # type: ignore[union-attr]  # the source has checked it
    gradient, _ = problem.gradient(site.answer, _LEVEL)
    z = np.array([float(value / sigma) for value in gradient])
    sign, logarithm = np.linalg.slogdet(hessian(site.answer, problem) / float(sigma))
    if sign <= 0:
        return math.nan
    return float(logarithm) - len(z) * _LOG_2_PI / 2 - float(z @ z) / 2


def hessian(theta: Sequence[Fraction], problem: Problem) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """By central differences of the gradient, which is known to many digits."""
    columns = []
    for place in range(len(theta)):
        ends = []
        for sign in (1, -1):
            moved = list(theta)
            moved[place] += sign * _STEP
            ends.append(problem.gradient(moved, _LEVEL)[0])
        columns.append([float((up - down) / (2 * _STEP)) for up, down in zip(*ends, strict=True)])
    return np.array(columns).T.reshape(len(theta), len(theta))


def _no_data(site: Site, *_: Any) -> float:
    return 0.0


def _law(site: Site) -> Law:
    assert site.drawn is not None
    return site.drawn


_METHODS: dict[str, Callable[..., float]] = {
    "add": _add,
    "add_integers": _add_integers,
    "argmax": _argmax,
    "argmaxes": _argmaxes,
    "at_least": _at_least,
    "chance": _chance,
    "choice": _no_data,
    "keys_above": _keys_above,
    "minimiser": _minimiser,
    "posterior": _posterior,
    "reach": _reach,
    "reveal": _reveal,
    "scatter": _no_data,
    "stopping": _no_data,
    "weighted_choice": _weighted_choice,
}
