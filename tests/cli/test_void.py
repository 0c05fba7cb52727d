"""snugdp ledger void, and the form of an export: that of the file's name."""

import json
from pathlib import Path

import pytest

from tests.cli.people import run
from tests.ledger.conftest import Where
from tests.ledger.history.test_voids import by_hand, record


def test_junk_is_void_as_the_message_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNUGDP_STATE", str(tmp_path / "state"))
    ledger = tmp_path / "l"
    run("ledger", "create", ledger, "--dataset", "p", "--epsilon", 1)
    assert "nothing to void" in run("ledger", "void", ledger, "--reason", "why not", code=1).output
    here = Where("sqlite", str(ledger), "p")
    by_hand(here, record(here, "nonsense"))
    said = run("ledger", "show", ledger, code=1).output
    assert f"snugdp ledger void {ledger} --reason" in " ".join(said.split())
    assert "Void: record 1, " in run("ledger", "void", ledger, "--reason", "by hand").output
    assert "by hand (record 2)" in run("ledger", "show", ledger).output
    assert json.loads(run("ledger", "show", ledger, "--json").output)["voids"][0]["reason"] == "by hand"
    run("ledger", "page", ledger, "-o", tmp_path / "page.html")
    assert "Records that count for nothing" in (tmp_path / "page.html").read_text()
    assert "whole: 3 records" in run("ledger", "verify", ledger).output


@pytest.mark.parametrize(
    ("name", "asked", "csv"),
    [("x.csv", (), True), ("x.CSV", ("--format", "csv"), True), ("x.json", (), False), ("x", ("--format", "csv"), True),
     ("x.txt", (), False)],
)  # fmt: skip
def test_an_export_is_what_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, asked: tuple[str, ...], csv: bool
) -> None:
    monkeypatch.setenv("SNUGDP_STATE", str(tmp_path / "state"))
    run("ledger", "create", tmp_path / "l", "--dataset", "p", "--epsilon", 1)
    run("ledger", "export", tmp_path / "l", "-o", tmp_path / name, *asked)
    text = (tmp_path / name).read_text()
    assert text.startswith("sequence,") if csv else json.loads(text)["ledger"] == "p"


@pytest.mark.parametrize(("name", "asked"), [("x.csv", "json"), ("x.json", "csv")])
def test_an_export_that_disagrees_with_its_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, asked: str
) -> None:
    monkeypatch.setenv("SNUGDP_STATE", str(tmp_path / "state"))
    run("ledger", "create", tmp_path / "l", "--dataset", "p", "--epsilon", 1)
    assert (
        "does not fit"
        in run("ledger", "export", tmp_path / "l", "-o", tmp_path / name, "--format", asked, code=1).output
    )
    assert not (tmp_path / name).exists()
