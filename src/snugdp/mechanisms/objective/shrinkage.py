"""What a ridge takes from the coefficients of labels, given back. Public from beginning to end.

A ridge pulls coefficients towards 0, far where labels are nearly separable: there the likelihood hardly changes along
their direction. Rows around a released centre and in units of a released radius are about as long in every direction
(where they were standardised, more so), so that released numbers tell how far: along the coefficients, the pull of the
ridge is that of the rows between the slope found and a steeper one.
Proof: ``glm_adaptive.proof.md``, Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from snugdp.mechanisms.objective.perturbation import ObjectiveRun
from snugdp.tables.losses.losses import Logistic

# Chosen on made-up tables that no benchmark has, 23 kinds, 43 others and 44 more: docs/benchmarks.md.
_MAX_STRETCH = 2.0  # times steeper, at most
_PULL_SHARE = 0.8  # of the pull of a ridge: too steep a model costs more than one not steep enough
_LENGTH = 0.85  # the mean square of the lengths of rows, half of which are shortened, in parts of that of the longest
_TRUSTED = 60.0  # rows * m / entries, at which the root of it is given back; with far fewer rows there is noise alone
_MAX_LENGTH = 1e100  # beyond, nothing is told
_STEPS = 40  # halvings of an interval

# Of several classes. Chosen on 37 tables, 25 of them from R packages: docs/benchmarks.md.
_NOISE_ALONE, _ALL_HELD = 0.85, 0.5  # differences begin to be the ridge's, and so much later all of it may be
_FARTHER, _NEARER = 0.5, 0.25  # times the way from the start, at most: on, or back
_NEAR, _NEARER_WITHIN = 0.65, 0.2  # below that a difference tells of little but noise; and how fast
_STEEPER, _STEEP_FROM, _STEEP_WITHIN = 0.15, 0.6, 0.25  # times steeper altogether, and from where on
_HELD, _FLAT = 16.0, 10.0  # how fast both grow with the ridge over the curvature

_DEVIATES = np.linspace(-6.0, 6.0, 601)
_WEIGHTS = np.exp(-(_DEVIATES**2) / 2) / np.exp(-(_DEVIATES**2) / 2).sum()


def unshrunk(
    thetas: NDArray[np.float64], runs: Sequence[ObjectiveRun], rows: float, flat: Sequence[int] = ()
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """What runs release, and of a logistic model of two classes how much of it was given back.

    ``rows``: about how many there are, public or released. Of persons with several rows that is not known.
    ``flat``: the entries that are the same in nearly all rows, as was released.
    """
    run = runs[0]
    if len(runs) > 1 or run.design.weight is not None or not isinstance(getattr(run, "loss", None), Logistic):
        return thetas, {}
    map_, planned = run.design.row_map, {"ridge": float(run.ridge), "m": float(run.m)}
    times = stretch(thetas[0], constant=map_.constant, norm=float(map_.feature_bound), rows=rows, flat=flat, **planned)
    return times * thetas, {"stretch": times}


def stretch(
    theta: NDArray[np.float64],
    *,
    constant: bool,
    norm: float,
    rows: float,
    ridge: float,
    m: float,
    flat: Sequence[int] = (),
) -> float:
    """How many times steeper the labels are, at least, than the coefficients of a ridge say.

    ``constant``: whether the last entry is that of a constant. ``norm``: of the longest rows without it. ``rows``: how
    many there are, about. ``m``: of the run, which says how far its noise is to be trusted. ``flat``: entries that
    are the same in nearly all rows. Only their sum with the constant is determined, so what each of them has may be
    large, and tells neither how steep labels are nor where their middle is.

    >>> theta = np.array([6.0, -8.0, 0.5])
    >>> round(stretch(theta, constant=True, norm=2.0, rows=20_000, ridge=3.0, m=0.2), 2)
    1.15
    """
    slopes = np.delete(theta[:-1] if constant else theta, flat)
    length = math.hypot(*slopes.tolist())
    if not 0 < length < _MAX_LENGTH:
        return 1.0
    score = _DEVIATES * (norm * math.sqrt(_LENGTH / len(slopes)) * length)
    offset = float(theta[-1]) if constant and not flat else 0.0

    def gradient(times: float) -> float:
        """Of the mean loss along the coefficients, but for what labels give."""
        return float(_WEIGHTS @ (expit(times * (score + offset)) * score))

    wanted = gradient(1.0) + _PULL_SHARE * ridge * length**2 / rows
    least, most = 1.0, _MAX_STRETCH
    for _ in range(_STEPS):
        middle = (least + most) / 2
        least, most = (middle, most) if gradient(middle) < wanted else (least, middle)
    signal = rows * m / len(theta)
    return float(most ** (signal**2 / (signal**2 + _TRUSTED**2)))


def beyond_start(
    theta: NDArray[np.float64], start: NDArray[np.float64], *, ridge: float, sigma: float, curvature: float
) -> NDArray[np.float64]:
    """Coefficients of several classes as far from the start of their run as labels say, and about as steep.

    Where only the ridge holds coefficients, noise of deviation ``sigma`` moves each by sigma/ridge; what lies farther
    from the start was asked for by labels, and the ridge held it back. What lies much nearer is noise that many rows
    hold back for the most part. ``curvature``: of the losses along a coefficient, about; where it is far above the
    ridge, nothing was held back. All classes may move together without any effect, so that part does not count.

    >>> theta = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.0]])
    >>> beyond_start(theta, np.zeros((3, 2)), ridge=10.0, sigma=5.0, curvature=40.0)[0].tolist()
    [5.175, 0.0]
    >>> beyond_start(theta, np.zeros((3, 2)), ridge=10.0, sigma=500.0, curvature=40.0)[0].tolist()
    [2.25, 0.0]
    """
    moved = theta - start
    apart, free = moved - moved.mean(axis=0), moved.size - moved.shape[1]
    excess = ridge**2 * float((apart**2).sum()) / (sigma**2 * free)
    chance, held = math.sqrt(2 / free), ridge / curvature
    on = _FARTHER * _ramp((excess - _NOISE_ALONE - chance) / _ALL_HELD) * min(1.0, _HELD * held)
    back = _NEARER * _ramp((_NEAR - excess) / _NEARER_WITHIN)
    steeper = _STEEPER * _ramp((excess - _STEEP_FROM) / _STEEP_WITHIN) * min(1.0, _FLAT * held)
    found: NDArray[np.float64] = (1 + steeper) * (start + (1 + on - back) * moved)
    return found


def _ramp(part: float) -> float:
    return min(max(part, 0.0), 1.0)
