"""Walks that are made once and looked at by every layer: most of the time of an audit goes into them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from snugdp.audit.finding import Case
from snugdp.core.outcome import Outcome
from snugdp.noise import Noise, Simulation
from snugdp.noise.recording import Transcript, Witness

_APART = 1 << 40  # between the seeds of two audits


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
