"""Removing a row from a softmax run, sharply: the loss as a maximum over all class probabilities.

The determinant costs most where classes compete, and the gradient where one class wins. A bound on each by itself adds
up what never happens together. Here the largest sum of both is followed level by level, as the survival function of
one random number. That allows a tenth less noise at the same ridge. Proof: corners.proof.md, whose line numbers the
comments carry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

import numpy as np
from flint import arb, fmpz_poly
from numpy.typing import NDArray

from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.gaussian import cdf, density
from snugdp.accounting.objective.removal import gaussian_deltas
from snugdp.numerics import balls, roots

Floats = NDArray[np.float64]

TAIL = Fraction(1, 2**140)  # losses that are as rare as this are not followed: they count as a failure
_BITS = 192  # probabilities are whole multiples of 2**-192, rounded up
_HALF = 1 << (_BITS - 1)
_SQUARES = 64  # levels of a squared distance
_STEPS_PER_M = 32  # steps of the loss for each m, at least
_STRIDE = 4  # steps from node to node
_DEVIATIONS_BEYOND = 4  # of the deviate of a row's class beyond the loss: there another class has won
_MAX_RATIO = 8  # of c to m
_OCTAVES_THAT_MATTER = 36  # of the probability of a loss: beyond, few levels are enough
_MAX_CLASSES = 4096
_LEAST_SQUARE, _MOST_SQUARE = Fraction(1, 2**40), Fraction(64)  # of m
_HALVINGS = 11
_SLACK = (0.9998, 0.999, 0.998, 0.99, 0.97)


def sparsemax(losses: Sequence[float], c: float) -> float:
    """The largest value of <p, losses> + c (1 - |p|^2) over all probabilities p.

    >>> sparsemax([0.0, 1.0], 0.25), sparsemax([0.0, 0.0], 1.0)
    (1.0, 0.5)
    """
    ordered = np.sort(np.asarray(losses, dtype=np.float64))[::-1]
    if c <= 0:
        return float(ordered[0])
    levels = (np.cumsum(ordered) - 2 * c) / np.arange(1, len(ordered) + 1)  # if so many classes have a part
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    p = np.maximum(ordered - level, 0.0) / (2 * c)
    return float(p @ ordered + c * (1 - p @ p))


def usable(m_squared: Fraction, kappa: Fraction, classes: int) -> bool:
    """Whether there are levels for this run, and not too many of them."""
    if not (3 <= classes <= _MAX_CLASSES and _LEAST_SQUARE <= m_squared <= _MOST_SQUARE):
        return False
    return 0 < _excess(m_squared, kappa) <= _MAX_RATIO * math.sqrt(m_squared)


@lru_cache(maxsize=64)
def corner_atom(m_squared: Fraction, kappa: Fraction, classes: int) -> Atom:
    """The atom of a softmax run: *add* as ever, *remove* by levels of its loss; beside it, ``TAIL`` may fail.

    Guarantee: with a failure of TAIL it is a cost of the run (corners.proof.md, Theorem 1).

    >>> atom = corner_atom(Fraction(1, 20), Fraction(1, 6), 3)
    >>> len(atom.add), float(atom.remove[0].shift), float(sum(branch.weight for branch in atom.remove))
    (2, 0.00390625, 1.0)
    """
    if not usable(m_squared, kappa, classes):
        raise _OutOfRangeError
    whole = Branch(m_squared, Fraction(0))
    return Atom((whole,) * (classes - 1), _levels(_Grid.of(m_squared, kappa, classes)))


def fewer_levels(branches: Sequence[Branch]) -> tuple[Branch, ...]:
    """Constant branches in the order of their losses, put together at the larger loss: about a hundred are left.

    Guarantee: not below what it is made from (corners.proof.md, Corollary 4).

    >>> levels = [Branch(Fraction(0), Fraction(t), Fraction(1, 10)) for t in range(10)]
    >>> [(int(level.shift), str(level.weight)) for level in fewer_levels(levels)[:3]]
    [(2, '3/10'), (3, '1/10'), (4, '1/10')]
    """
    before = accumulate((branch.weight for branch in branches[::-1]), initial=Fraction(0))
    rarities = [_rarity(value) for value in [*before][:0:-1]]
    groups = groupby(zip(branches, rarities, strict=True), key=itemgetter(1))
    return tuple(_together([branch for branch, _ in group]) for _, group in groups)


def _rarity(chance: Fraction) -> int:
    """So rare that a loss is reached: in thirds of an octave, and where that does not matter any more in four."""
    octaves = -math.log2(chance)
    return math.floor(3 * octaves) if octaves < _OCTAVES_THAT_MATTER else math.floor(octaves / 4)


def _together(levels: Sequence[Branch]) -> Branch:
    largest = max(level.shift for level in levels)
    return Branch(Fraction(0), largest, min(Fraction(1), sum((level.weight for level in levels), Fraction(0))))


def largest_m(
    budget: tuple[float, float], kappa: Fraction, classes: int, *, mu: float, most: float, fits: Callable[[float], bool]
) -> float:
    """About the largest m up to ``most``, beside a Gaussian part ``mu``, that ``fits`` proves; 0 if none is found.

    ``budget``: epsilon and delta. Floats make a guess, and nothing is promised of it.
    """
    epsilon, delta = budget

    def enough(m: float) -> bool:
        losses, survival = _survival_floats(_Grid.of(Fraction(m) ** 2, kappa, classes))
        weights = -np.diff(survival, prepend=1.0)
        return float(weights @ gaussian_deltas(mu, epsilon - losses)) <= delta

    def proved(m: float) -> bool:
        try:
            return fits(m)
        except _OutOfRangeError:
            return False

    guess = roots.bisect(enough, most / 2, most, _HALVINGS)[0]
    return next((m for slack in _SLACK if proved(m := _short(guess * slack))), 0.0)


def _short(m: float) -> float:
    """Rounded down to 20 binary digits."""
    unit = 2.0 ** (math.frexp(m)[1] - 20)
    return math.floor(m / unit) * unit


def _excess(m_squared: Fraction, kappa: Fraction) -> Fraction:
    """c: what the determinant costs beyond what the length of the gradient leaves."""
    return kappa - m_squared / 4


class _OutOfRangeError(ValueError):
    """There are no levels for this run."""

    def __init__(self) -> None:
        super().__init__("m, kappa or the number of classes is out of range for the sharp bound: use the plain one")


@dataclass(frozen=True)
class _Grid:
    """Losses t of 1, 2, ... steps; nodes, places of A - t, every four steps. A: m^2/2 less the row's own deviate."""

    m_squared: Fraction
    c: Fraction
    classes: int
    step: Fraction
    nodes: range
    losses: int

    @classmethod
    def of(cls, m_squared: Fraction, kappa: Fraction, classes: int) -> _Grid:
        m, c = math.sqrt(m_squared), _excess(m_squared, kappa)
        step = Fraction(2) ** math.floor(math.log2(m / _STEPS_PER_M))
        rare = math.sqrt(2 * (-math.log(TAIL) + math.log(classes)))
        end, wide = 2 * float(c) + m * m / 2 + rare * m, float(_STRIDE * step)
        nodes = range(-math.ceil(end / wide), math.ceil(_DEVIATIONS_BEYOND * m / wide) + 1)
        return cls(m_squared, c, classes, step, nodes, math.ceil(end / float(step)))

    @property
    def places(self) -> range:
        """Where A may lie at a node, for any loss, in steps."""
        return range(_STRIDE * self.nodes[0], _STRIDE * self.nodes[-1] + self.losses + 1)

    def squares(self, loss: int) -> int:
        """Up to which level squares of the other classes may add, at a loss of so many steps (line 4)."""
        own = max(Fraction(0), 1 - loss * self.step / (2 * self.c))
        return math.floor(_SQUARES * (1 - own**2))


def _levels(grid: _Grid) -> tuple[Branch, ...]:
    """How likely the loss lies between two steps, and the larger of them."""
    with balls.precision(_BITS + 2 * balls.FIRST):
        beyond = [_beyond(grid, node) for node in grid.nodes]
        cells = _LossCells.of(grid)
    one, before, branches = 1 << _BITS, 1 << _BITS, list[Branch]()
    for loss in range(1, grid.losses + 1):
        now = min(before, cells.survival(grid, loss, beyond))  # line 6
        if now < before:
            branches.append(Branch(Fraction(0), loss * grid.step, Fraction(before - now, one)))
        before = now
        if Fraction(now, one) <= TAIL:
            last = branches[-1]  # the chances of an atom add up to at least 1
            return (*branches[:-1], Branch(last.mu_squared, last.shift, last.weight + Fraction(now, one)))
    raise _OutOfRangeError


def _beyond(grid: _Grid, node: int) -> list[int]:
    """For every level: how likely the squares of the other classes add up to more, at a node (lines 1 and 2)."""
    deviation, reach = (balls.ball(grid.m_squared) / 2).sqrt(), balls.ball(2 * grid.c)
    start = balls.ball(_STRIDE * node * grid.step)
    ends = [cdf((reach * ((arb(k) / _SQUARES).sqrt() - 1) - start) / deviation) for k in range(_SQUARES + 1)]
    one = [_up(ends[0]), *(_up(high - low) for low, high in pairwise(ends)), _up(1 - ends[-1])]
    total, result = 0, list[int]()
    for mass in reversed(_sum_of(one, grid.classes - 1)[1:]):
        total += mass
        result.append(total)
    return result[::-1]


def _sum_of(law: list[int], times: int) -> list[int]:
    """The law of a sum of so many, rounded up; its last entry is all that lies beyond the levels."""
    result: list[int] | None = None
    while times:
        if times % 2:
            result = law if result is None else _added(result, law)
        times //= 2
        law = _added(law, law) if times else law
    return result or law


def _added(one: list[int], other: list[int]) -> list[int]:
    product = [-(-int(value) >> _BITS) for value in (fmpz_poly(one) * fmpz_poly(other)).coeffs()]
    product += [0] * (_SQUARES + 2 - len(product))
    return [*product[: _SQUARES + 1], sum(product[_SQUARES + 1 :])]


@dataclass(frozen=True)
class _LossCells:
    """From every place on: the mass of a cell of four steps, and how much of it counts for its right end (line 3)."""

    first: int
    left: list[int]
    right: list[int]
    above: list[int]

    @classmethod
    def of(cls, grid: _Grid) -> _LossCells:
        deviation, middle = (balls.ball(grid.m_squared) / 2).sqrt(), balls.ball(grid.m_squared / 2)
        at = [(balls.ball(k * grid.step) - middle) / deviation for k in (*grid.places, *_after(grid.places))]
        under, height = [cdf(y) for y in at], [density(y) for y in at]
        wide, left, right = balls.ball(_STRIDE * grid.step) / deviation, list[int](), list[int]()
        for k in range(len(grid.places)):
            mass = under[k + _STRIDE] - under[k]
            part = (height[k] - height[k + _STRIDE] - at[k] * mass) / wide
            left.append(_up(mass - part))
            right.append(_up(part))
        return cls(grid.places[0], left, right, [_up(1 - value) for value in under])

    def survival(self, grid: _Grid, loss: int, beyond: list[list[int]]) -> int:
        """How likely the loss is larger than so many steps, rounded up (line 5)."""
        level, one = grid.squares(loss), 1 << _BITS
        at = _STRIDE * grid.nodes[0] + loss - self.first
        left = beyond[0][level]
        total = one * one if left > _HALF else _rate(left) * one
        for row in beyond[1:]:
            right = row[level]
            if max(left, right) > _HALF:
                total += min(right, one) * (self.left[at] + self.right[at])
            else:
                total += _rate(left) * self.left[at] + _rate(right) * self.right[at]
            left, at = right, at + _STRIDE
        return min(one, -(-total >> _BITS) + self.above[at])


def _rate(chance: int) -> int:
    """Not below -log(1 - chance), for chances of at most 1/2."""
    return chance + (chance * chance >> _BITS) + 1


def _after(places: range) -> range:
    return range(places.stop, places.stop + _STRIDE)


def _up(value: arb) -> int:
    """A probability in units of 2**-192, rounded up."""
    return max(0, math.ceil(balls.exact((value * arb((1, _BITS))).upper())))


def _survival_floats(grid: _Grid) -> tuple[Floats, Floats]:
    """The losses, and how likely each is exceeded: as ``_levels``, in floats."""
    from scipy.special import ndtr

    m, step, c = math.sqrt(grid.m_squared), float(grid.step), float(grid.c)
    deviation = m / math.sqrt(2)
    start = _STRIDE * step * np.array(grid.nodes)[:, None]
    ends = ndtr((2 * c * (np.sqrt(np.arange(_SQUARES + 1) / _SQUARES) - 1) - start) / deviation)
    laws = np.column_stack([ends[:, :1], np.diff(ends, axis=1), 1 - ends[:, -1:]])
    beyond = np.stack([_beyond_floats(law, grid.classes - 1) for law in laws])
    losses = np.arange(1, grid.losses + 1)
    chances = beyond[:, [grid.squares(int(loss)) for loss in losses]]
    rates = chances * (1 + chances)
    at = ((start[:, 0] - m * m / 2)[:, None] + step * losses) / deviation
    under, height, wide = ndtr(at), np.exp(-at * at / 2) / math.sqrt(2 * math.pi), _STRIDE * step / deviation
    mass = np.diff(under, axis=0)
    right = (-np.diff(height, axis=0) - at[:-1] * mass) / wide
    inside = np.where(chances[1:] > 0.5, mass * chances[1:], (mass - right) * rates[:-1] + right * rates[1:])
    total = inside.sum(axis=0) + rates[0] + 1 - under[-1]
    survival: Floats = np.minimum.accumulate(np.minimum(total, 1.0))
    return np.multiply(step, losses, dtype=np.float64), survival


def _beyond_floats(law: Floats, times: int) -> Floats:
    result = np.ones(1)
    while times:
        result = _folded(np.convolve(result, law)) if times % 2 else result
        times //= 2
        law = _folded(np.convolve(law, law)) if times else law
    return np.cumsum(result[:0:-1])[::-1]


def _folded(law: Floats) -> Floats:
    return np.append(law[: _SQUARES + 1], law[_SQUARES + 1 :].sum())
