"""snugdp ledger adopt: a copy is refused in one sentence that says what to do, and doing that is recorded."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.people import run
from tests.ledger.stores.test_file_systems import mounted


def test_a_copy_is_adopted_as_the_message_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNUGDP_STATE", str(tmp_path / "state"))
    (tmp_path / "one").mkdir()
    here, copy = tmp_path / "one" / "l", tmp_path / "two" / "l"
    run("ledger", "create", here, "--dataset", "p", "--epsilon", 1)
    shutil.copytree(here.parent, copy.parent)
    said = run("ledger", "show", copy, code=1).output
    assert f"snugdp ledger adopt {copy} --reason" in " ".join(said.split())
    assert "record 1, by" in run("ledger", "adopt", copy, "--reason", "a new disk").output
    run("ledger", "verify", copy)
    assert "nothing to adopt" in run("ledger", "adopt", copy, "--reason", "again", code=1).output
    said = run("ledger", "adopt", here, "--reason", "back again", code=1).output
    assert "--lost-epsilon" in said
    run("ledger", "adopt", here, "--reason", "back again", "--lost-epsilon", "0.25", "--lost-delta", "0")
    shown = run("ledger", "show", here).output
    assert "spent      epsilon 0.25 and delta 0, in 1 entry" in shown
    assert "back again (record 1; lost: up to record 1 of another copy)" in shown
    assert json.loads(run("ledger", "show", here, "--json").output)["adoptions"][0]["reason"] == "back again"
    run("ledger", "page", here, "-o", tmp_path / "page.html")
    assert "back again (record 1" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "page.html").stat().st_mode & 0o077 == 0


def test_a_network_is_allowed_by_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNUGDP_STATE", str(tmp_path / "state"))
    (tmp_path / "shared").mkdir()
    mounted(monkeypatch, tmp_path / "shared", "nfs4")
    words = ("ledger", "create", tmp_path / "shared" / "l", "--dataset", "p", "--epsilon", 1)
    assert "--allow-network-file-system" in run(*words, code=1).output
    run(*words, "--allow-network-file-system")
    run("ledger", "show", tmp_path / "shared" / "l")
