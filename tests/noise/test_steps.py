"""Draws name their step: outside the steps of a plan a rehearsal and a recorder raise, and a release draws alike."""

from typing import Any, cast

import pytest

import snugdp
from snugdp import Cost, Exact, MemoryLedger, Simulation
from snugdp.noise import Laplace, Noise
from snugdp.noise.recording import Witness
from snugdp.noise.steps import InSteps, StepError
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from tests.plans import plan_of

PLAN = plan_of("a count", {"first": Cost(epsilon=1), "release": Cost(epsilon=1)})
TWO = ("first", "release")


class Count:
    """Draws once in each of these steps; without a step where there is none."""

    def __init__(self, *steps: str | None) -> None:
        self.steps = steps

    def draw(self, data: Secret[int], noise: Noise) -> list[float]:
        return [float((noise if one is None else noise.at(one)).add(data, Laplace(1), grid=-10)) for one in self.steps]


def run(noise: Any, *steps: str | None) -> Any:
    return release(PLAN, Count(*steps), Secret(5), ReleaseContext(noise))


@pytest.mark.parametrize("noise", [Simulation, Witness], ids=["rehearsal", "recorder"])
def test_a_draw_outside_the_steps_raises(noise: Any) -> None:
    assert len(run(noise(1), *TWO).value) == 2
    with pytest.raises(StepError, match="noise is drawn in a step of the plan"):
        run(noise(1), None)
    with pytest.raises(StepError, match='the plan has no step "other"; its steps are "first", "release"'):
        run(noise(1), "first", "other")


def test_a_recorder_knows_the_step_of_every_draw() -> None:
    witness = Witness(1)
    assert run(witness, "release", "first", "release").value == run(Simulation(1), *TWO, "release").value
    assert [site.step for site in witness.transcript()] == ["release", "first", "release"]
    assert [dict(plan.costs) for plan in witness.transcript().plans] == [{one.id: one.cost for one in PLAN.steps}]


def test_a_recorder_sees_a_draw_that_goes_round_the_plan() -> None:
    witness = Witness(1)
    witness.record_plan({"release": Cost(epsilon=1)})
    for noise in (witness, witness.at("other")):
        with pytest.raises(StepError, match="which the plan does not have"):
            noise.add(Secret(5), Laplace(1))
    assert not witness.transcript().sites


def test_inside_a_step_it_stays_there() -> None:
    """A run of a selection has a plan of its own; all that it draws belongs to the step of the selection."""
    witness = Witness(1)
    witness.record_plan({"select": Cost(epsilon=2)})
    inside = InSteps(witness, ["select"]).at("select")
    run(inside, *TWO)
    assert [site.step for site in witness.transcript()] == ["select", "select"]
    assert len(witness.transcript().plans) == 1


def test_a_release_is_drawn_as_ever() -> None:
    noise = Exact()
    assert noise.at("anything") is noise
    simulated = Simulation(1)
    assert simulated.at("anything") is simulated
    assert InSteps(noise, ["release"]).private
    with pytest.raises(AttributeError):
        InSteps(noise, ["release"]).told  # type: ignore[attr-defined]  # noqa: B018


def test_a_source_that_knows_no_steps_is_refused_before_the_charge() -> None:
    class Stepless:
        private = True

    ledger, noise = MemoryLedger(1, 1e-6, composition="tight"), cast(Noise, Stepless())
    with pytest.raises(TypeError, match="source of noise"):
        snugdp.median([1.0, 2.0], bounds=(0, 4), epsilon=1, delta=1e-6, noise=noise, ledger=ledger)
    assert ledger.spent == Cost()
