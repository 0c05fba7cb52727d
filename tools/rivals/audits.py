"""Our black-box audit pointed at other libraries: a part of `make rivals`.

Each draws many releases of two small tables that differ in one row, in its own environment; the draws are then judged
here, as those of any black box. That nothing is found says little: two tables were tried.
"""

from typing import Any

from snugdp import Budget
from snugdp.audit import black_box
from snugdp.audit.bounds import ALPHA, epsilon_from_scores

EPSILON = 1.0
_NONE, _TEN = [0.0] * 19, [0.0] * 10 + [1.0] * 9
_LEFT, _LINE = [[-1.0], [1.0]] * 9, [-0.5, 0.5] * 9
PAIRS: dict[str, dict[str, tuple[str, int, list[Any]]]] = {  # neighbours as each states them, draws, two tables
    "opendp": {
        "mean": ("add_remove", 5_000, [[*_NONE, 1.0], _NONE]),
        "median": ("add_remove", 5_000, [[*_TEN, 1.0, 1.0], [*_TEN, 1.0]]),
    },
    "diffprivlib": {
        "mean": ("replace", 5_000, [[*_NONE, 1.0], [*_NONE, 0.0]]),
        "median": ("replace", 5_000, [[*_TEN, 1.0], [*_TEN, 0.0]]),
        "line": ("replace", 5_000, [[[*_LEFT, [1.0]], [*_LINE, 1.0]], [[*_LEFT, [1.0]], [*_LINE, -1.0]]]),
    },
    "pipeline-dp": {"mean": ("add_remove", 2_000, [[*_NONE, 1.0], _NONE])},
}


def asked(rival: str) -> list[dict[str, Any]]:
    """What a rival has to draw."""
    pairs = PAIRS.get(rival, {})
    return [
        {"release": name, "runs": runs, "tables": tables, "epsilon": EPSILON}
        for name, (_, runs, tables) in pairs.items()
    ]


def judged(rival: str, drawn: dict[str, Any]) -> dict[str, Any]:
    """What the draws of two tables tell of a claim."""
    neighbours, runs, _ = PAIRS[rival][drawn["release"]]
    first, second = drawn["draws"]
    sides = (iter(first), iter(second))
    passed = black_box(next, sides, Budget(EPSILON, neighbours=neighbours), score=float, runs=runs).passed
    ways = [(a, b) for a, b in ((first, second), (second, first))]
    ways += [([-x for x in a], [-x for x in b]) for a, b in ways]
    least = max(epsilon_from_scores(a, b, 0.0, ALPHA / len(ways)) for a, b in ways)
    return {
        "name": rival,
        "release": drawn["release"],
        "neighbours": neighbours,
        "claimed": EPSILON,
        "runs": runs,
        "at_least": max(least, 0.0),
        "refuted": not passed or least > EPSILON,
    }
