"""Teachers: scattered rows, one model for each part, and nothing kept of them but their votes on public queries."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.parallel import Parallel, delayed

from snugdp.core.screen import watched
from snugdp.estimators.pate.rows import Integers, fresh, size, spoiled, take, usable
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.secrecy.silence import attempt, muted
from snugdp.tables.cells import Names

SEEDS = 2**31 - 1  # whole numbers that every random_state takes
_SAMPLE, _EACH = 200, 6  # rows of the trial at least, and of each class: enough for cross-validation in five parts
FAILED = (
    "the teachers could not be trained; the cause is withheld because it may depend on the rows. Nothing was charged. "
    "Try n_jobs=1, and the teacher on made-up rows"
)
_LOUD = {
    "verbose": "a teacher must not print, because what it prints would be about private rows: set verbose=0",
    "memory": "a teacher must not keep a cache, because private rows would stay there: set memory=None",
}


@dataclass(frozen=True)
class Tolerance:
    """What a model can learn from: whether NaN, or an infinite number, may be in its rows."""

    nan: bool
    infinite: bool


def check_model(model: Any, what: str) -> None:
    """That it is a classifier of scikit-learn's kind; a teacher must also be silent and forgetful."""
    worked, fine = attempt(lambda: bool(is_classifier(model)) and hasattr(model, "fit") and hasattr(model, "predict"))
    if not (worked and fine) or isinstance(model, type):
        raise TypeError(
            f"{what} must be a classifier with scikit-learn's interface, such as LogisticRegression() or a pipeline "
            "that ends in one"
        )
    for name, value in model.get_params(deep=True).items():
        said = _LOUD.get(name.rpartition("__")[2]) if what == "teacher" else None
        if said is not None and value is not None and not (isinstance(value, int) and value <= 0):
            raise ValueError(f"{said} (teacher__{name})")


def rehearse(model: Any, what: str, queries: Any, classes: NDArray[Any]) -> None:
    """Train a copy on public queries with made-up labels: what cannot be trained at all fails here, for free."""
    try:
        answers = _attempt(model, _sample(queries, classes), queries, classes)
    except Exception as problem:
        raise ValueError(
            f"the {what} could not be trained on a sample of the queries with made-up labels: "
            f"{type(problem).__name__}: {problem}. Nothing was charged, and no private row was read"
        ) from problem
    worked, found = attempt(lambda: Names(classes.tolist()).indices(np.asarray(answers)))
    if not worked or found is None or len(found) != size(queries):
        raise ValueError(f"the {what} must predict one of the classes for every query: its predictions are others")


def tolerance(model: Any, queries: Any, classes: NDArray[Any]) -> Tolerance:
    """What a model takes, tried on public queries with made-up labels. The tags of pipelines do not tell."""

    def takes(value: float) -> bool:
        rows = spoiled(_sample(queries, classes), value)
        return rows is not None and attempt(lambda: _attempt(model, rows, queries, classes))[0]

    return Tolerance(takes(np.nan), takes(np.inf))


def _sample(queries: Any, classes: NDArray[Any]) -> Any:
    return take(queries, np.arange(max(_SAMPLE, _EACH * len(classes))) % size(queries))


def _attempt(model: Any, rows: Any, queries: Any, classes: NDArray[Any]) -> Any:
    with muted():
        labels = classes[np.arange(size(rows)) % len(classes)]
        return seeded(clone(model), 0).fit(fresh(rows), labels).predict(fresh(queries))


def seeded(model: Any, number: int) -> Any:
    """The model with randomness of its own, where it was not given any: teachers must not share a generator."""
    parameters = model.get_params(deep=True).items()
    missing = [name for name, value in parameters if name.rpartition("__")[2] == "random_state" and value is None]
    return model.set_params(**dict.fromkeys(missing, int(number)))


@dataclass(frozen=True, repr=False)
class Scattered:
    """Private rows with the places of their labels, and the teacher of each row. -1: left out."""

    rows: Any
    labels: Integers
    teachers: Integers

    @classmethod
    def of(cls, rows: Any, labels: Integers, whose: Integers | None, drawn: Integers, takes: Tolerance) -> Scattered:
        """Each person's rows with one teacher: ``drawn`` has a teacher for every person, or for every row."""
        teachers = drawn.copy() if whose is None else drawn[whose]
        teachers[(labels < 0) | ~usable(rows, nan=takes.nan, infinite=takes.infinite)] = -1
        return cls(rows, labels, teachers)

    def parts(self, number: int) -> Iterator[tuple[int, tuple[Any, Integers]]]:
        """Every teacher with its part, in the order of the rows, in memory of its own."""
        order = np.argsort(self.teachers, kind="stable")
        ends = np.searchsorted(self.teachers[order], np.arange(number + 1))
        for teacher, (start, end) in enumerate(pairwise(ends)):
            part = order[start:end]
            yield teacher, (take(self.rows, part), self.labels[part])


@dataclass(frozen=True)
class Ballot:
    """What teachers vote on, and who they are: copies of one model, each with a seed. Public, but for the seeds."""

    model: Any
    seeds: Integers = field(repr=False)
    queries: Any
    classes: NDArray[Any]

    def teacher(self, number: int) -> Any:
        """A teacher that was not trained yet."""
        return seeded(clone(self.model), int(self.seeds[number]))


def histograms(
    parts: Iterable[tuple[int, tuple[Any, Integers]]], ballot: Ballot, *, n_jobs: Any, progress: Any
) -> Integers:
    """How many teachers vote for every class, by query. Private.

    ``parts``: of teachers by number; those that are left out abstain. Models and parts are dropped at once. Nothing
    that happens in a part shows: neither errors nor warnings. Parts go to other processes through pipes, never as
    files; one that cannot be sent makes its teacher abstain, however many processes there are.
    """
    jobs = (
        delayed(votes_of)(ballot.teacher(number), packed(part), ballot.queries, ballot.classes)
        for number, part in parts
    )

    def count() -> Integers:
        every = np.arange(size(ballot.queries))
        counts = np.zeros((len(every), len(ballot.classes)), dtype=np.int64)
        with muted(), _bar(len(ballot.seeds), progress) as advance:
            for answers in Parallel(n_jobs=n_jobs, return_as="generator", max_nbytes=None)(jobs):
                cast = answers >= 0
                counts[every[cast], answers[cast]] += 1
                advance()
        return counts

    worked, counts = attempt(count)
    if not worked or counts is None:
        raise PrivateComputationError(FAILED)
    return counts


def packed(part: tuple[Any, Integers]) -> bytes | None:
    """A part for another process; None if it cannot be sent."""
    return attempt(lambda: pickle.dumps(part, protocol=pickle.HIGHEST_PROTOCOL))[1]


def votes_of(model: Any, body: bytes | None, queries: Any, classes: NDArray[Any]) -> Integers:
    """The votes of one teacher, whose part was packed."""
    part = None if body is None else attempt(lambda: pickle.loads(body))[1]
    rows, labels = (None, np.empty(0, dtype=np.int64)) if part is None else part
    return vote(model, rows, labels, queries, classes)


def vote(model: Any, rows: Any, labels: Integers, queries: Any, classes: NDArray[Any]) -> Integers:
    """The votes of one teacher, as indices among the classes; -1 where it abstains.

    Without rows it abstains, with rows of one class it votes for that one, and where it fails it abstains. It gets
    queries of its own: some models write into what they are given, and the next teacher must not read that.
    """
    names = Names(classes.tolist(), "classes")
    votes = np.full(size(queries), labels[0] if len(labels) else -1, dtype=np.int64)
    if not len(labels) or (labels == labels[0]).all():
        return votes
    with muted():
        worked, answers = attempt(
            lambda: names.indices(np.asarray(model.fit(rows, classes[labels]).predict(fresh(queries))))
        )
    if not worked or answers is None or answers.shape != votes.shape:
        return np.full_like(votes, -1)
    return answers


@contextmanager
def _bar(teachers: int, progress: bool | None) -> Iterator[Any]:
    """How many teachers are done: their number is public, and the time that training takes is not covered."""
    if not watched(progress):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("training teachers"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training teachers", total=teachers)
        yield lambda: bar.advance(task)
