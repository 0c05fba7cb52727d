"""``python -m tests.mutants``: all mutants, or those with these names or numbers, and who notices."""

import argparse
import os
import re
import sys
from pathlib import Path

from tests.mutants.engine import Verdict, run
from tests.mutants.patches import broken, mutants

_MARKS = re.compile(r"(<!-- mutants: begin -->\n).*(\n<!-- mutants: end -->)", re.DOTALL)


def main() -> int:
    """The exit code is 1 if a mutant survives that is not known to, and 2 if a patch does not fit."""
    options = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    options.add_argument("names", nargs="*", help="names or numbers; all if there are none")
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options.add_argument("--markdown", type=Path, help="put the table into this page, between its marks")
    options.add_argument("--green", action="store_true", help="the suite runs too, so its tests meet mutants alone")
    given = options.parse_args()
    every = mutants()
    unknown = set(given.names) - {key for one in every for key in (one.name, str(one.number))}
    if unknown:
        options.error(f"there is no mutant {', '.join(sorted(unknown))}")
    some = tuple(one for one in every if not given.names or {one.name, str(one.number)} & set(given.names))
    if problems := broken(some):
        print(f"{len(problems)} patches do not fit the library any more:", *problems, sep="\n", file=sys.stderr)
        return 2
    verdicts = run(some, given.processes, lambda verdict: print(verdict, flush=True), green=given.green)
    print(score(verdicts))
    if given.markdown:
        page = given.markdown.read_text(encoding="utf-8")
        given.markdown.write_text(_MARKS.sub(lambda m: f"{m[1]}\n{table(verdicts)}\n{m[2]}", page), encoding="utf-8")
    return int(any(not one.caught and not one.mutant.known for one in verdicts))


def score(verdicts: list[Verdict]) -> str:
    """How many were caught."""
    return f"{sum(one.caught for one in verdicts)} of {len(verdicts)} mistakes on purpose were caught."


def table(verdicts: list[Verdict]) -> str:
    """The verdicts for a page of the documentation."""
    head = [score(verdicts), "", "| no. | mistake | what it does | caught by | where |", "|---|---|---|---|---|"]
    rows = [
        (*map(str, (one.mutant.number, one.mutant.name, one.mutant.does)), one.layer or "nobody", _where(one))
        for one in verdicts
    ]
    return "\n".join([*head, *("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows)])


def _where(one: Verdict) -> str:
    return one.case if one.caught else f"**survives**: {one.words}"


if __name__ == "__main__":
    sys.exit(main())
