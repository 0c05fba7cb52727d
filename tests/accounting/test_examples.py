"""The examples in the documentation of the room run as printed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from snugdp import accounting

MODULES = [module.name for module in pkgutil.iter_modules(accounting.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"snugdp.accounting.{name}"))
    assert result.failed == 0
