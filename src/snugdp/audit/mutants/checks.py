"""The parts of the audit that mutants are shown to: one law, one case, one certificate, one face at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any
from unittest import mock

import snugdp
from snugdp.audit.cases import glm, linear, sparse, tables
from snugdp.audit.coverage import certificates
from snugdp.audit.coverage.coverage import coverage
from snugdp.audit.density.density import density
from snugdp.audit.end_to_end import end_to_end
from snugdp.audit.finding import Case, Finding
from snugdp.audit.freshness import independence, repeats
from snugdp.audit.laws import inside, low_bits, sources
from snugdp.audit.laws.goodness import QUICK
from snugdp.audit.side_channels import calls, canaries, entry_points, inputs
from snugdp.audit.steps.neighbour import neighbour
from snugdp.audit.steps.run_count import hidden_runs
from snugdp.audit.steps.stepwise import stepwise
from snugdp.estimators.glm import GLM
from snugdp.estimators.logistic import LogisticRegression
from snugdp.estimators.poisson import PoissonRegression
from snugdp.estimators.sparse.models import SparseLinearRegression
from snugdp.noise import Continuous, Exact, Law

_ROOMS = {"pca": "pca", "pate": "pate", "selection": "selection", "framework": "framework", "PATEClassifier": "pate"}
_QUERIES = {"mode": "labels", "vote": "labels", "bounds": "labels"}


@lru_cache(maxsize=64)
def case_of(name: str) -> Case[Any]:
    """The registered case of this name, made without those around it where they take long to plan."""
    first, _, rest = name.partition(": ")
    if name == "linear: adassp, a table with gaps":
        return linear._with_gaps()
    if first == "linear":
        return linear._case(rest, *linear._FORMS[rest])
    if first == "sparse linear":
        form = {"y_bound": 1, **sparse._LINEAR[rest]}
        return sparse._case(name, SparseLinearRegression, form, tables.number, tables.odd_number)
    if first == "logistic":
        form = glm._LOGISTIC[rest]
        labels = form["classes"]
        return glm._case(name, LogisticRegression, form, glm._label(labels), glm._odd_label(labels))
    if first == "poisson":
        return glm._case(name, PoissonRegression, glm._COUNTS[rest], glm._count, glm._odd_count)
    if first == "glm":
        return glm._case(name, GLM, glm._LOSSES[rest], tables.number, tables.odd_number)
    room = _ROOMS.get(first) or _QUERIES.get(first, "queries")
    made: Iterator[Case[Any]] = import_module(f"snugdp.audit.cases.{room}").cases()
    return next(case for case in made if case.name == name)


@dataclass(frozen=True)
class SiteLaw:
    """Layer S: one law at one site of our source; with ``count``, only so many findings of it."""

    site: str
    law: Law | None = None
    count: int | None = None

    def __call__(self, quick: bool) -> list[Finding]:
        """The finding."""
        real = (self.law,) if isinstance(self.law, Continuous) else ()
        whole = (self.law,) if self.law is not None and not real else ()
        kept: dict[str, Any] = {"REAL": real, "WHOLE": whole, "SMALL": ()} if self.law is not None else {}
        with mock.patch.dict(vars(sources), kept):
            return list(islice(sources.SITES[self.site](Exact(), QUICK), self.count))


@dataclass(frozen=True)
class Inside:
    """Layer S inside our source: the first findings about its coins and fallbacks; ``single`` as in ``Effort``."""

    part: str
    count: int | None = None
    single: float = QUICK.single

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        effort = replace(QUICK, single=self.single)
        return list(islice(getattr(inside, self.part)(effort), self.count))


@dataclass(frozen=True)
class Apart:
    """Layer I of our source: a part of ``independence``."""

    part: str

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        if self.part == "equal_draws":
            return list(independence.equal_draws(Exact))
        return list(getattr(independence, self.part)(Exact(), QUICK))


@dataclass(frozen=True)
class Walks:
    """Layer I along the walks of a case."""

    case: str
    runs: int = 60

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        return independence.walks(case_of(self.case), self.runs)


@dataclass(frozen=True)
class Seeds:
    """Layer I from outside: releases that must differ, whatever is seeded, forked or started at the same time."""

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        return repeats.fresh("trimmed_mean", repeats.example)


@dataclass(frozen=True)
class Covered:
    """Layer C: one certificate of ours."""

    name: str

    def __call__(self, quick: bool) -> list[Finding]:
        """The finding."""
        part, _, name = self.name.partition("/")
        return [coverage(next(one for one in getattr(certificates, part)() if one.name == name))]


@dataclass(frozen=True)
class Dense:
    """Layer D on the worst pairs of a case."""

    case: str
    runs: int = 150
    most: int | None = None
    random: int = 0

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        return density(case_of(self.case), runs=self.runs, most=self.most, random=self.random)


@dataclass(frozen=True)
class Near:
    """Layer N on the worst pairs of a case, or on one of them, and on random ones."""

    case: str
    runs: int = 4
    random: int = 40
    pair: int | None = None

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        case = case_of(self.case)
        if self.pair is not None:
            pairs = list(case.worst())[self.pair : self.pair + 1]
            case = replace(case, worst=lambda: pairs)
        steps = stepwise(case, random=self.random // 4)
        return [*neighbour(case, runs=self.runs, random=self.random), *steps, *hidden_runs(case, runs=self.runs)]


@dataclass(frozen=True)
class Ends:
    """Layer E on the first of the worst pairs of a case."""

    case: str
    runs: int = 2000
    most: int = 1

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        return end_to_end(case_of(self.case), runs=self.runs, most=self.most)


@dataclass(frozen=True)
class Bits:
    """Layer L on a case."""

    case: str
    runs: int = 10

    def __call__(self, quick: bool) -> list[Finding]:
        """The findings."""
        return low_bits.low_bits(case_of(self.case), self.runs)


@dataclass(frozen=True)
class Battered:
    """Layer B: the battery at one face; ``forms``: the first so many forms of input."""

    face: str
    forms: int | None = None

    def __call__(self, quick: bool) -> list[Finding]:
        """The finding."""
        face = _face(self.face)
        groups = inputs.inputs(face.takes, rows_are_public=face.rows_are_public)
        return [calls.battery(face.name, face.release, islice(groups, self.forms))]


@dataclass(frozen=True)
class Asked:
    """Layer B: a face without one of its public parameters."""

    face: str
    what: str

    def __call__(self, quick: bool) -> list[Finding]:
        """The finding."""
        return [calls._demanded(_face(self.face), self.what)]


@dataclass(frozen=True)
class Searched:
    """Layer B: canaries at one face."""

    face: str

    def __call__(self, quick: bool) -> list[Finding]:
        """The finding."""
        face = _face(self.face)
        rows = 40 if face.rows_are_public else canaries.ROWS
        data = canaries.columns(rows) if face.takes == "column" else canaries.tables()
        return [canaries.canaries(face.name, face.release, data)]


def _face(name: str) -> entry_points.Face:
    return next(entry_points._faces_of(name, getattr(snugdp, name), False, entry_points.paid))
