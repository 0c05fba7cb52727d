"""The framework for anybody's mechanism: tests by statistics, distances and bounds, before a release or a refusal."""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

import snugdp
from snugdp.audit.finding import Case
from snugdp.certify import distance as _distance
from snugdp.certify.smooth import smooth_bound
from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.mechanisms.order_statistics import quantile as _quantile
from snugdp.mechanisms.order_statistics.stable import distance_step
from snugdp.noise import DiscreteLaplace, Gaussian, Laplace, Noise
from snugdp.noise.grid import grid_below
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.recipe import THEOREM, PrivateAlgorithm
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release_or_refuse
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.cases.tables import ODD, Generator, any_of, near

Rows: TypeAlias = list[float]
Pair: TypeAlias = tuple[Rows, Rows]
BUDGET = Budget(1, 0.05)
ENOUGH = 24  # rows with which the tests of a mean pass in about every second case


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    yield from _means()
    yield from _leads()
    yield _interquartile()
    yield _smooth()


def _mean(rows: Rows) -> Fraction:
    """Of rows clipped to [0, 1]; one half of nothing."""
    kept = [0.0 if math.isnan(row) else min(max(row, 0.0), 1.0) for row in rows]
    return sum(map(Fraction, kept), Fraction(0)) / len(kept) if kept else Fraction(1, 2)


def _noisy_mean(scale: Fraction, law: type[Laplace | Gaussian], data: Secret[Rows], noise: Noise) -> float:
    return float(noise.add(data.map(_mean), law(scale), grid=grid_below(scale)))


_random = partial(
    near,
    row=lambda g: float(round(g.uniform(0, 1), 1)),
    odd=any_of(0.0, 1.0, *ODD),
    relation="add_remove",
    least=1,
    most=2 * ENOUGH,
)


def _one_more(n: int) -> list[Pair]:
    """All rows are 0, and one more that is 1: the mean moves as far as it can with so many rows."""
    return [([0.0] * size + [1.0], [0.0] * size) for size in (n, 2 * n, n // 2, 2)]


def _means() -> Iterator[Case[Rows]]:
    """The mean of rows in [0, 1]: the more rows there are, the less it gives away."""
    count = snugdp.Statistic[Rows]("rows", len, 1, "lower", (0, 1e12))
    laws: dict[Literal["epsilon", "mu"], type[Laplace | Gaussian]] = {"epsilon": Laplace, "mu": Gaussian}
    for measure, law in laws.items():
        scale = Fraction(1, 8)

        def loss(rows: float, scale: Fraction = scale) -> float:
            return math.inf if rows <= 1 else 1 / (float(scale) * (rows - 1))

        tested = snugdp.from_statistics(
            loss=loss, statistics=(count,), draw=partial(_noisy_mean, scale, law), budget=BUDGET, measure=measure
        )
        # A bound on the number of rows is below it by a margin, which no pair can use up.
        yield _algorithm(f"statistics, {measure}", tested, partial(_one_more, ENOUGH))

    def calibrated(data: Secret[Rows], bounds: Mapping[str, float], noise: Noise) -> float | None:
        if bounds["rows"] <= 1:
            return None
        return _noisy_mean(1 / (Fraction(bounds["rows"]) - 1) / algorithm.limit, Laplace, data, noise)

    algorithm: PrivateAlgorithm[Rows, float] = snugdp.calibrated(statistics=(count,), draw=calibrated, budget=BUDGET)
    yield _algorithm("calibrated", algorithm, partial(_one_more, ENOUGH))


def _algorithm(
    name: str,
    algorithm: PrivateAlgorithm[Rows, Any],
    worst: Callable[[], list[Pair]],
    random: Callable[[Generator], Pair] = _random,
    **claims: Any,
) -> Case[Rows]:
    """What a recipe made. Its certificate has slack of its own, so smaller noise need not be seen."""
    return Case(
        name=f"framework: {name}",
        group="framework",
        run=lambda rows, noise: algorithm(rows, noise=noise),
        cost=algorithm.plan.cost,
        worst=worst,
        random=random,
        tight=False,
        **claims,
    )


def _leads() -> Iterator[Case[Rows]]:
    """Which of two answers has more votes, shown as it is behind every kind of noise on the distance."""

    def lead(rows: Rows) -> int:
        return abs(2 * int(sum(row == 1 for row in rows)) - len(rows))

    def shown(data: Secret[Rows], noise: Noise) -> bool:
        return bool(noise.reveal(data.map(lambda rows: 2 * sum(row == 1 for row in rows) > len(rows))))

    def gap(rows: Rows) -> int:
        return max(lead(rows) - 1, 0)

    def vote(generator: Generator) -> float:
        return float(generator.random() < 0.8)

    votes = partial(near, row=vote, odd=any_of(0.0, 1.0, *ODD), relation="add_remove", least=0, most=24)
    relation, failure = Neighbours.ADD_REMOVE, Fraction(1, 100)
    made: dict[str, _distance.DistanceTest[Rows]] = {
        "discrete Laplace": _distance.integer_laplace(gap, epsilon=1, delta=failure, neighbours=relation),
        "Laplace": _distance.laplace(gap, epsilon=1, delta=failure, neighbours=relation),
        "discrete Gaussian": _distance.integer_gaussian(gap, sigma=2, delta=failure, neighbours=relation),
        "Gaussian": _distance.normal(gap, sigma=2, delta=failure, neighbours=relation),
    }
    for name, test in made.items():
        yield Case(
            name=f"framework: distance, {name}",
            group="framework",
            run=_refusing(name, test, shown),
            cost=test.cost,
            worst=_around(math.ceil(test.threshold)),
            random=votes,
            tight="Laplace" in name,  # one bit of Gaussian noise needs thousands of runs; its parts are exact
        )

    algorithm = snugdp.from_distance(distance=gap, draw=shown, budget=BUDGET)
    at = int(_distance.integer_laplace(gap, epsilon=0.5, delta=BUDGET.delta, neighbours=relation).threshold)
    # Half of epsilon is kept for a release that is not stable by itself.
    yield _algorithm("from_distance", algorithm, _around(at), votes)


def _around(threshold: int) -> Callable[[], list[Pair]]:
    """Leads at the threshold of the test, and one at which it must fail."""
    return lambda: [_votes(threshold + 1), _votes(threshold), _votes(1)]


def _votes(lead: int) -> Pair:
    """So many more of one kind than of the other, and one less of them."""
    rows = [1.0] * (3 + lead) + [0.0] * 3
    return rows, rows[1:]


def _refusing(
    name: str, test: _distance.DistanceTest[Rows], draw: Callable[[Secret[Rows], Noise], Any]
) -> Callable[[Rows, Noise], Any]:
    steps = (
        distance_step(test),
        Step("release", StepKind.RELEASE, StepNoise("stable-value"), Cost(neighbours=test.cost.neighbours)),
    )
    plan = Plan(name, THEOREM, steps)

    class ShownDraw:
        def draw(self, data: Secret[Rows], noise: Noise) -> Any:
            return draw(data, noise)

    return lambda rows, noise: release_or_refuse(plan, test, ShownDraw(), Secret(rows), ReleaseContext(noise))


def _interquartile() -> Case[Rows]:
    """The difference of two quantiles, each of which one row may move by so much: numbers from 0 to 9."""
    n, ranks, betas, high = 31, (9, 23), (1, 1), 9
    budget = Budget(1, 0.05, "replace")

    def cells(rows: Rows) -> Any:
        return np.sort(np.array([0 if not 0 <= row <= high else int(row) for row in rows], dtype=np.int64))

    def draw(data: Secret[Rows], noise: Noise) -> int:
        apart = data.map(lambda rows: int(cells(rows)[ranks[1] - 1] - cells(rows)[ranks[0] - 1]))
        return int(noise.add(apart, DiscreteLaplace(sum(betas) / algorithm.limit)))

    algorithm: PrivateAlgorithm[Rows, int] = snugdp.from_distance(
        distance=lambda rows: min(
            _quantile.distance(cells(rows), rank, 0, high, beta) for rank, beta in zip(ranks, betas, strict=True)
        ),
        draw=draw,
        budget=budget,
    )

    def worst() -> list[Pair]:
        calm, wide = [3.0] * 8 + [4.0] * 14 + [5.0] * 8, [0.0] * 3 + [3.0] * 5 + [4.0] * 19 + [9.0] * 3
        torn = [0.0] * 8 + [9.0] * 22
        return [([*rows, 3.0], [*rows, 5.0]) for rows in (calm, wide)] + [([*torn, 0.0], [*torn, 9.0])]

    rows = partial(
        near,
        row=lambda g: float(g.integers(3, 6)),
        odd=any_of(0.0, 9.0, *ODD),
        relation="replace",
        least=n - 1,
        most=n - 1,
    )
    return _algorithm(
        "interquartile range", algorithm, worst, rows
    )  # one row moves one of two quantiles, or both by half


def _smooth() -> Case[Rows]:
    """The mean again, behind a bound by smooth sensitivity on what it gives away."""
    scale, beta = Fraction(1, 8), Fraction(1, 10)

    def loss(rows: Rows) -> float:
        return 8.0 / max(len(rows) - 1, 1)

    def sensitivity(rows: Rows) -> float:
        return max(
            math.exp(-float(beta) * k) * 8.0 / max(max(len(rows) - 2 - k, 1) ** 2, 1) for k in range(len(rows) + 2)
        )

    bound = smooth_bound(
        loss,
        sensitivity,
        beta=beta,
        sigma=3,
        sigma_scale=3,
        order=Fraction(7, 2),
        delta=BUDGET.delta,
        between=(1e-3, 8.0),
        neighbours=Neighbours.ADD_REMOVE,
    )
    algorithm = snugdp.from_upper_bound(
        certifier=bound, draw=partial(_noisy_mean, scale, Laplace), limit=1, release=snugdp.Cost(epsilon=1)
    )
    # One conversion of a Renyi divergence has slack of its own.
    return _algorithm("smooth bound", algorithm, partial(_one_more, 3 * ENOUGH), parts=False)
