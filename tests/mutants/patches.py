"""Mistakes on purpose, as text: which lines of the library become which others, and who must notice.

A file of patches has a block for every mutant::

    [12] ties as less
    What cannot be decided yet counts as below.
    layers: S
    check: inside("coins", 3, 0.08)
    @@ noise/exact/refine.py
    -    return False if ball > 0 else None
    +    return not ball > 0

``known: ...`` says why a mutant is expected to survive. Of a change, ``-`` lines are removed, ``+`` lines added, and
lines that begin with a space stay. The old text may begin or end inside a line. It must occur exactly once in its file,
so that no change of the library loses a mutant silently.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "snugdp"
TOPICS = (
    "noise",
    "sensitivity",
    "tests_and_shifts",
    "accounting",
    "data",
    "framework",
    "faces",
    "ledger",
    "paper",
    "steps",
    "quantiles",
    "sums",
    "keys",
    "looks",
    "gaps",
    "persons",
    "contributions",
    "classes",
    "descriptions",
    "unit",
    "inference",
    "adding_up",
    "person_releases",
    "person_models",
    "person_fits",
    "copies",
    "scores",
    "population",
    "parts",
    "memory",
    "person_caps",
    "one_table",
    "class_means",
    "voids",
    "plans",
    "person_identifiers",
    "old_records",
    "rounded",
    "windows",
    "person_pieces",
    "person_types",
    "corners",
    "room",
    "kept_rows",
    "intervals",
    "bends",
    "voters",
    "found_classes",
    "least_squares",
    "places",
    "class_rows",
    "weighing",
)
_HEAD = re.compile(r"^\[(\d+)\] (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Edit:
    """One place that changes: the file, below ``src/snugdp``, the old text and the new one."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """One mistake. ``does``: in a sentence; ``layers``: those that may catch it; ``check``: the cheapest that should.

    ``check`` is an expression in the names of ``checks.py``.
    """

    number: int
    name: str
    topic: str
    does: str
    layers: str
    check: str
    edits: tuple[Edit, ...] = field(repr=False)
    known: str = ""

    def texts(self) -> dict[Path, str]:
        """The changed files, whole. Raises ``LookupError`` where an old text does not occur exactly once."""
        texts: dict[Path, str] = {}
        for edit in self.edits:
            path = SOURCE / edit.file
            text = texts.get(path) or (path.read_text(encoding="utf-8") if path.exists() else "")
            if (count := text.count(edit.old)) != 1:
                first = edit.old.strip().partition("\n")[0]
                raise LookupError(f"{self.number} {self.name}: {count} times in {edit.file}: {first}")
            texts[path] = text.replace(edit.old, edit.new)
        return texts


def mutants(folder: Path = Path(__file__).parent) -> tuple[Mutant, ...]:
    """All of them, in the order of their numbers."""
    found = [one for topic in TOPICS for one in parsed((folder / f"{topic}.patch").read_text(encoding="utf-8"), topic)]
    if [one.number for one in found] != list(range(1, len(found) + 1)) or len({one.name for one in found}) < len(found):
        raise ValueError("mutants are numbered from 1 on, each with a name of its own")
    return tuple(found)


def broken(some: tuple[Mutant, ...]) -> list[str]:
    """What is wrong with the patches that do not fit the library as it is."""
    problems = []
    for one in some:
        try:
            for path, text in one.texts().items():
                compile(text, str(path), "exec")
        except LookupError as problem:
            problems.append(str(problem.args[0]))
        except SyntaxError as problem:
            problems.append(f"{one.number} {one.name}: {problem}")
    return problems


def parsed(text: str, topic: str) -> list[Mutant]:
    """The mutants of a file."""
    _, *parts = _HEAD.split(text)
    return [_mutant(int(parts[i]), parts[i + 1], topic, parts[i + 2]) for i in range(0, len(parts), 3)]


def _mutant(number: int, name: str, topic: str, block: str) -> Mutant:
    head, *changes = re.split(r"^@@ ", block.strip("\n"), flags=re.MULTILINE)
    lines = head.strip().split("\n")
    named = dict(line.split(": ", 1) for line in lines if line.startswith(("layers: ", "check: ", "known: ")))
    does = " ".join(line for line in lines if line not in {f"{k}: {v}" for k, v in named.items()})
    if {"layers", "check"} - named.keys() or not does.endswith(".") or not changes:
        raise ValueError(f"mutant {number} needs a sentence, layers, a check and a change")
    edits = tuple(_edit(change, number) for change in changes)
    known = named.get("known", "")
    return Mutant(number, name, topic, does, named["layers"], named["check"], edits, known)


def _edit(change: str, number: int) -> Edit:
    file, *lines = change.rstrip("\n").split("\n")
    if any(line[:1] not in ("-", "+", " ", "") for line in lines):
        raise ValueError(f"mutant {number}: a line of a change begins with -, + or a space")
    old, new = ("\n".join(line[1:] for line in lines if line[:1] != sign) for sign in "+-")
    if not old.strip() or old == new:
        raise ValueError(f"mutant {number}: a change needs an old text and another one")
    return Edit(file, old, new)
