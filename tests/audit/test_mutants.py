"""Mistakes on purpose are found, and their patches fit the library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from snugdp.audit.finding import LAYERS
from tests.effort import EFFORT
from tests.mutants.__main__ import score, table
from tests.mutants.engine import Found, Verdict, judged
from tests.mutants.loading import module_of, order
from tests.mutants.patches import ROOT, Edit, Mutant, broken, mutants, parsed

PARTS = 4
OK, ALARM = Found(True, "N", "a sum", "as claimed"), Found(False, "N", "a sum", "too much")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: the engine needs one that has not loaded the library. With the repetitions of make test."""
    given = [sys.executable, "-m", "tests.mutants", "--processes", "1", *words]
    environment = {**os.environ, "SNUGDP_EFFORT": ""}
    return subprocess.run(given, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_patch_fits_the_library() -> None:
    assert broken(mutants()) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_mutants_are_caught_but_those_that_are_known(part: int) -> None:
    """Every process loads numpy and the like once. What mutants are shown to passes without them, or else it fails too;
    at night it is run without them all the same.
    """
    checks = list(dict.fromkeys(one.check for one in mutants()))[part::PARTS]
    green = () if EFFORT == "nightly" else ("--green",)
    done = run(*green, *(str(one.number) for one in mutants() if one.check in checks))
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_enough_of_all_layers() -> None:
    every = mutants()
    assert len(every) >= 169
    assert {layer for one in every for layer in one.layers} == {*LAYERS, "G", "X"}
    assert sum(bool(one.known) for one in every) <= 2


def test_an_old_text_that_is_not_there_once_is_an_error() -> None:
    first = mutants()[0]
    gone = Mutant(1, "a", "t", "Does.", "N", "near()", (Edit(first.edits[0].file, "nowhere to be found", "x"),))
    twice = Mutant(2, "b", "t", "Does.", "N", "near()", (Edit(first.edits[0].file, "import", "x"),))
    lost = Mutant(3, "c", "t", "Does.", "N", "near()", (Edit("no/such/file.py", "import", "x"),))
    words = Mutant(4, "d", "t", "Does.", "N", "near()", (Edit("noise/exact/entropy.py", "def bits(", "def bits(("),))
    problems = broken((gone, first, twice, lost, words))
    assert [problem.partition(" ")[0] for problem in problems] == ["1", "2", "3", "4"]  # all of them at once


def test_blocks_of_a_file() -> None:
    block = "[7] a name\nDoes it.\nlayers: NX\ncheck: near(1)\n@@ a.py\n one\n-two\n+three\n+four\n"
    (one,) = parsed(f"Words before.\n\n{block}", "topic")
    assert (one.number, one.name, one.does, one.layers, one.check) == (7, "a name", "Does it.", "NX", "near(1)")
    assert one.edits == (Edit("a.py", "one\ntwo", "one\nthree\nfour"),)
    for wrong in ("layers: NX\n", "check: near(1)\n", "-two\n+three\n+four\n", "Does it.\n"):
        with pytest.raises(ValueError, match="mutant 7"):
            parsed(block.replace(wrong, ""), "topic")


@pytest.mark.parametrize(
    ("clean", "found", "why"),
    [
        ([OK], [OK], "as claimed"),
        ([ALARM], [ALARM], "fails on the code as it is"),
        ([], [ALARM], "nothing to say"),
        ([OK], [Found(False, "N", "a sum", "too weak: nothing", weak=True)], "too weak"),
        ([OK], [Found(False, "D", "a sum", "too much")], "D a sum"),
        ([OK], [Found(False, error="an error instead of findings: no plan")], "no plan"),
        ([Found(False, error="no plan")], [ALARM], "no plan"),
    ],
)
def test_what_does_not_count_as_caught(clean: list[Found], found: list[Found], why: str) -> None:
    one = Mutant(1, "a", "t", "Does.", "NX", "near()", ())
    assert judged(one, [OK], [OK, ALARM]).caught
    verdict = judged(one, clean, found)
    assert not verdict.caught
    assert why in str(verdict)


def test_what_changes_is_loaded_as_late_as_can_be() -> None:
    uses = {"p": ["p.a"], "p.a": ["p"], "b": ["p"], "c": [], "d": ["c"], "e": ["b", "d"]}
    found = order(uses, {"c"})
    assert [name for name, _ in found] == ["p", "b", "c", "d", "e"]
    assert found[0] == ("p", {"p", "p.a"})  # a package that imports its own modules: all of them at once
    assert order(uses, {"p.a"})[:2] == [("c", {"c"}), ("d", {"d"})]
    assert module_of("noise/exact/source.py") == "snugdp.noise.exact.source"
    assert module_of("pate/__init__.py") == "snugdp.pate"


@pytest.mark.slow
def test_one_mutant_by_its_name(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- mutants: begin -->\nold\n<!-- mutants: end -->\nafter\n")
    done = run("handle across a fork", "--markdown", str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    number = next(one.number for one in mutants() if one.name == "handle across a fork")
    assert f"| {number} | handle across a fork |" in text
    assert "| G | test_a_forked_process_opens_its_own[sqlite] |" in text


@pytest.mark.slow
def test_a_mutant_that_nobody_knows() -> None:
    assert run("nobody").returncode == 2


def test_the_table() -> None:
    made = [Mutant(k, name, "t", "Makes | it wrong.", "S", "near()", ()) for k, name in enumerate("ab", 1)]
    both = [Verdict(made[0], True, "S", "add", "p = 0"), Verdict(made[1], False, words="too subtle")]
    assert score(both) == "1 of 2 mistakes on purpose were caught."
    assert "| 1 | a | Makes / it wrong. | S | add |" in table(both)
    assert "| nobody | **survives**: too subtle |" in table(both)
    assert "mutants: begin" in (ROOT / "docs" / "audit.md").read_text()
