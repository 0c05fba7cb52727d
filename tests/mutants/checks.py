"""What mutants are shown to: one law, one case, one certificate, one entry point, one attack, some tests."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
from snugdp.audit.freshness import independence, repeats

import snugdp
from snugdp.audit.coverage import coverage
from snugdp.audit.density.density import density
from snugdp.audit.end_to_end import end_to_end
from snugdp.audit.finding import Finding
from snugdp.audit.laws import low_bits
from snugdp.audit.laws.goodness import QUICK
from snugdp.audit.side_channels.calls import bad_input
from snugdp.audit.steps.neighbour import neighbour
from snugdp.audit.steps.run_count import hidden_runs
from snugdp.audit.steps.stepwise import stepwise
from snugdp.noise import Continuous, DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Laplace, Law
from snugdp_studies.audit.certificates import PARTS
from snugdp_studies.audit.freshness import example
from snugdp_studies.audit.laws import inside, sources
from snugdp_studies.audit.library import case as case_of
from snugdp_studies.audit.side_channels import releases
from snugdp_studies.audit.side_channels.entry_points import EntryPoint, points_of
from snugdp_studies.audit.side_channels.inputs import inputs
from tests.mutants.ledger_attacks import ATTACKS
from tests.mutants.patches import ROOT

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace"]  # laws, for the checks in patches


class Seen(NamedTuple):
    """What a check of the tests found, in the form of an audit's finding. G: attacks on a ledger; X: exact numbers."""

    layer: str
    case: str
    claim: str
    measured: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class SiteLaw:
    """Layer S: one law at one site of our source; with ``count``, only so many findings of it."""

    site: str
    law: Law | None = None
    count: int | None = None

    def __call__(self) -> list[Finding]:
        """The finding."""
        real = (self.law,) if isinstance(self.law, Continuous) else ()
        whole = (self.law,) if self.law is not None and not real else ()
        kept: dict[str, Any] = {"REAL": real, "WHOLE": whole, "SMALL": ()} if self.law is not None else {}
        with mock.patch.dict(vars(sources), kept):
            return list(islice(sources.SITES[self.site](Exact(), QUICK), self.count))


@dataclass(frozen=True)
class Inside:
    """Layer S inside our source: the first findings about its coins and fallbacks; ``single`` as in ``Effort``."""

    part: str
    count: int | None = None
    single: float = QUICK.single

    def __call__(self) -> list[Finding]:
        """The findings."""
        effort = replace(QUICK, single=self.single)
        return list(islice(inside.PARTS[self.part](effort), self.count))


@dataclass(frozen=True)
class Apart:
    """Layer I of our source: a part of ``independence``."""

    part: str

    def __call__(self) -> list[Finding]:
        """The findings."""
        if self.part == "equal_draws":
            return list(independence.equal_draws(Exact))
        return list(getattr(independence, self.part)(Exact(), QUICK))


@dataclass(frozen=True)
class Walks:
    """Layer I along the walks of a case."""

    case: str
    runs: int = 60

    def __call__(self) -> list[Finding]:
        """The findings."""
        return independence.walks(case_of(self.case), self.runs)


@dataclass(frozen=True)
class Seeds:
    """Layer I from outside: releases that must differ, whatever is seeded, forked or started at the same time."""

    def __call__(self) -> list[Finding]:
        """The findings."""
        return repeats.fresh("trimmed_mean", example)


@dataclass(frozen=True)
class Covered:
    """Layer C: one certificate of ours."""

    name: str

    def __call__(self) -> list[Finding]:
        """The finding."""
        part, _, name = self.name.partition("/")
        return [coverage(next(one for one in PARTS[part]() if one.name == name))]


@dataclass(frozen=True)
class Dense:
    """Layer D on the worst pairs of a case."""

    case: str
    runs: int = 150
    most: int | None = None
    random: int = 0

    def __call__(self) -> list[Finding]:
        """The findings."""
        return density(case_of(self.case), runs=self.runs, most=self.most, random=self.random)


@dataclass(frozen=True)
class Near:
    """Layer N on the worst pairs of a case, or on one of them, and on random ones."""

    case: str
    runs: int = 4
    random: int = 40
    pair: int | None = None

    def __call__(self) -> list[Finding]:
        """The findings."""
        case = case_of(self.case)
        if self.pair is not None:
            pairs = list(case.worst())[self.pair : self.pair + 1]
            case = replace(case, worst=lambda: pairs)
        steps = stepwise(case, random=self.random // 4)
        return [*neighbour(case, runs=self.runs, random=self.random), *steps, *hidden_runs(case, runs=self.runs)]


@dataclass(frozen=True)
class Ends:
    """Layer E on the first of the worst pairs of a case."""

    case: str
    runs: int = 2000
    most: int = 1

    def __call__(self) -> list[Finding]:
        """The findings."""
        return end_to_end(case_of(self.case), runs=self.runs, most=self.most)


@dataclass(frozen=True)
class Bits:
    """Layer L on a case."""

    case: str
    runs: int = 10

    def __call__(self) -> list[Finding]:
        """The findings."""
        return low_bits.low_bits(case_of(self.case), self.runs)


@dataclass(frozen=True)
class BadInput:
    """Layer B: bad input at one entry point; ``forms``: the first so many forms of it."""

    point: str
    forms: int | None = None

    def __call__(self) -> list[Finding]:
        """The finding."""
        one = _point(self.point)
        groups = inputs(one.takes, rows_are_public=one.rows_are_public)
        return [bad_input(one.name, one.release, islice(groups, self.forms))]


@dataclass(frozen=True)
class Demanded:
    """Layer B: an entry point without one of its public parameters."""

    point: str
    what: str

    def __call__(self) -> list[Finding]:
        """The finding."""
        return [releases.demanded(_point(self.point), self.what)]


@dataclass(frozen=True)
class Canaries:
    """Layer B: canaries at one entry point."""

    point: str

    def __call__(self) -> list[Finding]:
        """The finding."""
        return releases.kept([self.point])


def _point(name: str) -> EntryPoint:
    return next(points_of(name, getattr(snugdp, name)))


@dataclass(frozen=True)
class Attack:
    """Layer G: one attack on a ledger of its own, thrown away after."""

    name: str

    def __call__(self) -> list[Seen]:
        """The finding."""
        attack = ATTACKS[self.name]
        claim = " ".join((attack.__doc__ or "").split()).rstrip(".")
        with tempfile.TemporaryDirectory() as folder:
            try:
                measured, passed = attack(Path(folder))
            except Exception as problem:
                measured, passed = f"an error: {type(problem).__name__}", False
        return [Seen("G", f"ledger, {self.name}", claim, measured, passed)]


@dataclass(frozen=True)
class Tests:
    """Layer X: tests of exact numbers. What fails by anything but an assertion is an error."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)

    def __call__(self) -> list[Seen]:
        """The finding."""
        told = _Reports()
        options = [
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--rootdir",
            str(ROOT),
            "-m",
            "",
            "-W",
            "ignore::RuntimeWarning",
        ]
        with redirect_stdout(io.StringIO()):
            code = pytest.main([*options, *(str(ROOT / name) for name in self.names)], plugins=[told])
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or told.errors:
            raise RuntimeError(f"pytest ended with {code!s}: {'; '.join(told.errors)}"[:300])
        where = told.failed[0].partition(":")[0] if told.failed else self.names[0]
        claim, measured = "no other number than the exact one", f"{len(told.failed)} of {told.count} tests fail"
        return [Seen("X", where, claim, measured, not told.failed, "; ".join(told.failed))]


def Vectors(file: str, *kinds: str) -> Tests:  # noqa: N802
    """Layer X: the vectors of these kinds in a file."""
    cases = json.loads((ROOT / "tests" / "vectors" / f"{file}.json").read_text())["cases"]
    wanted = [f"tests/test_vectors.py::test_vector[{file}-{one['id']}]" for one in cases if one["kind"] in kinds]
    return Tests(*wanted)


class _Reports:
    """What pytest tells."""

    def __init__(self) -> None:
        self.count, self.failed, self.errors = 0, list[str](), list[str]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        self.count += report.when == "call"
        if report.failed and call.excinfo is not None:
            said = f"{item.name}: {call.excinfo.exconly()}"[:200]
            known = call.when == "call" and call.excinfo.errisinstance((AssertionError, pytest.fail.Exception))
            (self.failed if known else self.errors).append(said)
        return report
