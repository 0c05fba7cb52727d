"""No canary is found anywhere after a fit, a refusal or an error; planted ones are found everywhere."""

import pickle
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp_studies.audit.side_channels.canaries import (
    LABEL,
    NUMBER,
    ROWS,
    TEXT,
    canaries,
    columns,
    power,
    search,
    search_error,
    seen_in,
)
from snugdp_studies.audit.side_channels.entry_points import entry_point_names, kept
from tests.effort import sampled


@sampled(36, 0)  # the self-audit in make slow has them all
@pytest.mark.parametrize("name", entry_point_names())
def test_no_canary_is_found(name: str) -> None:
    for finding in kept([name]):
        assert finding.passed, str(finding)


def test_planted_canaries_are_found() -> None:
    assert power().passed, str(power())


@pytest.mark.parametrize(
    "shown",
    [
        f"{NUMBER}", f"{NUMBER:.0f}", f"{NUMBER:e}", f"{NUMBER:.3f}", repr([NUMBER]), f"n={ROWS}", f"{LABEL}", TEXT,
        struct.pack(">d", NUMBER), struct.pack("<f", NUMBER) * 2, np.array([NUMBER] * 3, np.float32).tobytes(),
        np.array([LABEL]).tobytes(), np.array([TEXT]).tobytes(), pickle.dumps(np.int64(ROWS)),
        np.array([LABEL] * 2, "i4").tobytes(),
        pickle.dumps({"x": NUMBER}), pickle.dumps([TEXT]), f"n={ROWS}.", f"({float(ROWS)})",
    ],
    ids=str,
)  # fmt: skip
def test_every_form_is_known(shown: str | bytes) -> None:
    assert seen_in(shown)


@pytest.mark.parametrize("shown", ["", "0.7919", "17919", "79190", "7919.0432", "e7919f", "1.731415", b"\0" * 100])
def test_other_digits_are_none(shown: str | bytes) -> None:
    assert not seen_in(shown)


class Careless:
    """An estimator that keeps what it should not."""

    def __init__(self, keep: Callable[[Any], Any]) -> None:
        self.keep = keep

    def fit(self, data: Any) -> Any:
        model = snugdp.NotReleased("fitted")
        model.kept = self.keep(data)  # type: ignore[attr-defined]
        return model


@pytest.mark.parametrize(
    "keep",
    [
        lambda data: data,
        lambda data: data[0],
        lambda data: len(data),
        lambda data: {"a": [(data[0],)]},
        lambda data: {data[0]: 1},
        lambda data: np.float32(data[0]),
        lambda data: np.array([data[0]], dtype=">f8"),
        lambda data: f"fitted on {len(data)} rows",
    ],
)
def test_a_careless_fit_is_found(keep: Callable[[Any], Any]) -> None:
    data = next(iter(columns()))
    assert not canaries("careless", Careless(keep).fit, [data]).passed
    assert canaries("careful", Careless(lambda data: None).fit, [data]).passed


def test_errors_are_searched_with_all_they_carry() -> None:
    error = ValueError("no")
    assert not search_error(error)
    error.__context__ = KeyError(NUMBER)
    assert search_error(error)
    noted = ValueError("no")
    noted.add_note(TEXT)
    assert search_error(noted)
    assert search_error(ValueError("no", {"row": [NUMBER]}))


def test_a_real_ledger_and_a_refusal_keep_nothing() -> None:
    ledger = snugdp.MemoryLedger(2, "1e-5")
    rows = np.full(ROWS, NUMBER)
    outcome = snugdp.median(rows, bounds=(0, 1), epsilon=1, delta=1e-6, beta="1e-9", ledger=ledger)
    assert not search(outcome)
    with pytest.raises(snugdp.BudgetExceededError) as caught:
        snugdp.median(rows, bounds=(0, 1), epsilon=5, delta=1e-6, ledger=ledger)
    assert not search_error(caught.value)
    assert not seen_in(repr(ledger))


def test_nothing_to_try_is_no_success() -> None:
    assert not canaries("nothing", lambda data: None, []).passed
