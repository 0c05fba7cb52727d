"""Mark proofs as read again: writes the fingerprints of what they cover into the proof files.

Run it after reading the proof again against the changed code: ``make proofs``. A proof says what it covers::

    Covers: median.py @ 0123456789ab
    Covers: median.py: Median.release @ 01234567, threshold @ 89abcdef, rest @ 01234567

The first form is a whole module. The second names definitions, each with a fingerprint, so that a change names itself;
``rest`` is all that is not named. Without ``rest`` only what is named is covered. Fingerprints are taken from the
syntax tree: comments, docstrings, white space, and the modules from which names are imported, do not count.

``--list`` turns the first form into the second, with the names that the proof mentions in code quotes.
"""

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "snugdp"
LINE = re.compile(r"^Covers: (\S+\.py)(?:: (.+)| @ ([0-9a-f]+))$", re.MULTILINE)
REST = "rest"
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Covered:
    """A source file that a proof speaks of, and the fingerprint under which each part was last read."""

    path: Path
    seen: Mapping[str, str]

    def changed(self) -> list[str]:
        """The parts that are not as they were."""
        now = fingerprints(self.path.read_text(), self.seen)
        return [name for name, old in self.seen.items() if now.get(name) != old]


def covered(proof: Path) -> Iterator[Covered]:
    """What a proof covers."""
    for file, parts, whole in LINE.findall(proof.read_text()):
        pairs = (part.split(" @ ") for part in parts.split(", ")) if parts else (("", whole),)
        yield Covered(proof.parent / file, dict(pairs))


def fingerprints(source: str, names: Iterable[str]) -> dict[str, str]:
    """The fingerprints of these parts, as far as they exist; a part is without those inside it that are named too."""
    tree, wanted = ast.parse(source), set(names)
    if wanted == {""}:
        return {"": _digest(tree, {}, 12)}
    named = {name: node for name, node in definitions(tree).items() if name in wanted}
    inside = {id(node): name for name, node in named.items()}
    found = {name: _digest(node, {k: v for k, v in inside.items() if v != name}, 8) for name, node in named.items()}
    return found | ({REST: _digest(tree, inside, 8)} if REST in wanted else {})


def definitions(tree: ast.Module) -> dict[str, _Definition]:
    """Functions, classes and methods by name."""
    found: dict[str, _Definition] = {}
    for node in tree.body:
        if isinstance(node, _Definition):
            found[node.name] = node
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(part, _Definition):
                found.setdefault(f"{node.name}.{part.name}", part)  # type: ignore[attr-defined]
    return found


def _digest(node: ast.AST, elsewhere: Mapping[int, str], digits: int) -> str:
    return hashlib.sha256(_text(node, elsewhere).encode()).hexdigest()[:digits]


def _text(node: object, elsewhere: Mapping[int, str]) -> str:
    """The syntax tree as text, the same for every Python: only what is there, without docstrings and contexts."""
    if isinstance(node, list):
        return "[" + ",".join(_text(part, elsewhere) for part in node if not _is_docstring(part)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if id(node) in elsewhere:
        return elsewhere[id(node)]
    if isinstance(node, ast.ImportFrom | ast.Import):
        return ",".join(sorted(f"{alias.name.rpartition('.')[2]}:{alias.asname}" for alias in node.names))
    fields = ((name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment"))
    inner = ",".join(f"{name}={_text(value, elsewhere)}" for name, value in fields if value not in (None, []))
    return f"{type(node).__name__}({inner})"


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def refresh(proof: Path) -> list[str]:
    """Write the present fingerprints; say which parts changed. Names that are gone are dropped."""
    text, said = proof.read_text(), []
    for line, each in zip(LINE.finditer(text), list(covered(proof)), strict=True):
        now = fingerprints(each.path.read_text(), each.seen)
        said += [f"{each.path.name}: {name or 'the module'}" for name in each.changed()]
        text = text.replace(line[0], _line(line[1], now or fingerprints(each.path.read_text(), [""])))
    proof.write_text(text)
    return said


def _line(file: str, parts: Mapping[str, str]) -> str:
    if "" in parts:
        return f"Covers: {file} @ {parts['']}"
    return f"Covers: {file}: " + ", ".join(f"{name} @ {seen}" for name, seen in parts.items())


def name_parts(proof: Path) -> None:
    """Name what the proof mentions, in each line that covers a whole module."""
    text = proof.read_text()
    quoted = set(re.findall(r"\w+(?:\.\w+)*", " ".join(re.findall(r"`([^`\n]+)`", text))))
    for line, each in zip(LINE.finditer(text), list(covered(proof)), strict=True):
        found = definitions(ast.parse(each.path.read_text()))
        named = [
            name for name in found if name in quoted or (name.rpartition(".")[2] in quoted and _single(name, found))
        ]
        if line[3] and named:
            text = text.replace(line[0], _line(line[1], fingerprints(each.path.read_text(), [*named, REST])))
    proof.write_text(text)


def _single(name: str, found: Iterable[str]) -> bool:
    """Whether it is the only method of its name."""
    return sum(other.rpartition(".")[2] == name.rpartition(".")[2] for other in found) == 1


def main(arguments: list[str]) -> None:
    """Stamp all proofs, and print what had changed."""
    if unknown := [given for given in arguments if given != "--list"]:
        sys.exit(
            f"unknown: {' '.join(unknown)}. Nothing was stamped. --list: name what proofs mention; no option: stamp"
        )
    proofs = sorted(SOURCE.rglob("*.proof.md"))
    for proof in proofs if "--list" in arguments else ():
        name_parts(proof)
    said = [f"read again {proof.relative_to(SOURCE)}: {part}\n" for proof in proofs for part in refresh(proof)]
    sys.stdout.write("".join(said) or "nothing changed\n")


if __name__ == "__main__":
    main(sys.argv[1:])
