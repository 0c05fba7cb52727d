"""The page about the report: all its commands run, in its order, and its pictures are there and small."""

import json
import re
from pathlib import Path

import pytest

from tests.pages import ROOT, Reader

PAGE = ROOT / "docs" / "report.md"


@pytest.mark.slow
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader()
    assert reader.follow(PAGE) == []
    for name in ("report.html", "age.html", "bonus.html", "later.html", "machine.html"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>"), name
    assert "REFUSED" in (tmp_path / "bonus.html").read_text(encoding="utf-8")
    told = json.loads(reader.said[-1][1].stdout)
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{key}`" in text for key in told)
    assert reader.names["page"].startswith("<!doctype html>")


def test_its_pictures_are_there() -> None:
    found = re.findall(r"\]\((images/.+?)\)", PAGE.read_text(encoding="utf-8"))
    assert len(found) == 4
    for name in found:
        assert (PAGE.parent / name).stat().st_size < 200_000, name


def test_the_claim_about_what_people_say() -> None:
    """Epsilon 1 and delta 1e-6 by Gaussian noise: how often odds change by more than the factor."""
    from scipy.special import ndtr

    import snugdp

    low, high = 0.1, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if snugdp.Cost(mu=middle).delta_at(1) <= 1e-6 else (low, middle)
    assert ndtr(-1 / low + low / 2) / 1e-6 == pytest.approx(20, abs=0.5)
