"""For every run: the vectors that are still to be built, and another order if one is asked for."""

# ruff: noqa: E402
import os

# A worker has one core, so BLAS has one thread, here and in processes that tests start: several would wait for each
# other. It reads this once, when numpy is imported; tests of threads ask for two.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import atexit
import gc
import importlib
import logging
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.effort import EFFORT, often, repeated

HERE = Path(__file__).parent
_AGAIN = 3  # of the cases of a test that is marked slow or repeated, make slow has a third
os.environ["SNUGDP_STATE"] = tempfile.mkdtemp()  # what is seen in tests is not remembered
atexit.register(shutil.rmtree, os.environ["SNUGDP_STATE"], ignore_errors=True)
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=often(15, 50, 100))
settings.load_profile("steady")
logging.getLogger("py4j").setLevel(logging.INFO)  # it logs when objects of an earlier Spark test are collected


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = Counter(
        reason.split("vectors not built yet: ", 1)[1].split(",", 1)[0]
        for report in terminalreporter.stats.get("skipped", [])
        if "vectors not built yet: " in (reason := str(report.longrepr))
    )
    for name, count in sorted(skipped.items()):
        terminalreporter.write_line(f"vectors: {name}: {count} cases belong to a part that is not built yet")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Of two workers one begins with the last file: in a fresh clone each compiles half of them, not both all."""
    if not session.config.pluginmanager.hasplugin("dsession"):  # who hands out tests collects none
        gc.disable()  # until all is collected: modules and tests are no garbage
    everything = [Path(given).resolve() for given in session.config.args] == [HERE]
    if everything and os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        for file in sorted(HERE.rglob("test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # what is wrong is told when it is collected
                importlib.import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if EFFORT == "nightly" and is_hypothesis_test(getattr(item, "obj", None)):  # it tries more examples then
            item.add_marker(repeated)
    _sample(config, items)
    if seed := os.environ.get("SNUGDP_SHUFFLE"):
        _shuffle(items, Random(seed))


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Some cases of a test that is marked ``sampled`` (``tests.effort``), but all of one that was asked for by name."""
    named = {given.partition("[")[0] for given in config.args if "::" in given}
    cases, others = Counter[str](), Counter[str]()
    kept, left = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None:
            kept.append(item)
            continue
        name = item.nodeid.partition("[")[0]
        more = any(item.get_closest_marker(kind) is not None for kind in ("repeated", "slow"))
        every, later = mark.args[0], mark.kwargs["later"]
        step = (_AGAIN if more else 0) if later is None else later
        first = cases[name] % every == 0
        again = more or not first
        chosen = {"": first, "slow": again and step > 0 and others[name] % step == 0}.get(EFFORT, True)
        cases[name] += 1
        others[name] += again
        item.add_marker(repeated)
        (kept if chosen or any(given.endswith(name) for given in named) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _shuffle(items: list[pytest.Item], order: Random) -> None:
    """The files in any order, and the tests of each; files stay whole, as some start a server or a session."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    parts = list(files.values())
    order.shuffle(parts)
    for part in parts:
        order.shuffle(part)
    items[:] = [item for part in parts for item in part]


def pytest_collection_finish() -> None:
    """What is there before the first test stays: collections of garbage need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()
