"""The rooms: imports point one way, only noise/ touches randomness or opens a secret, only the spine pays."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import snugdp
from snugdp.release.context import ReleaseContext

ROOT = Path(snugdp.__file__).parent
ORDER = (
    "lazy", "secrecy", "numerics", "accounting", "core", "serial", "ledger", "noise", "propose", "tables", "release",
    "certify", "mechanisms", "recipe", "queries", "pate", "estimators", "audit", "report", "cli",
)  # fmt: skip
MODULES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    here = room(path)
    if here == "__init__":
        return
    assert here in ORDER, f"{here} is not a room of the house"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "snugdp" and parts[1:] and parts[1] in ORDER:
            assert ORDER.index(parts[1]) <= ORDER.index(here), f"{here} must not import {parts[1]}"


def test_only_the_noise_room_has_randomness() -> None:
    for path in MODULES:
        random = [n for n in imports(path) if n.split(".")[0] in ("random", "secrets") or "random" in n.split(".")]
        uses = [
            n
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Attribute) and n.attr in ("random", "urandom")
        ]
        if random or uses:
            names = str(path.relative_to(ROOT)) == "ledger/requests.py" and random == ["secrets"]  # of records: public
            assert room(path) in ("noise", "audit") or names, path  # an audit makes up its data


def test_only_the_simulation_has_a_seed() -> None:
    for path in MODULES:
        if path.name != "simulation.py":
            assert "default_rng" not in path.read_text() or room(path) == "audit", path
            assert "seed(" not in path.read_text(), path


def test_only_the_noise_room_opens_a_secret() -> None:
    for path in MODULES:
        if any(name == "snugdp.secrecy.secret.unwrap" for name in imports(path)):
            assert room(path) == "noise", path
        if "._value" in path.read_text():
            assert room(path) == "secrecy", path


def test_only_the_audit_opens_what_a_witness_saw() -> None:
    for path in MODULES:
        if any(name.startswith("snugdp.noise.recording") for name in imports(path)):
            assert room(path) == "audit", path


def test_only_the_purse_and_the_ledger_make_outcomes_and_receipts() -> None:
    makers = {
        "Released": {"release/context.py"},
        "Refused": {"release/context.py"},
        "NotPrivate": {"release/context.py"},
        "Receipt": {"ledger/memory.py", "ledger/view.py"},
        "RunLedger": {"mechanisms/selection/select.py"},  # whoever opens one has paid for it
    }
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers:
                assert str(path.relative_to(ROOT)) in makers[node.func.id], path


def test_only_the_purse_charges_and_only_behind_its_guard() -> None:
    """There is no ``pay`` without a walk, and nobody else takes a receipt, an outcome or the guard apart."""
    assert inspect.signature(ReleaseContext.pay).parameters["walk"].default is inspect.Parameter.empty
    allowed = {
        "release/context.py": {"charge", "_charged"},
        "release/once.py": {"recall", "_go_on", "_walked"},
        "estimators/deferred_ledger.py": {"charge", "recall"},  # hands them on to the ledger at an address
        "estimators/pate/classifier.py": {"charge"},  # of a ledger that is not there, which says so
    }
    steps = set().union(*allowed.values())
    for path in MODULES:
        if room(path) not in ("ledger", "audit", "bench", "cli"):
            calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            used = {call.attr for call in calls if isinstance(call, ast.Attribute)} & steps
            assert used <= allowed.get(str(path.relative_to(ROOT)), set()), path
