"""The tests beside the library, for mutants that are shown to some of them: nothing of the audit is loaded."""

import io
import json
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import pytest

import snugdp
from tests.mutants.patches import ROOT

_ALARMS = (AssertionError, pytest.fail.Exception, snugdp.LedgerError)


class Seen(NamedTuple):
    """What tests found, in the form of an audit's finding. G: ledgers and who pays; X: exact numbers."""

    layer: str
    case: str
    claim: str
    measured: str
    passed: bool
    detail: str = ""


def tests(*names: str) -> list[Seen]:
    """G and X: tests beside the library. Other errors than assertions and a ledger's own are no alarm."""
    told = _Reports()
    # Plain assertions: pytest would rewrite modules of the library whose names end in _test, from their files.
    options = ["-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    options += ["-m", "not nightly", "--rootdir", str(ROOT)]
    with redirect_stdout(io.StringIO()):
        code = pytest.main([*options, *(str(ROOT / name) for name in names)], plugins=[told])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or told.errors:
        raise RuntimeError(f"pytest ended with {code!s}: {'; '.join(told.errors)}"[:300])
    layer = "G" if names[0].startswith(("tests/ledger/", "tests/release/")) else "X"
    where = told.failed[0].partition(":")[0] if told.failed else names[0]
    claim, measured = "the tests beside it pass", f"{len(told.failed)} of {told.count} tests fail"
    return [Seen(layer, where, claim, measured, not told.failed, "; ".join(told.failed))]


def vectors(file: str, *kinds: str) -> list[Seen]:
    """X: the vectors of these kinds in a file."""
    cases = json.loads((ROOT / "tests" / "vectors" / f"{file}.json").read_text())["cases"]
    return tests(*(f"tests/test_vectors.py::test_vector[{file}-{one['id']}]" for one in cases if one["kind"] in kinds))


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
            known = call.when == "call" and call.excinfo.errisinstance(_ALARMS)
            (self.failed if known else self.errors).append(said)
        return report
