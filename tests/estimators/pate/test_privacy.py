"""One person reaches one teacher, and nothing private shows: not in repr, pickle, attributes, errors or warnings."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from snugdp import MemoryLedger, PATEClassifier, Simulation, Unit
from snugdp.estimators.pate import teachers as pate_teachers
from snugdp.estimators.pate.teachers import Scattered, Tolerance, vote
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.tables.cells import groups as people
from tests.effort import often, repeated, sampled
from tests.estimators import checks
from tests.estimators.checks import CANARY, ROWS, SECRET

pytestmark = pytest.mark.usefixtures("plain")
PUBLIC = np.random.default_rng(2).uniform(-1, 1, (40, 3))
TEACHERS = 8
NOTHING = Tolerance(False, False)


def made(n: int = 120, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X[:, 0] + rng.normal(0, 0.3, n) > 0).astype(int)


def model_of(**given: Any) -> Any:
    given = {"teacher": GaussianNB(), "student": GaussianNB(), "classes": [0, 1], "queries": PUBLIC, **given}
    return PATEClassifier(n_teachers=TEACHERS, **given)


class Script(Simulation):
    """Seeds by the seed, and a given teacher for every person."""

    def __init__(self, teachers: Any) -> None:
        super().__init__(0)
        self.teachers = np.asarray(teachers, dtype=np.int64)

    def scatter(self, n: int, parts: int) -> Any:
        if parts != TEACHERS:
            return super().scatter(n, parts)
        assert n == len(self.teachers)
        return self.teachers


@pytest.fixture
def ballots(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What every teacher saw, and its votes, in order."""
    seen: list[Any] = []

    def watched(model: Any, rows: Any, labels: Any, *public: Any) -> Any:
        votes = vote(model, rows, labels, *public)
        seen.append((np.asarray(rows), labels, votes))
        return votes

    monkeypatch.setattr(pate_teachers, "vote", watched)
    return seen


def changed(ballots: list[Any]) -> int:
    """How many teachers vote differently in the second of two fits."""
    assert len(ballots) == 2 * TEACHERS
    pairs = zip(ballots[:TEACHERS], ballots[TEACHERS:], strict=True)
    return sum(not np.array_equal(one[2], other[2]) for one, other in pairs)


@sampled(3)
@repeated
@pytest.mark.parametrize(
    ("teacher", "row"),
    [
        *((teacher, row) for teacher in (GaussianNB(), DecisionTreeClassifier(max_features=1)) for row in (0, 50, 119)),
        *((LogisticRegression(), row) for row in (50, 0, 119)[: often(1, 3)]),  # takes seconds
    ],
)
def test_one_row_reaches_one_teacher(teacher: Any, row: int, ballots: list[Any], plain: Any) -> None:
    X, y = made()
    X[row], y[row] = 1e6, 1 - y[row]  # somebody who shows
    teachers = np.random.default_rng(3).integers(0, TEACHERS, len(X))
    model_of(teacher=teacher, noise=Script(teachers)).fit(X, y)
    votes, rest = plain.votes, np.delete(np.arange(len(X)), row)
    model_of(teacher=teacher, noise=Script(teachers[rest])).fit(X[rest], y[rest])
    assert changed(ballots) == 1 if isinstance(teacher, GaussianNB) else changed(ballots) <= 1
    assert np.abs(votes - plain.votes).sum(axis=1).max() <= 2
    other, labels = X.copy(), y.copy()
    other[row], labels[row] = -1e6, 1 - y[row]
    del ballots[:TEACHERS]
    model_of(teacher=teacher, noise=Script(teachers)).fit(other, labels)
    assert changed(ballots) <= 1


def test_equal_parts_of_the_table_would_not_do(ballots: list[Any]) -> None:
    """One row less, and all parts change: the accounting for one teacher would be false."""
    X, y = made(321)

    def old(n: int) -> Any:
        return np.repeat(np.arange(TEACHERS), [len(part) for part in np.array_split(np.arange(n), TEACHERS)])

    model_of(teacher=DecisionTreeClassifier(), noise=Script(old(321))).fit(X, y)
    model_of(teacher=DecisionTreeClassifier(), noise=Script(old(320))).fit(X[:-1], y[:-1])
    pairs = list(zip(ballots[:TEACHERS], ballots[TEACHERS:], strict=True))
    assert sum(not np.array_equal(one[0], other[0]) for one, other in pairs) == TEACHERS
    assert changed(ballots) > 1


def test_the_rows_of_one_person_are_with_one_teacher(ballots: list[Any]) -> None:
    X, y = made(400)
    groups = np.random.default_rng(5).integers(0, 60, 400)
    X[:, 2] = groups
    text = np.array([f"person {group}" for group in groups])
    for given in (groups, groups.tolist(), text, pd.Series(text), pd.Categorical(text), text.astype(object)):
        ballots.clear()
        model_of(noise=Simulation(7)).fit(X, y, groups=given)
        parts = [rows[:, 2] for rows, _, _ in ballots]
        assert sum(map(len, parts)) == 400
        assert sum(len(set(part.tolist())) for part in parts) == len(set(groups.tolist()))
        assert min(map(len, parts)) > 0


def test_one_person_more_reaches_one_teacher(ballots: list[Any]) -> None:
    X, y = made(400)
    groups = np.random.default_rng(5).integers(0, 60, 400)
    X[groups == 17], y[groups == 17] = 1e6, 1
    teachers = np.random.default_rng(3).integers(0, TEACHERS, 60)
    rest = groups != 17
    model_of(noise=Script(teachers)).fit(X, y, groups=groups)
    number = list(dict.fromkeys(groups.tolist())).index(17)  # in the order of the rows
    model_of(noise=Script(np.delete(teachers, number))).fit(X[rest], y[rest], groups=groups[rest])
    assert changed(ballots) == 1
    ballots.clear()
    model_of(noise=Script(np.arange(400) % TEACHERS)).fit(X, y)  # row by row the person is everywhere
    model_of(noise=Script(np.arange(400)[rest] % TEACHERS)).fit(X[rest], y[rest])
    assert changed(ballots) > 3


def test_a_person_is_told_apart_one_by_one() -> None:
    """A list is not promoted to a common type: that would join or part others when somebody comes."""
    ids: list[Any] = [2**53, 2**53 + 1, 1, "1", "ann"]
    assert people(ids).tolist() == [0, 0, 1, 1, 2]  # as a loader would have them with a cell that is missing
    for odd in (0.5, "x", None, float("nan"), [], pd.NA, pd.NaT, object(), (1, 2)):
        assert people([*ids, odd])[:5].tolist() == [0, 0, 1, 1, 2]
    assert people([None, float("nan"), pd.NA, [], pd.NaT]).tolist() == [-1] * 5
    assert people(np.array([3.0, np.nan, 3.0])).tolist() == [0, -1, 0]


def test_a_row_without_a_person_is_a_person_of_its_own(ballots: list[Any]) -> None:
    X, y = made(40)
    drawn = model_of(noise=Simulation(1)).fit(X, y).labels_
    assert sum(len(rows) for rows, _, _ in ballots) == 40
    for groups in ([None] * 40, [*range(20), *[None] * 20]):
        assert (model_of(noise=Simulation(1)).fit(X, y, groups=groups).labels_ == drawn).all()
    assert sum(len(rows) for rows, _, _ in ballots) == 3 * 40


def lotteries(n: int, teachers: int) -> Iterator[Any]:
    """All equally likely assignments of the estimator."""
    return (np.array(drawn, dtype=np.int64) for drawn in itertools.product(range(teachers), repeat=n))


def shuffles(n: int, teachers: int) -> Iterator[Any]:
    """All equally likely assignments of a shuffled table in equal parts."""
    for order in itertools.permutations(range(n)):
        drawn = np.empty(n, dtype=np.int64)
        for teacher, part in enumerate(np.array_split(np.array(order), teachers)):
            drawn[part] = teacher
        yield drawn


@cache
def parts(ways: Callable[[int, int], Iterator[Any]], n: int) -> Any:
    """The sets of rows of two teachers, as whole numbers, under every assignment of rows 0 .. n - 1."""
    rows, labels = np.arange(n)[:, None], np.zeros(n, dtype=np.int64)
    splits = [Scattered.of(rows, labels, None, drawn, NOTHING) for drawn in ways(n, 2)]
    return np.array([[sum(1 << part[:, 0]) for _, (part, _) in split.parts(2)] for split in splits])


def law(n: int, table: Any, ways: Callable[[int, int], Iterator[Any]], epsilon: float) -> Any:
    """The exact chances that the noisy number of votes for class 1 exceeds k, over all assignments.

    A teacher is an arbitrary function of its part: the table has its vote for every set of rows.
    """
    counts = table[parts(ways, n)].sum(axis=1).tolist()
    return np.mean([[_above(k - count, epsilon) for k in range(-2, 5)] for count in counts], axis=0)


def _above(k: int, epsilon: float) -> float:
    """The chance that two-sided geometric noise exceeds k."""
    ratio = math.exp(-epsilon)
    return ratio ** (k + 1) / (1 + ratio) if k >= 0 else 1 - ratio**-k / (1 + ratio)


def worst(ways: Callable[[int, int], Iterator[Any]], epsilon: float) -> float:
    """The largest log ratio of the events between neighbours, over many teachers that are functions of their parts."""
    largest = 0.0
    for seed in range(100):
        table = np.random.default_rng(seed).integers(0, 2, 16)
        for n in (2, 3):
            one, other = (law(rows, table, ways, epsilon) for rows in (n, n + 1))
            ratios = np.concatenate([one / other, (1 - one) / (1 - other)])
            largest = max(largest, float(np.abs(np.log(ratios)).max()))
    return largest


def test_the_exact_law_over_all_assignments() -> None:
    """Vote counts that are epsilon-DP for one teacher make a fit that is epsilon-DP for one row; equal parts do not."""
    assert worst(lotteries, 0.5) <= 0.5 + 1e-12
    assert worst(lotteries, 0.5) > 0.2
    assert worst(shuffles, 0.5) > 0.55


def test_teachers_share_no_generator(ballots: list[Any]) -> None:
    """A teacher that draws from numpy's global generator would move all later ones along."""
    X, y = made()
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    model_of(teacher=DecisionTreeClassifier(splitter="random"), noise=Simulation(1)).fit(X, y)
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002


@sampled(6)
@pytest.mark.parametrize(
    ("kind", "gap"), [("array", None), ("array", "refuse"), ("list", None), ("objects", None), ("pandas", None)]
)
def test_nothing_of_the_rows_is_kept(kind: str, gap: Any) -> None:
    def table() -> tuple[Any, ...]:
        X = np.full((ROWS, 3), CANARY)
        X[::2, 0] = -CANARY
        return X, np.arange(ROWS) % 2

    model = model_of(
        queries=checks.contained(PUBLIC, kind), ledger=MemoryLedger(9, 0.1, unit="person", composition="tight"), gap=gap
    )
    people = [f"{SECRET} {place}" for place in range(ROWS)]
    checks.assert_nothing_kept(partial(model.fit, groups=people), table, kind, largest=math.inf)


@pytest.mark.parametrize("kind", ["ragged", "nested", "lengths", "groups"])
def test_no_error_or_warning_quotes_a_row(kind: str) -> None:
    X, y = np.full((ROWS, 3), CANARY), np.arange(ROWS) % 2
    rows: Any = {
        "ragged": [[CANARY], [CANARY, CANARY]] * ROWS,
        "nested": X[None],
        "lengths": X[1:],
    }.get(kind, X)
    groups = [SECRET] if kind == "groups" else None
    checks.assert_refused_in_silence(lambda: model_of().fit(rows, y, groups=groups))


@pytest.mark.parametrize("kind", ["complex", "objects", "labels"])
def test_no_type_of_an_array_raises_or_warns(kind: str) -> None:
    """One row gives it to all rows: nothing may be refused by it. But numpy's text, see test_pate_cells."""
    X, y = made(30)
    rows = {"complex": X + 1j, "objects": np.full((30, 3), SECRET, dtype=object)}.get(kind, X)
    with checks.no_warnings():
        assert model_of().fit(rows, np.array([SECRET] * 30) if kind == "labels" else y).released_


def test_the_number_of_rows_does_not_show() -> None:
    def public(n: int) -> list[Any]:
        fits = [model_of().fit(*made(n), groups=groups) for groups in (None, np.arange(n))]
        assert [fit.plan_.unit for fit in fits] == [Unit.ROW, Unit.PERSON]
        seen = [(sorted(vars(fit)), fit.plan_.steps, fit.cost_, fit.classes_.tolist()) for fit in fits]
        assert seen[0] == seen[1]
        return [*seen, *(str(fit.plan_) for fit in fits)]

    checks.assert_number_of_rows_does_not_show(public)


def test_broken_workers_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What joblib says when it fails may quote a row: it is withheld, and nothing was charged."""
    X, y = made()
    ledger = MemoryLedger(9, 0.1, composition="tight")

    def broken(*_: Any) -> Any:
        raise RuntimeError(f"could not send {CANARY}")

    monkeypatch.setattr(pate_teachers, "vote", broken)
    with pytest.raises(PrivateComputationError, match="withheld") as caught:
        model_of(ledger=ledger).fit(X, y)
    assert caught.value.__context__ is None
    assert ledger.spent.epsilon == 0


def test_labels_outside_the_list_are_nobodys(ballots: list[Any]) -> None:
    X, y = made()
    labels: list[Any] = y.tolist()
    labels[::4] = ["rare disease"] * len(labels[::4])
    model = model_of(noise=Simulation(1)).fit(X, labels)
    assert sum(len(rows) for rows, _, _ in ballots) == 90
    assert model.classes_.tolist() == [0, 1]
    assert not any("rare" in str(value) for value in checks.everything(model, set()))
