"""What mutants are shown to, by layer: one law, one case, one certificate, one entry point, some tests."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any
from unittest import mock

import snugdp
from snugdp.audit.coverage import coverage
from snugdp.audit.density.density import density
from snugdp.audit.end_to_end import end_to_end
from snugdp.audit.finding import Finding
from snugdp.audit.independence import walks as independent
from snugdp.audit.laws import low_bits
from snugdp.audit.side_channels.calls import bad_input
from snugdp.audit.steps.neighbour import neighbour
from snugdp.audit.steps.run_count import hidden_runs
from snugdp.audit.steps.stepwise import stepwise
from snugdp.noise import Continuous, DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Laplace, Law
from snugdp_studies.audit import freshness
from snugdp_studies.audit.certificates import PARTS
from snugdp_studies.audit.laws import inside as inside_source
from snugdp_studies.audit.laws import sources
from snugdp_studies.audit.laws.samples import QUICK
from snugdp_studies.audit.library import case as case_of
from snugdp_studies.audit.side_channels import entry_points
from snugdp_studies.audit.side_channels.entry_points import EntryPoint, points_of
from snugdp_studies.audit.side_channels.inputs import inputs
from tests.mutants.beside import tests, vectors

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace", "tests", "vectors"]  # for checks in patches


def site_law(site: str, law: Law | None = None, count: int | None = None) -> Iterator[Finding]:
    """S: one law at one site of our source; with ``count``, only so many findings of it."""
    real = (law,) if isinstance(law, Continuous) else ()
    whole = (law,) if law is not None and not real else ()
    kept: dict[str, Any] = {"REAL": real, "WHOLE": whole, "SMALL": ()} if law is not None else {}
    with mock.patch.dict(vars(sources), kept):
        yield from islice(sources.SITES[site](Exact(), QUICK), count)


def inside(part: str, count: int | None = None, single: float = QUICK.single) -> Iterator[Finding]:
    """S: the first findings about the coins and fallbacks of our source; ``single`` as in ``LawEffort``."""
    return islice(inside_source.PARTS[part](replace(QUICK, single=single)), count)


def source(part: str) -> list[Finding]:
    """I: our source."""
    return list(freshness.equal_draws() if part == "equal_draws" else getattr(freshness, part)(Exact(), QUICK))


def walks(case: str, runs: int = 60) -> list[Finding]:
    """I: along the walks of a case."""
    return independent(case_of(case), runs)


def seeds() -> list[Finding]:
    """I: releases that must differ, whatever is seeded, forked or started at the same time."""
    return freshness.fresh("trimmed_mean", freshness.example)


def covered(name: str) -> list[Finding]:
    """C: one certificate of ours."""
    part, _, name = name.partition("/")
    return [coverage(next(one for one in PARTS[part]() if one.name == name))]


def dense(case: str, runs: int = 150, most: int | None = None, random: int = 0) -> list[Finding]:
    """D: the worst pairs of a case."""
    return density(case_of(case), runs=runs, most=most, random=random)


def near(case: str, runs: int = 4, random: int = 40, pair: int | None = None) -> Iterator[Finding]:
    """N: the worst pairs of a case, or one of them, and random ones."""
    made = case_of(case)
    if pair is not None:
        pairs = list(made.worst())[pair : pair + 1]
        made = replace(made, worst=lambda: pairs)
    yield from neighbour(made, runs=runs, random=random)
    yield from stepwise(made, random=random // 4)
    yield from hidden_runs(made, runs=runs)


def ends(case: str, runs: int = 2000, most: int = 1) -> list[Finding]:
    """E: the first of the worst pairs of a case."""
    return end_to_end(case_of(case), runs=runs, most=most)


def bits(case: str, runs: int = 10) -> list[Finding]:
    """L: a case."""
    return low_bits.low_bits(case_of(case), runs)


def bad(point: str, forms: int | None = None) -> list[Finding]:
    """B: bad input at one entry point; ``forms``: the first so many forms of it."""
    one = _point(point)
    groups = inputs(one.takes, rows_are_public=one.rows_are_public)
    return [bad_input(one.name, one.release, islice(groups, forms))]


def demanded(point: str, what: str) -> list[Finding]:
    """B: an entry point without one of its public parameters."""
    return [entry_points.demanded(_point(point), what)]


def canaries(point: str) -> list[Finding]:
    """B: canaries at one entry point."""
    return entry_points.kept([point])


def _point(name: str) -> EntryPoint:
    return next(points_of(name, getattr(snugdp, name)))
