"""The weight of a person found in private: what is released, what it costs, and that a fit may cost no more."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from snugdp import Budget, Number, Schema, Simulation, Unit
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.adaptive import Adaptive
from snugdp.mechanisms.persons.weight_choice import WEIGHTS, PersonWeight, WeightChoice, WeightedMethod
from snugdp.noise.recording import Witness, private_inputs
from snugdp.release.context import ReleaseContext
from snugdp.release.persons import Persons
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome, dumps, loads
from snugdp.tables.passes.base import row_map
from snugdp.tables.rows import Rows
from snugdp.tables.sources import open_source
from tests.mechanisms.objective.person_tables import People, frame_of

SCHEMA = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, "y")
BUDGET = Budget(1, Fraction(1, 10**6))
PEOPLE: People = {f"p{k}": [(0.1, 0.2)] * (1 + k % 6) for k in range(60)}


def tables(people: People) -> Rows:
    persons = Persons("who", 1024, BUDGET, True)
    return Rows(persons.weighed(open_source(frame_of(people)), ("x", "y"), Simulation(1), progress=False), SCHEMA)


def method(extra: int = 0) -> WeightedMethod:
    design = Design(row_map(SCHEMA), 1)
    choice = WeightChoice.within(BUDGET, design.entries, 1024)

    def make(weight: int) -> Adaptive:
        budget = BUDGET if weight == 1 or not extra else Budget(extra, BUDGET.delta)
        return Adaptive(replace(design, weight=weight), budget, choice.mu_squared)

    return WeightedMethod(choice, make, BUDGET)


@pytest.mark.slow
def test_the_cost_is_the_same_for_every_weight() -> None:
    whole = method()
    plan = whole.plan()
    assert plan.unit is Unit.PERSON
    assert plan.cost.fits(BUDGET)
    costs = {whole.make(weight).plan().cost for weight in WEIGHTS}
    assert {cost + Cost(mu_squared=whole.choice.mu_squared) for cost in costs} == {plan.cost}


def test_a_person_moves_one_count_by_one() -> None:
    """With the deviation that the cost says, on whole numbers."""
    choice = WeightChoice.within(BUDGET, 2, 16)
    assert choice.weights == WEIGHTS
    assert choice.deviation**2 * choice.mu_squared >= 1
    assert choice.deviation**2 * choice.mu_squared < 1 + Fraction(1, 10**6)
    found = []
    for people in (PEOPLE, {who: rows for who, rows in PEOPLE.items() if who != "p5"}):
        witness = Witness(3)
        choice.certify(Secret(tables(people)), witness)
        (site,) = witness.transcript()
        found.append(np.array(private_inputs(site)[0]))
    assert np.abs(found[0] - found[1]).tolist() == [0, 0, 0, 1, *[0] * 44]
    assert found[0].tolist()[:5] == [10, 10, 20, 20, 0]


def test_more_rows_a_person_ask_for_a_larger_weight_where_persons_are_many() -> None:
    choice = WeightChoice.within(BUDGET, 7, 1024)
    many, few = [10**6, 0, 0, 0, 10**6, *[0] * 43], [1000, 0, 0, 0, 1000, *[0] * 43]
    assert choice.read(few) == 1
    assert choice.read(many) == 4
    assert replace(choice, most=2).read(many) == 2
    assert choice.read([0, 0, 0, 0, 10**6, *[0] * 43]) == 1  # all have as many: weights change nothing
    assert choice.read([0] * 48) == choice.read([-50] * 48) == 1
    counts = [300, 200, 100, *[0] * 45]
    noisy = [count + (150 if place > 10 else 0) for place, count in enumerate(counts)]  # noise beyond is not clear
    assert choice.read(noisy) == choice.read(counts)


@pytest.mark.slow
def test_a_fit_that_costs_more_is_refused_and_one_release_holds_both() -> None:
    outcome = method().fit(Secret(tables(PEOPLE)), ReleaseContext(budget=BUDGET, unit=Unit.PERSON))
    assert not outcome.refused
    assert isinstance(outcome.certificate, PersonWeight)
    assert outcome.value is not None
    stored = StoredOutcome(refused=False, value=outcome.value.released["m"], certificate=outcome.certificate)
    body = dumps(stored)
    assert body is not None
    assert loads(body).certificate == outcome.certificate
    assert outcome.value.released["max_rows"] == outcome.certificate.weight
    dear = method(extra=2)
    forced = WeightedMethod(replace(dear.choice, m=1e9, entries=1), dear.make, BUDGET)
    many = {f"p{k}": [(0.1, 0.2)] * (16 if k % 2 else 1) for k in range(1000)}
    refused = forced.fit(Secret(tables(many)), ReleaseContext(budget=BUDGET, unit=Unit.PERSON))
    assert refused.refused
    assert refused.cost == forced.plan().cost
    with pytest.raises(ValueError, match="planned for persons"):
        WeightedMethod(dear.choice, lambda weight: Adaptive(Design(row_map(SCHEMA)), BUDGET), BUDGET)
