"""Layer E: outputs of whole runs, seen from outside, against what is claimed. It finds gross errors of wiring.

A score is learnt on one half of the runs and its thresholds are chosen there; the other half only counts. It needs
nothing but outcomes, so it is also for what promises its output alone, and for anybody's mechanism.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snugdp.audit.bounds import ALPHA, clopper_pearson
from snugdp.audit.density.density import levels
from snugdp.audit.finding import Case, Curve, Finding, at_least, at_most
from snugdp.noise.recording import Witness

Data = TypeVar("Data")
Floats = NDArray[np.float64]
_SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)  # of the runs on the second data that a threshold leaves
_NAMES = 20  # different answers that are no numbers and still told apart
_SQUARES = 6  # numbers up to which their products are looked at as well
_SHRINK = 0.2  # the power check: so much of the noise is left


def end_to_end(
    case: Case[Data], *, runs: int = 2000, most: int | None = 1, seed: int = 0, alpha: float = ALPHA, power: bool = True
) -> list[Finding]:
    """The audit of a case on ``most`` of its worst pairs, with so many runs on each side.

    With ``power``, and where the case is said to be tight, noise that is five times too small must be found too, on
    this pair or on another one: so little noise shows where it decides something.

    Guarantee: a true claim fails with probability at most ``alpha`` for each pair and direction.
    """
    found = []
    for number, (one, two) in enumerate(list(case.worst())[:most]):
        try:
            found.append(_audited(case, one, two, number + 1, runs, seed, alpha, power))
        except Exception as problem:
            found.append(Finding("E", case.name, "runs on neighbours", "an error", False, type(problem).__name__))
    return found


def _audited(  # noqa: PLR0917
    case: Case[Data], one: Data, two: Data, number: int, runs: int, seed: int, alpha: float, power: bool
) -> Finding:
    at, claimed = claims(case)
    found = _deltas(case, one, two, at, runs, seed, 1.0, alpha)
    passed, detail = bool((found[0] <= claimed + 1e-12).all()), f"pair {number}, {runs} runs a side"
    if passed and power and case.tight is not False:
        passed = any(_seen(case, pair, at, claimed, (runs, seed + 1, alpha)) for pair in case.worst())
        detail += f"; noise {1 - _SHRINK:.0%} smaller is seen" if passed else "; too weak: smaller noise was not seen"
    return finding_of(case.name, (at, claimed), found, passed, detail)


def claims(case: Case[Data]) -> tuple[Floats, Floats]:
    """Some epsilons from 0 on, and the delta that is claimed at each."""
    at = levels(case)
    at = at[at >= 0]
    return at, np.array([case.delta_at(float(epsilon)) for epsilon in at])


def finding_of(
    name: str, claimed_at: tuple[Floats, Floats], found: tuple[Floats, Floats], passed: bool, detail: str
) -> Finding:
    """Lower bounds on delta and what was counted, beside the claim: in words where it is closest, and as a curve."""
    (at, claimed), (low, mean) = claimed_at, found
    index = int(np.argmax(low - claimed))
    curve = Curve(*(tuple(part.tolist()) for part in (at, claimed, mean, low, np.ones_like(at))))
    claim, measured = f"delta({at_most(at[index], 3)}) <= {at_most(claimed[index])}", f"at least {at_least(low[index])}"
    return Finding("E", name, claim, measured, passed, detail, curve)


def _seen(case: Case[Data], pair: tuple[Data, Data], at: Floats, claimed: Floats, how: tuple[int, int, float]) -> bool:
    """Whether far too little noise is found on this pair: so many runs, with this seed and alpha."""
    runs, seed, alpha = how
    weaker, _ = _deltas(case, *pair, at, runs, seed, _SHRINK, alpha)
    return bool((weaker > claimed).any())


def _deltas(  # noqa: PLR0917
    case: Case[Data], one: Data, two: Data, at: Floats, runs: int, seed: int, shrink: float, alpha: float
) -> tuple[Floats, Floats]:
    """Lower bounds on delta at every epsilon, and what was counted, the larger of both directions."""
    first = outputs(case, one, runs, 2 * seed, shrink)
    second = outputs(case, two, runs, 2 * seed + 1, shrink)
    return both_ways(learnt(first, second), at, alpha)


def both_ways(scores: tuple[Floats, Floats], at: Floats, alpha: float) -> tuple[Floats, Floats]:
    """``lower_deltas`` of the first against the second and the other way round, the larger of each."""
    found = [lower_deltas(*way, at, alpha) for way in (scores, (-scores[1], -scores[0]))]
    low: Floats = np.max([low for low, _ in found], axis=0)
    mean: Floats = np.max([mean for _, mean in found], axis=0)
    return low, mean


def outputs(case: Case[Data], data: Data, runs: int, seed: int, shrink: float = 1.0) -> list[Any]:
    """What so many runs released; None for a refusal."""
    drawn = (case.run(data, Witness((seed << 24) + run, shrink=shrink)) for run in range(runs))
    return [None if outcome.refused else outcome.value for outcome in drawn]


def learnt(first: Sequence[Any], second: Sequence[Any]) -> tuple[Floats, Floats]:
    """Scores that are large on the first: learnt from every other run of both, by least squares.

    The runs that were learnt from come at the even places, as ``lower_deltas`` expects.
    """
    table = _features([*first, *second], [*first[::2], *second[::2]])
    one, two = table[: len(first)], table[len(first) :]
    train = np.concatenate([one[::2], two[::2]])
    middle, spread = np.median(train, axis=0), train.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    sides = np.concatenate([np.ones(len(one[::2])), -np.ones(len(two[::2]))])
    scaled = np.clip((train - middle) / spread, -10.0, 10.0)
    matrix = scaled.T @ scaled + 1e-6 * len(train) * np.eye(scaled.shape[1])
    weights = np.linalg.solve(matrix, scaled.T @ sides)
    found = [np.clip((part - middle) / spread, -10.0, 10.0) @ weights for part in (one, two)]
    return found[0], found[1]


def lower_deltas(first: Floats, second: Floats, at: Floats, alpha: float = ALPHA) -> tuple[Floats, Floats]:
    """What delta is not below at every epsilon, but for probability alpha in all, and what was counted.

    For every epsilon the threshold with the largest difference among the runs at even places is used; the runs at odd
    places are counted.
    """
    marks = np.unique(np.quantile(second[::2], _SHARES).tolist() + np.quantile(first[::2], _SHARES).tolist())
    trained = [(_share(first[::2], mark), _share(second[::2], mark)) for mark in marks]
    low, mean = np.empty_like(at), np.empty_like(at)
    one, two = first[1::2], second[1::2]
    for place, epsilon in enumerate(at.tolist()):
        mark = marks[int(np.argmax([p - math.exp(epsilon) * q for p, q in trained]))]
        ends = [clopper_pearson(int((x >= mark).sum()), len(x), alpha / len(at)) for x in (one, two)]
        low[place] = max(0.0, ends[0][0] - math.exp(epsilon) * ends[1][1])
        mean[place] = max(0.0, _share(one, mark) - math.exp(epsilon) * _share(two, mark))
    return low, mean


def _share(values: Floats, mark: float) -> float:
    return float((values >= mark).mean())


def _features(values: Sequence[Any], trained: Sequence[Any]) -> Floats:
    """Numbers for every output: whether it was refused, its own numbers and their products, and which word it is."""
    width = max((len(_flat(value)) for value in trained), default=0)
    common = [name for name, _ in Counter(_words(value) for value in trained).most_common(_NAMES)]
    rows = []
    for value in values:
        flat = (_flat(value) + [0.0] * width)[:width]
        squares = [a * b for i, a in enumerate(flat) for b in flat[i:]] if width <= _SQUARES else []
        word = _words(value)
        rows.append([float(value is None), *flat, *squares, *(float(word == name) for name in common)])
    table = np.nan_to_num(np.array(rows, dtype=np.float64), nan=0.0, posinf=1e9, neginf=-1e9)
    return np.sign(table) * np.minimum(np.abs(table), 1e9)


def _flat(value: Any) -> list[float]:
    """The numbers in an output, in order."""
    if isinstance(value, bool | np.bool_ | numbers.Real):
        return [_float(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return [float(one) for one in value.ravel().tolist()]
    if isinstance(value, Mapping):
        return [one for inner in value.values() for one in _flat(inner)]
    if isinstance(value, Sequence | np.ndarray | set | frozenset) and not isinstance(value, str | bytes):
        return [one for inner in value for one in _flat(inner)]
    inside = getattr(value, "__dict__", None)
    return _flat(inside) if isinstance(inside, dict) else []


def _words(value: Any) -> str:
    """An output with few forms: a word, a small whole number, several of them."""
    if isinstance(value, str | int | bool | tuple | list | np.ndarray | np.integer):
        return str(value)[:200]
    return ""


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
