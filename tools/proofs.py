"""Mark proofs as looked at: writes the fingerprint of each covered source into its proof file.

Run it after reading the proof again against the changed code: ``make proofs``.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "snugdp"
COVERS = re.compile(r"^Covers: (\S+\.py) @ ([0-9a-f]{12})$", re.MULTILINE)


def fingerprint(path: Path) -> str:
    """The first twelve digits of the SHA-256 of a source file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def covered(proof: Path) -> Iterator[tuple[Path, str]]:
    """The sources that a proof speaks of, and the fingerprints under which it was last read."""
    for name, seen in COVERS.findall(proof.read_text()):
        yield proof.parent / name, seen


def refresh(proof: Path) -> bool:
    """Write the present fingerprints; say whether anything changed."""
    old = proof.read_text()
    new = COVERS.sub(lambda match: f"Covers: {match[1]} @ {fingerprint(proof.parent / match[1])}", old)
    proof.write_text(new)
    return new != old


if __name__ == "__main__":
    changed = [proof for proof in sorted(SOURCE.rglob("*.proof.md")) if refresh(proof)]
    sys.stdout.write("".join(f"looked at {proof.relative_to(SOURCE)}\n" for proof in changed) or "nothing changed\n")
