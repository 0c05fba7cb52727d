"""A plan is data: its steps have ids, and nothing but the report has words."""

import ast
import re
from pathlib import Path

import pytest
from tests.plans import plan_of

import snugdp
from snugdp import Cost
from snugdp.propose.plan import Step, StepKind, StepNoise

ROOT = Path(snugdp.__file__).parent


@pytest.mark.parametrize("name", ["", "Test", "my test", "-a", "a--b", "tést"])
def test_ids_of_steps_are_slugs(name: str) -> None:
    with pytest.raises(ValueError, match="the id of a step is small letters"):
        Step(name, StepKind.TEST, StepNoise("value"), Cost())


def test_every_step_has_an_id_of_its_own() -> None:
    plan = plan_of("two steps", {"test": Cost(epsilon=1), "release": Cost(delta="1e-6")})
    assert plan.step_ids == ("test", "release")
    assert plan.cost == Cost(epsilon=1, delta="1e-6")
    with pytest.raises(ValueError, match="an id of its own"):
        snugdp.Plan("twice", plan.theorem, (plan.steps[0], plan.steps[0]))
    with pytest.raises(ValueError, match="at least one step"):
        snugdp.Plan("nothing", plan.theorem, ())


def test_no_code_reads_our_prose_or_paths() -> None:
    """Proof files are named in docstrings and in the table of theorems; no other string of the rooms that plan does."""
    rooms = ("mechanisms", "certify", "queries", "pate", "estimators", "release", "report", "cli")
    for path in (path for room in rooms for path in (ROOT / room).rglob("*.py")):
        if path.name == "former.py" or ".proof.md#" not in path.read_text():  # one reads files that still had paths
            continue
        tree = ast.parse(path.read_text())
        texts = [str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert not [text for text in texts if re.fullmatch(r"\S+\.proof\.md#\S+", text)], path
    for path in (ROOT / "report").rglob("*.py"):
        assert "import re\n" not in path.read_text(), path
