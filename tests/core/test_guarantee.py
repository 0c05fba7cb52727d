"""Budgets and costs: exact as typed, composed in any order to the same total, never mixed between relations."""

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp import Budget, Cost, Guarantee, Neighbours, RelationMismatchError
from snugdp.accounting import gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.serial.costs import cost_from_json, cost_to_json
from tests.accounting.atoms import objective_perturbation, objective_perturbation_general

small = st.decimals(min_value=0, max_value=2, places=3)
costs = st.builds(lambda mu, epsilon, delta: Cost(mu=mu, epsilon=epsilon, delta=delta / 10**4), small, small, small)


def test_decimals_are_what_was_typed() -> None:
    assert (Cost(epsilon=0.1) + Cost(epsilon=0.2)).fits(Budget(0.3))
    assert (Cost(epsilon=0.5, delta=5e-7) + Cost(epsilon=0.5, delta=5e-7)).fits(Budget(1, 1e-6))
    assert sum([Cost(epsilon=0.1)] * 10, Cost()).fits(Budget(1))
    assert not (Cost(epsilon=0.1) + Cost(epsilon=0.2001)).fits(Budget(0.3))
    assert Budget("1/3").epsilon == Fraction(1, 3) == Budget(Fraction(1, 3)).epsilon
    assert Budget(Decimal("0.3")) == Budget(0.3) == Budget("0.3")


def test_the_example_of_the_theorem() -> None:
    cost = Cost(mu=0.5, epsilon=0.5)
    assert cost.epsilon_at(1e-6) == pytest.approx(2.7026, abs=5e-5)
    assert Cost(mu=0.5).epsilon_at(1e-6) == pytest.approx(2.2541, abs=5e-5)


@given(st.lists(costs, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_composition_forgets_order_and_grouping(parts: list[Cost], shuffle: Any) -> None:
    shuffled = list(parts)
    shuffle.shuffle(shuffled)
    zero = Cost()
    assert sum(parts, zero) == sum(shuffled, zero) == sum(parts[:1], zero) + sum(parts[1:], zero)


@settings(max_examples=30)
@given(costs, st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_epsilon_and_delta_are_inverse_on_the_safe_side(cost: Cost, delta: float) -> None:
    epsilon = cost.epsilon_at(delta)
    if math.isfinite(epsilon):
        assert Fraction(cost.delta_at(Fraction(epsilon))) <= Fraction(repr(delta)) * (1 + Fraction(1, 10**12))
        assert cost.fits(Budget(max(Fraction(epsilon), Fraction(1, 10**6)) * (1 + Fraction(1, 10**9)), delta))
    else:
        assert cost.delta >= Fraction(repr(delta))


def test_no_epsilon_repairs_a_failure_part_beyond_delta() -> None:
    assert Cost(epsilon=1, delta=1e-5).epsilon_at(1e-6) == math.inf
    assert Cost(mu=1, delta=1e-6).epsilon_at(1e-6) == math.inf
    assert Cost(epsilon=1, delta=1e-6).epsilon_at(1e-6) == pytest.approx(1)
    assert not Cost(epsilon=1, delta=1e-5).fits(Budget(10, 1e-6))


def test_variation_is_converted_once() -> None:
    one, two = Cost(epsilon=1, variation=1e-9), Cost(epsilon=1, variation=2e-9)
    total = one + two
    assert total.delta_at(2) == pytest.approx((1 + math.exp(2)) * 3e-9, rel=1e-9)
    assert total.fits(Budget(2, 1e-7))
    assert not total.fits(Budget(2, 1e-8))


def test_the_atom_of_objective_perturbation_composes() -> None:
    atom = objective_perturbation("0.2", "0.78")
    cost = Cost(atoms=(atom,)) + Cost(mu=0.03)
    assert cost.delta_at(1) == pytest.approx(4.766448365976081e-08, rel=1e-7)
    assert (cost + Cost(epsilon=0.1)).delta_at(1) > cost.delta_at(1)


def test_an_atom_with_two_directions_says_nothing_about_replacement() -> None:
    """A pair that replaces a row may lose by one list in one release and by the other in the next."""
    gauss, constant = Branch(Fraction(1), Fraction(0)), Branch(Fraction(0), Fraction(3))
    atom = Atom(add=(gauss,), remove=(constant,))
    truth = Cost(mu=1, epsilon=3).delta_at(6)  # of a 1-Gaussian pair and a randomised response of loss 3
    assert truth > 25 * Cost(atoms=(atom, atom)).delta_at(6), "one list for both would promise too much"
    for bad in (atom, objective_perturbation("0.2", "0.78"), objective_perturbation_general("0.2", "0.5")):
        with pytest.raises(ValueError, match="directions differ"):
            Cost(atoms=(bad,), neighbours="replace")
        written = cost_to_json(Cost(atoms=(bad,)))
        assert cost_from_json(written, Neighbours.ADD_REMOVE) == Cost(atoms=(bad,))
        with pytest.raises(ValueError, match="directions differ"):
            cost_from_json(written, Neighbours.REPLACE)
    both = Atom(add=(gauss, constant), remove=(constant, gauss))
    twice = Cost(atoms=(both,), neighbours="replace") + Cost(atoms=(both,), neighbours="replace")
    assert twice.delta_at(6) >= truth
    assert cost_from_json(cost_to_json(twice), Neighbours.REPLACE) == twice


def test_relations_do_not_mix() -> None:
    with pytest.raises(RelationMismatchError, match="cannot combine"):
        Cost(epsilon=1) + Cost(epsilon=1, neighbours="replace")
    with pytest.raises(RelationMismatchError, match="cannot combine"):
        Cost(epsilon=1).fits(Budget(2, neighbours=Neighbours.REPLACE))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "greater than 0"),
        ({"epsilon": -1}, "greater than 0"),
        ({"epsilon": math.nan}, "finite"),
        ({"epsilon": math.inf}, "finite"),
        ({"epsilon": "1/0"}, "finite"),
        ({"epsilon": "lots"}, "finite"),
        ({"epsilon": None}, "finite"),
        ({"epsilon": "1" * 500}, "longer"),
        ({"epsilon": 1, "delta": 1}, "less than 1"),
        ({"epsilon": 1, "delta": -1e-9}, "at least 0"),
        ({"epsilon": 1, "delta": 1e-6, "neighbours": "both"}, "add_remove"),
    ],
)
def test_bad_budgets_say_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Budget(**arguments)


def test_truth_values_are_not_numbers() -> None:
    with pytest.raises(TypeError, match="boolean"):
        Budget(True)


def test_negative_costs_are_refused() -> None:
    for part in ("mu", "epsilon", "delta", "variation"):
        with pytest.raises(ValueError, match="negative"):
            Cost(**{part: -0.1})  # type: ignore[arg-type]


def test_guarantee_takes_the_larger_and_composes_by_the_sum() -> None:
    alone = Guarantee(Cost(mu=0.3), Fraction(1, 10**6))
    released = Cost(mu=0.3).delta_at(1)
    assert alone.delta_at(1) == max(released, 1e-6)
    assert alone.composable.delta_at(1) == pytest.approx(released + 1e-6)
    with pytest.raises(ValueError, match="composable"):
        alone.delta_at(-0.1)


def test_the_larger_of_the_two_is_charged_for_variation_too() -> None:
    alone = Guarantee(Cost(epsilon=1, variation="1e-4"), Fraction(1, 100))
    assert alone.delta_at(1) >= 0.01 + (1 + math.e) * 1e-4


@pytest.mark.parametrize(("epsilon", "delta"), [(0.701, 6.07e-6), (1.36, 0.047), (1, "1e-400")])
def test_what_was_calibrated_to_a_budget_fits_it(epsilon: float, delta: Any) -> None:
    mu = Fraction(gaussian.mu(epsilon, delta))
    assert Cost(mu=mu).fits(Budget(epsilon, delta))
    assert not Cost(mu=mu * (1 + Fraction(1, 10**9))).fits(Budget(epsilon, delta))


def test_odd_parts_of_a_cost() -> None:
    with pytest.raises(ValueError, match="not both"):
        Cost(mu=5, mu_squared=Fraction(0))
    with pytest.raises(ValueError, match="credit"):
        Branch(Fraction(0), Fraction(-10))
    assert "e+400" in repr(Cost(epsilon="1e400")).lower()
    assert "e-400" in repr(Budget(1, "1e-400")).lower()
    assert Cost(mu="1e200").mu >= 1e200
    assert Cost(mu=1).epsilon_at(1) == 0


def test_public_values_survive_pickling_and_compare_by_value() -> None:
    cost = Cost(mu=0.25, epsilon=0.1, delta=1e-9, atoms=(objective_perturbation("0.2", "0.78"),))
    assert pickle.loads(pickle.dumps(cost)) == cost
    assert hash(cost) == hash(pickle.loads(pickle.dumps(cost)))
    assert pickle.loads(pickle.dumps(Budget(0.3, 1e-6))) == Budget(0.3, 1e-6)
    assert repr(Cost(mu=0.25)) == "Cost(mu=0.25, neighbours='add_remove')"
