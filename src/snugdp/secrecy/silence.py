"""Calls into libraries whose exceptions may quote a row: what they say is dropped, that they failed is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def quietly(read: Callable[[], T]) -> tuple[bool, T | None]:
    """Whether it worked, and the result. Raise a message of your own afterwards, outside any handler.

    That holds for every exception: a call that exits, or a panic of a native library, has failed. Only an interrupt by
    the user goes on, as a new one.

    >>> quietly(lambda: int("5")), quietly(lambda: int("somebody's name"))
    ((True, 5), (False, None))
    """
    try:
        return True, read()
    except KeyboardInterrupt:
        interrupt = KeyboardInterrupt()
    except BaseException:
        return False, None
    raise interrupt
