"""Every theorem that the code names exists, and no proof is older than the code it covers."""

import ast
import re
from pathlib import Path

import pytest

from tests.test_house import ROOT, nodes
from tests.tools import tool

PROOFS = sorted(ROOT.rglob("*.proof.md"))


TOOL = tool("proofs")


def anchors(proof: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", proof.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w]+", "-", heading.lower()).strip("-") for heading in headings}


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: str(proof.relative_to(ROOT)))
def test_proof_covers_the_present_source(proof: Path) -> None:
    found = list(TOOL.covered(proof))
    assert found, "a proof file says what it covers: 'Covers: file.py @ fingerprint'"
    for each in found:
        assert each.path.exists(), each.path
        changed = ", ".join(name or "the module" for name in each.changed())
        assert not changed, (
            f"{each.path.name}: {changed} changed since {proof.name} was last read: read the proof again, then run "
            "'make proofs'"
        )


def test_named_theorems_exist() -> None:
    known = {f"{proof.relative_to(ROOT).as_posix()}#{anchor}" for proof in PROOFS for anchor in anchors(proof)}
    named = {
        (module, node.value)
        for module, inside in nodes().items()
        for node in inside
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"\S+\.proof\.md#\S+", node.value)
    }
    assert not [
        pair for pair in named if pair[1] not in known and not pair[0].endswith(".former")
    ]  # former: where proofs were


def test_every_mechanism_has_a_proof() -> None:
    covered = {
        each.path.resolve() for proof in PROOFS for each in TOOL.covered(proof) if {"", TOOL.REST} & each.seen.keys()
    }
    for folder in ("mechanisms", "release", "certify"):
        for source in (ROOT / folder).rglob("*.py"):
            if source.name != "__init__.py":
                assert source.resolve() in covered, f"{source.relative_to(ROOT)} has no proof beside it"


SOURCE = '''"""A module."""

from snugdp.old import helper


class Mechanism:
    """What it does."""

    def release(self) -> int:
        """Noise."""
        return helper(1)  # one

    def plan(self) -> int:
        return 2


def threshold() -> int:
    return 3
'''
NAMED = "Covers: m.py: Mechanism @ 0, Mechanism.release @ 0, threshold @ 0, rest @ 0"


@pytest.fixture(params=[NAMED, "Covers: m.py @ 0"], ids=["named", "whole"])
def proof(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(SOURCE)
    path = tmp_path / "m.proof.md"
    path.write_text(f"# M\n\n{request.param}\n")
    assert TOOL.refresh(path)
    assert not TOOL.refresh(path)
    return path


def changed(proof: Path, old: str, new: str) -> list[str]:
    """The parts that are reported when this is put into the source in place of that."""
    assert old in SOURCE
    (proof.parent / "m.py").write_text(SOURCE.replace(old, new))
    (each,) = TOOL.covered(proof)
    found: list[str] = each.changed()
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A module.", "Another sentence."),
        ('        """Noise."""\n', ""),
        ("  # one", ""),
        ("snugdp.old", "snugdp.new.place"),
        ("\n\n\ndef", "\n\n\n\n# a comment\ndef"),
    ],
)
def test_words_and_places_need_no_new_stamp(proof: Path, old: str, new: str) -> None:
    assert changed(proof, old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("helper(1)", "helper(2)", "Mechanism.release"),
        ("return 2", "return -2", "Mechanism"),
        ("class Mechanism", "class Mechanism(dict)", "Mechanism"),
        ("def release(self)", "def release(self, more=1)", "Mechanism.release"),
        ("return 3", "return 4", "threshold"),
        ("import helper", "import wrong as helper", "rest"),
        ("def threshold", "THREE = 3\n\n\ndef threshold", "rest"),
        ("def threshold", "def other", "threshold"),
    ],
)
def test_a_changed_definition_names_itself(proof: Path, old: str, new: str, part: str) -> None:
    named = "threshold" in proof.read_text()
    assert part in changed(proof, old, new) if named else changed(proof, old, new) == [""]
    assert TOOL.refresh(proof)
    assert not TOOL.refresh(proof)
    if new == "def other":
        assert "threshold" not in proof.read_text()


def test_names_in_a_proof_are_listed(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(SOURCE)
    proof = tmp_path / "m.proof.md"
    proof.write_text("# M\n\nCovers: m.py @ 0\n\n`release` adds noise. `threshold() + 1` is public.\n")
    TOOL.name_parts(proof)
    (each,) = TOOL.covered(proof)
    assert list(each.seen) == ["Mechanism.release", "threshold", "rest"]
    assert each.changed() == []
