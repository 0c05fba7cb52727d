"""The report of one release: what came out, what it tells about one person at most, and what was paid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from snugdp.numerics.rationals import written_up
from snugdp.propose.plan import Plan
from snugdp.report import curves, words
from snugdp.report.plan_text import error_words, per_coefficient
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
) -> str:
    """One self-contained HTML file about a release: no scripts, nothing loaded, readable on a phone and in print.

    ``model``: the dict of a model file, a fitted estimator of ours, or the outcome of a query. ``plan``: of the query,
    whose outcome does not hold it. ``title``: instead of one from the kind of model and its target. ``rows``: a public
    guess of their number, for a forecast against epsilon; without it the guess that the model was given, if any.
    ``public``: more that was taken as public, such as the column of a query and its bounds.

    Guarantee: what is shown is a function of what was released and of what is public. Names are escaped.

    >>> import snugdp
    >>> page = render(snugdp.median([40.0] * 900, bounds=(0, 100), epsilon=2, delta=1e-6), title="Age")
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)
    """
    story = story_of(model, plan, title, rows, public)
    lines = curves.deltas(story.cost, words.upwards(story.epsilon))
    pair = (story.epsilon, story.delta)
    page = pages_of().get_template("model.html")
    return page.render(
        story=story,
        stamp=_stamp(story),
        guarantee=words.plainly(story.thing, lines, pair, story.unit),
        symbols=words.symbols(*pair, story.unit),
        attacks=words.attacks(lines),
        tradeoff=curves.tradeoff(lines, "those who are in"),
        delta_curve=curves.delta_curve(lines, pair),
        forecast_curve=_forecast(story),
        forecast_error="" if story.outlook is None else error_words(story.outlook.error_of, story.outlook.target),
        not_covered=words.not_covered(story.rehearsed),
        failure="" if story.test_failure is None else words.chance(story.test_failure),
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


def _forecast(story: Story) -> Markup:
    points = [] if story.outlook is None else [(each.epsilon, each.error) for each in story.outlook.by_epsilon]
    drawn = [(epsilon, error) for epsilon, error in points if epsilon is not None and 0 < error < math.inf]
    return curves.forecast(drawn, words.upwards(story.epsilon)) if len(drawn) > 1 else Markup()


@cache
def pages_of() -> Environment:
    """The templates of this room: everything put into them is escaped, and nothing may be missing."""
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
        coefficients=lambda noise: per_coefficient(noise, lambda value: words.number(value, 3)),
    )
    return pages


def _stamp(story: Story) -> str:
    if story.rehearsed:
        return "NOT PRIVATE"
    return "REFUSED" if story.refused else ""
