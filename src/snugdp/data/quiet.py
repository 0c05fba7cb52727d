"""Calls into libraries whose exceptions may quote a row: what they say is dropped, that they failed is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def quietly(read: Callable[[], T]) -> tuple[bool, T | None]:
    """Whether it worked, and the result. Raise a message of your own afterwards, outside any handler.

    >>> quietly(lambda: int("5")), quietly(lambda: int("somebody's name"))
    ((True, 5), (False, None))
    """
    try:
        return True, read()
    except INTERRUPTS:
        raise
    except BaseException:  # a panic of a native library is no Exception
        return False, None
