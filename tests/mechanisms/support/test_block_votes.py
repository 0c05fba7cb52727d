"""Votes of blocks: every pair of neighbouring vote tables of a small universe, and blocks that stay to themselves."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from snugdp import Budget, Cost, Exact, Simulation
from snugdp.accounting import discrete
from snugdp.mechanisms.support.block_votes import VotedSupport, distance, leaders, margin, votes
from snugdp.secrecy.secret import Secret
from snugdp.tables.candidates import Candidates
from snugdp.tables.layouts.boxes import BoxSchema
from snugdp.tables.sources.sparse import canonical
from tests.effort import sampled
from tests.mechanisms.exact_laws import passing

Ballots = tuple[tuple[int, ...], ...]


def tables(width: int, size: int, blocks: int) -> dict[Ballots, Any]:
    ballots = [ballot for k in (0, size) for ballot in combinations(range(width), k)]
    found = {}
    for table in combinations_with_replacement(ballots, blocks):
        counts = np.zeros(width, dtype=np.int64)
        for ballot in table:
            counts[list(ballot)] += 1
        found[table] = counts
    return found


def near(table: Ballots, width: int, size: int) -> set[Ballots]:
    """One row changes one ballot into any other; an empty block has none."""
    ballots = [ballot for k in (0, size) for ballot in combinations(range(width), k)]
    return {tuple(sorted((*table[:k], b, *table[k + 1 :]))) for k in range(len(table)) for b in ballots}


@sampled(2)
@pytest.mark.parametrize(("width", "size", "blocks"), [(2, 1, 14), (3, 1, 9), (3, 2, 8), (2, 2, 3)])
def test_every_neighbouring_vote_table(width: int, size: int, blocks: int) -> None:
    """The distance is 1-Lipschitz, certifies the winners, and the law of the whole output is (epsilon, delta)."""
    p, delta = Fraction(1, 3), Fraction(1, 30)  # epsilon = log 3
    universe = tables(width, size, blocks)
    tau = next(t for t in range(1, 99) if p**t / (1 + p) <= delta)
    worst: dict[int, Fraction] = defaultdict(Fraction)
    for table, counts in universe.items():
        here, winners = distance(counts, size), set(leaders(counts, size))
        for other in near(table, width, size):
            there, others = distance(universe[other], size), set(leaders(universe[other], size))
            assert here == there or abs(here - there) <= 1
            if winners != others:
                assert here == there == 0
            for at in (tau, tau - 1):
                t, s = passing(here, at, p), passing(there, at, p)
                same = max(t - s / p, Fraction(0)) if winners == others else t
                worst[at] = max(worst[at], same + max((1 - t) - (1 - s) / p, Fraction(0)))
    assert worst[tau] <= delta
    if width == 2 > size or width == 3:
        assert worst[tau - 1] > delta  # a lower threshold is caught


@sampled(3)
@pytest.mark.parametrize(("width", "size", "blocks"), [(2, 1, 14), (3, 1, 9), (3, 2, 6)])
def test_every_person_with_two_rows(width: int, size: int, blocks: int) -> None:
    """Two rows change two ballots: the distance in persons is 1-Lipschitz, and certifies the winners."""
    universe, changed = tables(width, size, blocks), 0
    for table, counts in universe.items():
        here, winners = distance(counts, size, 2), set(leaders(counts, size))
        for other in {last for first in near(table, width, size) for last in near(first, width, size)}:
            assert abs(here - distance(universe[other], size, 2)) <= 1
            if winners != set(leaders(universe[other], size)):
                assert here == 0
                changed += distance(counts, size) > 0
    assert changed  # what is certified of single rows is not of persons


def test_the_margin_is_that_of_the_text() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        counts, size = rng.integers(0, 40, 6), int(rng.integers(1, 6))
        ordered = np.sort(counts)[::-1]
        q = max((ordered[size - 1] - ordered[size]) / 2 - 1, 0)
        assert margin(counts, size) == q
        assert 0 <= distance(counts, size) - q <= 0.5


def test_the_threshold_is_that_of_the_test() -> None:
    budget = Budget("0.5", "1e-6")
    assert VotedSupport(2, 50, budget).cost == Cost(epsilon="0.5", delta="1e-6")
    tau, _ = discrete.discrete_laplace_threshold("0.5", "1e-6")
    assert VotedSupport(2, 50, budget).steps()[0].noise.params["threshold"] == tau
    assert abs(tau - math.log(1 / (2e-6)) / 0.5) < 1.5


def box(width: int) -> BoxSchema:
    return BoxSchema(tuple(f"x{j}" for j in range(width)), 1, 1)


def forms(X: Any, y: Any) -> list[Candidates]:
    layout = box(X.shape[1])
    frame = pl.DataFrame({**{name: X[:, j] for j, name in enumerate(layout.names)}, layout.target: y})
    return [
        Candidates(layout, X=X, y=y),
        Candidates(layout, X=canonical(sp.csc_matrix(X)), y=y),
        Candidates(layout, table=frame),
    ]


def test_one_row_changes_one_block_whatever_holds_the_rows() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(0, 1, (300, 5)) * (rng.random((300, 5)) < 0.5), rng.uniform(-1, 1, 300)
    lots = rng.integers(0, 7, 300)
    seen = [form.block_sums(7, lambda n, parts: lots[:n]) for form in forms(X, y)]
    for sums in seen[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(sums, seen[0], strict=True))
    less = [form.block_sums(7, lambda n, parts: np.delete(lots, 41)[:n]) for form in forms(np.delete(X, 41, 0), np.delete(y, 41))]  # fmt: skip # noqa: E501
    for sums in less:
        for a, b in zip(sums, seen[0], strict=True):
            assert set(np.flatnonzero((a != b).reshape(7, -1).any(axis=1))) <= {lots[41]}
    assert seen[0][3].sum() == 300


def test_rows_in_many_batches_have_as_many_lots() -> None:
    """Whatever the batches are, every row draws once and all sums arrive."""
    rows = 140_000
    X, y = np.ones((rows, 1)), np.ones(rows)
    drawn: list[int] = []

    def lots(n: int, parts: int) -> Any:
        drawn.append(n)
        return np.arange(n) % parts

    for form in forms(X, y):
        drawn.clear()
        products, entries, totals, counts = form.block_sums(3, lots)
        assert sum(drawn) == rows == counts.sum()
        assert products.sum() == rows * 2**32
        assert entries.sum() == totals.sum() == rows * 2**16


@pytest.mark.parametrize("centred", [False, True])
def test_a_block_votes_for_its_best(centred: bool) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(0, 0.3, (60, 5)), rng.uniform(-1, 1, 60)
    lots = rng.integers(0, 4, 60)
    sums = forms(X, y)[0].block_sums(4, lambda n, parts: lots)
    expected = np.zeros(5, dtype=int)
    for block in range(4):
        here = np.clip(X[lots == block], -1, 1), y[lots == block]
        target = here[1] - here[1].mean() if centred else here[1]
        expected[np.argsort(-np.abs(here[0].T @ target))[:2]] += 1
    assert votes(*sums, size=2, centred=centred).tolist() == expected.tolist()


def test_clear_winners_are_released_and_others_refused() -> None:
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (6000, 8))
    clear, vague = X[:, 2] * 0.5 + X[:, 5] * 0.4, rng.uniform(-1, 1, 6000)
    chooser = VotedSupport(2, 60, Budget(1, 1e-6))
    for form in forms(X, clear):
        found = chooser.certify(Secret(form), Exact())
        assert found is not None
        assert set(found.places) == {2, 5}
    assert chooser.certify(Secret(forms(X, vague)[0]), Simulation(1)) is None
    assert chooser.needed(8) < 60


def test_blocks_without_rows_vote_for_nothing() -> None:
    sums = forms(np.empty((0, 4)), np.empty(0))[0].block_sums(5, lambda n, parts: np.empty(0, dtype=np.int64))
    assert votes(*sums, size=2, centred=True).tolist() == [0, 0, 0, 0]


def test_without_a_choice_everything_is_certain() -> None:
    assert distance([3, 3], 2) == math.inf
    assert leaders([1, 3], 2) == (1, 0)


def test_the_order_of_the_winners_is_not_released() -> None:
    """One ballot can turn two winners round at any lead: only the set of them is stable."""
    budget = Budget(1, "0.1")
    voted = VotedSupport(2, 3, budget)
    for tally in ([9, 8, 0], [8, 9, 0], [0, 1, 7]):
        found = voted.certify(_Tallied(tally), Simulation(3))  # type: ignore[arg-type]
        assert found is None or list(found.places) == sorted(found.places)
    everyone = VotedSupport(3, 3, budget)
    for tally in ([1, 0, 0], [0, 0, 1]):
        found = everyone.certify(_Tallied(tally), Simulation(3))  # type: ignore[arg-type]
        assert found is not None
        assert found.places == (0, 1, 2)


class _Tallied:
    """Rows of which only the votes are known."""

    def __init__(self, tally: list[int]) -> None:
        self.tally = np.array(tally)

    def map(self, function: object) -> Secret[Any]:
        return Secret(self.tally)
