"""The tiers: what ``make test``, ``make slow`` and ``make nightly`` run of a sampled test."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest
from tests.effort import sampled


class Item:
    """A case as it is collected."""

    def __init__(self, case: int, marks: dict[str, Any]) -> None:
        self.nodeid, self.marks = f"tests/test_a.py::test_b[{case}]", dict(marks)

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, mark: Any) -> None:
        self.marks[mark.name] = mark


def run(monkeypatch: pytest.MonkeyPatch, effort: str, asked: str = "tests", mark: str = "", **given: int) -> set[int]:
    """The cases of twenty, every third of which is in ``make test``."""
    monkeypatch.setattr(conftest, "EFFORT", effort)
    marks = {"sampled": sampled(3, **given).mark, mark: True}
    items: Any = [Item(case, marks) for case in range(20)]
    told = SimpleNamespace(args=[asked], hook=SimpleNamespace(pytest_deselected=lambda items: None))
    conftest._sample(told, items)  # type: ignore[arg-type]
    return {int(item.nodeid.partition("[")[2][:-1]) for item in items}


def test_every_third_case_then_those_that_are_asked_for_then_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "") == {0, 3, 6, 9, 12, 15, 18}
    assert run(monkeypatch, "slow") == set()
    assert run(monkeypatch, "slow", later=4) == {1, 7, 13, 19}
    assert run(monkeypatch, "nightly") == set(range(20))


def test_how_many_of_the_others_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(monkeypatch, "")
    assert run(monkeypatch, "slow", later=1) == set(range(20)) - first
    assert run(monkeypatch, "slow", later=0) == set()


@pytest.mark.parametrize("mark", ["repeated", "slow"])
def test_what_does_more_or_was_left_out_starts_with_the_first_case(monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    assert run(monkeypatch, "slow", mark=mark) == set(range(0, 20, 3))
    assert run(monkeypatch, "slow", mark=mark, later=1) == run(monkeypatch, "nightly", mark=mark) == set(range(20))
    assert run(monkeypatch, "slow", mark=mark, later=7) == {0, 7, 14}


@pytest.mark.parametrize("effort", ["", "slow"])
def test_all_cases_of_what_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch, effort: str) -> None:
    assert run(monkeypatch, effort, asked="tests/test_a.py::test_b") == set(range(20))
