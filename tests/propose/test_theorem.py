"""Every registered theorem has a proof with its heading, and ids are stable, short and unique."""

import re
from pathlib import Path

import pytest

import snugdp
from snugdp.propose.theorem import THEOREMS, Theorem, theorem

ROOT = Path(snugdp.__file__).parent


def anchors(proof: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", proof.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w]+", "-", heading.lower()).strip("-") for heading in headings}


@pytest.mark.parametrize("one", THEOREMS.values(), ids=lambda one: one.id)
def test_the_theorem_is_where_it_says(one: Theorem) -> None:
    assert one.anchor in anchors(ROOT / one.proof)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*/[1-9][0-9]*", one.id)
    assert one.title
    assert theorem(one.id) is one


def test_two_ids_are_two_theorems() -> None:
    assert len({one.link for one in THEOREMS.values()}) == len(THEOREMS)


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(ValueError, match="no theorem has the id 'median/0'"):
        theorem("median/0")
