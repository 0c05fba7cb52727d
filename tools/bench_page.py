"""Run the benchmarks that a page names, and put what they print into the page: ``make bench``.

A block of ``docs/benchmarks.md`` begins with its command and ends with a mark of its own::

    <!-- bench: snugdp bench noise -->
    ...
    <!-- bench: end -->

What is between them is replaced by the printed tables, with the command, the date, the versions and the machine.
What is outside stays. ``DATA`` in a command is the folder given by ``--data``; without it such a block keeps its
numbers, and so does a block ``<!-- bench slow: ... -->`` without ``--slow``. The page is written after every command.
"""

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BLOCK = re.compile(r"(<!-- bench( slow)?: (snugdp bench .+?) -->\n)(.*?)(<!-- bench: end -->)", re.DOTALL)
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
WIDE = {"COLUMNS": "1000", "PYTHONUTF8": "1", "NO_COLOR": "1"}  # no cell is cut or broken
FEW = 3  # more titled tables than this are folded
ALWAYS, PEERS = ("numpy", "scikit-learn", "polars"), ("scipy", "opendp", "dp-accounting")


@dataclass(frozen=True)
class Job:
    """A block of the page: its command, and whether it takes long."""

    command: str
    slow: bool

    def waits(self, data: Path | None, slow: bool) -> str:
        """Why it is left as it is, if it is."""
        if "DATA" in self.command and data is None:
            return "needs DATA="
        return "slow: needs SLOW=1" if self.slow and not slow else ""


def jobs(page: str) -> list[Job]:
    """The blocks of a page, in order."""
    return [Job(command, bool(slow)) for _, slow, command, _, _ in BLOCK.findall(page)]


def filled(page: str, command: str, body: str) -> str:
    """The page with this in the block of a command."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{body}\n\n{found[5]}" if found[3] == command else found[0], page)


def as_markdown(printed: str) -> str:
    """What a command printed, with its drawn tables as tables of Markdown."""
    lines = printed.splitlines()
    many = sum(_is_title(*pair) for pair in pairwise(lines)) > FEW
    return "\n\n".join(_parts(lines, many))


def _parts(lines: Sequence[str], many: bool) -> Iterator[str]:
    """Notes as they are, and tables: with their titles above them, or behind those if there are many."""
    rows: list[str] = []
    title = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("┃"):
            head = _cells(line, "┃")
            rows = [_row(head), "|" + "---|" * len(head)]
        elif line.startswith("│"):
            rows.append(_row(_cells(line, "│")))
        elif line.startswith("└"):
            yield _titled(title, "\n".join(rows), many)
            title = ""
        elif _is_title(line, following):
            title = line.strip()
        elif line.strip() and not line.startswith(("┏", "┡", "├")):
            yield line.strip().replace("*", "\\*")


def _is_title(line: str, following: str) -> bool:
    return line.startswith(" ") and following.startswith("┏")


def _titled(title: str, table: str, many: bool) -> str:
    if not title:
        return table
    if not many:
        return f"**{title}**\n\n{table}"
    return f'<details markdown="1"><summary>{title}</summary>\n\n{table}\n\n</details>'


def _cells(line: str, edge: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip(edge).split(edge)]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |"


def stamp(command: str, seconds: float, printed: str) -> str:
    """When, with what and where it was run. No names of machines or people."""
    today = datetime.now(UTC)
    named = [name for name in PEERS if name in printed.lower()]
    used = [f"{name} {found}" for name in ("snugdp", *ALWAYS, *named) if (found := _version(name))]
    return (
        f"*`OPENBLAS_NUM_THREADS=1 {command}`, {today.day} {today:%B %Y}, {seconds:.0f} s. "
        f"Python {platform.python_version()}, {', '.join(used)}; {machine()}.*"
    )


def machine() -> str:
    """The processor, how many cores there are, and how much else they had to do."""
    try:
        model = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        model = None
    name = model[1].strip() if model else platform.machine()
    return f"{os.cpu_count()} cores of {name}, {os.getloadavg()[0]:.1f} processes at work on them at the end"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def run(command: str, data: Path | None) -> tuple[str, float]:
    """What a command prints, and how long it takes; on one thread."""
    words = [re.sub("^DATA", lambda _: str(data), word) for word in shlex.split(command)]
    program = Path(sys.executable).with_name(words[0])
    begin = time.monotonic()
    done = subprocess.run(
        [program, *words[1:]], env={**os.environ, **ONE_THREAD, **WIDE}, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout, time.monotonic() - begin


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill the blocks; 1 if a command failed."""
    parser = argparse.ArgumentParser(description="Run benchmarks and put their tables into the page that names them.")
    parser.add_argument("--data", type=Path, help="a folder of real tables, for the blocks that name DATA")
    parser.add_argument("--slow", action="store_true", help="also what takes more than a few minutes")
    parser.add_argument("--only", default="", help="only commands with this in them")
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    wanted = [job for job in jobs(given.page.read_text(encoding="utf-8")) if given.only in job.command]
    failed = 0
    for number, job in enumerate(wanted, 1):
        sys.stdout.write(f"{number} of {len(wanted)}: {job.command} ... ")
        sys.stdout.flush()
        if why := job.waits(given.data, given.slow):
            sys.stdout.write(f"left as it is ({why})\n")
            continue
        try:
            printed, seconds = run(job.command, given.data)
        except (OSError, subprocess.CalledProcessError) as error:
            failed += 1
            sys.stdout.write(f"failed, left as it is: {error}\n")
            continue
        body = f"{stamp(job.command, seconds, printed)}\n\n{as_markdown(printed)}"
        now = given.page.read_text(encoding="utf-8")  # again: somebody may have written meanwhile
        given.page.write_text(filled(now, job.command, body), encoding="utf-8")
        sys.stdout.write(f"{seconds:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
