"""What the tests of estimators share: a ledger on which nothing may be charged, and methods that look at no row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from snugdp import Cost, MemoryLedger
from snugdp.estimators.methods import glm, linear
from tests.estimators.tiny import Tiny


@pytest.fixture
def unspent() -> Iterator[MemoryLedger]:
    """A ledger with room for everything, on which the test must charge nothing."""
    ledger = MemoryLedger(100, 0.1, composition="tight")
    yield ledger
    assert ledger.spent == Cost()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a method that looks at no row, of linear models and of generalised ones."""
    names = ("theta", "refuse")
    monkeypatch.setitem(linear.METHODS, "tiny", linear.Recipe(Tiny, names, rows=False, validation=True))
    monkeypatch.setitem(glm.GLM_METHODS, "tiny", linear.Recipe(Tiny, names, rows=False))
    return "tiny"
