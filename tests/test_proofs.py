"""Every theorem that the code names exists, and no proof is older than the code it covers."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import snugdp

ROOT = Path(snugdp.__file__).parent
PROOFS = sorted(ROOT.rglob("*.proof.md"))


def load_tool() -> ModuleType:
    path = Path(__file__).parent.parent / "tools" / "proofs.py"
    spec = importlib.util.spec_from_file_location("proofs_tool", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["proofs_tool"] = module
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()


def anchors(proof: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", proof.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w]+", "-", heading.lower()).strip("-") for heading in headings}


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: str(proof.relative_to(ROOT)))
def test_proof_covers_the_present_source(proof: Path) -> None:
    pairs = list(TOOL.covered(proof))
    assert pairs, "a proof file says what it covers: 'Covers: file.py @ fingerprint'"
    for source, seen in pairs:
        assert source.exists(), source
        assert TOOL.fingerprint(source) == seen, (
            f"{source.name} changed since {proof.name} was last read: read the proof again, then run 'make proofs'"
        )


@pytest.mark.parametrize("source", sorted(ROOT.rglob("*.py")), ids=lambda source: str(source.relative_to(ROOT)))
def test_named_theorems_exist(source: Path) -> None:
    named = {
        node.value
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"\S+\.proof\.md#\S+", node.value)
    }
    for name in named:
        file, anchor = name.split("#")
        assert (ROOT / file).exists(), name
        assert anchor in anchors(ROOT / file), name


def test_every_mechanism_has_a_proof() -> None:
    covered = {source.resolve() for proof in PROOFS for source, _ in TOOL.covered(proof)}
    for folder in ("mechanisms", "release", "certify"):
        for source in (ROOT / folder).rglob("*.py"):
            if source.name != "__init__.py":
                assert source.resolve() in covered, f"{source.relative_to(ROOT)} has no proof beside it"


def test_a_changed_source_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = 1\n")
    proof = tmp_path / "m.proof.md"
    proof.write_text("# M\n\nCovers: m.py @ 000000000000\n")
    assert TOOL.refresh(proof)
    assert not TOOL.refresh(proof)
    (tmp_path / "m.py").write_text("x = 2\n")
    assert [TOOL.fingerprint(source) == seen for source, seen in TOOL.covered(proof)] == [False]
