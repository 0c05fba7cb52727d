"""Who is calling: the functions of scikit-learn that led here, and what they were called with.

An estimator in a pipeline or a search is not told so. All that is looked at is public: names of modules and functions,
their parameters by the names that scikit-learn documents, and types. What cannot be found is not there.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any


def callers() -> Iterator[FrameType]:
    """The frames that led here, the innermost first; none where the interpreter has none."""
    frame = inspect.currentframe()
    while frame is not None and (frame := frame.f_back) is not None:
        yield frame


def function(frame: FrameType) -> str:
    """Its name."""
    return frame.f_code.co_name


def belongs(frame: FrameType, *packages: str) -> bool:
    """Whether its module is one of these, or inside one."""
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == name or module.startswith(f"{name}.") for name in packages)


def given(frame: FrameType, name: str) -> Any:
    """A parameter of the call, or nothing."""
    code = frame.f_code
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return frame.f_locals.get(name) if name in known else None


def parallel(frame: FrameType) -> Any:
    """The call of joblib that this is, by which scikit-learn makes all fits of a search; or nothing."""
    return given(frame, "self") if belongs(frame, "joblib") and function(frame) == "__call__" else None


def stack_level() -> int:
    """For a warning of the caller's: that of the line which is neither ours nor scikit-learn's."""
    for level, frame in enumerate(callers()):
        if not belongs(frame, "snugdp", "sklearn", "joblib"):
            return level
    return 1
