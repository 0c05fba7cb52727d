"""The paper's experiment: sets of queries by consensus, every curve on each, and what public beliefs would propose.

Sets are chosen by the votes, as the paper does: NOT PRIVATE, and for figures only. The set of all queries is not.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snugdp.mechanisms.teachers.ball import Integers
from snugdp.mechanisms.teachers.planning import design
from snugdp.noise.simulation import shuffled
from snugdp_studies.paper.pate.curves import (
    CURVES,
    AnalysisCurve,
    KnownVotes,
    gaussian_epsilon,
    not_private_chance,
    not_private_curves,
    proposed,
)
from snugdp_studies.paper.pate.data import Votes

SIGMAS = (13.7858, 20.977, 30.29, 39.3738, 48.5693)
_LOWEST = 0.05  # epsilon, of the picture
NOTES = (
    "NOT PRIVATE: this is a study of known votes. Sets other than all queries are chosen by their votes, which is for "
    "figures only.",
    "Curves marked * are no guarantees at all. The other curves are those of private mechanisms; their tests pass "
    "these votes in 9 of 10 cases, and the epsilon for that was found with the votes (not for the Gaussian one).",
    'A proposal from a public belief is private: "proposed" is the epsilon, "passes" how likely these votes pass '
    "at it, which is again NOT PRIVATE.",
)


@dataclass(frozen=True)
class QuerySelection:
    """Queries by the share of teachers who vote for the plurality: above ``low`` and below ``high``."""

    title: str
    low: float = -1.0
    high: float = 2.0

    def places(self, tops: Integers, teachers: int, most: int) -> Integers:
        """At most so many of the queries, by lot."""
        inside = np.flatnonzero((tops > self.low * teachers) & (tops < self.high * teachers))
        return np.sort(inside[shuffled(len(inside), len(inside))[:most]])


SELECTIONS: Mapping[str, QuerySelection] = {
    "high": QuerySelection("high consensus: plurality above 150 of 400", low=0.375),
    "low": QuerySelection("low consensus: plurality below 150 of 400", high=0.375),
    "authors_high": QuerySelection("the authors' high consensus: above 280 of 400", low=0.7),
    "authors_low": QuerySelection("the authors' low consensus: 240 to 340 of 400", low=0.6, high=0.85),
    "highest": QuerySelection("plurality above 350 of 400", low=0.875),
    "all": QuerySelection("all queries, by lot"),
}


@dataclass(frozen=True)
class Proposed:
    """What a public belief proposes: the epsilon, and how likely the votes of the study pass at it."""

    belief: str
    epsilon: float
    chance: float


@dataclass(frozen=True)
class StudyPoint:
    """All curves at one noise on one set."""

    set: str
    queries: int
    sigma: float
    epsilons: Mapping[str, float]
    proposals: Sequence[Proposed]


@dataclass(frozen=True, eq=False)
class Study:
    """What is to be computed: votes, sets of queries, noises, and the beliefs."""

    votes: Votes
    sets: Mapping[str, Integers]
    sigmas: Sequence[float] = SIGMAS
    delta: float = 1e-5
    gap: float | None = None  # that every plurality leads by; if not given, all leads are as likely
    proxy: Integers | None = None  # public histograms of the first queries, those whose classes are not public
    curves: Sequence[AnalysisCurve] = CURVES

    def run(self, seed: int = 1) -> Iterator[StudyPoint]:
        """One point after the other."""
        for name, places in self.sets.items():
            for sigma in self.sigmas:
                case = KnownVotes(self.votes.histograms[places], self.votes.teachers, sigma, self.delta)
                epsilons = not_private_curves(case, [curve.name for curve in self.curves], seed)
                yield StudyPoint(name, case.queries, sigma, epsilons, [*self._proposals(case, places)])

    @property
    def points(self) -> int:
        """How many there will be."""
        return len(self.sets) * len(self.sigmas)

    def _proposals(self, case: KnownVotes, places: Integers) -> Iterator[Proposed]:
        plain = gaussian_epsilon(case)
        shape = {"teachers": case.teachers, "queries": case.queries, "classes": case.votes.shape[1]}
        guess = "no belief" if self.gap is None else f"every lead is {self.gap:g}"
        beliefs = {guess: design(gap=self.gap, proxy=None, **shape)}
        if self.proxy is not None:
            beliefs["public proxy"] = design(gap=None, proxy=self.proxy[places[places < len(self.proxy)]], **shape)
        for name, public in beliefs.items():
            epsilon = proposed(case, public, plain)
            if epsilon < plain:
                yield Proposed(name, epsilon, not_private_chance(case, public, epsilon))
            else:  # no test is needed, and none refuses
                yield Proposed(name, plain, 1.0)


def selected(votes: Votes, names: Iterable[str], queries: int) -> dict[str, Integers]:
    """Sets of queries: those that came with the votes, or by their shares of votes."""
    tops = votes.histograms.max(axis=1)
    found = {}
    for name in names:
        if name not in SELECTIONS and name not in votes.sets:
            raise ValueError(f"there is no set {name}; there are {', '.join([*SELECTIONS, *votes.sets])}")
        own = votes.sets.get(name)
        found[name] = SELECTIONS[name].places(tops, votes.teachers, queries) if own is None else own
        if not len(found[name]):
            raise ValueError(f"no query is in the set {name}; leave it out with --sets")
    return found


def as_json(study: Study, points: Sequence[StudyPoint]) -> dict[str, Any]:
    """Everything that a figure needs. Infinite numbers are null."""
    return {
        "notes": list(NOTES),
        "delta": study.delta,
        "teachers": study.votes.teachers,
        "sets": {name: {"title": title_of(name), "queries": len(places)} for name, places in study.sets.items()},
        "curves": [asdict(curve) for curve in study.curves],
        "points": [
            {
                **asdict(point),
                "epsilons": {name: _finite(value) for name, value in point.epsilons.items()},
                "proposals": [{**asdict(one), "epsilon": _finite(one.epsilon)} for one in point.proposals],
            }
            for point in points
        ],
    }


def title_of(name: str) -> str:
    """What a set is, in words."""
    return SELECTIONS[name].title if name in SELECTIONS else name


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def plot(file: Path, study: Study, points: Sequence[StudyPoint]) -> None:
    """Draw the figure, a panel for each set. The same numbers give the same file, byte for byte."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "snugdp", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.2 * len(study.sets) + 2.2, 4.0), layout="constrained")
        panels = figure.subplots(1, len(study.sets), sharey=True, squeeze=False)[0]
        for panel, name in zip(panels, study.sets, strict=True):
            own = [point for point in points if point.set == name]
            for place, curve in enumerate(study.curves):
                _line(panel.plot, own, curve, place)
            panel.set_yscale("log")
            panel.set_ylim(bottom=_LOWEST)
            panel.set_title(f"{title_of(name)}\n{own[0].queries} queries")
            panel.set_xlabel("noise on the votes, sigma")
            panel.grid(alpha=0.3)
        panels[0].set_ylabel(f"epsilon at delta = {study.delta:g}")
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def _line(draw: Callable[..., Any], points: Sequence[StudyPoint], curve: AnalysisCurve, place: int) -> None:
    label = curve.title if curve.private else f"{curve.title} (NOT PRIVATE)"
    width = 2.4 if curve.name == "sharp" else 1.3
    values = [point.epsilons[curve.name] for point in points]
    draw([point.sigma for point in points], values, "-" if curve.private else ":", linewidth=width, color=f"C{place}",
         label=label)  # fmt: skip
