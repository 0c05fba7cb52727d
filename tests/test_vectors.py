"""The vector suite: given answers, and others of the same form from the folder in SNUGDP_VECTORS."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.adapters import LATER, adapter_for, exactly, number

FOLDER = Path(os.environ.get("SNUGDP_VECTORS", Path(__file__).parent / "vectors"))
FILES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
SLOW = {"person_calibration": [pytest.mark.slow]}  # kinds of cases
CASES = [
    pytest.param(name, case, id=f"{name}-{case['id']}", marks=SLOW.get(case["kind"], []))
    for name, file in FILES.items()
    for case in file["cases"]
]


def agrees(found: Any, expected: Any, case: dict[str, Any]) -> bool:
    """Within the case's tolerances, number by number. Where a file has no answer (null) there must be none."""
    if expected is None:
        return found is None or (isinstance(found, float) and not math.isfinite(found))
    if hasattr(found, "agrees"):  # an answer that knows the rule of its case
        return bool(found.agrees(expected))
    if isinstance(expected, dict):
        return all(agrees(found.get(key), value, case) for key, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(agrees(a, b, case) for a, b in zip(found, expected, strict=True))
    if case.get("exact"):
        return bool(exactly(found) == exactly(expected))
    goal, value = number(expected), number(found)
    return value == goal or abs(value - goal) <= case.get("atol", 0) + case.get("rtol", 0) * abs(goal)


@pytest.mark.parametrize(("file", "case"), CASES)
def test_vector(file: str, case: dict[str, Any]) -> None:
    adapter = adapter_for(file, case["kind"])
    if adapter is None and file in LATER:
        pytest.skip(f"vectors not built yet: {file}, {case['kind']}")
    assert adapter is not None, f"no adapter for {case['kind']} of {file}"
    found = adapter(**case["inputs"])
    assert agrees(found, case["expected"], case), f"{found} instead of {case['expected']}"


def test_there_are_vectors() -> None:
    assert CASES, "the folder of vectors has no cases"


def test_a_wrong_answer_disagrees() -> None:
    case = {"rtol": 1e-8}
    assert agrees(1.0, 1.0, case)
    assert not agrees(1.0 + 1e-7, 1.0, case)
    assert not agrees([1.0], [1.0, 2.0], case)
    assert agrees(float("inf"), "inf", {"exact": True})
    assert not agrees(3, 4, {"exact": True})
