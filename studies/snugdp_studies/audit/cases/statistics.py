"""Counts, sums, moments and histograms: numbers about columns, with noise of a proved size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import snugdp
from snugdp.audit.finding import Case
from snugdp.noise import Noise
from snugdp_studies.audit.cases.tables import ODD, Generator, any_of, near, one_of

Rows: TypeAlias = list[Any]
Pair: TypeAlias = tuple[Rows, Rows]
EPSILON, DELTA = 1, 0.01
LOW, HIGH = -1, 4
BOUNDS = (LOW, HIGH)
LABELS = ("a", "b", "c")
_ODD = any_of(*ODD, None, "word", True, LOW - 1, HIGH + 1, LOW, HIGH)


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    for relation in ("add_remove", "replace"):
        for delta in (0, DELTA):
            given: dict[str, Any] = {"epsilon": EPSILON, "delta": delta, "neighbours": relation}
            tag = "".join((", delta" if delta else "", ": replace" if relation == "replace" else ""))
            yield from _of_one(tag, given)
            yield from _of_two(tag, given)
            yield from _cells(tag, given)


def _case(
    name: str, query: Any, worst: list[Pair], random: Callable[[Generator], Pair], run: Any = None, **claims: Any
) -> Case[Rows]:
    release = run or (lambda rows, noise: query.release(rows, noise=noise))
    cost = query.plan().cost
    return Case(name, release, cost, partial(list, worst), group="statistics", random=random, **claims)


def _changed(rows: Rows, given: dict[str, Any], new: Any, old: Any = None) -> Pair:
    """A row that comes; or one that replaces another, which is missing unless given."""
    return ([*rows, new], rows) if given["neighbours"] == "add_remove" else ([*rows, new], [*rows, old])


def _numbers(given: dict[str, Any]) -> Callable[[Generator], Pair]:
    def cell(generator: Generator) -> Any:
        return one_of(generator, (LOW, 0, HIGH, round(float(generator.uniform(LOW, HIGH)), 2)))

    return partial(near, row=cell, odd=_ODD, relation=given["neighbours"], least=1, most=40)


def _short(function: Callable[..., Any], given: dict[str, Any], **more: Any) -> Any:
    """The function in place of the class, where a row is replaced."""
    if given["neighbours"] == "add_remove":
        return None
    return lambda rows, noise: function(rows, **given, **more, noise=noise)


def _of_one(tag: str, given: dict[str, Any]) -> Iterator[Case[Rows]]:
    rows: Rows = [0.0, 1.0, HIGH]
    ends = [_changed(rows, given, HIGH, LOW), _changed(rows, given, LOW, HIGH), _changed(rows, given, HIGH)]
    spread = [ends[-1], *ends[:-1]]  # squares move most where a number comes
    random = _numbers(given)
    if given["neighbours"] == "add_remove":
        yield _case(f"count{tag}", snugdp.Count(**given), [([1, 2], [1])], random)
    whole: dict[str, Any] = {"clip": None, "bounds": BOUNDS}
    yield _case(f"sum{tag}", snugdp.Sum(**whole, **given), ends, random, _short(snugdp.sum, given, **whole))
    yield _case(f"mean{tag}", snugdp.Mean(**whole, **given), ends, random, _short(snugdp.mean, given, **whole))
    for name, make, function in (
        ("variance", snugdp.Variance, snugdp.variance),
        ("standard deviation", snugdp.StandardDeviation, snugdp.standard_deviation),
    ):
        yield _case(f"{name}{tag}", make(**whole, **given), spread, random, _short(function, given, **whole))
    yield from _clipped(tag, given, ends)
    yield from _without_bounds(tag, given)
    yield _proportion(tag, given)


def _clipped(tag: str, given: dict[str, Any], ends: list[Pair]) -> Iterator[Case[Rows]]:
    made: dict[str, Any] = {"mean, clip auto": snugdp.Mean(bounds=BOUNDS, **given)}
    if (given["neighbours"] == "replace") is bool(given["delta"]):
        made["mean, clip private"] = snugdp.Mean(bounds=BOUNDS, clip="private", **given)
        made["sum, clip auto"] = snugdp.Sum(bounds=BOUNDS, **given)
    else:
        made["variance, clip auto"] = snugdp.Variance(bounds=BOUNDS, **given)
    many = [1.0] * 200
    for name, query in made.items():
        yield _case(
            f"{name}{tag}",
            query,
            [_changed(many, given, HIGH, 0.0), *ends],
            _numbers(given),
            tight=False,  # many parts, none at its worst
            parts=not given["delta"],  # a draw that is paid with a Gaussian part
        )


def _without_bounds(tag: str, given: dict[str, Any]) -> Iterator[Case[Rows]]:
    """Looks, then the statistic: on tables large enough that something is found, and on small ones."""
    made: dict[str, Any] = {"mean": snugdp.Mean(**given)}
    if (given["neighbours"] == "replace") is bool(given["delta"]):
        made |= {"histogram": snugdp.Histogram(bins=4, **given), "sum": snugdp.Sum(clip=None, **given)}
    many: Rows = [1.0] * 500 + [3.5] * 300
    pairs = [_changed(many, given, 1.0, 3.5), _changed(many, given, 1e30, 1.0), _changed(many, given, None, 1.0)]
    for name, query in made.items():
        claims: dict[str, Any] = {"tight": False, "parts": False}  # what follows depends on what was found
        yield _case(f"{name}, no bounds{tag}", query, pairs, _numbers(given), **claims)


def _proportion(tag: str, given: dict[str, Any]) -> Case[Rows]:
    rows: Rows = ["a", "b"]
    worst = [_changed(rows, given, "a", "b"), _changed(rows, given, "b")]
    query = snugdp.Proportion(values=["a"], **given)
    return _case(f"proportion{tag}", query, worst, _labels(given), _short(snugdp.proportion, given, values=["a"]))


def _labels(given: dict[str, Any]) -> Callable[[Generator], Pair]:
    odd = any_of(*ODD, None, "nobody", 1, True, LABELS[-1])
    return partial(near, row=any_of(*LABELS), odd=odd, relation=given["neighbours"], least=1, most=30)


def _of_two(tag: str, given: dict[str, Any]) -> Iterator[Case[Rows]]:
    bounds = (BOUNDS, (0, 2))

    def cell(generator: Generator) -> tuple[float, float]:
        return float(generator.uniform(LOW, HIGH)), float(generator.uniform(0, 2))

    def odd(generator: Generator) -> tuple[Any, Any]:
        return _ODD(generator), _ODD(generator)

    random = partial(near, row=cell, odd=odd, relation=given["neighbours"], least=1, most=40)
    rows: Rows = [(0.0, 1.0), (1.0, 2.0)]
    nothing = (None, None)
    worst = [
        _changed(rows, given, (HIGH, 2.0), (LOW, 0.0)),
        _changed(rows, given, (HIGH, 0.0), (LOW, 0.0)),
        _changed(rows, given, (LOW, 2.0), nothing),
    ]
    for name, make, function in (
        ("covariance", snugdp.Covariance, snugdp.covariance),
        ("correlation", snugdp.Correlation, snugdp.correlation),
    ):
        query: Any = make(bounds=bounds, **given)

        def run(rows: Rows, noise: Noise, function: Any = function) -> Any:
            return function(([x for x, _ in rows], [y for _, y in rows]), bounds=bounds, **given, noise=noise)

        yield _case(f"{name}{tag}", query, worst, random, run)


def _cells(tag: str, given: dict[str, Any]) -> Iterator[Case[Rows]]:
    kinds: list[tuple[str, dict[str, Any], tuple[Any, Any], Any]] = [
        ("edges", {"edges": [LOW, 0, HIGH]}, (1.0, -0.5), _numbers(given)),
        ("values", {"values": list(LABELS)}, ("a", "b"), _labels(given)),
    ]
    for name, more, pair, random in kinds:
        worst = [_changed(list(pair), given, *pair), _changed(list(pair), given, pair[1])]
        query = snugdp.Histogram(**more, **given)
        yield _case(f"histogram: {name}{tag}", query, worst, random, _short(snugdp.histogram, given, **more))
