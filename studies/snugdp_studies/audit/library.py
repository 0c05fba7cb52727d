"""Everything of the library that ``snugdp audit`` looks at: cases by group, and jobs that are no case."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from snugdp.audit.coverage import coverage
from snugdp.audit.effort import Effort
from snugdp.audit.finding import Case, Finding
from snugdp.audit.jobs import Job
from snugdp.noise import Exact
from snugdp_studies.audit.cases import (
    description,
    framework,
    glm,
    linear,
    looks,
    pate,
    pca,
    persons,
    queries,
    selection,
    sparse,
    statistics,
)
from snugdp_studies.audit.certificates import certificates
from snugdp_studies.audit.freshness import decisions, equal_draws, fresh_library, lanes
from snugdp_studies.audit.laws import inside
from snugdp_studies.audit.laws.samples import FULL, QUICK, LawEffort
from snugdp_studies.audit.laws.sources import SITES, laws
from snugdp_studies.audit.side_channels.canaries import power
from snugdp_studies.audit.side_channels.doors import doors
from snugdp_studies.audit.side_channels.entry_points import bad_inputs, entry_point_names, kept
from snugdp_studies.audit.side_channels.lint import lint

MODULES: dict[str, Any] = {  # by group, those whose cases are made quickly first
    "framework": framework,
    "queries": queries,
    "statistics": statistics,
    "description": description,
    "persons": persons,
    "looks": looks,
    "pca": pca,
    "pate": pate,
    "sparse": sparse,
    "selection": selection,
    "glm": glm,
    "linear": linear,
}
GROUPS = tuple(MODULES)
_STEADY = frozenset({"looks", "pca", "persons", "sparse", "glm", "linear"})  # walks of some ten milliseconds
SLOW = frozenset(  # of some fifty and more
    {
        "bounds",
        "bounds: replace",
        "bounds: of two columns",
        "linear: adaptive",
        "linear: auto",
        "linear: objective, two stages",
        "linear: posterior",
        "linear: adaops",
        "linear: auto, bounds found",
        "linear: adassp, bounds found",
        "linear: adassp, bounds and levels found",
        "logistic: auto",
        "logistic: output",
        "logistic: output, one ridge, round",
        "logistic: output, as curved as the rows",
        "logistic: softmax, auto",
        "logistic: one against the rest",
        "logistic: one against the rest, auto",
        "logistic: auto, bounds found",
        "logistic: softmax, bounds found",
        "logistic: classes found",
        "logistic: three classes found",
        "logistic: one against the rest, classes found",
        "poisson: auto, bounds found",
        "poisson: counts found",
        "poisson: output",
        "pca: projector",
        "pca: projector, as many as stand out",
        "PATEClassifier: plain",
        "PATEClassifier: plain: replace",
        "PATEClassifier: distance",
        "sparse linear: gumbel",
        "sparse logistic: gumbel",
        "sparse logistic: output",
        "selection: every proposal once",
        "selection: proposals of an estimator",
    }
)
_SOURCES: dict[str, Callable[[Effort], Iterator[Finding]]] = {
    "lanes": lambda effort: lanes(Exact(), _law_effort(effort)),
    "decisions": lambda effort: decisions(Exact(), _law_effort(effort)),
    "equal_draws": lambda effort: equal_draws(Exact),
}


def cases(group: str) -> Iterator[Case[Any]]:
    """The cases of a group, each made when its turn comes."""
    return map(_paced, MODULES[group].cases())


def case(name: str) -> Case[Any]:
    """The case of this name, made without those that take long to plan: many begin with the name of their group."""
    makers = {known: make for module in MODULES.values() for known, make in getattr(module, "MAKERS", {}).items()}
    if name in makers:
        return _paced(makers[name]())
    for group in sorted(MODULES, key=lambda group: not name.startswith(group)):
        if not hasattr(MODULES[group], "MAKERS"):
            for one in cases(group):
                if one.name == name:
                    return one
    raise LookupError(f"no case of the library is called {name!r}")


def _paced(case: Case[Any]) -> Case[Any]:
    return replace(case, pace="slow" if case.name in SLOW else "steady" if case.group in _STEADY else "swift")


def _law_effort(effort: Effort) -> LawEffort:
    return FULL if effort.full else QUICK


def jobs(*, full: bool) -> Iterator[Job]:
    """Everything that is no case."""
    yield from (Job("entry point", name, "B") for name in entry_point_names(full=full))
    if full:
        yield from (Job("door", name, "B") for name in entry_point_names())
    yield from (Job("law", name, "S") for name in SITES)
    yield from (Job("inside", name, "S") for name in inside.PARTS)
    yield from (Job("source", name, "I") for name in _SOURCES)
    yield from (Job("certificate", one.name, "C") for one in certificates())
    yield Job("freshness", "", "I")
    yield Job("canaries", "", "B")
    yield Job("lint", "", "B")


PERFORM: Mapping[str, Callable[[str, Effort], list[Finding]]] = {
    "law": lambda name, effort: laws(effort=_law_effort(effort), only=(name,)),
    "inside": lambda name, effort: list(inside.PARTS[name](_law_effort(effort))),
    "source": lambda name, effort: list(_SOURCES[name](effort)),
    "certificate": lambda name, effort: [coverage(one) for one in certificates() if one.name == name],
    "entry point": lambda name, effort: [*bad_inputs(full=effort.full, names=[name]), *kept([name])],
    "door": lambda name, effort: doors(full=effort.full, names=[name]),
    "canaries": lambda name, effort: [power()],
    "lint": lambda name, effort: lint(),
    "freshness": lambda name, effort: fresh_library(),
}
