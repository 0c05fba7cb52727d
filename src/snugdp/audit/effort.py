"""How much an audit does: how many runs of a case for each layer, by how long one of its walks takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snugdp.audit.finding import Case


@dataclass(frozen=True)
class RunCounts:
    """For one case.

    ``tight``, ``loose``: of layer D on the first of the worst pairs, where smaller noise must be seen and where it need
    not be. ``others``: on the other pairs, ``pairs`` in all. ``random``: random neighbours of layer D. ``near``,
    ``strange``: runs on worst pairs and random neighbours of layer N; ``boundary``: of the latter those on which the
    noise of a test is as large as it may be. ``walks``: of layers I and L. ``ends``: of layer E on each
    side; 0 leaves it out where the transcript is promised, because D and N then see more in the same walks.
    ``power``: whether layer E has to see small noise. ``sparing``: whether layer D makes no more of the ``tight`` runs
    than it took to see smaller noise.
    """

    tight: int
    loose: int
    others: int
    random: int
    near: int
    strange: int
    walks: int
    ends: int
    boundary: int = 1
    pairs: int | None = None
    power: bool = False
    sparing: bool = False


@dataclass(frozen=True)
class Effort:
    """``swift``, ``steady``, ``slow``: cases by the time that a walk takes, their ``pace``."""

    name: str
    swift: RunCounts
    steady: RunCounts
    slow: RunCounts
    full: bool = False

    def of(self, case: Case[Any]) -> RunCounts:
        """Of this case."""
        return {"swift": self.swift, "steady": self.steady, "slow": self.slow}[case.pace]


QUICK = Effort(  # sparing: smaller noise is seen after 20 to 100 of the tight runs, seldom later
    "quick",
    RunCounts(tight=500, loose=30, others=8, random=6, near=3, strange=20, walks=40, ends=80, sparing=True),
    RunCounts(tight=500, loose=8, others=2, pairs=3, random=2, near=1, strange=6, walks=32, ends=40, sparing=True),
    RunCounts(tight=240, loose=6, others=2, pairs=1, random=2, near=1, strange=4, walks=32, ends=0, sparing=True),
)
FULL = Effort(
    "full",
    RunCounts(
        tight=600,
        loose=600,
        others=300,
        random=1000,
        near=30,
        strange=1000,
        walks=400,
        ends=3000,
        boundary=100,
        power=True,
    ),
    RunCounts(tight=500, loose=200, others=80, random=250, near=12, strange=250, walks=150, ends=600, boundary=40),
    RunCounts(tight=300, loose=80, others=40, random=80, near=6, strange=80, walks=80, ends=300, boundary=20),
    full=True,
)
