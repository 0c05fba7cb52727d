"""Medians, quantiles and extremes, trimmed mean, mode, vote and bounds: numbers or one label about a column."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

import snugdp
from snugdp.accounting import gaussian
from snugdp.audit.finding import Case
from snugdp.certify.distance import DistanceTest, integer_laplace
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.order_statistics import median as _median
from snugdp.mechanisms.order_statistics import quantile as _quantile
from snugdp.mechanisms.order_statistics import trimmed_mean as _trimmed
from snugdp.mechanisms.votes import vote as _vote
from snugdp.noise import Noise
from snugdp_studies.audit.cases.tables import ODD, Generator, any_of, foremost, near, one_of

Rows: TypeAlias = list[Any]
Pair: TypeAlias = tuple[Rows, Rows]
EPSILON, DELTA = 1, 0.01
HIGH, BETA = 4, 1  # bounds are (0, HIGH); one row may move the answer by BETA
ROWS = 41  # where their number is public
BOUNDS, AROUND = (0, HIGH), (-1, HIGH - 1)
LABELS = ("a", "b", "c")
_RELATIONS = ("add_remove", "replace")


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    yield from _drawn()
    yield from _several()
    yield from _medians()
    yield from _by_rank()
    yield from _trimmed_means()
    for relation in _RELATIONS:
        yield _mode(relation)
        yield from _votes(relation)
    yield from _bounds()
    yield from _groups()


def _case(
    name: str,
    query: Any,
    worst: Callable[[], list[Pair]],
    random: Callable[[Generator], Pair],
    run: Callable[[Rows, Noise], Any] | None = None,
    **claims: Any,
) -> Case[Rows]:
    """A query by its own ``release``, unless by the short form ``run``."""
    release = run or (lambda rows, noise: query.release(rows, noise=noise))
    cost = query.plan().cost
    return Case(name=name, group="queries", run=release, cost=cost, worst=worst, random=random, **claims)


def _test(epsilon: float, delta: float = DELTA, relation: str = "replace") -> DistanceTest[Any]:
    """The test of a distance at this budget, for its threshold: where it passes in about every second case."""
    return integer_laplace(lambda _: 0, epsilon=epsilon, delta=delta, neighbours=Neighbours.of(relation))


def _border(
    pairs: Iterable[Pair],
    distance: Callable[[Any], int | float],
    value: Callable[[Any], int],
    *,
    threshold: int,
    beta: int = BETA,
) -> list[Pair]:
    """Pairs that a test and a release tell apart as well as they may: at the threshold, and where the test must fail.

    One where both the distance and the value move as far as they can with the distance at its threshold, and one of
    distance 0 whose value moves farther than was proposed: it is released with the test's failure probability.
    """
    found: dict[tuple[int, int, int], Pair] = {}
    for first, second in pairs:
        one, other = (np.sort(np.array(rows, dtype=np.int64)) for rows in (first, second))
        low, high = sorted((distance(one), distance(other)))
        moved = abs(value(one) - value(other))
        if low >= 1 and math.isfinite(high):
            found.setdefault((-(high == threshold), -int(high - low), -min(moved, beta)), (first, second))
        if moved > beta and math.isfinite(high):  # whatever its distance is said to be: 0 is true
            found.setdefault((-2, -int(high), -moved), (first, second))
    best = [min((key for key in found if (key[0] == -2) is failing), default=None) for failing in (False, True)]
    return [found[key] for key in best if key is not None]


def _few_values(n: int, most: int) -> Iterator[Rows]:
    """Multisets of the values 0, BETA and HIGH, of the last at most so many."""
    for low in range(n + 1):
        for high in range(min(most, n - low) + 1):
            yield [0] * low + [BETA] * (n - low - high) + [HIGH] * high


def _added(sizes: Iterable[int]) -> Iterator[Pair]:
    for rows in (rows for n in sizes for rows in _few_values(n, 3)):
        for extra in (0, BETA, HIGH):
            yield [*rows, extra], rows


def _replaced(n: int) -> Iterator[Pair]:
    for rows in _few_values(n - 1, n - 1):
        for one, other in ((0, BETA), (0, HIGH), (BETA, HIGH)):
            yield [*rows, one], [*rows, other]


def _random(relation: str, rows: int | None = None) -> Callable[[Generator], Pair]:
    def cell(generator: Generator) -> Any:
        return one_of(generator, (0, BETA, HIGH, round(float(generator.uniform(0, HIGH)), 1)))

    odd = any_of(*ODD, None, "word", True, -1, HIGH + 1, BETA + 2.0**-40)
    least, most = (1, 45) if rows is None else (rows - 1, rows - 1)
    return partial(near, row=cell, odd=odd, relation=relation, least=least, most=most)


def _drawn() -> Iterator[Case[Rows]]:
    """Points by their ranks, on pairs that move levels in both directions as far as a row can."""
    budget: dict[str, Any] = {"bounds": BOUNDS, "epsilon": EPSILON}
    added: dict[str, Any] = {"neighbours": "add_remove"}
    replaced: dict[str, Any] = {"neighbours": "replace"}
    queries: tuple[tuple[str, Any, Pair], ...] = (
        ("median: drawn", snugdp.Median(**budget, **added), ([0, 1], [0])),
        ("median: drawn, replace", snugdp.Median(**budget, **replaced), ([1, 0], [1, 3])),
        ("median: drawn, of whole numbers", snugdp.Median(step=1, missing=0, **budget, **added), ([0, 1], [0])),
        ("median: drawn, no bounds", snugdp.Median(epsilon=EPSILON, **added), ([0, 1], [0])),
        ("median: drawn, no bounds, replace", snugdp.Median(step=1, epsilon=EPSILON, **replaced), ([1, 0], [1, 3])),
        ("quantile: drawn", snugdp.Quantile(q=0.75, **budget, **added), ([0, 0, 1, 3], [0, 0, 1])),
        ("quantile: drawn, replace", snugdp.Quantile(q=0.75, **budget, **replaced), ([0, 0, 1, 0], [0, 0, 1, 3])),
        ("minimum", snugdp.Minimum(beyond=2, **budget, **added), ([0, 1, 0], [0, 1])),
        ("maximum", snugdp.Maximum(beyond=2, **budget, **added), ([1, 1, 3], [1, 1])),
        ("maximum: replace", snugdp.Maximum(beyond=2, **budget, **replaced), ([1, 1, 0], [1, 1, 3])),
    )
    for name, query, pair in queries:
        yield _case(
            name,
            query,
            partial(list, [pair]),
            _random(query.plan().cost.neighbours.value),
            tight=False,  # a draw of this range is less telling than epsilon allows; layer N sees all of it
        )


def _several() -> Iterator[Case[Rows]]:
    """Several quantiles: rows carry random digits, so that all but the last stay where they are."""
    budget: dict[str, Any] = {"bounds": BOUNDS, "epsilon": EPSILON}
    many: dict[str, Any] = {"q": [k / 20 for k in range(1, 20)], "step": 0.5, "delta": 0.1, **budget, "epsilon": 0.25}

    def by_function(rows: Rows, noise: Noise) -> Any:
        return snugdp.interquartile_range(rows, **budget, noise=noise)

    def interval(rows: Rows, noise: Noise) -> Any:
        return snugdp.quantile_interval(rows, **budget, noise=noise)

    def table(rows: Rows, noise: Noise) -> Any:
        return snugdp.quantile_table(rows, bins=4, **budget, noise=noise)

    cell = any_of(0, BETA, 3, HIGH)
    for name, query, run in (
        ("interquartile range", snugdp.InterquartileRange(**budget), by_function),
        ("quantiles", snugdp.Quantiles(q=[0.25, 0.5, 0.75], **budget), None),
        ("quantiles: replace", snugdp.Quantiles(q=[0.25, 0.5, 0.75], neighbours="replace", **budget), None),
        ("quantiles: many", snugdp.Quantiles(**many), None),
        ("quantile interval", snugdp.QuantileInterval(q=0.5, **budget), interval),
        ("quantile interval: replace", snugdp.QuantileInterval(q=0.75, neighbours="replace", **budget), None),
        ("quantile table", snugdp.QuantileTable(bins=4, **budget), table),
        ("quantile table: replace", snugdp.QuantileTable(bins=3, neighbours="replace", **budget), None),
    ):
        relation = query.plan().cost.neighbours.value
        other = [0, 0, 1, 3, 3, 0] if relation == "replace" else [0, 0, 1, 3, 3]
        yield _case(
            name,
            query,
            partial(list, [([0, 0, 1, 3, 3, 4], other)]),
            partial(near, row=cell, odd=any_of(*ODD, None), relation=relation, least=1, most=12, ordered=True),
            run,
            tight=False,  # a row moves the draws of its own parts alone, and those not all as far as it might
            parts=not query.plan().cost.mu_squared,  # ranges that a Gaussian part pays for are seen step by step
        )


def _medians() -> Iterator[Case[Rows]]:
    budget: dict[str, Any] = {"bounds": BOUNDS, "epsilon": EPSILON, "delta": DELTA}
    for name, beta, share in (("median", BETA, 0.5), ("median: as it is", 0, 1.0)):
        worst = partial(_median_pairs, beta, share)
        yield _case(name, snugdp.Median(beta=beta, **budget), worst, _random("add_remove"))
    query = snugdp.Median(beta=BETA, rows=ROWS, neighbours="replace", **budget)
    yield _case("median: replace", query, partial(_rank_pairs, (ROWS + 1) // 2), _random("replace", ROWS))


def _by_rank() -> Iterator[Case[Rows]]:
    budget: dict[str, Any] = {"bounds": BOUNDS, "epsilon": EPSILON, "delta": DELTA, "neighbours": "replace"}
    query = snugdp.Quantile(q=0.6, beta=BETA, rows=ROWS, **budget)

    def by_function(rows: Rows, noise: Noise) -> Any:
        return snugdp.quantile(rows, 0.6, beta=BETA, noise=noise, **budget)

    def median_by_function(rows: Rows, noise: Noise) -> Any:
        return snugdp.median(rows, bounds=AROUND, epsilon=EPSILON, delta=DELTA, beta=HIGH, noise=noise)

    worst = partial(_rank_pairs, math.ceil(0.6 * ROWS))
    yield _case("quantile", query, worst, _random("replace", ROWS))
    yield _case("quantile: in one call", query, worst, _random("replace", ROWS), by_function)
    low, high = AROUND
    yield _case(
        "median: in one call, without a test",
        snugdp.Median(bounds=AROUND, epsilon=EPSILON, delta=DELTA, beta=HIGH),
        lambda: [([low] * 5 + [high] * 6, [low] * 5 + [high] * 5), ([high], [])],
        _random("add_remove"),
        median_by_function,
    )


@cache
def _median_pairs(beta: int, share: float) -> list[Pair]:
    return _border(
        _added(range(3, 25)),
        lambda rows: _median.distance(rows, 0, HIGH, beta),
        lambda rows: int(_median.value(rows, 0)),
        threshold=int(_test(EPSILON * share).threshold),
        beta=beta,
    )


@cache
def _rank_pairs(rank: int) -> list[Pair]:
    return _border(
        _replaced(ROWS),
        lambda rows: _quantile.distance(rows, rank, 0, HIGH, BETA),
        lambda rows: int(_quantile.value(rows, rank, 0)),
        threshold=int(_test(EPSILON / 2).threshold),
    )


def _trimmed_means() -> Iterator[Case[Rows]]:
    trim, share = 12, 0.3
    beta = (BETA + 2.0**-20) / (ROWS - 2 * trim)

    def worst() -> list[Pair]:
        return _border(
            _replaced(ROWS),
            lambda rows: _trimmed.distance(rows, trim, 0, HIGH, beta),
            lambda rows: _trimmed.total(rows, trim),
            threshold=int(_test(EPSILON / 2).threshold),
        )

    query = snugdp.TrimmedMean(trim=share, bounds=BOUNDS, epsilon=EPSILON, delta=DELTA, beta=beta, rows=ROWS)
    yield _case("trimmed mean", query, worst, _random("replace", ROWS))

    def everywhere(rows: Rows, noise: Noise) -> Any:
        return snugdp.trimmed_mean(rows, trim=share, bounds=AROUND, epsilon=EPSILON, noise=noise)

    low, high = AROUND
    missing = [math.nan] * (ROWS - 3)
    yield _case(
        "trimmed mean: without a test",
        snugdp.TrimmedMean(trim=share, bounds=AROUND, epsilon=EPSILON, rows=ROWS),
        lambda: [
            ([low] * 12 + [high] * 29, [low] * 13 + [high] * 28),
            ([low, high, high, *missing], [low, low, high, *missing]),
        ],
        _random("replace", ROWS),
        everywhere,
    )


# ---- what is chosen from a public list


def _named(name: str, relation: str) -> str:
    return name if relation == "add_remove" else f"{name}: replace"


def _counted(**counts: int) -> Rows:
    return [label for label, count in counts.items() for _ in range(count)]


def _lead(lead: int, relation: str, *, base: int = 3) -> Pair:
    """Two candidates, and a row that makes the lead of the first smaller: it goes, or it goes to the other one."""
    a, b = base + max(lead, 0), base + max(-lead, 0)
    rows = _counted(a=a, b=b)
    return (rows, [*rows[1:], "b"]) if relation == "replace" else (rows, rows[1:])


def _random_labels(relation: str, labels: tuple[str, ...] = LABELS) -> Callable[[Generator], Pair]:
    odd = any_of(*ODD, None, "nobody", 1, True, labels[-1])
    return partial(near, row=any_of(*labels, labels[0]), odd=odd, relation=relation, least=1, most=30)


def _by(relation: str, query: Any, function: Callable[..., Any], *given: str) -> Callable[[Rows, Noise], Any] | None:
    """The short form of a query with the same parameters, where a row is replaced; else its own ``release``."""
    if relation == "add_remove":
        return None
    parameters = {name: getattr(query, name) for name in given}
    return lambda rows, noise: function(rows, neighbours=relation, noise=noise, **parameters)


def _mode(relation: str) -> Case[Rows]:
    query = snugdp.Mode(categories=LABELS, epsilon=EPSILON, delta=DELTA, neighbours=relation)
    test = _test(EPSILON, relation=relation)

    def worst() -> list[Pair]:
        border = _vote.step(test.cost.neighbours.relation) * int(test.threshold)
        rows = _counted(a=3, b=3)  # of equals the first one counts
        tie = (rows, ["b", *rows[1:]]) if relation == "replace" else (rows, [*rows, "b"])
        return [_lead(border, relation), _lead(border + 1, relation), tie]

    run = _by(relation, query, snugdp.mode, "categories", "epsilon", "delta")
    return _case(_named("mode", relation), query, worst, _random_labels(relation), run)


def _votes(relation: str) -> Iterator[Case[Rows]]:
    name = Neighbours.of(relation).relation
    step = _vote.step(name)
    strength = _vote.noise_epsilon_for(EPSILON, DELTA, name)
    worst_gap = max(range(30), key=lambda gap: _vote.epsilon_at(strength, gap, DELTA, name))
    mu = gaussian.mu(EPSILON, DELTA)
    # The half-line that tells a Gaussian pair apart best at EPSILON, as a lead of one candidate over the other.
    half_line = round(step**0.5 / mu * 2**0.5 * (EPSILON / mu - mu / 2))
    forms: dict[str, tuple[dict[str, Any], list[int], tuple[str, ...]]] = {
        "gumbel": ({}, [3 * step, 6 * step, step], LABELS),
        "laplace": ({"law": "laplace"}, [3 * step, 4 * step, step], LABELS),
        "laplace, two": ({"delta": DELTA}, [worst_gap, worst_gap + step, worst_gap + 1, step], LABELS[:2]),
        "gaussian": ({"delta": DELTA, "law": "gaussian"}, [half_line, half_line + 1, 0], LABELS[:2]),
    }
    for law, (given, leads, labels) in forms.items():
        query = snugdp.Vote(candidates=labels, epsilon=EPSILON, neighbours=relation, **given)
        yield _case(
            _named(f"vote: {law}", relation),
            query,
            partial(_back, leads, relation),
            _random_labels(relation, labels),
            _by(relation, query, snugdp.vote, "candidates", "epsilon", "delta", "law"),
            tight=law != "gaussian",  # one bit of Gaussian noise needs thousands of runs; its parts are exact
            parts=law != "laplace, two",  # whose noise costs less than its scale says, for a delta
        )
    proposal = 0.8  # its loss is small without a lead, and then it grows, and it is small again from a lead of 6 on
    test = _test(EPSILON / 2, DELTA / 2, relation)
    border = int(_vote.least_gap(proposal, EPSILON / 2, DELTA / 2, name)) + step * int(test.threshold)
    yield _case(
        _named("vote: tested", relation),
        snugdp.Vote(candidates=LABELS[:2], epsilon=EPSILON, delta=DELTA, noise_epsilon=proposal, neighbours=relation),
        lambda: [_lead(lead, relation) for lead in (0, border, border - 1, border - 2, *range(1, 10))],
        _random_labels(relation, LABELS[:2]),
        tight=False,  # of the two halves of epsilon that the vote spends, its lead uses little
        parts=False,  # the noise of a vote that was tested costs less than its scale says
    )


def _back(leads: list[int], relation: str) -> list[Pair]:
    """Without the row first: a candidate that leads loses more easily then."""
    return foremost([_lead(lead, relation) for lead in leads], 0, back=True)


def _bounds() -> Iterator[Case[Any]]:
    odd = any_of(*ODD, None, "word", 2.0**-20, -(2.0**60))
    for relation, outside in (("add_remove", 0.0), ("replace", 0.0), ("replace", 0.4)):
        query = snugdp.Bounds(epsilon=EPSILON, neighbours=relation, outside=outside)
        low, high = [-1000.0] * 20, [1000.0] * 20
        moved = (low + high, [*low[1:], *high, 1000.0]) if relation == "replace" else (low + high, low[1:] + high)
        far = [0.0] * 60 + [-1e300], [0.0] * 60 + [1e300] * (relation == "replace")  # of all scores, both ways
        yield _case(
            _named("bounds", relation) + (", most inside" if outside else ""),
            query,
            partial(list, [far, moved]),
            partial(near, row=lambda g: float(g.normal(0, 100)), odd=odd, relation=relation, least=2, most=60),
            _by(relation, query, snugdp.private_bounds, "epsilon", "outside"),
            tight=False,  # of 643 edges the best is hardly ever one that such a row decides
        )
    table = snugdp.Bounds(epsilon=EPSILON, columns=["x", "y"])

    def run(rows: Rows, noise: Noise) -> Any:
        import polars

        columns = {"x": np.array([x for x, _ in rows]), "y": np.array([y for _, y in rows])}
        return table.release(polars.DataFrame(columns), noise=noise)

    def cell(generator: Generator) -> tuple[float, float]:
        return float(generator.normal(0, 50)), float(generator.normal(3, 1))

    def odd_pair(generator: Generator) -> tuple[float, float]:
        return one_of(generator, ODD), one_of(generator, ODD)

    rows, zeros = [(-100.0, 3.0)] * 25, [(0.0, 0.0)] * 90
    yield _case(
        "bounds: of two columns",
        table,
        lambda: [([*rows, (1e300, -1e300)], rows), ([*zeros, (-1e300, 1e300)], zeros)],
        partial(near, row=cell, odd=odd_pair, relation="add_remove", least=1, most=60),
        run,
        tight=False,  # as above
    )


def _groups() -> Iterator[Case[Any]]:
    """Counts and statistics by group: listed keys, keys that nobody listed, several of them in a row."""
    low, high = BOUNDS
    budget: dict[str, Any] = {"by": "k", "epsilon": EPSILON, "bounds": {"x": BOUNDS}}
    mean: dict[str, Any] = {"statistics": {"x": "mean"}}
    top = ("a", high)
    for relation in _RELATIONS:
        moved = [("b", high)] if relation == "replace" else []
        many, few = [top] * 12 + [("b", low)] * 3, [top] * 3
        pairs = [([*many, top], [*many, *moved]), ([*many, ("c", low)], [*many, *moved]), ([*few, top], [*few, *moved])]
        listed = snugdp.GroupBy(**budget, keys=["a", "b"], statistics={"x": "variance"}, neighbours=relation)
        yield _case(
            _named("group by", relation), listed, partial(list, pairs), _random_groups(relation), _grouped(listed)
        )
        medians = snugdp.GroupBy(**budget, keys=["a", "b"], statistics={"x": "median"}, neighbours=relation)
        yield _case(
            _named("group by: medians", relation),
            medians,
            partial(list, pairs),
            _random_groups(relation),
            _grouped(medians),
            tight=False,  # counts and ranks do not lose most on the same rows
        )
        shown = snugdp.GroupBy(**budget, **mean, delta=DELTA, neighbours=relation)
        yield _case(
            _named("group by: keys", relation), shown, partial(list, pairs), _random_groups(relation), _grouped(shown),
            tight=False,  # keys and statistics do not lose most on the same rows
        )  # fmt: skip
    alone = snugdp.GroupBy(by="k", epsilon=EPSILON, delta=DELTA)
    border = alone.plan().steps[0].noise.params["threshold"]
    assert isinstance(border, int)
    pairs = [([top] * (n + 1), [top] * n) for n in (border, 0, border - 1, 2 * border)]

    def by_function(rows: Rows, noise: Noise) -> Any:
        return snugdp.group_by(_keyed(rows), "k", epsilon=EPSILON, delta=DELTA, noise=noise)

    yield _case("group by: keys alone", alone, partial(list, pairs), _random_groups("add_remove"), by_function)
    several = snugdp.GroupBy(**budget, statistics={"x": "sum"}, delta=DELTA, max_keys=4)
    lists = [(["a", "b", "c", "d"], high)]
    more = [(lists * (n + 1), lists * n) for n in (20, 0, 30)]
    yield _case(
        "group by: several keys", several, partial(list, more), _random_groups("add_remove", lists=True),
        _grouped(several, lists=True), tight=False,  # all four counts move at once, behind a threshold each
    )  # fmt: skip


def _keyed(rows: Rows, *, lists: bool = False) -> Any:
    import polars

    kind = polars.List(polars.String) if lists else polars.String
    columns = [[row[place] for row in rows] for place in (0, 1)]
    return polars.DataFrame(
        {"k": polars.Series(columns[0], dtype=kind), "x": polars.Series(columns[1], dtype=polars.Float64)}
    )


def _grouped(query: snugdp.GroupBy, *, lists: bool = False) -> Callable[[Rows, Noise], Any]:
    return lambda rows, noise: query.release(_keyed(rows, lists=lists), noise=noise)


def _random_groups(relation: str, *, lists: bool = False) -> Callable[[Generator], Pair]:
    def key(generator: Generator) -> Any:
        some = [one_of(generator, ("a", "b", "c", "d", "7", None)) for _ in range(int(generator.integers(1, 7)))]
        return some if lists else some[0]

    def cell(generator: Generator) -> Any:
        return key(generator), float(one_of(generator, (0, BETA, HIGH, 1.5)))

    def odd(generator: Generator) -> Any:
        return key(generator), one_of(generator, (*ODD, None))

    return partial(near, row=cell, odd=odd, relation=relation, least=1, most=40)
