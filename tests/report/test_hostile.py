"""The report in unfriendly hands: strange names, many numbers, sentences that a statistician would attack."""

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.report import curves, names, words
from snugdp.report.model import render, told
from snugdp.report.story import story_of
from tests.report.test_model import Page

STRANGE = [
    "<script>alert(1)</script>",
    "سن الموظف",
    "שָׁנִים",
    "年齢",
    "\u202eevil",
    "a" * 300,
    "x & y; --> ]]>",
    "{{ 7*7 }}",
    "🙂",
]


def test_strange_names_are_text_and_keep_to_themselves() -> None:
    place = np.arange(900)
    table = pl.DataFrame(
        {**{name: (place + at) % 7 / 7.0 for at, name in enumerate(STRANGE)}, "</title>": place % 5 / 5}
    )
    columns: dict[str, Any] = {name: snugdp.Number(0, 1) for name in (*STRANGE, "</title>")}
    schema = snugdp.Schema(columns, target="</title>")
    page = render(snugdp.LinearRegression(1, 1e-6, method="adassp", schema=schema).fit(table))
    read = Page(page)
    assert all(name in "".join(read.said) for name in STRANGE)
    assert "<script" not in page
    assert page.count("</title>") == 1 + page.count("<title>", page.index("<body>"))
    inside = [attributes for tag, attributes in read.tags if tag == "bdi"]
    assert len(inside) > 2 * len(STRANGE)
    chosen = snugdp.SparseLinearRegression(2, method="adassp", epsilon=2, schema=schema).fit(table)
    assert "2 of 9 columns were chosen" in Page(render(chosen)).text


def test_names_of_components_are_those_of_the_columns() -> None:
    table = pl.DataFrame({"age": np.arange(500) % 60 + 20.0, "city": ["Rome", "Oslo"] * 250})
    schema = snugdp.Schema({"age": snugdp.Number(0, 120), "city": snugdp.Category(["Rome", "Oslo"])})
    text = Page(render(snugdp.PCA(1, epsilon=2, schema=schema).fit(table))).text
    assert "city=Rome" in text
    assert "bounds of every number are −1 and 1" in text


def test_one_column_and_no_intercept() -> None:
    X = np.linspace(0, 1, 500)[:, None]
    model = snugdp.LinearRegression(1, 1e-6, method="adassp", x_norm=1, y_bound=1, fit_intercept=False)
    text = Page(render(model.fit(X, X[:, 0]))).text
    assert "intercept" not in text.replace("with an intercept no", "")


@pytest.mark.slow
def test_a_score_of_another_loss_is_not_called_odds() -> None:
    from snugdp.tables.losses.losses import SoftHinge

    X = np.linspace(-0.5, 0.5, 800)[:, None]
    model = snugdp.GLM(SoftHinge(0.5), classes=["no", "yes"], x_norm=1, epsilon=2)
    text = Page(render(model.fit(X, np.where(X[:, 0] > 0, "yes", "no")))).text
    assert "the score of yes against no" in text
    assert "odds of yes" not in text


def test_the_best_of_a_grid_says_so_and_makes_no_forecast_for_one_run() -> None:
    X = np.linspace(0, 1, 800)[:, None]
    grid: dict[str, Any] = {"proposals": {"ridge": [1, 9]}, "validation": (X[:50], X[:50, 0]), "rows": 800}
    model = snugdp.LinearRegression(3, 1e-6, method="adassp", x_norm=1, y_bound=1, **grid).fit(X, X[:, 0])
    story = story_of(model)
    assert story.outlook is None
    assert [share.epsilon for share in story.shares] == [3.0]
    text = Page(render(model)).text
    assert "Chosen as the best of several runs" in text
    assert "Every run that was tried is private by itself" in text


@pytest.mark.slow
def test_rows_in_no_level_have_no_forecast_of_their_own() -> None:
    """There are none here: what is said of them can be off by far more than any forecast."""
    place = np.arange(2000)
    table = pl.DataFrame(
        {"age": place % 60 + 20.0, "city": np.where(place % 3 > 0, "Rome", "Oslo"), "y": place % 2 > 0}
    )
    columns: dict[str, Any] = {
        "age": snugdp.Number(0, 120),
        "city": snugdp.Category(["Rome", "Oslo"]),
        "y": snugdp.Boolean(),
    }
    model = snugdp.LogisticRegression(2, 1e-6, schema=snugdp.Schema(columns, target="y"), rows=2000).fit(table)
    (lines,) = [table.lines for table in story_of(model).tables]
    within = {line.name: line.within for line in lines}
    assert within["age"].startswith("±")
    assert within["city=Oslo"].startswith("±")
    assert within["city=(none)"] == "more: see below"
    assert "compared with the reference level" in Page(render(model)).text


def test_labels_are_told_of_teachers_and_in_the_order_of_the_classes() -> None:
    votes = [[290, 5, 5], [5, 5, 290], [5, 290, 5]] * 20
    outcome = snugdp.pate.label(votes, snugdp.Budget(8, 1e-6), classes=["zebra", "ant", "cow"], test="none")
    plan = snugdp.pate.plan(snugdp.Budget(8, 1e-6), n_queries=60, n_teachers=300, n_classes=3, test="none")
    public = {"classes": ["zebra", "ant", "cow"]}
    story = story_of(outcome, plan, public=public)
    assert [line.name for line in story.tables[0].lines] == ["zebra", "ant", "cow"]
    assert sum(int(line.value) for line in story.tables[0].lines) == 60
    text = Page(render(outcome, plan=plan, public=public)).text
    assert "if any one teacher had voted otherwise" in text
    assert "what it reveals about one teacher" in text
    assert "if all rows of that person went to one teacher" in text
    assert "that person's row had not been" not in text


def test_a_model_among_what_is_public_keeps_the_password_of_its_ledger() -> None:
    teacher = snugdp.LogisticRegression(8, ledger="postgresql://ana:hush@host/db#census")
    outcome = snugdp.pate.label([[290, 10]], snugdp.Budget(8, 1e-6), classes=["ant", "cow"], test="none")
    page = render(outcome, public={"teacher": teacher})
    assert "hush" not in page
    assert "LogisticRegression(epsilon=8, ledger='postgresql://ana@host/db#census')" in Page(page).text


def test_an_exact_answer_has_no_interval() -> None:
    query = snugdp.Mode(categories=["car", "train"], epsilon=2, delta=1e-6)
    text = Page(render(query.release(["car"] * 500), plan=query.plan())).text
    assert "This is the answer itself, without noise" in text
    assert "19 of 20 cases. " not in text.split("What was expected")[0]
    assert "release free as it is" in text


@pytest.mark.parametrize("mu", [0.1, 0.23, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_nobody_is_surer_than_the_page_says_under_gaussian_noise(mu: float, delta: float) -> None:
    """Against the exact law of the odds: N(mu^2 / 2, mu^2) where the row is in."""
    from scipy.special import log_ndtr

    cost = snugdp.Cost(mu=mu)
    epsilon = cost.epsilon_at(delta)
    pair = (epsilon, delta)
    sure, rarely = words.surest(curves.deltas(cost, epsilon), pair)
    size = math.log(sure / (1 - sure))
    exact = math.exp(log_ndtr(-size / mu + mu / 2))
    assert exact <= rarely == 2 * delta
    assert exact >= rarely / 12  # and it is not far off
    if epsilon > 0 and delta < 1e-5:  # "except with probability delta" would have been wrong
        assert math.exp(log_ndtr(-epsilon / mu + mu / 2)) > delta


def test_nobody_guesses_better_than_the_page_says() -> None:
    from scipy.special import ndtr

    cost = snugdp.Cost(mu=0.7)
    lines = curves.deltas(cost, cost.epsilon_at(1e-6))
    said = words.plainly(
        "this", lines, (cost.epsilon_at(1e-6), 1e-6), words.Protected.of(snugdp.Neighbours.ADD_REMOVE)
    )[1]
    share = float(said.split("at most ")[1].split(" %")[0]) / 100
    assert ndtr(0.35) <= share <= ndtr(0.35) + 0.002  # the best guess: on which side of the middle
    leaky = words.plainly("this", [(0.0, 1.0)], (1.0, 0.05), words.Protected.of(snugdp.Neighbours.ADD_REMOVE))[1]
    most = (math.e - 1 + 0.1) / (math.e + 1)  # randomised response, after telling all with probability delta
    assert float(leaky.split("at most ")[1].split(" %")[0]) / 100 >= (1 + most) / 2


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 8.0, 50.0, 900.0])
def test_every_epsilon_has_words(epsilon: float) -> None:
    cost = snugdp.Cost(epsilon=epsilon)
    page = render(snugdp.core.outcome.NotPrivate(1.0, False, cost))
    assert "nan" not in page.lower().replace("rehearsal", "")
    assert "more than 100 % certain" not in page or epsilon > 25


def test_numbers_have_the_digits_that_their_noise_leaves() -> None:
    assert words.near(1234.5678, 0.012) == "1,234.5678"
    assert words.near(12345.678, 4321.0) == "12,350"
    assert words.near(-3.0, 1e4) == "0"
    assert words.near(6.6034e-5, 1.1e-6) == "6.603 × 10⁻⁵"
    assert words.near(2.5, 0.0) == "2.5"
    assert words.near(1e12, 1e9) == "10¹²"
    assert words.percent(0.99999999) == "99.999999 %"


def test_a_rehearsal_is_told_to_machines_too_and_names_are_explained() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = np.linspace(0, 1, 300)[:, None]
        model = snugdp.LinearRegression(method="output", x_norm=1, y_bound=1, random_state=1).fit(X, X[:, 0])
    found = told(model)
    assert found["outcome"] == "rehearsal (released), NOT PRIVATE"
    assert found["receipt"] is None
    assert [step["id"] for step in found["steps"]] == ["test-curvature", "test-residual", "release"]
    text = Page(render(model)).text
    assert names.of_released("curvature") in text
    assert "fit_intercept" not in text


def test_every_name_of_ours_has_words() -> None:
    """Whatever an estimator takes or releases is explained, or is a plain word."""
    plain = "classes method proposals selection test loss center"
    hidden = "epsilon delta neighbours random_state schema bounds ledger noise progress validation"
    for kind in ("LinearRegression", "LogisticRegression", "PoissonRegression", "GLM", "SparseLinearRegression", "PCA"):
        for name in getattr(snugdp, kind)().get_params(deep=False):
            assert name in names.PUBLIC or name in f"{plain} {hidden}".split(), name


@pytest.mark.slow
def test_the_scores_of_several_classes_have_no_forecast_of_their_own() -> None:
    X = np.linspace(-0.5, 0.5, 900)[:, None]
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.2, 0.2])]
    for way, joint in (("auto", True), ("ovr", False)):
        model = snugdp.LogisticRegression(2, classes=["low", "middle", "high"], x_norm=1, rows=900, multi_class=way)
        text = Page(render(model.fit(X, y))).text
        assert ("Only differences between classes matter" in text) is joint
        assert ("noise, as forecast" in text) is not joint
        assert text.count("the released numbers do not reveal it") == 1


def test_steps_of_a_file_add_up_or_are_refused() -> None:
    from snugdp.estimators.files.model_file import as_dict, from_dict

    X = np.linspace(0, 1, 300)[:, None]
    whole = as_dict(snugdp.LogisticRegression(1, classes=[False, True], x_norm=1).fit(X, X[:, 0] > 0.4))
    steps = whole["steps"]
    assert [step.cost for step in from_dict(whole).plan_.steps][-1].atoms  # perturbed objectives, without a second copy
    changed: list[Any] = [[], steps[:-1], [*steps, steps[0]], [{**steps[0], "mu": 0.0}, *steps[1:]], [{}], None, "all"]
    for wrong in changed:
        with pytest.raises(ValueError, match="step"):
            from_dict({**whole, "steps": wrong})
    assert "What each step cost" in Page(render(whole)).text
    old = {name: value for name, value in whole.items() if name != "theorem"}
    with pytest.raises(ValueError, match='"theorem" is missing'):
        from_dict(old)
