"""The rooms: imports point one way, only noise/ touches randomness or opens a secret, only the release pays."""

import ast
import functools
import inspect
from collections.abc import Iterator

from snugdp.release.context import ReleaseContext
from tests.test_house import MODULES, ROOT, nodes, texts

ORDER = (
    "lazy", "secrecy", "numerics", "accounting", "core", "serial", "ledger", "noise", "propose", "tables", "release",
    "certify", "inference", "mechanisms", "recipe", "queries", "pate", "estimators", "scores", "audit", "report", "cli",
)  # fmt: skip


def room(module: str) -> str:
    """The room of a module; nothing for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def file(module: str) -> str:
    return str(MODULES[module].relative_to(ROOT))


def imports(module: str) -> Iterator[str]:
    """Whatever a module imports, at the top or inside functions."""
    for node in nodes()[module]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def all_imports() -> dict[str, tuple[str, ...]]:
    """By module."""
    return {module: tuple(imports(module)) for module in MODULES}


@functools.cache
def all_calls() -> dict[str, list[ast.expr]]:
    """What is called, by module."""
    return {module: [node.func for node in inside if isinstance(node, ast.Call)] for module, inside in nodes().items()}


def test_imports_point_down() -> None:
    assert {room(module) for module in MODULES} == {*ORDER, ""}
    wrong = [
        f"{module} must not import {name}"
        for module, names in all_imports().items()
        for name in names
        if room(module) and name.startswith("snugdp.") and room(name) in ORDER
        and ORDER.index(room(name)) > ORDER.index(room(module))
    ]  # fmt: skip
    assert not wrong


def test_only_the_noise_room_has_randomness() -> None:
    for module, names in all_imports().items():
        random = [n for n in names if n.split(".")[0] in ("random", "secrets") or "random" in n.split(".")]
        uses = [n for n in nodes()[module] if isinstance(n, ast.Attribute) and n.attr in ("random", "urandom")]
        if random or uses:
            public = file(module) == "ledger/requests.py" and random == ["secrets"]  # names of records
            assert room(module) in ("noise", "audit") or public, module  # an audit makes up its data


def test_only_the_simulation_has_a_seed() -> None:
    for module, text in texts().items():
        if module != "snugdp.noise.simulation":
            assert "default_rng" not in text or room(module) == "audit", module
            assert "seed(" not in text, module


def test_only_the_noise_room_opens_a_secret() -> None:
    for module, names in all_imports().items():
        assert "snugdp.secrecy.secret.unwrap" not in names or room(module) == "noise", module
        assert "._value" not in texts()[module] or room(module) == "secrecy", module


def test_only_the_audit_opens_what_a_witness_saw() -> None:
    for module, names in all_imports().items():
        if any(name.startswith("snugdp.noise.recording") for name in names):
            assert room(module) == "audit", module


def test_only_the_context_and_the_ledger_make_outcomes_and_receipts() -> None:
    makers = {
        "Released": {"release/context.py"},
        "Refused": {"release/context.py"},
        "NotPrivate": {"release/context.py"},
        "Receipt": {"ledger/memory.py", "ledger/view.py"},
        "RunLedger": {"mechanisms/selection/select.py"},  # whoever opens one has paid for it
    }
    for module, calls in all_calls().items():
        for call in calls:
            if isinstance(call, ast.Name) and call.id in makers:
                assert file(module) in makers[call.id], module


def test_only_the_context_charges_and_only_behind_its_guard() -> None:
    """There is no ``pay`` without a walk, and nobody else takes a receipt, an outcome or the guard apart."""
    assert inspect.signature(ReleaseContext.pay).parameters["walk"].default is inspect.Parameter.empty
    allowed = {
        "release/context.py": {"charge", "_charged"},
        "release/once.py": {"recall", "_go_on", "_walked"},
        "estimators/deferred_ledger.py": {"charge", "recall"},  # hands them on to the ledger at an address
        "estimators/pate/classifier.py": {"charge"},  # of a ledger that is not there, which says so
    }
    steps = set().union(*allowed.values())
    for module, calls in all_calls().items():
        if room(module) not in ("ledger", "audit", "cli"):
            used = {call.attr for call in calls if isinstance(call, ast.Attribute)} & steps
            assert used <= allowed.get(file(module), set()), module
