"""The report: true to the release, complete, escaped, and honest about what is no release."""

import json
import math
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import snugdp
from snugdp.cli.main import app
from snugdp.estimators.files.model_file import as_dict
from snugdp.report import curves, words
from snugdp.report.about import About
from snugdp.report.model import render, summary
from snugdp.report.released import table_of
from snugdp.report.story import of_estimator, story_of

EVIL = "<script>alert(1)</script>"
QUOTED = "\"'><img src=x onerror=alert(1)>"
VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """A strict reading: tags must match; text, headings and tags are collected."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


def table(rows: int = 4000) -> pl.DataFrame:
    place = np.arange(rows)
    frame = pl.DataFrame({"age": 20.0 + place % 50, EVIL: place % 3 == 0, QUOTED: place % 7 / 7.0})
    return frame.with_columns(income=1000.0 * pl.col("age") + 5000.0 * pl.col(QUOTED))


def schema() -> snugdp.Schema:
    return snugdp.Schema(
        {
            "age": snugdp.Number(18, 90),
            EVIL: snugdp.Boolean(),
            QUOTED: snugdp.Number(0, 1),
            "income": snugdp.Number(0, 100_000),
        },
        target="income",
    )


@pytest.fixture(scope="module")
def fitted() -> snugdp.LinearRegression:
    ledger = snugdp.MemoryLedger(epsilon=2, delta=1e-5)
    model = snugdp.LinearRegression(1, 1e-6, method="output", schema=schema(), rows=4000, ledger=ledger)
    return model.fit(table())


@pytest.fixture(scope="module")
def page(fitted: snugdp.LinearRegression) -> str:
    return render(json.loads(json.dumps(as_dict(fitted))))


def test_the_page_is_whole_and_loads_nothing(page: str) -> None:
    read = Page(page)
    assert len(read.ids) == len(set(read.ids))
    assert not {tag for tag, _ in read.tags} & {"script", "img", "iframe", "object", "form", "a"}
    for tag, attributes in read.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert not any(name in attributes and attributes[name] != "data:," for name in ("src", "href")), tag
    assert "url(" not in page
    assert "@import" not in page
    assert [tag for tag, _ in read.tags if tag == "h1"] == ["h1"]
    labelled = [held["aria-labelledby"] for tag, held in read.tags if tag == "section"]
    assert set(labelled) <= set(read.ids)
    assert all(held.get("aria-label") for _, held in read.tags if held.get("role") == "img")


def test_the_noise_is_forecast_for_the_number_of_rows_that_was_released() -> None:
    model: Any = snugdp.LinearRegression(1, 1e-6).fit(np.arange(4000.0)[:, None] % 50, np.arange(4000.0) % 50)
    text = Page(render(model)).text
    rows = round(model.certificate_.rows)
    assert f"With about {rows:,} rows (their number was released, with noise), privacy noise adds about" in text


def test_a_line_that_ended_in_least_squares_says_so() -> None:
    """X'X told how many rows there are; nothing else did."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (300_000, 2))
    model: Any = snugdp.LinearRegression(1, 1e-6, x_norm=1.5, y_bound=2).fit(X, X[:, 0] + rng.uniform(-1, 1, 300_000))
    assert model.certificate_ is None
    text = Page(render(model)).text
    rows = round(model.details_["rows"])
    assert f"With about {rows:,} rows (their number was released, with noise), privacy noise adds about" in text
    assert "the fit ended in least squares" in text
    assert "a robust line" not in text
    assert "what a fit estimates" not in text


@pytest.mark.parametrize(("effects", "straight"), [("line", True), ("both", False)])
def test_what_is_said_of_curves_is_true_of_them(effects: str, straight: bool) -> None:
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (2000, 2))
    model: Any = snugdp.AdditiveRegressor(4, 1e-6, effects=effects, noise=snugdp.Simulation(1))
    text = Page(render(model.fit(X, X[:, 0] + rng.uniform(-0.1, 0.1, 2000)))).text
    assert ("Effects are straight lines" in text) == straight
    assert ("Broken lines are a band" in text) != straight


def _contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it, of two colours such as #1d2326."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_stands_out_in_light_in_the_dark_and_on_paper(page: str) -> None:
    schemes = [
        dict(re.findall(r"--(\w+): (#\w{6})\b", text)) for text in re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    ]
    assert len(schemes) == 3
    for scheme in schemes:
        for ink in ("ink", "soft", "blue", "red"):
            for ground in ("paper", "page"):
                assert _contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)


def test_names_are_escaped_wherever_they_stand(page: str) -> None:
    assert EVIL in Page(page).text
    assert QUOTED in Page(page).text
    assert EVIL not in page
    assert "<img" not in page
    told = render(snugdp.median([5.0] * 900, bounds=(0, 10), epsilon=3, delta=1e-6), title=EVIL)
    assert EVIL not in told
    assert Page(told).text.count(EVIL) == 2


def test_it_shows_what_was_released_and_what_was_paid(fitted: Any, page: str) -> None:
    text = Page(page).text
    for value, noise in zip(fitted.coef_, fitted.noise_scale_, strict=True):
        low, high = value - 1.96 * noise, value + 1.96 * noise
        error = high - value
        assert f"{words.near(value, error)} {words.near(low, error)} to {words.near(high, error)}" in text
    assert words.number(fitted.intercept_) in text
    assert words.number(fitted.certificate_.residual) in text
    assert "at most 2.72 times as likely" in text
    assert "plus a probability of at most 1 in 1,000,000" in text
    assert "memory" in text
    assert fitted.guarantee_.theorem.id in text
    assert f"snugdp {snugdp.__version__} · saved " in text
    assert "18 to 90" in text
    assert "With about 4,000 rows (a public guess), privacy noise adds about" in text  # what was expected of this fit
    assert "16,000 rows" not in text  # and of no other


def test_a_file_and_its_estimator_tell_the_same(fitted: snugdp.LinearRegression) -> None:
    one, other = of_estimator(fitted), story_of(as_dict(fitted))
    assert (one.tables, one.certificate, one.details) == (other.tables, other.certificate, other.details)
    assert (one.outlook, one.forecast, one.test_failure) == (other.outlook, other.forecast, other.test_failure)
    assert one.shares == other.shares
    assert sum(1 for share in one.shares if share.test) == 2


@pytest.mark.slow
def test_perturbed_objectives_are_priced_from_a_file_too() -> None:
    model = snugdp.LogisticRegression(1, 1e-6, classes=["a", "b"], x_norm=1)
    X = np.array([[i % 10 / 10.0] for i in range(2000)])
    model.fit(X, np.where(X[:, 0] > 0.4, "b", "a"))
    one, other = of_estimator(model), story_of(as_dict(model))
    assert one.shares == other.shares
    assert all(share.epsilon is not None and share.epsilon <= 1 for share in one.shares)
    text = Page(render(model)).text
    assert "log odds of b against a" in text
    assert "the released numbers do not reveal it" in text
    told = Page(render(model, rows=2000)).text
    assert "noise, as forecast" in told
    assert "±" in told
    assert "19 of 20" not in told  # a forecast for other rows is no interval


def test_a_refusal_is_stamped_and_shows_nothing_else() -> None:
    query = snugdp.Median(bounds=(0, 100), epsilon=1, delta=1e-9, rows=1000, method="test")
    outcome = query.release([1.0, 99.0], ledger=snugdp.MemoryLedger(epsilon=1, delta=1e-6))
    assert outcome.refused
    text = Page(render(outcome, plan=query.plan())).text
    assert "REFUSED" in text
    assert "Nothing but the refusal itself" in text
    assert "NOT PRIVATE" not in text
    assert "where the answer without noise lies" not in text


def test_a_rehearsal_is_stamped_and_promises_nothing() -> None:
    with pytest.warns(snugdp.NotPrivateWarning):
        model = snugdp.LinearRegression(1, 1e-6, method="adassp", x_norm=1, y_bound=1, random_state=1).fit(
            [[0.5], [0.2], [0.1]], [0.5, 0.2, 0.1]
        )
    text = Page(render(model)).text
    assert text.startswith("NOT PRIVATE: Linear regression")
    assert "Do not publish it" in text
    assert "None of this holds for this page" in text
    assert "a rehearsal is not charged" in text
    again = Page(render(as_dict(model))).text
    assert "Do not publish it" in again


def test_components_and_their_variance_are_shown() -> None:
    X = np.array([[math.sin(i), 0.3 * math.cos(7 * i)] for i in range(3000)])
    model = snugdp.PCA(n_components=1, epsilon=2, delta=1e-6, x_norm=1.1).fit(X)
    text = Page(render(model)).text
    assert words.near(float(model.explained_variance_[0]), float(model.spectrum_error_)) in text
    assert all(words.number(float(entry), 3) in text for entry in model.components_[0])
    assert "There was nothing to test" in text


def test_many_columns_are_cut_and_told() -> None:
    X = np.zeros((500, 220))
    X[:, 0] = np.arange(500) % 2
    model = snugdp.LinearRegression(1, 1e-6, method="adassp", x_norm=1, y_bound=1).fit(X, X[:, 0])
    text = Page(render(model)).text
    assert "The largest against their noise are shown; 20 more are in the model." in text


def test_bounds_have_a_line_for_every_column() -> None:
    table = pl.DataFrame({"age": [30.0] * 900, EVIL: [-5.0] * 900})
    query = snugdp.Bounds(epsilon=4, columns=["age", EVIL])
    outcome = query.release(table)
    assert outcome.value is not None
    shown = table_of(outcome.value, None)
    assert [line.name for line in shown.lines] == ["age", EVIL]
    low, high = map(float, outcome.value["age"].bounds)
    assert shown.lines[0].value == f"{words.number(low)} to {words.number(high)}"
    text = Page(render(outcome, plan=query.plan(), public={"outside": "0.01"})).text
    assert shown.lines[0].value in text
    assert "share of rows that may lie beyond each bound" in text
    assert "larger delta, if there is one" in text  # there is none here


def test_a_query_shows_its_interval() -> None:
    query = snugdp.Median(bounds=(0, 100), epsilon=1, delta=1e-6, rows=2000, method="test")
    outcome = query.release([float(i % 60) for i in range(2000)])
    assert outcome.value is not None
    text = Page(render(outcome, plan=query.plan())).text
    assert words.near(outcome.value, 14.8) in text
    assert "covers the answer without noise in 19 of 20 cases" in text
    assert "No ledger was given" in text
    with pytest.raises(ValueError, match="not the one of this outcome"):
        render(outcome, plan=snugdp.Median(bounds=(0, 1), epsilon=2, delta=1e-6).plan())


def test_what_is_no_release_is_refused() -> None:
    with pytest.raises(TypeError, match="outcome of a release"):
        render(3)
    with pytest.raises(ValueError, match="not a snugdp model"):
        render({"format": "another"})
    with pytest.raises(Exception, match="not fitted"):
        render(snugdp.LinearRegression(x_norm=1, y_bound=1))


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_no_attack_on_gaussian_noise_beats_the_tradeoff_and_it_is_close(mu: float) -> None:
    from scipy.special import ndtr, ndtri

    cost = snugdp.Cost(mu=mu)
    lines = curves.deltas(cost, cost.epsilon_at(1e-6))
    for rate in np.linspace(0.001, 0.999, 97):
        best = float(ndtr(ndtri(1 - rate) - mu))  # Neyman and Pearson
        told = words.missed(lines, float(rate))
        assert told <= best + 1e-12
        assert told >= best - 0.02


def test_no_attack_on_randomised_response_beats_the_tradeoff() -> None:
    epsilon, delta = 1.0, 0.05
    lines = curves.deltas(snugdp.Cost(epsilon=epsilon, delta=delta), epsilon)
    high = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))  # delta: everything is told
    low = 1 - delta - high
    points = [(0.0, 1 - delta), (low, 1 - delta - high), (low + high, 0.0)]
    for rate, best in points:
        assert words.missed(lines, rate) == pytest.approx(best, abs=1e-9)


def test_what_is_rounded_promises_less() -> None:
    for epsilon in np.linspace(0.01, 5, 60):
        assert float(words.factor(float(epsilon)).replace(",", "")) >= math.exp(epsilon)
        assert float(words.percent(1 / (1 + math.exp(-epsilon))).split()[0]) / 100 >= 1 / (1 + math.exp(-epsilon))
    for delta in (1e-6, 3e-7, 0.3):
        assert 1 / int(words.chance(delta).split()[2].replace(",", "")) >= delta * (1 - 1e-12)
    unit = words.Protected.of(snugdp.Neighbours.REPLACE)
    told = words.plainly("this", [(0.0, 0.5), (1.0, 0.0)], (1.0, 0.0), unit)
    assert "plus" not in told[0]
    assert "but never more than 73.2 % certain" in told[2]


@pytest.mark.parametrize("value", [0.0, -1.5, 1e-300, 1e300, math.inf, -math.inf, math.nan, 123456789.0, 0.00099999])
def test_numbers_are_always_text(value: float) -> None:
    assert re.fullmatch(r"[−0-9.,× ⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|−?unbounded|not a number", words.number(value))


@pytest.mark.slow
def test_the_command_writes_a_page(fitted: snugdp.LinearRegression, tmp_path: Path) -> None:
    model, made = tmp_path / "model.json", tmp_path / "report.html"
    snugdp.save(fitted, model)

    def run(*more: str) -> Any:
        return CliRunner().invoke(app, ["report", str(model), "-o", str(made), *more])

    assert run("--title", "Pay & age").exit_code == 0
    assert "Pay &amp; age" in made.read_text(encoding="utf-8")
    assert run().exit_code == 1
    assert run("--force").exit_code == 0
    model.write_text('{"format": "other"}')
    assert run("--force").exit_code == 1
    model.write_bytes(b"\xff")
    result = run("--force")
    assert result.exit_code == 1
    assert "is not a model file" in result.output


def test_an_outsider_reads_the_promise_first_then_what_was_released_then_the_method(page: str) -> None:
    read = Page(page)
    order = [read.ids.index(name) for name in ("guarantee", "released", "limits", "method", "attack", "receipt")]
    assert order == sorted(order)
    assert read.text.index("one row more or less") < read.text.index("Coefficients")
    assert "false alarm" not in read.text


def test_headings_do_not_jump_and_drawings_have_words(page: str) -> None:
    read = Page(page)
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later - sooner <= 1 for sooner, later in pairwise(levels))
    drawings = [held for tag, held in read.tags if tag == "svg"]
    assert drawings
    assert all(held.get("aria-label") or held.get("aria-hidden") == "true" for held in drawings)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return float(
        np.dot([0.2126, 0.7152, 0.0722], [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts])
    )


def test_words_stand_out_from_the_paper_in_light_dark_and_print(page: str) -> None:
    """WCAG 2.1 AA: 4.5 to 1 for text."""
    schemes = [
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})\b", block))
        for block in re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    ]
    assert len(schemes) == 3
    for colours in schemes:
        for ink in ("ink", "soft", "blue", "red"):
            for paper in ("paper", "page"):
                light, dark = sorted((luminance(colours[ink]), luminance(colours[paper])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, paper)


def test_whose_data_what_for_and_of_when(fitted: Any) -> None:
    about = About(owner="The <b>shop</b>", purpose="a yearly report", period="2026", dataset="orders")
    for page in (render(fitted, about=about), summary(fitted, about=about)):
        text = Page(page).text
        assert "<b>shop" not in page
        for words_of in ("The <b>shop</b>", "a yearly report", "2026", "orders", "memory"):
            assert words_of in text


def test_the_summary_says_what_an_assessment_asks(fitted: Any, page: str) -> None:
    read = Page(summary(fitted))
    for said in (
        "not stated",
        "one row more or less",
        "at most 2.72 times as likely",
        "What is not covered",
        fitted.guarantee_.theorem.id,
    ):
        assert said in read.text
    rate = re.search(r"can guess right in at most (\S+ %)", Page(page).text)
    assert rate is not None
    assert f"in at most {rate[1]} of all cases" in read.text


def test_intervals_end_at_the_bounds_of_the_answer() -> None:
    line = table_of(98.0, 5.0, within=(0.0, 100.0)).lines[0]
    assert line.within == "93.00 to 100.00"
    counted = snugdp.Histogram(values=["a", "b"], epsilon=0.01).release(["a"] * 5, noise=snugdp.Simulation(1))
    told = story_of(counted).tables[0]
    assert all(not each.within.startswith("−") for each in told.lines)
