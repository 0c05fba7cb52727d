"""The page of a long ledger: as much as can be seen of it, and no more."""

from fractions import Fraction
from pathlib import Path

from snugdp import Budget, Ledger
from snugdp.report.ledger import _PLACES, _seen, page
from snugdp_studies.bench.costs import write_history
from tests.ledger.conftest import somebody

__all__ = ["somebody"]


def test_a_long_history_is_drawn_with_as_many_points_as_can_be_told_apart(somebody: None, tmp_path: Path) -> None:
    Ledger.open(tmp_path / "l", dataset="p", budget=Budget(10)).close()
    write_history(tmp_path / "l", 3000)
    with Ledger.open(tmp_path / "l") as ledger:
        made, left = page(ledger), ledger.remaining.together[0]
    drawing = made[made.index("<svg") : made.index("</svg>")]
    assert len(drawing) < 100 * _PLACES
    assert f"to {float(left):.6g} in 2989 charges" in drawing


def test_of_the_steps_at_one_place_the_last_is_seen() -> None:
    steps = [(float(number**2), Fraction(-number)) for number in range(5000)]
    seen = _seen(steps)
    assert len(seen) <= _PLACES + 1
    assert (seen[-1], _seen(steps[:7])) == (steps[-1], steps[:7])
    assert set(seen) < set(steps)
    wide = (steps[-1][0] - steps[0][0]) / _PLACES
    times = [time for time, _ in seen]
    assert all(min(abs(time - each) for each in times) <= wide for time, _ in steps[::50])
    assert _seen([(1.0, Fraction(number)) for number in range(5000)]) == [(1.0, Fraction(4999))]
