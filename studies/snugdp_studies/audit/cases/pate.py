"""Labels from the votes of teachers, plain and behind every test; and the classifier that makes the teachers itself."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.dummy import DummyClassifier

import snugdp.pate
from snugdp.accounting import gaussian
from snugdp.audit.finding import Case
from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Unit
from snugdp.estimators.pate.classifier import PATEClassifier
from snugdp.mechanisms.teachers.labels import NoisyLabels
from snugdp.mechanisms.teachers.smooth_test import SmoothTest
from snugdp.noise import Noise
from snugdp.pate import labelling
from snugdp.pate.proposals import Proposal, Size
from snugdp.pate.votes import read
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.release.context import ReleaseContext
from snugdp_studies.audit.cases.fitting import fitting
from snugdp_studies.audit.cases.tables import Generator, Table, any_of, apart, more, one_of, with_targets, without

People: TypeAlias = tuple[Any, list[Any], list[int]]  # rows, their labels, and whose they are
Ballots: TypeAlias = list[list[Any]]  # what every teacher says to every query
EPSILON, DELTA = 1.0, 0.05
CLASSES, TEACHERS, QUERIES = ("a", "b", "c"), 60, 6
_LABEL, _ODD_LABEL = any_of(*CLASSES[:2]), any_of(*CLASSES[:2], None, "nobody", 1, float("nan"))


def cases() -> Iterator[Case[Any]]:
    """All of them."""
    yield _one_query()
    yield from _proposals()
    yield _by_smooth_sensitivity()
    yield from _classifiers()


def _ballots(votes: dict[str, int], queries: int = QUERIES) -> Ballots:
    return [[label] * queries for label, count in votes.items() for _ in range(count)]


def _turned(rows: Ballots, to: Any, place: int = 0) -> Ballots:
    """The same votes, but for one teacher: it says something else everywhere, or nothing."""
    return [*rows[:place], [to] * len(rows[place]), *rows[place + 1 :]]


def _random(teachers: int, queries: int, classes: tuple[str, ...]) -> Callable[[Generator], tuple[Ballots, Ballots]]:
    """Teachers who agree more or less, and one of them who says anything else."""

    def ballots(generator: Generator) -> tuple[Ballots, Ballots]:
        sure = generator.uniform(0.2, 1.0)

        def vote() -> Any:
            return classes[0] if generator.random() < sure else one_of(generator, (*classes, None))

        def odd() -> Any:
            return one_of(generator, (*classes, None, float("nan"), "nobody", 0, True))

        rows = [[vote() for _ in range(queries)] for _ in range(teachers)]
        place = int(generator.integers(teachers))
        other = [*rows[:place], [odd() for _ in range(queries)], *rows[place + 1 :]]
        return rows, [other[at] for at in generator.permutation(teachers)]

    return ballots


def _labelled(proposal: Proposal) -> Callable[[Ballots, Noise], Any]:
    """``snugdp.pate.label`` with a plan that was made before."""

    def run(rows: Ballots, noise: Noise) -> Any:
        panel, votes = read(rows, form="teachers", classes=CLASSES)
        return labelling.run(proposal, panel, votes, ReleaseContext(noise))

    return run


def _one_query() -> Case[Ballots]:
    mu = gaussian.mu(EPSILON, DELTA)
    two, one_query = CLASSES[:2], 1
    budget = Budget(EPSILON, DELTA)

    def direct(rows: Ballots, noise: Noise) -> Any:
        return snugdp.pate.label(rows, budget, test="none", form="teachers", classes=two, noise=noise)

    # Two classes and one query are a half-line of a Gaussian pair: the one that tells it apart best at EPSILON.
    lead = round(2 / mu * (EPSILON / mu - mu / 2))
    lost = _ballots({"a": 20 + lead % 2, "b": 20 + lead % 2 + lead}, one_query)
    even = _ballots({"a": 21, "b": 20}, one_query)
    cost = snugdp.pate.plan(budget, n_queries=1, n_teachers=41, n_classes=2, test="none").cost
    return Case(
        name="pate: one query",
        group="pate",
        run=direct,
        cost=cost,
        worst=lambda: [(even, _turned(even, "b")), (lost, _turned(lost, "b"))],
        random=_random(41, one_query, two),
        tight=False,  # one bit of Gaussian noise needs thousands of runs; its parts are exact
    )


def _proposed(test: Any, relation: str = "add_remove", **given: Any) -> Proposal:
    numbers = {"sigma": None, "gap": None, "proxy": None, "threshold": None, "threshold_sigma": None, **given}
    size = Size(TEACHERS, QUERIES, len(CLASSES))
    return labelling.propose(Budget(EPSILON, DELTA, relation), size, test, labelling.Numbers(**numbers))


def _proposals() -> Iterator[Case[Ballots]]:
    """Plain, and behind the distance test; for all queries, and only where the teachers are sure."""
    forms: dict[str, tuple[Any, str, dict[str, Any]]] = {
        "plain": ("none", "add_remove", {}),
        "plain, only where sure": ("none", "add_remove", {"threshold": 30, "threshold_sigma": 20}),
        "distance": ("distance", "add_remove", {"sigma": 2, "gap": 40}),
        "distance: replace": ("distance", "replace", {"sigma": 2, "gap": 40}),
        "distance, only where sure": (
            "distance",
            "add_remove",
            {"sigma": 2, "gap": 50, "threshold": 30, "threshold_sigma": 15},
        ),
    }
    for name, (test, relation, given) in forms.items():
        proposal, plain = _proposed(test, relation, **given), test == "none"
        yield Case(
            name=f"pate: {name}",
            group="pate",
            run=_labelled(proposal),
            cost=proposal.plan.cost,
            worst=_close if plain else _leads,
            random=_random(TEACHERS, QUERIES, CLASSES),
            # Labels behind a threshold are drawn for all queries and shown for some: these are promised, not all.
            transcript=plain or "threshold" not in given,
            # Who comes first says less than the noisy counts that are paid for; the bound behind a test has slack too.
            tight=False,
            parts=plain,
        )


def _close() -> list[tuple[Ballots, Ballots]]:
    """A teacher who goes over to the second, or says nothing; and a lead where the largest count moves as well."""
    rows, clear = _ballots({"a": 25, "b": 24, "c": 11}), _ballots({"a": 30, "b": 20, "c": 10})
    return [(rows, _turned(rows, "b")), (rows, _turned(rows, None)), (clear, _turned(clear, "b"))]


def _leads() -> list[tuple[Ballots, Ballots]]:
    """From no lead at all, where a test must fail, to one that passes nearly always."""
    pairs = []
    for lead in (14, 8, 2, 20, 40, 56):
        rest = TEACHERS - lead
        rows = _ballots({"a": rest // 2 + lead, "b": rest - rest // 2})
        pairs.append((rows, _turned(rows, "b")))
    return pairs


def _by_smooth_sensitivity() -> Case[Ballots]:
    """The paper's test, made honest."""
    sigma = Fraction(2)
    test = SmoothTest(
        sigma=sigma,
        order=Fraction(2),
        beta=Fraction(1, 4),
        sigma_loss=Fraction(2),
        sigma_scale=Fraction(2),
        limit=Fraction(1),
        delta=Fraction(1, 20),
        failure=Fraction(1, 100),
        teachers=TEACHERS,
        queries=QUERIES,
        classes=len(CLASSES),
    )
    steps = (
        Step(
            "test",
            StepKind.TEST,
            StepNoise("renyi-loss", "gaussian", params={"order": 2}),
            Cost(neighbours=test.cost.neighbours),
        ),
        Step("release", StepKind.RELEASE, StepNoise("plurality", "gaussian", float(sigma), "votes"), test.cost),
    )
    plan = Plan("smooth", theorem("labels-smooth/1"), steps, unit=Unit.TEACHER)
    return Case(
        name="pate: smooth",
        group="pate",
        run=_labelled(Proposal(plan, NoisyLabels(sigma), test)),
        cost=test.cost,
        worst=_leads,
        random=_random(TEACHERS, QUERIES, CLASSES),
        tight=False,
        parts=False,
    )


def _classifiers() -> Iterator[Case[Any]]:
    queries = np.array([[0.0], [1.0]])
    forms: dict[str, dict[str, Any]] = {
        "plain": {"test": "none"},
        "plain: replace": {"test": "none", "neighbours": "replace"},
        "distance": {"test": "distance", "sigma": 1.5, "gap": 24},
    }
    common: dict[str, Any] = {
        "teacher": DummyClassifier(),  # votes for the most frequent label of its rows
        "student": DummyClassifier(),
        "n_teachers": 30,
        "epsilon": EPSILON,
        "delta": DELTA,
        "classes": list(CLASSES[:2]),
        "queries": queries,
    }
    for name, form in forms.items():
        relation = form.get("neighbours", "add_remove")
        yield fitting(
            f"PATEClassifier: {name}",
            PATEClassifier,
            {**common, **form},
            group="pate",
            worst=partial(taught, relation),
            # Rows are sent to teachers by lots, which go by their places: the row that differs is the last.
            random=partial(
                with_targets, d=1, target=_LABEL, odd=_ODD_LABEL, relation=relation, ordered=True, least=2, most=60
            ),
            tight=False,
            parts=form["test"] == "none",
            apart=apart,
        )
    yield fitting(
        "PATEClassifier: many rows of a person",
        PATEClassifier,
        {**common, **forms["plain"]},
        group="pate",
        worst=lambda: [_person(["a", "b"] * 6, ["b"] * 12), _person(["a"] * 40, ["b"] * 3)],
        random=_random_person,
        tight=False,
    )


def _person(others: list[Any], own: list[Any]) -> tuple[People, People]:
    """One row of every other person; then all rows of one more, who is there or not."""
    labels = others + own
    whose = [*range(len(others)), *[len(others)] * len(own)]
    few, count = len(others), len(labels)
    return (np.zeros((count, 1)), labels, whose), (np.zeros((few, 1)), others, whose[:few])


def _random_person(generator: Generator) -> tuple[People, People]:
    others = [_LABEL(generator) for _ in range(generator.integers(1, 40))]
    return _person(others, [_ODD_LABEL(generator) for _ in range(generator.integers(1, 9))])


def taught(relation: str) -> list[tuple[Table, Table]]:
    """So few rows that one of them makes its teacher's vote."""
    rows: Table = np.zeros((12, 1)), ["a", "b"] * 6
    sure: Table = np.zeros((30, 1)), ["a"] * 28 + ["b"] * 2
    pairs = []
    for table in (rows, sure):
        other = more(table, [0.0], "a") if relation == "replace" else table
        pairs.append((more(table, [0.0], "b"), other))
    if relation == "add_remove":  # a row in the middle goes: all others stay with their teachers
        many: Table = np.zeros((60, 1)), ["b", "a"] * 30
        pairs.append((many, without(many, 30)))
    return pairs
