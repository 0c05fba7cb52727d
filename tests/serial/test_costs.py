"""Whatever shows an amount of privacy: no part is left out, none is rounded to the side of the promise."""

import json
import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import snugdp
from snugdp import Budget, Cost, Guarantee, Ledger, MemoryLedger, Neighbours
from snugdp.core.outcome import NotPrivate, Receipt, Refused, Released
from snugdp.estimators.base import Promise
from snugdp.estimators.files.model_file import as_dict, from_dict
from snugdp.ledger.composition.limits import Remaining
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem
from snugdp.report.model import render, told
from snugdp.report.words import at_most, chance, parts
from snugdp.serial.costs import cost_from_json, cost_parts, cost_told
from tests.accounting.atoms import objective_perturbation
from tests.cli import people
from tests.cli.people import run
from tests.plans import plan_of
from tests.report.test_model import Page

TINY = Fraction(1, 10**4)
AWKWARD = {
    "typed": Cost(mu="4e-6", epsilon="1.0000004", delta="1.00000004e-6", variation="3e-13"),
    "long": Cost(mu="0.12345678901234", epsilon="1.000000400000000001", delta="1.00000004000001e-6", variation="1/3"),
    "irrational": Cost(mu_squared="2e-11", epsilon="1/3", delta="1/3000000", variation="1/7000000000"),
    "tiny": Cost(mu="1e-400", epsilon="1/3" + "0" * 90, delta="1e-320", variation="7e-350"),
}  # fmt: skip
BUDGETS = [
    Budget("1.0000004", "1.00000004e-6"),
    Budget("1.000000400000001", "1.00000004000001e-6"),
    Budget("1/3", "1/7"),
]
RECEIPT = Receipt("people", 1, "mean", AWKWARD["typed"])


def read(name: str, text: str) -> Fraction:
    """The amount of this name in a text."""
    found = re.search(rf"\b{name}[= ]([-+.e0-9]+)", text)
    assert found is not None, (name, text)
    return Fraction(found[1].rstrip("."))


def no_less(text: str, cost: Cost) -> None:
    """Every part of the cost is in the text, rounded up a little at most."""
    for name in ("epsilon", "delta", "variation"):
        exact = getattr(cost, name)
        if exact:
            assert exact <= read(name, text) <= exact * (1 + TINY), (name, text)
    if cost.mu_squared:
        assert cost.mu_squared <= read("mu", text) ** 2 <= cost.mu_squared * (1 + TINY) ** 2, text
    assert "free" not in text


def planned(cost: Cost, budget: Budget | None = None) -> Plan:
    return plan_of("mean", cost, proposal={"epsilon_limit": cost.epsilon}, budget=budget)


SHOWN: dict[str, Callable[[Cost], str]] = {
    "Cost": repr,
    "words": lambda cost: cost.words,
    "Guarantee": lambda cost: repr(Guarantee(cost, Fraction(0))),
    "Receipt": lambda cost: repr(Receipt("people", 1, "mean", cost)),
    "Released": lambda cost: str(Released(1.0, cost, RECEIPT)),
    "Refused": lambda cost: str(Refused(cost, RECEIPT)),
    "NotPrivate": lambda cost: repr(NotPrivate(1.0, False, cost)),
    "Step": lambda cost: repr(Step("release", StepKind.RELEASE, StepNoise("noise"), cost)),
    "Plan, the step": lambda cost: next(line for line in str(planned(cost)).splitlines() if "release" in line),
    "Plan, the total": lambda cost: next(line for line in str(planned(cost)).splitlines() if "total" in line),
    "a model file": lambda cost: str(cost_parts(cost)["words"]),
}


@pytest.mark.parametrize("cost", AWKWARD)
@pytest.mark.parametrize("shows", SHOWN)
def test_whatever_shows_a_cost_shows_all_of_it_and_no_less(shows: str, cost: str) -> None:
    no_less(SHOWN[shows](AWKWARD[cost]), AWKWARD[cost])


whole = st.integers(1, 10**18)
amounts = st.builds(lambda over, under, power: Fraction(over, under) / 10**power, whole, whole, st.integers(0, 40))


@pytest.mark.slow
@settings(max_examples=60)
@given(amounts, amounts, amounts, amounts)
def test_any_cost_is_shown_so(mu: Fraction, epsilon: Fraction, delta: Fraction, variation: Fraction) -> None:
    cost = Cost(mu_squared=mu, epsilon=epsilon, delta=delta, variation=variation)
    for shows in SHOWN.values():
        no_less(shows(cost), cost)


def test_the_breaches_that_were_found() -> None:
    assert "epsilon=1.0000004," in repr(Cost(epsilon="1.0000004"))
    assert "[mu 4e-06]" in str(planned(Cost(mu="4e-6")))
    assert "variation 1e-12" in str(planned(Cost(epsilon=1, variation="1e-12")))
    assert Cost().words == "free"
    assert Cost(atoms=(objective_perturbation("0.05", "0.2"),)).words == "1 perturbed objective"


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_promise_is_not_made_smaller(budget: Budget) -> None:
    for text in (repr(budget), str(planned(Cost(mu=1), budget)).partition("that is")[2]):
        assert budget.epsilon <= read("epsilon", text) <= budget.epsilon * (1 + TINY)
        assert budget.delta <= read("delta", text) <= budget.delta * (1 + TINY)
    promise = Promise(budget, theorem("release/1"))
    epsilon, delta = map(Fraction, re.findall(r"[0-9.e-]+", str(promise))[:2])
    assert (epsilon >= budget.epsilon, delta >= budget.delta) == (True, True)
    assert Fraction(repr(promise.epsilon)) >= budget.epsilon
    assert Fraction(repr(promise.delta)) >= budget.delta


@settings(max_examples=60)
@given(amounts, amounts, amounts)
def test_what_is_left_is_not_made_larger(square: Fraction, pure: Fraction, failure: Fraction) -> None:
    left = Remaining(square, pure, failure, (pure, failure))
    assert square * (1 - TINY) ** 2 <= read("mu", left.alone) ** 2 <= square
    for words in (str(left), left.alone):
        assert pure * (1 - TINY) <= read("epsilon", words) <= pure
        assert failure * (1 - TINY) <= read("delta", words) <= failure
    assert Fraction(left.mu) ** 2 <= square
    assert Fraction(left.epsilon) <= pure
    assert Fraction(left.delta) <= failure
    assert {name: Fraction(text) for name, text in left.as_dict().items()} == {
        "mu_squared": square, "epsilon": pure, "delta": failure, "together_epsilon": pure, "together_delta": failure,
    }  # fmt: skip


def test_what_is_left_of_plain_decimals_is_plain() -> None:
    ledger = MemoryLedger("1.0000004", "1e-6")
    ledger.charge(Cost(epsilon="0.9"), "first")
    assert "epsilon 0.1000004 and" in str(ledger.remaining)
    assert ledger.remaining.pure == Fraction("0.1000004")


@pytest.mark.parametrize("cost", AWKWARD)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_json_is_exact_and_its_floats_are_no_less(cost: str, neighbours: Neighbours) -> None:
    atoms = (objective_perturbation("0.05", "0.2"),) if neighbours is Neighbours.ADD_REMOVE and cost == "typed" else ()
    whole = AWKWARD[cost]
    given = {name: getattr(whole, name) for name in ("mu_squared", "epsilon", "delta", "variation")}
    exact = Cost(**given, atoms=atoms, neighbours=neighbours)
    shown = json.loads(json.dumps(cost_told(exact), allow_nan=False))
    if cost != "tiny":  # a ledger would not write so long a number
        assert cost_from_json(shown["exact"], Neighbours(shown["neighbours"])) == exact
    assert Fraction(repr(shown["mu"])) ** 2 >= exact.mu_squared
    for name in ("epsilon", "delta", "variation"):
        assert Fraction(repr(shown[name])) >= getattr(exact, name) > 0


@pytest.mark.parametrize("cost", AWKWARD)
def test_a_page_shows_every_part_and_no_less(cost: str) -> None:
    whole = AWKWARD[cost]
    text = str(parts(whole))
    for sign, exact in (("ε</i>₀ =", whole.epsilon), ("δ</i>₀ =", whole.delta), ("variation", whole.variation)):
        found = text.partition(sign)[2].strip().partition(", ")[0]
        assert exact <= unstyled(found) <= exact * (1 + Fraction(1, 10**3)), text
    assert unstyled(text.partition("μ</i> =")[2].strip().partition(", ")[0]) ** 2 >= whole.mu_squared


def unstyled(text: str) -> Fraction:
    """The number that a page shows."""
    plain, raised = text.replace(",", "").replace("−", "-"), "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
    front = plain.rstrip(raised)
    if front == plain:
        return Fraction(plain)
    power = int(plain.removeprefix(front).translate(str.maketrans(raised, "-0123456789")))
    return Fraction(front.removesuffix("10").removesuffix(" × ") or 1) * Fraction(10) ** power


@example(Fraction(999900000000000001))
@given(amounts)
def test_numbers_of_a_page(value: Fraction) -> None:
    assert value <= unstyled(at_most(value)) <= value * (1 + Fraction(1, 10**3))
    said = chance(value)
    if value <= 1 and said.startswith("1 in "):
        assert Fraction(1, int(said.removeprefix("1 in ").replace(",", ""))) >= value


def test_a_step_that_costs_a_failure_alone_is_not_free() -> None:
    costs = Cost(epsilon=1), Cost(delta="4e-7"), Cost(mu="1e-9")
    steps = dict(zip(("one", "two", "three"), costs, strict=True))
    plan = plan_of("mean", steps, budget=Budget("1.0000004", "1e-6"))
    text = Page(render(NotPrivate(1.0, False, plan.cost), plan=plan)).text
    assert "free" not in text
    assert "4 × 10⁻⁷" in text
    assert "1.0000004" in text


def test_a_fit_its_file_and_its_report_tell_awkward_amounts() -> None:
    X = np.array([[i % 10 / 10] for i in range(500)])
    model = snugdp.LinearRegression("1.0000004", "1/999999", method="adassp", x_norm=1, y_bound=1).fit(X, X[:, 0])
    whole = json.loads(json.dumps(as_dict(model)))
    assert {name: Fraction(text) for name, text in whole["guarantee"]["exact"].items()} == {
        "epsilon": Fraction("1.0000004"), "delta": Fraction(1, 999_999),
    }  # fmt: skip
    assert "(1.0000004, 1.00001e-06)-differential privacy" in whole["guarantee"]["words"]
    assert from_dict(whole).cost_ == model.cost_
    assert from_dict(whole).guarantee_ == model.guarantee_
    facts = told(whole)
    assert facts["exact"] == {"epsilon": "2500001/2500000", "delta": "1/999999"}
    assert Fraction(repr(facts["delta"])) >= Fraction(1, 999_999)
    text = Page(render(whole)).text
    assert "1.0000004" in text
    assert "1.001 × 10⁻⁶" in text


def test_files_of_earlier_versions_are_read() -> None:
    """Their floats were rounded to the nearest, their words to six digits, and there was no variation and no unit."""
    X = np.array([[i % 10 / 10] for i in range(500)])
    model = snugdp.LinearRegression(Fraction(1, 3), method="adassp", x_norm=1, y_bound=1).fit(X, X[:, 0])
    whole = json.loads(json.dumps(as_dict(model)))
    del whole["unit"], whole["guarantee"]["exact"], whole["cost"]["variation"]
    whole["guarantee"]["epsilon"] = 1 / 3
    whole["cost"]["words"] = "Cost(mu=0.1)"
    for step in whole["steps"]:
        del step["variation"]
    assert from_dict(whole).cost_ == model.cost_
    whole["cost"]["mu"] *= 1 - 1e-9
    with pytest.raises(ValueError, match='"cost" must hold'):
        from_dict(whole)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people.write(tmp_path, rows=500)
    return tmp_path


def test_the_commands(folder: Path) -> None:
    run("ledger", "create", "a.ledger", "--dataset", "a", "--epsilon", "2.0000004", "--delta", "1.00000004e-5")
    asked = ("people.toml", "--method", "adassp", "--epsilon", "1.0000004", "--delta", "1.00000004e-6")
    query = ("query", "vote", "people.parquet", "-c", "city", "--schema", "people.toml", "--epsilon", "0.5000004")
    for text in (
        run("plan", "linear", *asked, "--rows", 500, "--ledger", "a.ledger").output,
        run("fit", "linear", "people.parquet", *asked).output,
    ):
        assert "epsilon 1.0000004 at delta 1.00000004e-06" in text
    assert "(1.0000004, 1.00000004e-06)-differential privacy" in text
    assert "[epsilon 0.5000004]" in run(*query, "--ledger", "a.ledger").output
    shown = run("ledger", "show", "a.ledger").output
    assert "epsilon 2.0000004 and delta 1.00000004e-05 (what releases announce is added up)" in shown
    assert "epsilon 0.5000004 and delta 0, in 1 entry" in shown
    assert "at most epsilon 1.5 and delta 1.00000004e-05" in shown
    whole = run("ledger", "show", "a.ledger", "--verbose").output
    assert "Cost(epsilon=0.5000004," in whole
    assert "or epsilon 1.5 or" in whole
    exported = json.loads(run("ledger", "show", "a.ledger", "--json").stdout)
    assert exported["spent"]["exact"] == {"epsilon": "1250001/2500000"}
    assert exported["left"]["exact"]["epsilon"] == "3/2"
    with Ledger.open(folder / "a.ledger") as ledger:
        assert "epsilon=0.5000004," in repr(ledger)
        assert "epsilon=0.5000004," in str(ledger.verify())
    planned = json.loads(run("plan", "linear", *asked, "--rows", 500, "--ledger", "a.ledger", "--json").stdout)
    cost = snugdp.LinearRegression("1.0000004", "1.00000004e-6", method="adassp", schema=schema(folder)).plan().cost
    assert cost_from_json(planned["cost"]["exact"], Neighbours.ADD_REMOVE) == cost
    assert planned["ledger"]["left"]["exact"]["epsilon"] == "3/2"
    done = json.loads(run(*query, "--ledger", "a.ledger", "--json").stdout)
    assert done["cost"]["exact"] == {"epsilon": "1250001/2500000"}
    assert Fraction(done["ledger"]["left"]["exact"]["epsilon"]) == Fraction("0.9999996")
    short = run(*query[:-1], "1.1000004", "--ledger", "a.ledger", code=4).output
    assert "needs epsilon 1.1000004; left" in " ".join(short.split())


def schema(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return snugdp.Schema.from_toml(folder / "people.toml")
