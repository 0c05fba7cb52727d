"""Whether somebody is looking: then a bar or a spinner shows that something is going on."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def watched(progress: bool | None) -> bool:
    """As ``progress`` says; if it is None, where there is a terminal, or a notebook with ipywidgets.

    >>> watched(True), watched(False)
    (True, False)
    """
    return sys.stderr.isatty() or _in_notebook() if progress is None else progress


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules and find_spec("ipywidgets") is not None
