"""Layer N, hidden runs: the best of a number of runs that nobody is told costs little only if nobody is told.

The price of a selection is that of one draw of the number of runs, of as many runs, and of nothing shown but the best
of them. So there is one such draw in a walk, no more runs follow than it says, and where all were made, one more run
that is like the last changes nothing of what is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from snugdp.audit.equality import equal
from snugdp.audit.finding import Case, Finding
from snugdp.noise.recording import Impossible, Replay, Site, Transcript, Witness

Data = TypeVar("Data")
_CLAIM = "the number of runs is drawn once, and hidden"
_SHOWN = ("refused", "value", "certificate", "kept")


def hidden_runs(case: Case[Data], *, runs: int = 4, seed: int = 0) -> list[Finding]:
    """The audit of a case on all tables of its worst pairs.

    Nothing is found where no number of runs is drawn, or where all draws are promised and none has to be hidden.

    Guarantee: a true claim cannot fail, if every run begins with the choice of its proposal and chooses nothing else,
    and of two equal runs the first is the better one. Runs that choose nothing are not looked at.
    """
    if case.transcript:
        return []
    seen, wrong = 0, ""
    try:
        for number, data in enumerate(one for pair in case.worst() for one in pair):
            for run in range(runs):
                witness = Witness((seed << 20) + (number << 8) + run)
                shown = case.run(data, witness)
                given = witness.transcript()
                found = _drawn(given.sites)
                seen += found is not None
                wrong = wrong or found or ""
                more = None if found is None or wrong else _one_more(given)
                if more is not None and not _same(case, data, shown, more):
                    wrong = "one more run is seen"
    except Exception as problem:
        return [Finding("N", case.name, _CLAIM, "an error", False, type(problem).__name__)]
    return [Finding("N", case.name, _CLAIM, f"{seen} walks", not wrong, wrong)] if seen else []


def _drawn(sites: Sequence[Site]) -> str | None:
    """What is wrong with the draws of a number of runs; nothing where there is none."""
    numbers = [site.answer for site in sites if site.method == "stopping"]
    if not numbers:
        return None
    if len(numbers) > 1:
        return "the number of runs is drawn more than once"
    made = sum(site.method == "choice" for site in sites)
    return "there are more runs than were drawn" if made > numbers[0] else ""


def _one_more(given: Transcript) -> Transcript | None:
    """The walk with its last run twice; none where there is no run, some were not made, or there is no room for it."""
    methods = [site.method for site in given.sites]
    place = methods.index("stopping")
    number = given.sites[place]
    made = methods.count("choice")
    if not made or made < number.answer or number.answer >= dict(number.public)["most"]:
        return None
    last = len(methods) - 1 - methods[::-1].index("choice")
    more = (*given.sites[:place], replace(number, answer=number.answer + 1), *given.sites[place + 1 :])
    return Transcript((*more, *given.sites[last:]), given.lots, given.plans)


def _same(case: Case[Data], data: Data, shown: object, more: Transcript) -> bool:
    """Whether the longer walk is one, and shows the same. It may stop before the last run."""
    try:
        again = case.run(data, Replay(more))
    except Impossible:
        return False
    return all(equal(getattr(shown, name, None), getattr(again, name, None)) for name in _SHOWN)
