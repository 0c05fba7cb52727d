"""The report of one release: what came out, what it tells about one person at most, and what was paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from snugdp.numerics.rationals import written_up
from snugdp.propose.plan import Plan
from snugdp.report import curves, words
from snugdp.report.about import About
from snugdp.report.plan_text import like_words, noise_adds
from snugdp.report.released import EVERYWHERE, Ends
from snugdp.report.story import Story, story_of
from snugdp.serial.costs import cost_told

_RECEIPT = ("ledger", "sequence", "what", "key", "hash")


def render(
    model: Any,
    *,
    plan: Plan | None = None,
    title: str | None = None,
    rows: int | None = None,
    public: Mapping[str, Any] | None = None,
    within: Ends = EVERYWHERE,
    about: About | None = None,
) -> str:
    """One self-contained HTML file about a release: no scripts, nothing loaded, readable on a phone and in print.

    ``model``: the dict of a model file, a fitted estimator of ours, or the outcome of a query. ``plan``: of the query,
    whose outcome does not hold it. ``title``: instead of one from the kind of model and its target. ``rows``: a public
    guess of their number, for its forecast; without it the guess that the model was given, if any. ``public``: more
    that was taken as public, such as the column of a query and its bounds. ``within``: public bounds on the answer of a
    query, at which intervals end. ``about``: whose data, what for, and of when.

    Guarantee: what is shown is a function of what was released and of what is public. Names are escaped.

    >>> import snugdp
    >>> page = render(snugdp.median([40.0] * 900, bounds=(0, 100), epsilon=2, delta=1e-6), title="Age")
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)
    """
    return _filled("model.html", story_of(model, plan, title, rows, public, within=within, about=about))


def summary(
    model: Any,
    *,
    plan: Plan | None = None,
    title: str | None = None,
    public: Mapping[str, Any] | None = None,
    about: About | None = None,
) -> str:
    """The data protection summary: what an assessment asks for, on a page or two, to print. As ``render`` otherwise.

    >>> import snugdp
    >>> page = summary(snugdp.count([1.0] * 900, epsilon=1), about=About(owner="The shop", purpose="a yearly figure"))
    >>> "The shop" in page, "Data protection summary" in page
    (True, True)
    """
    return _filled("summary.html", story_of(model, plan, title, None, public, about=about))


def _filled(template: str, story: Story) -> str:
    lines = curves.deltas(story.cost, words.upwards(story.epsilon))
    pair = (story.epsilon, story.delta)
    return (
        pages_of()
        .get_template(template)
        .render(
            story=story,
            about=_about(story),
            told=dict(_about(story)),
            stamp=_stamp(story),
            guarantee=words.plainly(story.thing, lines, pair, story.unit),
            coin=words.best_guess(lines, pair),
            symbols=words.symbols(*pair, story.unit),
            attacks=words.attacks(lines),
            tradeoff=curves.tradeoff(lines),
            delta_curve=curves.delta_curve(lines, pair),
            expected=_expected(story),
            not_covered=words.not_covered(story.rehearsed),
            failure="" if story.test_failure is None else words.chance(story.test_failure),
        )
    )


def told(model: Any, *, title: str | None = None) -> dict[str, Any]:
    """What a report says, for machines: the promise in words and numbers, the best attack, the steps, the receipt."""
    story = story_of(model, None, title)
    lines = curves.deltas(story.cost, words.upwards(story.epsilon))
    pair = (story.epsilon, story.delta)
    return {
        "title": story.title,
        "outcome": story.outcome,
        "epsilon": _written(story.epsilon),
        "delta": _written(story.delta),
        "exact": {"epsilon": str(story.epsilon), "delta": str(story.delta)},
        "unit": story.whom.value,
        "neighbours": story.cost.neighbours.value,
        "theorem": None if story.theorem is None else story.theorem.id,
        "proof": None if story.theorem is None else story.theorem.link,
        "words": list(words.plainly(story.thing, lines, pair, story.unit)),
        "deltas": [list(point) for point in lines],
        "attacks": [asdict(attack) for attack in words.attacks(lines)],
        "steps": [
            {"id": each.id, "noise": each.noise, "alone": _written(each.epsilon), **cost_told(each.cost)}
            for each in story.shares
        ],
        "receipt": None if story.receipt is None else {key: getattr(story.receipt, key) for key in _RECEIPT},
    }


def _written(value: float | Fraction | None) -> float | None:
    return written_up(value) if isinstance(value, Fraction) else value


@cache
def pages_of() -> Environment:
    """The templates of this package: everything put into them is escaped, and nothing may be missing."""
    pages = Environment(
        loader=PackageLoader("snugdp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(
        number=words.number,
        at_most=words.at_most,
        bar=curves.bar,
        chance=words.chance,
        parts=words.parts,
    )
    return pages


def _about(story: Story) -> tuple[tuple[str, str], ...]:
    """Whose data, what for, of when, and which ledger paid."""
    told = story.about.told
    if not told or story.receipt is None:
        return told
    paid = story.receipt.ledger
    return (*told, ("ledger", "none: not counted against any budget" if paid == "this call" else paid))


def _expected(story: Story) -> str:
    """How much noise to expect, in a sentence, where there is a forecast."""
    if story.outlook is None:
        return ""
    fit, source = story.outlook.asked, "their number was released, with noise" if story.counted else "a public guess"
    adds = noise_adds(fit.error, story.outlook.error_of, story.outlook.target, fit.typical)
    return f"With about {fit.rows:,} rows ({source}), {adds}; {like_words(story.outlook.like)}."


def _stamp(story: Story) -> str:
    if story.rehearsed:
        return "NOT PRIVATE"
    return "REFUSED" if story.refused else ""
