"""Mistakes on purpose are found, and leave nothing behind."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest

from snugdp.accounting import gaussian
from snugdp.audit.finding import Finding
from snugdp.audit.mutants import Mutant, judged, mutants, run_mutants
from snugdp.audit.mutants.base import Changes, Check, Topic, everywhere
from snugdp.audit.mutants.ledger_checks import ledger_checks
from snugdp.audit.mutants.vectors import vectors
from snugdp.core.guarantee import Cost

QUICK = [one for one in mutants() if one.quick]
CLEAN: dict[Check, list[Finding]] = {}


@pytest.mark.parametrize("mutant", QUICK, ids=lambda one: one.name)
def test_a_mutant_is_caught(mutant: Mutant) -> None:
    verdict = judged(mutant, True, CLEAN)
    assert verdict.caught, verdict
    assert verdict.layer in mutant.layers


def test_there_are_enough_of_all_layers() -> None:
    assert len(mutants()) >= 48
    assert len({one.name for one in mutants()}) == len(mutants())
    assert {layer for one in QUICK for layer in one.layers} >= set("SINDCLBGX")
    assert {layer for one in mutants() for layer in one.layers} >= set("SINDCLBGXE")
    assert all(one.does.endswith(".") and "\n" not in one.does for one in mutants())
    assert sum(bool(one.known) for one in mutants()) <= len(mutants()) / 20


def test_vectors_and_the_ledger_pass_as_they_are() -> None:
    assert [finding for finding in (*vectors(), *ledger_checks()) if not finding.passed] == []


def test_everything_is_put_back() -> None:
    before = gaussian.mu
    mutant = next(one for one in mutants() if one.name == "classical Gaussian constant")
    with contextlib.suppress(RuntimeError), mutant.apply():
        assert gaussian.mu is not before
        raise RuntimeError
    assert gaussian.mu is before
    assert gaussian.mu(1, "1e-6") == pytest.approx(0.236704381)


def _silent(quick: bool) -> list[Finding]:
    return [Finding("N", "nothing", "nothing", "nothing", True)]


def _alarmed(quick: bool) -> list[Finding]:
    return [Finding("N", "nothing", "nothing", "everything", False)]


def _weak(quick: bool) -> list[Finding]:
    good = (Cost(epsilon=1) + Cost(epsilon=1)).epsilon == 2
    return [Finding("N", "sum", "a sum", "another", good, "" if good else "too weak: nothing was seen")]


def _other_layer(quick: bool) -> list[Finding]:
    return [Finding("D", "sum", "a sum", "another", (Cost(epsilon=1) + Cost(epsilon=1)).epsilon == 2)]


def _failing(quick: bool) -> list[Finding]:
    if (Cost(epsilon=1) + Cost(epsilon=1)).epsilon != 2:
        raise ValueError("no plan")
    return _silent(quick)


@pytest.mark.parametrize(
    ("check", "why"),
    [
        (_silent, "ok"),
        (_alarmed, "fails on the code as it is"),
        (lambda quick: [], "nothing to say"),
        (_weak, "too weak"),
        (_other_layer, "FAILED D"),
        (_failing, "an error instead"),
    ],
)
def test_what_does_not_count_as_caught(check: Check, why: str) -> None:
    topic = Topic("tests")

    @topic("sums are thrown away", "N", check)
    def _() -> Changes:
        """Costs do not add up."""
        return [(Cost, "__add__", lambda self, other: Cost(epsilon=Fraction(1, 2)))]

    verdict = judged(topic.mutants[0])
    assert not verdict.caught
    assert why in verdict.reason


def test_names_and_numbers_choose() -> None:
    seen: list[str] = []
    by_name = run_mutants(["charge after the draw", "1"], progress=lambda verdict: seen.append(verdict.mutant.name))
    assert [verdict.mutant.number for verdict in by_name] == sorted(verdict.mutant.number for verdict in by_name)
    assert {verdict.mutant.name for verdict in by_name} == set(seen) == {mutants()[0].name, "charge after the draw"}
    assert all(verdict.caught for verdict in by_name)
    assert "caught" in str(by_name[0])
    with pytest.raises(ValueError, match="there is no mutant"):
        run_mutants(["nobody"])


def test_mutants_name_real_layers_and_functions() -> None:
    with pytest.raises(ValueError, match="layers"):
        Topic("tests")("nothing", "Q", _silent)(lambda: [])
    with pytest.raises(LookupError):
        everywhere(test_names_and_numbers_choose, None)
