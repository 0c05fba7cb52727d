"""Work in several processes: new ones, each with one thread for BLAS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

from snugdp.numerics.threads import one_blas_thread

T = TypeVar("T")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def in_processes(work: Iterable[Callable[[], T]], processes: int) -> Iterator[T]:
    """What each piece returns, in the order in which they end. What is not begun when one fails is left."""
    with _single_threads(), ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(partial(_alone, piece)) for piece in work]
        try:
            yield from (piece.result() for piece in as_completed(waiting))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _alone(piece: Callable[[], T]) -> T:
    with one_blas_thread():
        return piece()


@contextmanager
def _single_threads() -> Iterator[None]:
    """For processes that start now."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
