"""Files from before there were ids, written by the version before: read as they are, or refused in a sentence."""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import Cost, KeyConflictError, Ledger
from snugdp.estimators.files.model_file import as_dict
from snugdp.estimators.registry import BY_NAME
from snugdp.ledger.question import question
from snugdp.serial.codec import decode, dumps, loads
from snugdp.serial.registry import FORMER, TYPES
from tests.effort import sampled
from tests.ledger.test_questions import Untouched
from tests.serial.test_codec import same

UNTOUCHED: Any = Untouched()
HERE = Path(__file__).with_name("former")
MODELS = sorted(path.stem for path in HERE.glob("*.json") if path.stem != "bodies")
BODIES: dict[str, str] = json.loads((HERE / "bodies.json").read_text())
NEW = np.random.default_rng(1).uniform(-0.5, 0.5, (20, 3))


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SNUGDP_STATE", str(tmp_path / "state"))  # every test has a copy, and knows no other
    for name in ("ledger", "ledger.anchor"):
        shutil.copy(HERE / name, tmp_path)
    with Ledger.open(tmp_path / "ledger") as found:
        yield found


def rows(path: str | Path) -> list[Any]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT seq, record, body, hash FROM ledger ORDER BY seq").fetchall()
    connection.close()
    return found


def test_the_former_names_are_not_those_of_today() -> None:
    moved = {f"snugdp.{home}" for home, _ in TYPES.values()} - FORMER.keys()
    assert len(moved) > 30
    assert {"snugdp.mechanisms.regression:Fit", "snugdp.guarantee:Neighbours", "snugdp.outcome:Receipt"} < FORMER.keys()


def step_cost(step: dict[str, Any], whole: Cost) -> Cost:
    cost: Cost = decode(step["exact"])
    return replace(cost, atoms=tuple(whole.atoms[place] for place in step["atoms"]))


@sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_a_former_model_is_read(name: str, tmp_path: Path) -> None:
    whole = json.loads((HERE / f"{name}.json").read_text())
    assert whole["version"] == 1
    assert name == "refused" or "snugdp." in json.dumps(whole["released"]["exact"])
    model = snugdp.load(HERE / f"{name}.json")
    assert type(model) is BY_NAME[whole["kind"]].load()
    assert model.released_ == (whole["released"] is not None)
    assert [step.cost for step in model.plan_.steps] == [step_cost(step, model.cost_) for step in whole["steps"]]
    snugdp.save(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    again = snugdp.load(tmp_path / "model.json")
    assert not any(former in text for former in FORMER)
    assert json.loads(text)["version"] == 2
    assert same(again.outcome_, model.outcome_)
    assert {**as_dict(again), "time": ""} == {**json.loads(text), "time": ""}
    shown = vars(model) if name != "linear" else model._every_level()  # before levels were compared with a reference
    for attribute in ("coef_", "intercept_", "components_", "mean_"):
        if attribute in shown:
            assert np.allclose(shown[attribute], decode(whole["released"][attribute[:-1]]), rtol=1e-12, atol=0)
    if model.released_ and getattr(model, "schema", None) is None:
        ask = "transform" if hasattr(model, "transform") else "predict"
        assert np.array_equal(getattr(model, ask)(NEW), getattr(again, ask)(NEW))


@pytest.mark.parametrize("name", BODIES)
def test_a_former_outcome_is_read_and_written_with_ids(name: str) -> None:
    assert "snugdp." in BODIES[name]
    outcome = loads(BODIES[name])
    body = dumps(outcome)
    assert body is not None
    assert "snugdp." not in body
    assert same(loads(body).value, outcome.value)
    assert same(loads(body).certificate, outcome.certificate)


def test_a_former_ledger_is_read_as_it_is(ledger: Ledger) -> None:
    before = rows(ledger.address)
    charged = ledger.entries()
    states = {entry.key: entry.state for entry in charged}
    assert states.pop("refused") == "refused"
    assert {states.pop("by hand"), states.pop("open")} == {"open"}
    assert set(states.values()) == {"released"}
    assert ledger.verify().charges == len(charged) == len(states) + 3
    stored = [loads(body) for _, _, body, _ in before if body is not None]
    assert len(stored) == len(states) + 1
    assert {type(one.value).__name__ for one in stored} >= {"Fit", "Labels", "Components", "Selected", "tuple", "float"}
    receipt = ledger.charge(Cost(epsilon="0.1"), "by hand", key="by hand", plan="mine")
    assert receipt.sequence == next(entry.sequence for entry in charged if entry.key == "by hand")
    assert rows(ledger.address) == before


def test_a_former_key_is_refused_and_neither_charged_nor_drawn(ledger: Ledger) -> None:
    spent, before = ledger.spent, rows(ledger.address)
    votes: dict[str, Any] = {"candidates": [0, 1], "epsilon": 2}
    with pytest.raises(KeyConflictError, match=r"older version.*Nothing was charged or drawn.*use another key"):
        snugdp.vote([0] * 500 + [1], **votes, noise=UNTOUCHED, ledger=ledger.once("vote"))
    with pytest.raises(KeyConflictError, match="another release"):  # of another cost
        snugdp.vote([0] * 500 + [1], candidates=[0, 1], epsilon=1, noise=UNTOUCHED, ledger=ledger.once("vote"))
    with pytest.raises(KeyConflictError, match="older version"):  # that no outcome was stored changes nothing
        ledger.charge(Cost(epsilon="0.1"), "open", key="open", question=question("open"))
    assert (ledger.spent, rows(ledger.address)) == (spent, before)
    first: Any = snugdp.vote([0] * 500 + [1], **votes, ledger=ledger.once("vote again"))
    again = snugdp.vote([0] * 500 + [1], **votes, noise=UNTOUCHED, ledger=ledger.once("vote again"))
    assert same(first, again)
    with Ledger.open(ledger.address, receipts=[first.receipt]) as other:  # formats 1 and 2 in one history
        assert other.verify([first.receipt]).entries == len(before) + 2
        assert other.spent == ledger.spent
