"""The mutation suite: the library with one mistake at a time, and the layer that must see it.

>>> from snugdp.audit.mutants import mutants
>>> len(mutants()) >= 48
True
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from snugdp.audit.mutants.base import Mutant, Verdict, judged, run_mutants

__all__ = ["Mutant", "Verdict", "judged", "mutants", "run_mutants"]


@lru_cache(maxsize=1)
def mutants() -> tuple[Mutant, ...]:
    """All of them, numbered."""
    from snugdp.audit.mutants import (
        accounting,
        data,
        faces,
        framework,
        ledger,
        noise,
        paper,
        sensitivity,
        steps,
        tests_and_shifts,
    )

    topics = (noise, sensitivity, tests_and_shifts, accounting, data, framework, faces, ledger, paper, steps)
    found = [one for topic in topics for one in topic.mutant.mutants]
    return tuple(replace(one, number=number) for number, one in enumerate(found, 1))
