"""One thread for BLAS while the engine's own threads read rows: two crowds of threads get into each other's way."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

_lock = Lock()
_inside: list[Any] = []  # fits under way, in any thread; the first of them holds the limits that were


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Until the last of several fits at once has ended; then BLAS has its threads back.

    >>> with one_blas_thread():
    ...     pass
    """
    with _lock:
        _inside.append(None if _inside else _libraries(len(sys.modules)).limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            if len(_inside) == 1:
                _inside[0].restore_original_limits()
            _inside.pop()


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """The libraries with threads of their own; looked for again after an import, which may have brought another.

    That of numpy is always among them. One that comes without an import keeps its threads for a while: time is all
    that this costs, as sums that must be exact are made by numpy alone.
    """
    pools: Any = importlib.import_module("threadpoolctl")  # comes with scikit-learn
    return pools.ThreadpoolController()


def blas_is_held() -> bool:
    """Whether a fit is under way, so that BLAS has one thread."""
    return bool(_inside)
