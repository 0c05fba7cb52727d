"""Bad input shows nothing at any entry point, all are covered, and planted side channels of every kind are found."""

import logging
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import pytest

import snugdp
from snugdp.audit.side_channels.calls import bad_input, watch
from snugdp.tables.cells import numbers
from snugdp_studies.audit.side_channels.entry_points import (
    COVERED_BY,
    LEDGER,
    UncoveredError,
    bad_inputs,
    entry_point_names,
    entry_points,
)
from snugdp_studies.audit.side_channels.inputs import Given, contents, good, inputs
from tests.effort import sampled

POINTS = entry_point_names()
SOME = [group for group in inputs("column") if "float" in group[0].form]
EVERY = 11  # of the forms: each entry point has others


def test_what_has_a_short_form_is_covered_by_an_entry_point() -> None:
    assert sum(callable(getattr(getattr(snugdp, name), "fit", None)) for name in snugdp.__all__) >= 8
    assert set(COVERED_BY.values()) <= set(POINTS)


@sampled(15, 0)  # the self-audit in make slow has them all
@pytest.mark.parametrize(("turn", "name"), list(enumerate(POINTS)), ids=POINTS)
def test_nothing_depends_on_private_cells(turn: int, name: str) -> None:
    findings = bad_inputs(names=[name], part=slice(turn % EVERY, None, EVERY))
    assert findings
    for finding in findings:
        assert finding.passed, str(finding)
    assert int(findings[0].measured.split()[2]) >= 10


class Needs:
    """An estimator as it may come."""

    def __init__(self, epsilon: float = 1, *, x_norm: float | None = None, ledger: Any = None) -> None:
        self.x_norm = x_norm

    def fit(self, X: Any, y: Any = None) -> Any:
        if self.x_norm is None:
            raise ValueError("x_norm is needed")
        return snugdp.vote([1, 0], candidates=[0, 1], epsilon=1, ledger=LEDGER)


class NeedsMore(Needs):
    def __init__(self, horizon: int) -> None:
        super().__init__(x_norm=1)


@pytest.mark.slow
def test_a_new_estimator_is_covered_or_missed_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snugdp, "New", Needs, raising=False)
    monkeypatch.setattr(snugdp, "__all__", ["New"])
    (one,) = entry_points()
    assert (one.name, set(one.without)) == ("New", {"x_norm"})
    assert all(finding.passed for finding in bad_inputs(names=["New"]))
    monkeypatch.setattr(snugdp, "New", NeedsMore)
    with pytest.raises(UncoveredError, match="New"):
        entry_points()


def test_a_new_query_is_covered_or_missed_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    def middle(data: object, *, epsilon: float, ledger: Any = None) -> Any:
        return snugdp.vote(data, candidates=[0, 1], epsilon=epsilon, ledger=ledger)

    monkeypatch.setattr(snugdp, "middle", middle, raising=False)
    monkeypatch.setattr(snugdp, "__all__", ["middle"])
    assert [one.name for one in entry_points()] == ["middle"]
    monkeypatch.setattr(snugdp, "middle", lambda rows: None)
    with pytest.raises(UncoveredError, match="middle"):
        entry_points()
    monkeypatch.setattr(snugdp, "middle", type("Middle", (), {"release": lambda self, data: None}))
    with pytest.raises(UncoveredError, match="middle"):
        entry_points()


@pytest.mark.slow
def test_bounds_from_the_rows_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(Needs):
        def fit(self, X: Any, y: Any = None) -> Any:
            self.x_norm = self.x_norm or 1.0
            return super().fit(X, y)

    monkeypatch.setattr(snugdp, "New", Careless, raising=False)
    monkeypatch.setattr(snugdp, "__all__", ["New"])
    assert [finding.passed for finding in bad_inputs(names=["New"])] == [True, False]


def test_there_are_enough_inputs() -> None:
    for face in ("table", "column"):
        for public in (False, True):
            groups = list(inputs(face, rows_are_public=public))
            assert sum(len(group) - 1 for group in groups) >= 200
            assert sum(map(len, inputs(face, full=True, rows_are_public=public))) > 1000
            assert {given.content for group in groups for given in group} > {"one infinity", "whole numbers: missing"}


def declared(thing: Any) -> Any:
    """What is public about an input: types, names and declared types."""
    if isinstance(thing, Given):
        return declared(thing.X), declared(thing.y)
    if isinstance(thing, np.ndarray):
        return type(thing), thing.dtype.kind, thing.ndim, thing.shape[1:]
    native: Any = nw.from_native(thing, pass_through=True, allow_series=True)
    if isinstance(native, nw.DataFrame):
        return type(thing), {name: declared(native[name].to_native()) for name in native.columns}
    if isinstance(native, nw.Series):
        return type(thing), str(getattr(thing, "dtype", None) or thing.type)  # narwhals would look at objects
    return type(thing)


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("face", ["table", "column"])
def test_inputs_of_one_form_differ_in_cells_alone(face: str) -> None:
    for group in inputs(face, full=True):
        assert len({repr(declared(given.make())) for given in group}) == 1, group[0].form


def test_no_content_is_good() -> None:
    plain = repr(good(3))
    assert all(repr(content.change(good(3))) != plain for content in contents() if content.kind == "float")


def planted(leak: Callable[[Any], Any]) -> str:
    """What is said about a column release that does something else first."""

    def release(data: Any) -> Any:
        leak(numbers(data))
        return snugdp.vote([1, 0], candidates=[0, 1], epsilon=1, ledger=LEDGER)

    finding = bad_input("planted", release, SOME)
    return "" if finding.passed else finding.detail


def _raise(text: str) -> None:
    raise ValueError(text)


LEAKS: dict[str, Callable[[Any], Any]] = {
    "raises on NaN": lambda x: _raise("NaN") if np.isnan(x).any() else None,
    "raises on no rows": lambda x: x[0],
    "says how many rows": lambda x: _raise(f"{len(x)} rows"),
    "quotes": lambda x: _raise(f"the largest is {max(x, default=0)}"),
    "warns by itself": lambda x: warnings.warn("huge", stacklevel=1) if abs(x).max(initial=0) > 1e100 else None,
    "numpy warns": lambda x: x @ x,
    "singular": lambda x: np.linalg.inv(np.eye(2) * np.nan_to_num(x).sum()),
    "prints": lambda x: print(x[:1]),
    "writes to stderr": lambda x: sys.stderr.write(f"{len(x)}"),
    "writes to the descriptor": lambda x: os.write(2, str(x.sum()).encode()),
    "logs": lambda x: logging.getLogger("somewhere").debug("%s", x.shape),
    "adds a note": lambda x: _noted(x),
    "carries another error": lambda x: _carried(x),
}


def _noted(x: Any) -> None:
    error = ValueError("no")
    error.add_note(f"{x.sum()}")
    raise error


def _carried(x: Any) -> None:
    try:
        _raise(f"{x.sum()}")
    except ValueError:
        raise TypeError("no") from None


@sampled(4)
@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS.keys())
def test_a_planted_side_channel_is_found(leak: Callable[[Any], Any]) -> None:
    assert planted(leak)


def test_an_innocent_release_passes() -> None:
    assert not planted(lambda x: None)
    assert not planted(lambda x: _raise("always the same"))
    assert not planted(lambda x: print("always the same"))


def test_what_is_kept_beside_the_value_is_compared() -> None:
    class Fitted:
        def __init__(self, data: Any) -> None:
            self.outcome_ = snugdp.vote([1, 0], candidates=[0, 1], epsilon=1, ledger=LEDGER)
            if np.isnan(numbers(data)).any():
                self.had_missing_ = True

    def costly(data: Any) -> Any:
        return snugdp.vote([1], candidates=[0, 1], epsilon=1 + int(np.isnan(numbers(data)).any()), ledger=LEDGER)

    assert "had_missing_" in bad_input("planted", Fitted, SOME).detail
    assert "kept" in bad_input("planted", costly, SOME).detail


def test_nothing_to_try_is_no_success() -> None:
    assert not bad_input("nothing", lambda data: None, []).passed


def test_watching_changes_nothing() -> None:
    level, handlers = logging.getLogger().level, list(logging.getLogger().handlers)
    seen, result = watch(lambda: 5)
    assert (str(seen), result) == ("nothing", 5)
    assert (logging.getLogger().level, logging.getLogger().handlers) == (level, handlers)
    with pytest.raises(KeyboardInterrupt):
        watch(lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
