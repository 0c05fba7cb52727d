"""How many runs a selection makes is drawn once and not shown: who shows it, or draws again, is found."""

from typing import Any

import pytest

from snugdp.accounting import selection
from snugdp.audit.steps.run_count import hidden_runs
from snugdp.core.guarantee import Cost
from snugdp.noise import Gaussian, Noise
from snugdp.secrecy.secret import Secret
from tests.audit.toys import Rows, Walk, case, clipped

LAW = selection.geometric(3)


def best_of(draws: int = 1, more: int = 0, *, chosen: bool = True, **how: bool) -> Walk:
    """The best of some noisy sums, or their ``average``, which is ``early`` if it stops at a large one."""

    def walk(data: Secret[Rows], noise: Noise) -> Any:
        runs = sum(noise.stopping(LAW, 20) for _ in range(draws)) + more
        found = []
        for _ in range(runs):
            kind = noise.choice(2) if chosen else 0
            total = data.map(lambda rows: [clipped(rows)])
            found.append((noise.add_integers(total, Gaussian(1024))[0], kind))
            if how.get("early") and found[-1][0] > 5 * 1024:
                break
        if not found:
            return None
        value = sum(one for one, _ in found) / len(found) if how.get("average") else max(found)
        return (value, runs) if how.get("shown") else value

    return walk


def audited(transcript: bool = False, **how: Any) -> list[Any]:
    return hidden_runs(case(best_of(**how), Cost(mu=3), transcript=transcript), runs=12)


def test_a_selection_that_hides_its_runs() -> None:
    (found,) = audited()
    assert found.passed, found
    assert found.layer == "N"
    assert audited(more=-1)[0].passed  # it may make fewer
    assert audited(early=True)[0].passed


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"shown": True}, "one more run is seen"),
        ({"average": True}, "one more run is seen"),
        ({"draws": 2}, "more than once"),
        ({"more": 1}, "more runs than"),
    ],
)
def test_one_that_does_not(how: dict[str, Any], why: str) -> None:
    (found,) = audited(**how)
    assert not found.passed
    assert why in found.detail


def test_nothing_to_hide_is_nothing_to_find() -> None:
    assert audited(transcript=True, shown=True) == []
    assert audited(draws=0) == []
    assert audited(chosen=False)[0].passed  # where a run begins is not known
