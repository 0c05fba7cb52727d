"""Students taught by private labels of MNIST: the distance test and confident answers beside plain Gaussian noise.

Runs are rehearsals, NOT PRIVATE: their noise is seeded. Plans are made from public numbers alone: sizes, budgets, and
the votes of a proxy, which is trained on a few labelled public pictures. A refusal leaves no student; it is counted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from snugdp.core.guarantee import Budget
from snugdp.mechanisms.teachers.planning import design
from snugdp.noise import Simulation
from snugdp.noise.simulation import shuffled
from snugdp.pate.labelling import Labels, Numbers, propose, run
from snugdp.pate.proposals import Proposal, Size
from snugdp.pate.votes import Panel
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp_studies.paper.pate.curves import KnownVotes, gaussian_epsilon, proposed
from snugdp_studies.paper.pate.data import (
    KernelRidge,
    Pictures,
    Proxy,
    Votes,
    Watch,
    mnist,
    proxied,
    public_part,
    quietly,
    stored,
    voted,
)

Integers = NDArray[np.int64]

SURE = 0.7  # the share of teachers that makes a query a confident one
PROXY_SURE = 0.9  # and the share of a proxy
GAUSSIAN, DISTANCE, CONFIDENT = "Gaussian", "distance test", "Confident-GNMax"
KINDS: Mapping[str, str] = {
    "random": "random queries",
    "proxy": "queries that a public proxy is sure of",
    "votes": "queries that the teachers are sure of (chosen by votes: NOT PRIVATE)",
}


@dataclass(frozen=True, eq=False)
class StudentSetting:
    """Votes on a pool of public queries, the proxy's votes on them, and the pictures to test students on."""

    pool: Pictures
    votes: Integers
    proxy: Proxy
    teachers: int
    public: Pictures
    test: Pictures

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.votes.shape[1])

    def inside(self, kind: str) -> Integers:
        """The queries of a kind."""
        if kind == "random":
            return np.arange(len(self.votes))
        counts, share = (self.votes, SURE) if kind == "votes" else (self.proxy.first, PROXY_SURE)
        return np.flatnonzero(counts.max(axis=1) > share * counts[0].sum())

    def believed(self, kind: str) -> Integers:
        """The proxy's votes on queries of a kind. Those that one half chose are believed to be as the other half says.

        Of queries that were chosen by the votes it is known how sure the teachers are, so the belief knows it too.
        """
        if kind == "proxy":
            return self.proxy.second[self.inside("proxy")]
        counts = self.proxy.whole
        return counts if kind == "random" else counts[counts.max(axis=1) > SURE * counts[0].sum()]

    def asked(self, kind: str, queries: int, seed: int) -> Integers:
        """Some queries of a kind, by lot."""
        inside = self.inside(kind)
        if len(inside) < queries:
            raise ValueError(f"there are only {len(inside)} {KINDS[kind]}: ask fewer queries")
        return inside[shuffled(seed, len(inside))[:queries]]

    def taught(self, places: Integers, labels: Integers) -> float:
        """The accuracy of a student of these queries and labels."""
        lesson = Pictures(self.pool.rows[places], labels)
        return KernelRidge.fit(lesson, self.classes).accuracy(self.test)


def prepare(data: Path, votes: Path | None = None, teachers: int = 400, watch: Watch = quietly) -> StudentSetting:
    """Read the pictures, train the teachers (or read their votes) and the proxy."""
    images = mnist(data)
    pool, public, test = public_part(images.test)
    if votes is None:
        found = Votes(voted(images.train, teachers, pool.rows, images.classes, watch=watch))
    else:
        found = stored(votes)
    if len(found.histograms) < len(pool):
        raise ValueError(f"the file of votes must hold those on the first {len(pool)} test images")
    proxy = proxied(public, pool.rows, images.classes)
    return StudentSetting(pool, found.histograms[: len(pool)], proxy, found.teachers, public, test)


@dataclass(frozen=True)
class StudentCell:
    """One method on one kind of queries: means over the released runs, nothing where all were refused.

    ``right``: the share of true labels among the answers. ``student``: accuracy on the test images; ``error``: its
    standard error. ``tested``: whether the plan took a test. ``sigma`` and ``refused`` are nothing if there is no plan,
    because such a release would be refused whatever the votes.
    """

    kind: str
    queries: int
    method: str
    epsilon: float
    sigma: float | None
    tested: bool
    refused: float | None
    answers: float | None
    right: float | None
    student: float | None
    error: float | None


@dataclass(frozen=True)
class StudentJob:
    """One cell to be filled."""

    kind: str
    method: str
    epsilon: float
    sigma: float | None = None


def jobs(epsilons: Sequence[float], kinds: Sequence[str]) -> list[StudentJob]:
    """All methods at equal epsilon. Confident answers are for random queries: elsewhere all would be answered."""
    methods = {"random": (GAUSSIAN, DISTANCE, CONFIDENT)}
    return [
        StudentJob(kind, method, epsilon)
        for kind in kinds
        for epsilon in epsilons
        for method in methods.get(kind, (GAUSSIAN, DISTANCE))
    ]


def equal_noise(
    setting: StudentSetting, sigmas: Sequence[float], kinds: Sequence[str], queries: int, delta: float
) -> list[StudentJob]:
    """Two jobs for each noise: the epsilon of the Gaussian mechanism, and the one that the belief proposes."""
    found = []
    for kind in kinds:
        for sigma in sigmas:
            case = KnownVotes(setting.votes[:queries], setting.teachers, sigma, delta)  # its sizes are all that is used
            plain = gaussian_epsilon(case)
            shape = {"teachers": setting.teachers, "queries": queries, "classes": setting.classes}
            cheaper = proposed(case, design(gap=None, proxy=setting.believed(kind), **shape), plain)
            found += [
                StudentJob(kind, GAUSSIAN, plain * 1.0001, sigma),
                StudentJob(kind, DISTANCE, min(cheaper, plain * 1.0001), sigma),
            ]
    return found


def fill(
    setting: StudentSetting, work: Iterable[StudentJob], queries: int, delta: float = 1e-5, seeds: int = 5
) -> Iterator[StudentCell]:
    """One cell after the other."""
    for job in work:
        try:
            proposal = _proposal(setting, job, queries, delta)
        except ValueError:  # it would be refused whatever the votes: nothing is offered, and nothing paid
            yield StudentCell(job.kind, queries, job.method, job.epsilon, None, False, None, None, None, None, None)
            continue
        yield _cell(setting, job, proposal, [_run(setting, job, proposal, queries, seed) for seed in range(seeds)])


def _proposal(setting: StudentSetting, job: StudentJob, queries: int, delta: float) -> Proposal:
    size = Size(setting.teachers, queries, setting.classes)
    sure = round(SURE * setting.teachers) if job.method == CONFIDENT else None
    numbers = Numbers(job.sigma, None, setting.believed(job.kind), sure, None)
    return propose(
        Budget(round(job.epsilon, 9), delta), size, "none" if job.method == GAUSSIAN else "distance", numbers
    )


@dataclass(frozen=True)
class _Run:
    answers: float
    right: float
    student: float


def _run(setting: StudentSetting, job: StudentJob, proposal: Proposal, queries: int, seed: int) -> _Run | None:
    places = setting.asked(job.kind, queries, seed)
    panel = Panel(setting.teachers, queries, tuple(range(setting.classes)))
    context = ReleaseContext(Simulation(_start(job, seed)))
    labels: Labels | None = run(proposal, panel, Secret(setting.votes[places]), context).value
    if labels is None:
        return None
    kept, given = places[labels.answered], labels.labels[labels.answered].astype(np.int64)
    if not len(kept):
        return _Run(0.0, 0.0, 1 / setting.classes)
    right = float((given == setting.pool.labels[kept]).mean())
    return _Run(float(len(kept)), right, setting.taught(kept, given))


def _start(job: StudentJob, seed: int) -> int:
    """A start for the noise that is the same wherever and in whatever order jobs are run."""
    text = f"{job.kind}, {job.method}, {job.epsilon:.6g}, {job.sigma}, {seed}"
    return int.from_bytes(text.encode(), "big") % (2**61 - 1)


def _cell(setting: StudentSetting, job: StudentJob, proposal: Proposal, runs: Sequence[_Run | None]) -> StudentCell:
    kept = [one for one in runs if one is not None]
    students = [one.student for one in kept]
    return StudentCell(
        kind=job.kind,
        queries=proposal.plan.steps[-1].noise.times,
        method=job.method,
        epsilon=job.epsilon,
        sigma=float(proposal.plan.proposal["sigma"]),
        tested=proposal.test is not None,
        refused=1 - len(kept) / len(runs),
        answers=fmean(one.answers for one in kept) if kept else None,
        right=fmean(one.right for one in kept) if kept else None,
        student=fmean(students) if kept else None,
        error=stdev(students) / len(students) ** 0.5 if len(students) > 1 else None,
    )


def references(setting: StudentSetting, kinds: Sequence[str], queries: int, seeds: int = 5) -> dict[str, float]:
    """Students that are not private, or need no private rows: the plurality's, the truth's, and the public sample's."""
    found = {
        "a student of the labelled public pictures alone": KernelRidge.fit(setting.public, setting.classes).accuracy(
            setting.test
        )
    }
    for kind in kinds:
        drawn = [setting.asked(kind, queries, seed) for seed in range(seeds)]
        teachers = setting.votes.argmax(axis=1)
        found[f"{kind}: a student of the plurality, NOT PRIVATE"] = fmean(setting.taught(p, teachers[p]) for p in drawn)
        found[f"{kind}: a student of the truth, NOT PRIVATE"] = fmean(
            setting.taught(p, setting.pool.labels[p]) for p in drawn
        )
    return found
