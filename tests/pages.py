"""Pages of the documentation as a reader follows them: block after block, in one folder.

Of a page these blocks are run, in their order:

* ``python``: in one namespace per page;
* ``console``: every line that begins with ``$``, a command of ours; ``# exit code 4`` says that it ends so, and a
  backslash at the end of a line joins it with the next one;
* ``toml title="people.toml"`` (or another kind of file): what a reader writes into that file.

A ``text`` block after ``python`` or ``console`` is what that block printed; ``...`` stands for whatever differs.
``<!-- needs: postgres -->`` before a block: it is run only where there is such a thing.
"""

import doctest
import io
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.people import run

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r'(?:^<!-- needs:? (?P<needs>.+?) -->\n)?^```(?P<kind>\w*)(?: title="(?P<file>.+?)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
_ENDS = re.compile(r"# exit code (\d)")
_ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A block of a page. ``line``: where its text begins; ``needs``: the name of what must be there."""

    kind: str
    text: str
    line: int
    file: str | None = None
    needs: str | None = None


@dataclass(frozen=True)
class Command:
    """One command of ours: its words after ``snugdp``, and how it ends."""

    words: tuple[str, ...]
    code: int = 0


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["kind"], found["text"], 1 + text.count("\n", 0, found.start("text")), found["file"], found["needs"])
        for found in _BLOCK.finditer(text)
    ]


def commands(text: str) -> Iterator[Command]:
    """The commands of a console block."""
    for line in text.replace("\\\n", " ").splitlines():
        if not line.startswith("$ snugdp "):
            raise ValueError(f"a console block holds commands, and the block after it what they print: {line}")
        code = _ENDS.search(line)
        yield Command(tuple(shlex.split(line, comments=True)[2:]), int(code[1]) if code else 0)


@dataclass
class Reader:
    """Follows a page in the current folder.

    ``there``: the names of what there is, for blocks that need it. ``instead``: texts of the page, such as the address
    of a server, and what is put in their place. ``kinds``: of blocks; the others are passed over. ``compares``: whether
    what is printed has to be what the page shows.
    """

    there: Collection[str] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    kinds: Collection[str] = ("python", "console", "toml")
    compares: bool = True
    names: dict[str, Any] = field(default_factory=dict)
    said: list[tuple[Command, Any]] = field(default_factory=list)  # what every command answered

    def follow(self, page: Path) -> list[str]:
        """Run the blocks of a page; the names of what was missing, for which some were left out."""
        missing, printed = [], None
        for block in blocks(page):
            if block.needs is not None and block.needs not in self.there:
                missing.append(block.needs)
                printed = None
                continue
            text = self._put(block.text)
            if block.kind == "text" and printed is not None and self.compares:
                assert doctest.OutputChecker().check_output(text, printed, _ALIKE), (
                    f"{page.name}, line {block.line} shows:\n{text}\nbut printed was:\n{printed}"
                )
            printed = self._run(page, block, text)
        return missing

    def _put(self, text: str) -> str:
        for shown, meant in self.instead.items():
            text = text.replace(shown, meant)
        return text

    def _run(self, page: Path, block: Block, text: str) -> str | None:
        """What the block printed; None if it is nothing to run."""
        if block.kind not in self.kinds:
            return None
        if block.kind == "python":
            code = compile("\n" * (block.line - 1) + text, str(page), "exec")
            with redirect_stdout(io.StringIO()) as printed:
                exec(code, self.names)
            return printed.getvalue()
        if block.kind == "console":
            asked = list(commands(text))
            self.said += [(command, run(*command.words, code=command.code)) for command in asked]
            return "".join(answer.output for _, answer in self.said[-len(asked) :])
        if block.file is not None:
            Path(block.file).write_text(text, encoding="utf-8")
        return None
