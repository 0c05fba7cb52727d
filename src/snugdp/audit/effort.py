"""How much an audit does: how many runs of a case for each layer, by how long one of its walks takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from snugdp.audit import goodness, registry
from snugdp.audit.finding import Case

_SWIFT = frozenset({"queries", "framework", "pate", "selection", ""})  # walks of about a millisecond


@dataclass(frozen=True)
class Runs:
    """For one case.

    ``tight``, ``loose``: of layer D on the first of the worst pairs, where smaller noise must be seen and where it need
    not be. ``others``: on the other pairs, ``pairs`` in all. ``random``: random neighbours of layer D. ``near``,
    ``strange``: runs on worst pairs and random neighbours of layer N. ``walks``: of layers I and L. ``ends``: of layer
    E on each side; 0 leaves it out where the transcript is promised, because D and N then see more in the same walks.
    ``power``: whether layer E has to see small noise. ``sparing``: whether layer D makes no more of the ``tight`` runs
    than it took to see smaller noise.
    """

    tight: int
    loose: int
    others: int
    pairs: int | None
    random: int
    near: int
    strange: int
    walks: int
    ends: int
    power: bool
    sparing: bool = False


@dataclass(frozen=True)
class Effort:
    """``swift``, ``steady``, ``slow``: cases by the time of a walk (about 1, 10 and 20 milliseconds and more)."""

    name: str
    swift: Runs
    steady: Runs
    slow: Runs
    laws: goodness.Effort = field(default_factory=goodness.Effort)
    full: bool = False

    def of(self, case: Case[Any]) -> Runs:
        """Of this case."""
        if registry.slow(case):
            return self.slow
        return self.swift if case.group in _SWIFT else self.steady


QUICK = Effort(
    "quick",
    Runs(130, 30, 8, None, 6, 3, 20, 40, 80, False, True),
    Runs(120, 8, 2, None, 2, 1, 6, 32, 40, False, True),
    Runs(60, 6, 2, 1, 2, 1, 4, 32, 0, False, True),
)
FULL = Effort(
    "full",
    Runs(600, 600, 300, None, 1000, 30, 1000, 400, 3000, True),
    Runs(300, 200, 80, None, 250, 12, 250, 150, 600, False),
    Runs(200, 80, 40, None, 80, 6, 80, 80, 300, False),
    goodness.FULL,
    full=True,
)
