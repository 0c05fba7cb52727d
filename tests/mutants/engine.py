"""One mutant at a time in a process of its own, with the changed source in the place of the clean one.

Children are forked from a process that has loaded numpy and the like and, of our modules, some that are loaded without
those that change, so a changed module is the only one there ever is. A mutant counts as caught if its check passes on
the code as it is, and raises an alarm from one of the layers that the mutant names. That a check was too weak to say
something is no alarm, and neither is an error.
A check that is tests of the suite, or a part of the self-audit that the suite has, need not be run on the code as it is
where the suite runs too.
"""

import gc
import importlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from _pytest.config import get_config

from tests.mutants.loading import imported, module_of, order
from tests.mutants.patches import Mutant

SECONDS = 600  # a check that takes longer is stopped
_WEAK = "too weak"
_LENGTH = 240  # of the words of a finding
_FEW = 2  # tasks for which the library is not loaded beforehand
_TOGETHER = 8  # checks of the code as it is in one process
_BESIDE = ("tests", "vectors")
_AUDITED = ("site_law", "covered", "source", "seeds", "canaries", "bad", "demanded", "near")  # by test_run.py too
_HEAVY = (  # loaded, never used: a thread of the parent would be missing in its children
    "numpy scipy.stats scipy.optimize sklearn.linear_model sklearn.decomposition sklearn.naive_bayes sklearn.pipeline "
    "sklearn.model_selection sklearn.preprocessing flint polars pandas pyarrow.compute jinja2 pytest pdb narwhals "
    "narwhals._polars.dataframe narwhals._polars.series narwhals._pandas_like.dataframe narwhals._arrow.dataframe "
    "hypothesis.strategies tomllib statistics unittest.mock"
)


@dataclass(frozen=True)
class Found:
    """What a check said: a finding that is an alarm, or else any; or that there is none, and why."""

    passed: bool
    layer: str = ""
    case: str = ""
    words: str = ""
    weak: bool = False
    error: str = ""

    def is_alarm(self, layers: str) -> bool:
        """Whether it is one, from one of these layers."""
        return not self.passed and not self.error and not self.weak and self.layer in layers


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: who caught it and where, or why it survived."""

    mutant: Mutant
    caught: bool
    layer: str = ""
    case: str = ""
    words: str = ""
    seconds: float = 0.0  # of computing

    def __str__(self) -> str:
        one = self.mutant
        fate = f"caught by {self.layer}, {self.case}" if self.caught else "SURVIVED"
        return f"{one.number:3d} {one.name} [{one.layers}] {fate}: {self.words} ({self.seconds:.1f} s)"


def run(
    some: Sequence[Mutant],
    processes: int = 1,
    tell: Callable[[Verdict], None] = lambda _: None,
    *,
    green: bool = False,
) -> list[Verdict]:
    """The verdicts on these mutants. Every check is run on the code as it is once; many of them share a process.

    ``green``: the suite runs too, so what it has of checks meets mutants alone.
    """
    checks = list(dict.fromkeys(one.check for one in some))
    clean = {check: [Found(True, words="the suite passes")] for check in checks if green and of_the_suite(check)}
    asked = [check for check in checks if check not in clean]
    together = [tuple(asked[start : start + _TOGETHER]) for start in range(0, len(asked), _TOGETHER)]
    tasks = [_Task((one.check,), one) for one in some if one.check in clean]
    for each in together:
        tasks += [_Task(each), *(_Task((one.check,), one) for one in some if one.check in each)]
    early: list[tuple[Mutant, list[Found], float]] = []
    verdicts: list[Verdict] = []
    for task, found, seconds in _in_children(tasks, processes):
        if task.mutant is None:
            clean |= dict(zip(task.checks, found, strict=True))
        else:
            early.append((task.mutant, found[0], seconds))
        for one in [one for one in early if one[0].check in clean]:
            early.remove(one)
            verdicts.append(judged(one[0], clean[one[0].check], *one[1:]))
            tell(verdicts[-1])
    return sorted(verdicts, key=lambda verdict: verdict.mutant.number)


def judged(mutant: Mutant, clean: Sequence[Found], found: Sequence[Found], seconds: float = 0.0) -> Verdict:
    """What a check said of the code as it is and of the mutant, as a verdict."""
    alarms = [one for one in clean if not one.passed]
    if alarms or not clean:
        words = f"its check fails on the code as it is: {_told(alarms)}" if alarms else "its check finds nothing to say"
        return Verdict(mutant, False, words=words, seconds=seconds)
    for one in found:
        if one.is_alarm(mutant.layers):
            return Verdict(mutant, True, one.layer, one.case, one.words, seconds)
    others = [one for one in found if not one.passed]
    return Verdict(mutant, False, words=mutant.known or _told(others or found), seconds=seconds)


def of_the_suite(check: str) -> bool:
    """Whether the suite runs the same as a check does; of layer N, which compares exactly, the same on other runs."""
    return check.partition("(")[0] in (*_BESIDE, *_AUDITED)


def _told(found: Sequence[Found]) -> str:
    return "; ".join(one.error or f"{one.layer} {one.case}: {one.words}" for one in found[:2])


@dataclass(frozen=True)
class _Task:
    checks: tuple[str, ...]
    mutant: Mutant | None = None

    @property
    def changed(self) -> frozenset[str]:
        """The modules that change."""
        return frozenset(module_of(edit.file) for edit in self.mutant.edits) if self.mutant else frozenset()

    def found(self) -> list[list[Found]]:
        """In a child: the findings of each check on the library with this mistake, or without any."""
        try:
            if self.mutant is not None:
                sys.meta_path.insert(0, Patched(self.mutant.texts()))
            beside = all(check.partition("(")[0] in _BESIDE for check in self.checks)
            names = vars(importlib.import_module(f"tests.mutants.{'beside' if beside else 'checks'}"))
        except BaseException as problem:
            return self.lost(problem)
        return [_found(check, names, self.mutant.layers if self.mutant else "") for check in self.checks]

    def lost(self, problem: BaseException) -> list[list[Found]]:
        """That there are no findings."""
        words = f"an error instead of findings: {type(problem).__name__}: {problem}"[:_LENGTH]
        return [[Found(False, error=words)] for _ in self.checks]


def _found(check: str, names: dict[str, Any], layers: str) -> list[Found]:
    """What a check says, up to the first alarm from one of these layers."""
    said: list[Found] = []
    try:
        for one in eval(check, names):
            words = " ".join(f"{one.claim}; {one.measured}{f' ({one.detail})' if one.detail else ''}".split())
            weak = one.detail.startswith(_WEAK)
            said.append(Found(one.passed, one.layer, one.case, words[:_LENGTH], weak))
            if said[-1].is_alarm(layers):
                break
    except BaseException as problem:
        return _Task((check,)).lost(problem)[0]
    return said


class Patched(PathFinder):
    """Finds modules as always, and takes the source of some files from these texts."""

    def __init__(self, texts: Mapping[Path, str]) -> None:
        self._texts = {str(path): text for path, text in texts.items()}

    def find_spec(  # type: ignore[override]
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """The module, with its changed source."""
        found = PathFinder.find_spec(name, path, target)
        if found is None or found.origin not in self._texts:
            return None
        found.loader = _Source(name, found.origin, self._texts[found.origin])
        return found


class _Source(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec")


def warm() -> None:
    """Load what takes long and is none of ours, and let no numerical library start threads."""
    assert "snugdp" not in sys.modules, "start the engine in a process that has not loaded the library"
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # it would look through all that is installed, in every child
    for name in _HEAVY.split():
        with suppress(ImportError):
            importlib.import_module(name)
    get_config()  # loads more of pytest
    gc.collect()
    gc.freeze()  # a child's collections of garbage need not look at it, nor copy its pages


def _in_children(tasks: Sequence[_Task], processes: int) -> Iterator[tuple[_Task, list[list[Found]], float]]:
    """The findings of each task, from children that are forked one after the other, so many at a time."""
    warm()
    running = dict[int, tuple[_Task, Path]]()
    with tempfile.TemporaryDirectory() as folder:
        for place, task in enumerate(_as_modules_are_loaded(tasks, Path(folder) / "imports")):
            if len(running) == processes:
                yield _ended(running)
            answer = Path(folder) / str(place)
            running[_forked(task.found, answer, len(task.checks))] = task, answer
        while running:
            yield _ended(running)


def _ended(running: dict[int, tuple[_Task, Path]]) -> tuple[_Task, list[list[Found]], float]:
    child, status, used = os.wait4(-1, 0)
    task, answer = running.pop(child)
    if answer.exists():
        found = [[Found(**one) for one in said] for said in json.loads(answer.read_text())]
    else:
        found = task.lost(RuntimeError(f"the process ended with status {status}"))
    return task, found, used.ru_utime + used.ru_stime


def _as_modules_are_loaded(tasks: Sequence[_Task], answer: Path) -> Iterator[_Task]:
    """The tasks, each when as much of the library as can be is loaded and nothing yet that it changes."""
    if len(tasks) > _FEW:
        os.waitpid(_forked(imported, answer), 0)
        changed = {task: task.changed for task in tasks}
        for name, new in order(json.loads(answer.read_text()), frozenset[str]().union(*changed.values())):
            for task in [task for task, names in changed.items() if names & new]:
                changed.pop(task)
                assert not task.changed & sys.modules.keys(), f"{task.mutant} is loaded before it is changed"
                yield task
            importlib.import_module(name)
            gc.freeze()
        tasks = list(changed)
    assert not any(task.changed & sys.modules.keys() for task in tasks)
    yield from tasks


def _forked(answered: Callable[[], Any], answer: Path, times: int = 1) -> int:
    """A child that writes an answer."""
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS * times)
    try:
        part = answer.with_suffix(".part")
        part.write_text(json.dumps(answered(), default=vars))
        part.rename(answer)
    finally:
        os._exit(0)
