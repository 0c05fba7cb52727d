"""Audits: every claim against what is measured, part by part.

``audit()`` looks at the whole library, ``audit([case])`` at a mechanism of yours, ``black_box`` at any function.
"""

from __future__ import annotations

from snugdp.audit.finding import LAYERS, Case, Curve, Finding
from snugdp.lazy import loader

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

__getattr__ = loader(  # these load scipy, scikit-learn or everything
    __name__,
    {
        "snugdp.audit.coverage": "Certified",
        "snugdp.audit.registry": "register registered",
        "snugdp.audit.run": "Report audit",
        "snugdp.audit.third_party": "black_box released_by",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
