"""Many noisy comparisons at once: floats settle what is far apart, balls the rest, on the same bits.

The noise is drawn by ``filtered.draw``, some megabytes at a time. The line numbers in the comments are those of
``vectorised.proof.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snugdp.noise.exact import entropy
from snugdp.noise.exact.coins import PROVED, Margins
from snugdp.noise.exact.deviate import Deviate, ball_of, largest, shape_of
from snugdp.noise.exact.filtered import DrawBatch, draw, leading
from snugdp.noise.exact.refine import Bits, exactly, negative, refine
from snugdp.noise.exact.shapes import Floats
from snugdp.noise.laws import Continuous, Gumbel

Whole = NDArray[Any]  # whole numbers of a declared width

CELLS = 1 << 17  # noise drawn at a time
_MAX_SCALE = Fraction(1 << 900)  # where floats are compared, scales and thresholds are below this
_LN2 = 0.6931471805599453
_ATANH = tuple(1.0 / (2 * j + 1) for j in range(12, -1, -1))
_MIN_EXPONENTIAL = 2.0**-40  # of an exponential draw whose logarithm is taken in floats


def argmaxes(scores: Whole, law: Continuous, margins: Margins = PROVED) -> NDArray[np.int64]:
    """In every row the position of the largest ``score + Z``, with independent Z in every cell.

    Guarantee: exact, row by row, whatever the scores (``vectorised.proof.md``, Theorem 1).
    """
    winners = np.empty(len(scores), dtype=np.int64)
    for part in parts(len(scores), scores.shape[1]):
        winners[part] = _winners(scores[part], law, margins)
    return winners


def reach(values: Whole, law: Continuous, threshold: Fraction, margins: Margins = PROVED) -> NDArray[np.bool_]:
    """In every entry whether ``value + Z >= threshold``, with independent Z.

    Guarantee: exact, entry by entry, whatever the values (``vectorised.proof.md``, Theorem 2).
    """
    reached = np.empty(len(values), dtype=np.bool_)
    for part in parts(len(values), 1):
        reached[part] = _reached(values[part], law, threshold, margins)
    return reached


def chance(probability: Fraction) -> bool:
    """Whether a uniform real is below the probability, from as many of its bits as it takes.

    Guarantee: exactly a coin of this probability; cut to [0, 1] (``vectorised.proof.md``, Theorem 3).
    """
    uniform = Bits()
    while True:
        uniform.extend(uniform.count + 64)  # line 10
        cell, edge = uniform.value * probability.denominator, probability.numerator << uniform.count
        if cell + probability.denominator <= edge:  # line 11
            return True
        if cell >= edge:
            return False


def scatter(n: int, among: int) -> NDArray[np.int64]:
    """``n`` independent positions among ``0 .. among - 1``.

    Guarantee: each is exactly uniform (``vectorised.proof.md``, Theorem 4).
    """
    last = np.uint64((1 << 64) - (1 << 64) % among - 1)  # the words up to here are whole rounds
    places, have = np.empty(n, dtype=np.int64), 0
    while have < n:
        words = entropy.words(min(CELLS, n - have))  # line 12
        kept = words if bool((words <= last).all()) else words[words <= last]  # line 13
        places[have : have + len(kept)] = kept % np.uint64(among)
        have += len(kept)
    return places


def parts(rows: int, width: int) -> Iterator[slice]:
    """The rows in blocks of bounded size."""
    step = max(1, CELLS // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def behind(scores: Whole) -> NDArray[np.uint64]:
    """By how much each score is behind the best of its row, exactly: it fits into a word without a sign."""
    unsigned = scores.astype(np.uint64 if scores.dtype.kind == "u" else np.int64)
    best = unsigned.max(axis=1, keepdims=True)
    gaps: NDArray[np.uint64] = best.view(np.uint64) - unsigned.view(np.uint64)  # modulo 2**64, where it lies anyway
    return gaps


def _winners(scores: Whole, law: Continuous, margins: Margins) -> NDArray[np.int64]:
    drawn = draw(shape_of(law)[0], scores.size, margins)  # line 1
    gaps = behind(scores)  # line 2
    noise, window = (part.reshape(scores.shape) for part in _enclosed(law, drawn, margins))  # line 3
    far = gaps.astype(np.float64)
    sums = noise - far  # line 4
    window = window + (np.abs(noise) + far) * (2.0**-50 * margins.window)
    winners: NDArray[np.int64] = sums.argmax(axis=1)
    rows = np.arange(len(scores))
    least = sums[rows, winners] - window[rows, winners]
    able = sums + window >= least[:, None]  # line 5
    for row in np.flatnonzero(np.count_nonzero(able, axis=1) != 1).tolist():  # line 6
        left = np.flatnonzero(able[row]).tolist()
        cells = [(Fraction(-int(gaps[row, i])), drawn[row * scores.shape[1] + i]) for i in left]
        winners[row] = left[largest(cells, law)]
    return winners


def _reached(values: Whole, law: Continuous, threshold: Fraction, margins: Margins) -> NDArray[np.bool_]:
    drawn = draw(shape_of(law)[0], len(values), margins)  # line 1
    noise, window = _enclosed(law, drawn, margins)  # line 3
    far = abs(threshold) > _MAX_SCALE
    at, value = 0.0 if far else float(threshold), values.astype(np.float64)
    sums = (value - at) + noise  # line 7
    slack = (np.abs(value) + abs(at) + np.abs(noise)) * (2.0**-50 * margins.window)
    reached = sums > 0
    unsure = np.abs(sums) <= window + slack if not far else np.ones(len(values), dtype=np.bool_)  # line 8
    for lane in np.flatnonzero(unsure).tolist():  # line 9
        reached[lane] = _reaches(int(values[lane]) - threshold, law, drawn[lane])
    return reached


def _reaches(lead: Fraction, law: Continuous, drawn: Deviate) -> bool:
    return not refine(lambda p: exactly(lead) + ball_of(law, drawn, p), negative)


def _enclosed(law: Continuous, drawn: DrawBatch, margins: Margins) -> tuple[Floats, Floats]:
    """The noise in floats, and how far off they may be: infinitely where floats do not know."""
    scale = shape_of(law)[1]
    if not 1 / _MAX_SCALE <= scale <= _MAX_SCALE:
        return np.zeros(len(drawn)), np.full(len(drawn), np.inf)
    factor = float(scale)
    size = drawn.whole + leading(drawn.fraction)
    if isinstance(law, Gumbel):
        small = size < _MIN_EXPONENTIAL
        size = np.where(small, 1.0, size)
        log = logarithm(size)
        window = factor * (2.0**-48 * (1.0 + np.abs(log)) + 2.0**-51 / size) * margins.window
        return -factor * log, np.where(small, np.inf, window)
    noise = factor * size
    window = (noise * 2.0**-49 + factor * 2.0**-51) * margins.window
    return np.where(drawn.negative, -noise, noise), window


def logarithm(x: Floats) -> Floats:
    """The natural logarithm of floats from 2**-40 on, by the four operations alone: no library function to trust.

    Guarantee: absolute error below 2**-49 (1 + |ln x|) (``vectorised.proof.md``, Lemma 1).
    """
    fraction, power = np.frexp(x)
    low = fraction < 0.7071067811865476
    fraction, power = np.where(low, 2.0 * fraction, fraction), power - low
    ratio = (fraction - 1.0) / (fraction + 1.0)
    square = ratio * ratio
    total = np.full_like(square, _ATANH[0])
    for coefficient in _ATANH[1:]:
        total *= square
        total += coefficient
    logs: Floats = 2.0 * ratio * total + power * _LN2
    return logs
