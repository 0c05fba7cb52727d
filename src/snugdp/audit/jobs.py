"""The audit in pieces that any process can do: one case, one law, one certificate, one interface at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from snugdp.audit import registry
from snugdp.audit.effort import Effort, RunCounts
from snugdp.audit.finding import Case, Finding
from snugdp.core.outcome import Outcome
from snugdp.noise import Noise, Simulation
from snugdp.noise.recording import Transcript, Witness

OF_A_CASE = "DNLIEC"
_OUTPUTS = 130  # runs of layer E at least, where it is the only layer that sees a case
_SEEDS = 1 << 10  # between the seeds of two audits, for pairs that are not shared
_APART = 1 << 40  # the same, for walks that are shared


@dataclass(frozen=True)
class Job:
    """``kind``: what to do; ``name``: with which case, site, certificate or interface; ``layers``: that it belongs to.

    ``group``: of the case.
    """

    kind: str
    name: str
    layers: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


@dataclass(frozen=True)
class Done:
    """What a job found, and how many seconds of a processor each layer took."""

    job: Job
    findings: tuple[Finding, ...]
    seconds: tuple[tuple[str, float], ...]
    seed: int = 0


@dataclass
class Walks:
    """The walks of a case on its worst data, kept as they are made.

    ``case()`` is the case with these walks: its k-th run on a data set is the k-th walk there, for every layer that
    asks for it with a plain witness. Runs with less noise and replays are made as ever. Layers share walks, so their
    false alarms may come together; that makes them no more likely.
    """

    of: Case[Any]
    seed: int = 0
    _pairs: tuple[tuple[Any, Any], ...] = ()
    _made: dict[int, list[tuple[Transcript, Outcome[Any]]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._pairs = tuple(self.of.worst())
        self._made = {id(data): [] for pair in self._pairs for data in pair}

    def case(self) -> Case[Any]:
        """The case, from its first walk on."""
        turns = dict.fromkeys(self._made, 0)

        def run(data: Any, noise: Noise) -> Outcome[Any]:
            kept = self._made.get(id(data))
            if kept is None or not isinstance(noise, Witness) or noise._shrink != 1 or noise._sites or noise._lots:
                return self.of.run(data, noise)
            turn = turns[id(data)]
            turns[id(data)] += 1
            if turn == len(kept):
                kept.append(self._walk(data, turn))
            transcript, outcome = kept[turn]
            noise._sites += transcript.sites
            noise._lots += transcript.lots
            return outcome

        return replace(self.of, run=run, worst=lambda: self._pairs)

    def _walk(self, data: Any, turn: int) -> tuple[Transcript, Outcome[Any]]:
        place = list(self._made).index(id(data))
        witness = Witness(source=Simulation(self.seed * _APART + (place << 24) + turn))
        outcome = self.of.run(data, witness)
        return witness.transcript(), outcome


def jobs_of_cases(cases: Iterable[Case[Any]], layers: Iterable[str]) -> list[Job]:
    """One for each case."""
    wanted = "".join(layer for layer in OF_A_CASE if layer in set(layers))
    return [Job("case", case.name, wanted, case.group) for case in cases if wanted]


def jobs_of_the_library(layers: Iterable[str], full: bool = False) -> list[Job]:
    """Everything of the library that is no case: sources, certificates, entry points. None if it is not installed."""
    wanted, own = set(layers), registry.library()
    return [] if own is None else [job for job in own.jobs(full=full) if set(job.layers) & wanted]


def perform(job: Job, effort: Effort, seed: int, case: Case[Any] | None = None) -> Done:
    """Do it here. ``case``: the case, where it is not a registered one."""
    if job.kind == "case":
        return _case(job, case or registry.case(job.name, job.group), effort, seed)
    start = time.process_time()
    found = tuple(registry.perform(job.kind, job.name, effort))
    return Done(job, found, ((job.layers[0], time.process_time() - start),), seed)


def _case(job: Job, case: Case[Any], effort: Effort, seed: int) -> Done:
    walks = _ready(job.layers[0], case, seed)
    if isinstance(walks, Finding):
        return Done(job, (walks,), (), seed)
    runs = effort.of(case)
    found: list[Finding] = []
    seconds = []
    for layer in job.layers:
        start = time.process_time()
        try:
            found += _LAYERS[layer](case, walks, runs, seed)
        except Exception as problem:  # a mechanism that raises has not passed, and the others are audited all the same
            words = f"{type(problem).__name__}: {problem}"
            found.append(Finding(layer, case.name, "runs without an error", "an error", False, words))
        seconds.append((layer, time.process_time() - start))
    return Done(job, tuple(found), tuple(seconds), seed)


def _ready(layer: str, case: Case[Any], seed: int) -> Walks | Finding:
    """The first walk of a case, or what is wrong with the case."""

    def wrong(claim: str, measured: str, words: str) -> Finding:
        return Finding(layer, case.name, claim, measured, False, words)

    try:
        walks = Walks(case, seed)
        pairs = list(walks.case().worst())
        outcome = walks.case().run(pairs[0][0], Witness()) if pairs else None
    except Exception as problem:
        return wrong("runs without an error", "an error", f"{type(problem).__name__}: {problem}")
    if not pairs:
        return wrong("worst gives pairs of neighbours", "none", "Case.worst must give at least one pair")
    if not all(hasattr(outcome, name) for name in ("refused", "value")):
        return wrong("run returns an outcome", type(outcome).__name__, "released_by(draw, cost) makes a run that does")
    return walks


def _density(case: Case[Any], walks: Walks, runs: RunCounts, seed: int) -> list[Finding]:
    from snugdp.audit.density.density import density

    first = runs.loose if case.tight is False else runs.tight
    given: dict[str, Any] = {"others": min(first, runs.others), "random": runs.random, "most": runs.pairs}
    return density(walks.case(), runs=first, sparing=runs.sparing, seed=seed * _SEEDS, **given)


def _neighbour(case: Case[Any], walks: Walks, runs: RunCounts, seed: int) -> list[Finding]:
    from snugdp.audit.steps.neighbour import neighbour
    from snugdp.audit.steps.run_count import hidden_runs
    from snugdp.audit.steps.stepwise import stepwise

    start = seed * _SEEDS
    found = neighbour(walks.case(), runs=runs.near, random=runs.strange, seed=start)
    found += stepwise(case, random=runs.strange // 4, boundary=runs.boundary, seed=start)
    return found + hidden_runs(case, runs=runs.near, seed=start)


def _low_bits(case: Case[Any], walks: Walks, runs: RunCounts, seed: int) -> list[Finding]:
    from snugdp.audit.laws.low_bits import low_bits

    kept = walks.case()
    first = list(kept.worst())[:1]
    return low_bits(replace(kept, worst=lambda: first), runs.walks)


def _independent(case: Case[Any], walks: Walks, runs: RunCounts, seed: int) -> list[Finding]:
    from snugdp.audit.independence import walks as independent

    return independent(walks.case(), runs.walks)


def _ends(case: Case[Any], walks: Walks, runs: RunCounts, seed: int) -> list[Finding]:
    from snugdp.audit.end_to_end import end_to_end

    count = runs.ends if case.transcript else max(runs.ends, _OUTPUTS)
    if not count:
        return []
    return end_to_end(walks.case(), runs=count, seed=seed * _SEEDS, power=runs.power)


def _certified(case: Case[Any], walks: Walks, runs: RunCounts, seed: int) -> list[Finding]:
    from snugdp.audit.coverage import coverage

    return [coverage(one) for one in case.certificates]


_LAYERS: dict[str, Callable[[Case[Any], Walks, RunCounts, int], list[Finding]]] = {
    "D": _density,
    "N": _neighbour,
    "L": _low_bits,
    "I": _independent,
    "E": _ends,
    "C": _certified,
}
