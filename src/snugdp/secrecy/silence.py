"""Silence about private values: calls whose exceptions are dropped, and blocks that no warning leaves."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def attempt(read: Callable[[], T]) -> tuple[bool, T | None]:
    """Whether it worked, and the result. Raise a message of your own afterwards, outside any handler.

    That holds for every exception: a call that exits, or a panic of a native library, has failed. Only an interrupt by
    the user goes on, as a new one.

    >>> attempt(lambda: int("5")), attempt(lambda: int("somebody's name"))
    ((True, 5), (False, None))
    """
    try:
        return True, read()
    except KeyboardInterrupt:
        interrupt = KeyboardInterrupt()
    except BaseException:
        return False, None
    raise interrupt


class _WarningsOff:
    """No warning leaves the block, not even one that the code inside insists on, or that a filter makes an error.

    Filters of warnings belong to the whole process and not to a thread, so those of other threads are lost meanwhile.
    Blocks that overlap in several threads share one change of the filters, and the last one undoes it: a change each
    would leave them as another thread had found them.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._held: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                held = warnings.catch_warnings(record=True)
                held.__enter__()
                self._held = held
                warnings.simplefilter("ignore")
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth <= 0:
                self._end()

    def _end(self) -> None:
        held, self._held, self._depth = self._held, None, 0
        if held is not None:
            held.__exit__(None, None, None)

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held the lock, or been inside a block."""
        self._lock = threading.RLock()
        self._end()


WARNINGS_OFF = _WarningsOff()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WARNINGS_OFF.after_fork)


@contextmanager
def muted() -> Iterator[None]:
    """No warning leaves the block, of Python or of numpy: it might be about private values."""
    with WARNINGS_OFF, np.errstate(all="ignore"):
        yield
