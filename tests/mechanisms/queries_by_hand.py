"""Slow references: the two-pointer formulas, and distances found by walking through all small data sets."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations_with_replacement

import numpy as np

from snugdp.mechanisms.order_statistics.windows import Ordered

Rows = tuple[int, ...]
Neighbours = Callable[[Rows], set[Rows]]


def as_rows(rows: Sequence[int] | Sequence[float], dtype: type = np.int64) -> Ordered:
    return np.sort(np.array(rows, dtype=dtype))


def quantile_two_pointers(rows: Sequence[float], rank: int, low: float, high: float, beta: float) -> float:
    e = [low, *sorted(rows), high]
    best, i = math.inf, -1
    for j in range(rank, len(rows) + 2):
        while i + 1 <= min(rank, j - 1) and e[j] - e[i + 1] > beta:
            i += 1
        if i >= 0:
            best = min(best, j - i - 1)
    return best


def median_two_pointers(rows: Sequence[float], low: float, high: float, beta: float) -> float:
    e, n = [low, *sorted(rows), high], len(rows)
    best, j = math.inf, 0
    for i in range(n + 1):
        j = max(j, i + 1)
        while j <= n + 1 and not e[j] - e[i] > beta:
            j += 1
        if j > n + 1:
            break
        d = n - j + 1 - i
        best = min(best, j - i - 1 + (-d if d < 0 else max(0, d - 1)))
    return best


def trimmed_by_definition(rows: Sequence[float], trim: int, low: float, high: float, beta: float) -> float:
    x, n = sorted(rows), len(rows)

    def at(rank: int) -> float:
        return low if rank <= 0 else high if rank > n else x[rank - 1]

    for k in range(n + 1):
        for t in range(k + 1):
            first = at(n - trim + 1 + t) - at(trim + 1 + t - k)
            second = at(n - trim + t) - at(trim + t - k)
            if max(first, second) / (n - 2 * trim) > beta:
                return k
    return math.inf


def all_rows(universe: Sequence[int], sizes: Iterable[int]) -> list[Rows]:
    return [rows for size in sizes for rows in combinations_with_replacement(universe, size)]


def added_or_removed(universe: Sequence[int]) -> Neighbours:
    def near(rows: Rows) -> set[Rows]:
        more = {tuple(sorted((*rows, v))) for v in universe}
        return more | {rows[:i] + rows[i + 1 :] for i in range(len(rows))}

    return near


def replaced(universe: Sequence[int]) -> Neighbours:
    def near(rows: Rows) -> set[Rows]:
        changed = {tuple(sorted((*rows[:i], v, *rows[i + 1 :]))) for i in range(len(rows)) for v in universe}
        return changed - {rows}

    return near


def walked(states: Iterable[Rows], near: Neighbours, bad: Callable[[Rows], bool]) -> dict[Rows, float]:
    """The exact number of steps from each state to the nearest bad one, by breadth-first search."""
    known = set(states)
    found: dict[Rows, float] = {rows: 0 for rows in known if bad(rows)}
    queue = deque(found)
    while queue:
        rows = queue.popleft()
        for other in near(rows) & known - found.keys():
            found[other] = found[rows] + 1
            queue.append(other)
    return {rows: found.get(rows, math.inf) for rows in known}


def sensitive(f: Callable[[Rows], float], near: Neighbours, beta: float) -> Callable[[Rows], bool]:
    """Whether one step can move f by more than beta."""
    return lambda rows: any(abs(f(other) - f(rows)) > beta for other in near(rows))
