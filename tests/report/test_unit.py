"""Who is protected: the plan says it, and the report of a rehearsal, of a release and of a file say the same."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.naive_bayes import GaussianNB

import snugdp
from snugdp.core.outcome import NotPrivate, Unit
from snugdp.estimators.files.model_file import as_dict, from_dict
from snugdp.propose.theorem import theorem
from snugdp.report.model import render, told
from snugdp.report.story import of_estimator, story_of
from tests.effort import sampled
from tests.report.test_model import Page

X = np.array([[i % 10 / 10, i % 7 / 7] for i in range(1000)])
BUDGET = snugdp.Budget(8, 1e-6)
VOTES = [[290, 5, 5], [5, 5, 290]] * 5


def classifier(**given: Any) -> snugdp.PATEClassifier:
    model = snugdp.PATEClassifier(
        GaussianNB(), PlainLogistic(), 40, 8, classes=[False, True], queries=X[:20], test="none", **given
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, X[:, 0] > 0.45)


@pytest.fixture(scope="module")
def released() -> snugdp.PATEClassifier:
    return classifier()


@pytest.fixture(scope="module")
def rehearsed() -> snugdp.PATEClassifier:
    return classifier(random_state=1)


def test_a_rehearsed_classifier_and_a_released_one_protect_the_same(released: Any, rehearsed: Any) -> None:
    for model in (released, rehearsed):
        assert model.plan_.unit is model.outcome_.unit is Unit.ROW
        text = Page(render(model)).text
        assert "any one person's row had not been in the table" in text
        assert "the votes of one teacher" not in text
        assert "one teacher had voted" not in text
    assert of_estimator(released).unit == of_estimator(rehearsed).unit
    assert of_estimator(released).theorem == of_estimator(rehearsed).theorem
    assert str(released.plan_) == str(rehearsed.plan_) == str(released.plan())


def test_a_file_says_it(released: Any, rehearsed: Any) -> None:
    for model in (released, rehearsed):
        whole = json.loads(json.dumps(as_dict(model)))
        assert whole["unit"] == told(whole)["unit"] == "row"
        assert from_dict(whole).plan_.unit is from_dict(whole).outcome_.unit is Unit.ROW
        assert story_of(whole).unit == of_estimator(model).unit
        teacher = from_dict({**whole, "unit": "teacher"})
        assert teacher.plan_.unit is teacher.outcome_.unit is Unit.TEACHER
        assert "one teacher had voted" in Page(render(teacher)).text
        del whole["unit"]  # as files were before
        assert from_dict(whole).plan_.unit is Unit.ROW
        with pytest.raises(ValueError, match='"unit" must be one of row, person, teacher'):
            from_dict({**whole, "unit": "anybody"})


@pytest.mark.slow
@sampled(4)
@pytest.mark.parametrize("test", ["none", "distance", "smooth"])
def test_votes_protect_a_teacher(test: Any) -> None:
    plan = snugdp.pate.plan(BUDGET, n_queries=10, n_teachers=300, n_classes=3, test=test, sigma=None, gap=280)
    assert plan.unit is Unit.TEACHER
    assert "unit     one teacher, with all its votes" in str(plan)


def test_an_outcome_knows_it_without_its_plan() -> None:
    plan = snugdp.pate.plan(BUDGET, n_queries=10, n_teachers=300, n_classes=3, test="none")
    for noise in (None, snugdp.Simulation(1)):
        outcome = snugdp.pate.label(VOTES, BUDGET, test="none", noise=noise)
        assert outcome.unit is Unit.TEACHER
        assert story_of(outcome).unit == story_of(outcome, plan).unit
        assert "if any one teacher had voted otherwise" in Page(render(outcome)).text
    answer = snugdp.vote(["a"] * 50, candidates=["a", "b"], epsilon=1)
    assert answer.unit is Unit.ROW


def test_a_plan_of_another_unit_is_not_that_of_an_outcome() -> None:
    plan = snugdp.pate.plan(BUDGET, n_queries=10, n_teachers=300, n_classes=3, test="none")
    with pytest.raises(ValueError, match="differ in whom they protect"):
        render(NotPrivate(1.0, False, plan.cost), plan=plan)


def test_no_path_decides_it() -> None:
    """The theorem of a plan is a name for people: whatever it is, the unit is the one that was given."""
    mode = snugdp.Mode(categories=["a"], epsilon=1, delta=1e-6).plan()
    plan = replace(mode, title="mean", theorem=theorem("labels-distance/1"))
    text = Page(render(NotPrivate("a", False, plan.cost), plan=plan)).text
    assert "any one person's row had not been in the table" in text
