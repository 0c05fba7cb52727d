"""Audits: every claim against what is measured, part by part.

``audit()`` looks at the whole library, ``audit([case])`` at a mechanism of yours, ``black_box`` at any function.
"""

from __future__ import annotations

from typing import Any

from snugdp.audit.finding import LAYERS, Case, Curve, Finding

__all__ = [
    "LAYERS",
    "Case",
    "Certified",
    "Curve",
    "Finding",
    "Report",
    "audit",
    "black_box",
    "register",
    "registered",
    "released_by",
]

_LAZY = {  # these load scipy, scikit-learn or everything
    "Certified": "coverage",
    "Report": "run",
    "audit": "run",
    "black_box": "third_party",
    "register": "registry",
    "registered": "registry",
    "released_by": "third_party",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
