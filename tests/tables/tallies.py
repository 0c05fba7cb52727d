"""A small exact pass of the tests' own, and passes that misbehave."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from snugdp.tables import engines
from snugdp.tables.cells import numbers
from snugdp.tables.schema.schema import Number, Schema
from tests.estimators.pate.panels import Watchful


@dataclass(frozen=True)
class Tally:
    """How many rows, and for every column the exact sum of its numbers on a grid of 2**-30 and the missing cells."""

    columns: tuple[str, ...]

    @property
    def schema(self) -> Schema | None:
        return Schema(dict.fromkeys(self.columns, Number(0, 1))) if self.columns else None

    def empty(self) -> list[int]:
        return [0] * (1 + 2 * len(self.columns))

    def fold(self, state: list[int], frame: nw.DataFrame[Any]) -> list[int]:
        found = [len(frame)]
        for name in self.columns:
            values = numbers(frame.get_column(name).to_native())
            known = np.clip(values[~np.isnan(values)], -(2.0**20), 2.0**20)
            found += [sum(int(v) for v in np.trunc(known * 2.0**30)), int(np.isnan(values).sum())]
        return self.merge(state, found)

    def merge(self, one: list[int], other: list[int]) -> list[int]:
        return [a + b for a, b in zip(one, other, strict=True)]

    def pack(self, state: list[int]) -> bytes:
        return json.dumps(state).encode()

    def unpack(self, packed: bytes) -> list[int]:
        return [int(number) for number in json.loads(packed)]


@dataclass(frozen=True)
class Words:
    """How often each text occurs."""

    columns: tuple[str, ...]

    def empty(self) -> dict[str, int]:
        return {}

    def fold(self, state: dict[str, int], frame: nw.DataFrame[Any]) -> dict[str, int]:
        for row in frame.select(*self.columns).rows():
            state[repr(row)] = state.get(repr(row), 0) + 1
        return state

    def merge(self, one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        return {key: one.get(key, 0) + other.get(key, 0) for key in sorted({*one, *other})}

    def pack(self, state: dict[str, int]) -> bytes:
        return json.dumps(state).encode()

    def unpack(self, packed: bytes) -> dict[str, int]:
        return dict(json.loads(packed))


@dataclass(frozen=True)
class Failing(Tally):
    """Quotes a row in its exception."""

    def fold(self, state: list[int], frame: nw.DataFrame[Any]) -> list[int]:
        raise ValueError(f"the secret is {frame.get_column(self.columns[0])[0]}")


@dataclass(frozen=True)
class Meddling(Tally):
    """Removes a file while the pass runs."""

    victim: Path

    def fold(self, state: list[int], frame: nw.DataFrame[Any]) -> list[int]:
        self.victim.unlink(missing_ok=True)
        return super().fold(state, frame)


@dataclass(frozen=True)
class Murderous(Tally):
    """Kills the first process that folds a row: the Python worker, or the executor that it belongs to."""

    flag: Path
    executor: bool

    def fold(self, state: list[int], frame: nw.DataFrame[Any]) -> list[int]:
        after = super().fold(state, frame)
        kill_once(self.flag, _grandparent if self.executor else os.getpid)
        return after


@dataclass(frozen=True)
class MurderousStage:
    """A stage of a Spark job that kills its executor once it has made something."""

    stage: Any
    flag: Path

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for made in self.stage(batches):
            yield made
            kill_once(self.flag, _grandparent)


class MurderousTeacher(Watchful):
    """A teacher that kills the executor that it is trained on, once; it votes like the others."""

    def __init__(self, random_state: Any = None, fails: Any = None, flag: Any = None) -> None:
        super().__init__(random_state, fails)
        self.flag = flag

    def fit(self, X: Any, y: Any) -> Watchful:
        """Learn, and kill."""
        super().fit(X, y)
        kill_once(self.flag, _grandparent)
        return self


def kill_once(flag: Path, victim: Callable[[], int]) -> None:
    """Kill a process, if nobody has done so; the flag says who it was."""
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return
    number = victim()
    flag.write_text(Path(f"/proc/{number}/cmdline").read_text())
    os.kill(number, signal.SIGKILL)


def _grandparent() -> int:
    """Above a Python worker stands its daemon, and above that the executor's JVM."""
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))


class KillingTask:
    """The task of a Spark pass that kills its executor in one of the passes of a fit, once."""

    @staticmethod
    def after(passes: int, flag: Path) -> Any:
        """What makes the tasks; those of the first passes do no harm."""
        made, real = 0, engines._Task

        def task(work: Any) -> Any:
            nonlocal made
            made += 1
            return real(_MurderousPass(work, flag) if made > passes else work)

        return task


@dataclass(frozen=True)
class _MurderousPass:
    """Another pass, in which an executor is killed."""

    work: Any
    flag: Path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self.work, name)

    def fold(self, state: Any, frame: nw.DataFrame[Any]) -> Any:
        after = self.work.fold(state, frame)
        kill_once(self.flag, _grandparent)
        return after
