from __future__ import annotations

from tests.audit.conftest import one_thread

__all__ = ["one_thread"]
