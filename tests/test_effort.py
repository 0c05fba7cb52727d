"""The tiers: what ``make test`` leaves out of a sampled test, ``make slow`` runs, and nothing else of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest


class Item:
    """A case as it is collected."""

    def __init__(self, case: int, marks: dict[str, Any]) -> None:
        self.nodeid, self.marks = f"tests/test_a.py::test_b[{case}]", dict(marks)

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, mark: Any) -> None:
        self.marks[mark.name] = mark


def run(monkeypatch: pytest.MonkeyPatch, *, slow: bool, asked: str = "tests", mark: str = "") -> set[int]:
    """The cases of ten, every third of which is in ``make test``."""
    monkeypatch.setattr(conftest, "SLOW", slow)
    sampled = pytest.mark.sampled(1 if slow else 3, before=3)
    items: Any = [Item(case, {"sampled": sampled.mark, mark: True}) for case in range(10)]
    told = SimpleNamespace(args=[asked], hook=SimpleNamespace(pytest_deselected=lambda items: None))
    conftest._sample(told, items)  # type: ignore[arg-type]
    return {int(item.nodeid.partition("[")[2][:-1]) for item in items}


def test_both_tiers_have_every_case_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = run(monkeypatch, slow=False), run(monkeypatch, slow=True)
    assert first == {0, 3, 6, 9}
    assert first | second == set(range(10))
    assert not first & second


@pytest.mark.parametrize("mark", ["repeated", "slow"])
def test_what_does_more_or_was_left_out_runs_with_all_cases(monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    assert run(monkeypatch, slow=True, mark=mark) == set(range(10))


def test_all_cases_of_what_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for slow in (False, True):
        assert run(monkeypatch, slow=slow, asked="tests/test_a.py::test_b") == set(range(10))
