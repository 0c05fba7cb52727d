"""The words of plans: every code that a plan may hold has some, and the numbers in them are those of the plan."""

import ast
from functools import cache
from pathlib import Path

import pytest

import snugdp
from snugdp import Cost
from snugdp.propose.forecast import ErrorOf, FitForecast, Forecast, Note, PassChance, noted
from snugdp.propose.plan import Step, StepKind, StepNoise
from snugdp.report import plan_text
from tests.plans import plan_of

ROOT = Path(snugdp.__file__).parent
WORDS = {"StepNoise": plan_text.STEPS, "Note": plan_text.NOTES, "noted": plan_text.NOTES}
CODED = (*WORDS, "PassChance")


def codes(name: str, place: int) -> set[str]:
    """The codes that are given to a function of this name as its argument at this place."""
    found: set[str] = set()
    for node in calls():
        if isinstance(node.func, ast.Name) and node.func.id == name:
            given = node.args[place] if len(node.args) > place else None
            kinds = ast.walk(given) if isinstance(given, ast.IfExp) else [given]
            found |= {n.value for n in kinds if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return found


@cache
def calls() -> list[ast.Call]:
    """All calls in the library."""
    texts = [text for path in ROOT.rglob("*.py") if any(name in (text := path.read_text()) for name in CODED)]
    return [node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]


@pytest.mark.slow
def test_every_code_has_words() -> None:
    for name, words in WORDS.items():
        assert len(codes(name, 0)) > 3, name
        assert codes(name, 0) <= words.keys(), codes(name, 0) - words.keys()
    assert codes("PassChance", 1) <= plan_text.CONDITIONS.keys()


def test_no_words_without_a_code() -> None:
    text = "".join(path.read_text() for path in ROOT.rglob("*.py") if path.name != "plan_text.py")
    made = {"minimiser-iso", "minimiser-hessian", "staged-matrix-subspace", "staged-matrix-components"}  # from a choice
    for code in (*plan_text.STEPS, *plan_text.NOTES, *plan_text.CONDITIONS):
        assert code in made or f'"{code}"' in text, code


def test_a_plan_is_printed_line_by_line() -> None:
    forecast = Forecast(
        answer_error=2.5, chances=(PassChance(0.95, "lead", {"rows": 7}),), notes=(Note("no-test-needed"),)
    )
    plan = plan_of("A toy", {"test": Cost(mu=1), "release": Cost(epsilon=1)}, forecast=forecast, proposal={"beta": 2.0})
    assert str(plan).splitlines() == [
        "Plan: A toy",
        "  propose  beta = 2",
        "  test     noise  [mu 1]",
        "  release  noise  [epsilon 1]",
        "  total    mu 1, epsilon 1, neighbours: add_remove",
        "  expect   the noise moves the answer by less than 2.5 in 19 of 20 cases",
        "  expect   released in 19 of 20 cases if the lead is at least 7 rows",
        "  expect   no test is needed: this sigma is private enough on all votes",
        "  theorem  release/1",
    ]


def test_steps_in_words() -> None:
    noise = StepNoise("two-edges", "gumbel", 2.5, "rows", 2, {"edges": 9, "column": "pay in $"})
    step = Step("column-1", StepKind.RELEASE, noise, Cost())
    assert plan_text.step_words(step) == "two of 9 edges, Gumbel noise of scale 2.5 rows on each"
    assert plan_text.step_label(step) == "pay in $"
    runs = StepNoise("objective", "gaussian", times=3, params={"m": 0.25})
    objective = "3 times: minimise the losses with a random linear term (Gaussian), m = 0.25"
    assert plan_text.step_words(Step("release", StepKind.RELEASE, runs, Cost())) == objective


def test_forecasts_in_words() -> None:
    fit = FitForecast(1000, 53.94, {"a": 1.0, "b": 2.0})
    (line,) = plan_text.forecast_lines(Forecast(fits=(fit,)))
    assert line == (
        "with 1,000 rows that fill their bounds evenly: noise of about 1 (a), 2 (b) in a coefficient; privacy noise "
        "adds about 53.9 to the prediction error"
    )
    exact = plan_text.forecast_lines(Forecast(answer_error=0.0, fits=(fit,)), fits=False)
    assert exact == ("the answer is released as it is",)
    assert plan_text.per_coefficient({"a": float("inf")}) == "unbounded"
    assert plan_text.per_coefficient({str(k): float(k) for k in range(1, 9)}) == "1 to 8"
    assert plan_text.chance_words(PassChance(1.0, "always")) == "never refused"
    assert plan_text.chance_words(PassChance(0.9, "votes-as-believed", below=True)).startswith(
        "released in fewer than 9 of 10 cases"
    )
    assert plan_text.chance_words(PassChance(0.874, "votes-as-believed")).startswith(
        "released with probability 0.87 if"
    )
    assert plan_text.note_words(noted("without-a-test", scale=314.52, share=0.2344).notes[0]).endswith(
        "needed: 23.4% of the labels"
    )
    assert plan_text.error_words(ErrorOf.LINEAR) == "what privacy noise adds to the error of the linear function"
