"""The page of a ledger in a real browser: on a phone and on a screen, with hostile names and a long history."""

import html
import re
from pathlib import Path

import polars as pl
import pytest

from snugdp import Budget, Cost, Ledger, count
from snugdp.report.ledger import page
from tests.report.test_browser import LONG, chromium, pytestmark, seen

__all__ = ["pytestmark"]


@pytest.mark.parametrize("width", [390, 1000])
def test_the_page_of_a_ledger(tmp_path: Path, width: int) -> None:
    with Ledger.open(tmp_path / "people.ledger", dataset=f"<script>{LONG}", budget=Budget(9, 1e-6)) as ledger:
        ledger.partition("region", ["<i>north", "south"])
        for number in range(60):
            ledger.charge(Cost(epsilon="0.05"), f"release {number} of {LONG} </td><img src=x onerror=alert(1)>")
        table = pl.DataFrame({"region": ["<i>north"] * 9})
        count(table, epsilon=1, ledger=ledger.part("region", "<i>north"))
        made = page(ledger)
    (across, wide, headings, _, _), complaints = seen(made, tmp_path, width)
    assert (int(across), int(wide), complaints) == (width, 0, "")
    assert int(headings) == made.count("<h2") > 0
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", made)
    source = tmp_path / "ledger.html"
    source.write_text(made, encoding="utf-8")
    shown = html.unescape(re.sub(r"<[^>]*>", " ", chromium(tmp_path, "--dump-dom", source.as_uri()).stdout))
    for words in ("release 59", "<i>north", "epsilon 4", "onerror=alert(1)"):
        assert words in shown, words
