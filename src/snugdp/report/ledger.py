"""A ledger as one page: what may be spent, what was, when, by whom, and what all of it promises together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from markupsafe import Markup

from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger.composition.filter import Composition, Spent
from snugdp.ledger.composition.tally import Tally
from snugdp.ledger.entries import Entry, Overview, cells, pair_of
from snugdp.numerics.printed import printed_down
from snugdp.report import words
from snugdp.report.drawing import Axes, Axis, Frame, Point, linear
from snugdp.report.model import pages_of

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger

MAX_LISTED = 1000  # entries on a page; an export has all
_POINTS = 60  # of a composed total that are computed for the drawing
_PLACES = 1000  # on the axis of time
_DAYS = 4 * 86400  # seconds: a shorter time is shown with hours
_MINUTES = 3 * 60  # seconds: a shorter time is shown with seconds
_WIDE = Frame(640, 240, 56, 44, 14, 30, 17)


def page(ledger: Ledger) -> str:
    """The whole page, in one file without scripts."""
    told = ledger.overview(None)
    shown = told.entries[-MAX_LISTED:]
    return (
        pages_of()
        .get_template("ledger.html")
        .render(
            told=told,
            lines=[cells(entry, False) for entry in reversed(shown)],
            left_out=told.count - len(shown),
            open=any(entry.state == "open" and entry.kind != "reserve" for entry in shown),
            burnt=_burn_down(told),
            percent=_percent(told),
            caps=isinstance(told.budget, Cost),
            tight=told.composition is not Composition.ADDITION,
            both=told.composition is Composition.BOTH,
        )
    )


def _percent(told: Overview) -> int | None:
    """How much of the budget's epsilon is spent, rounded up."""
    if isinstance(told.budget, Cost) or told.epsilon is None:
        return None
    return min(100, math.ceil(100 * told.epsilon / told.budget.epsilon))


def _burn_down(told: Overview) -> Markup:
    """What was left of epsilon after every release, over time."""
    budget = told.budget
    paid = [entry for entry in told.entries if entry.within is None]
    if isinstance(budget, Cost) or not paid:
        return Markup()
    left = _left_after(paid, told, budget)
    times = _times(paid)
    start, end = times[0], times[-1]
    points: list[Point] = [(start, float(budget.epsilon))]
    for time, epsilon in _seen([(t, e) for t, e in zip(times, left, strict=True) if e is not None]):
        points += [(time, points[-1][1]), (time, float(max(epsilon, Fraction(0))))]
    top = float(budget.epsilon)
    marks = (start, (start + end) / 2, end) if end > start else (start,)
    long = end - start
    when = Axis("", linear(start, end), marks, _date if long > _DAYS else _moment if long > _MINUTES else _second)
    much = Axis("epsilon left", linear(0, top), (0, top / 4, top / 2, 3 * top / 4, top), lambda value: f"{value:.3g}")
    axes = Axes(when, much, _WIDE)
    area = [(start, 0.0), *points, (points[-1][0], 0.0)]
    sentence = f"From epsilon {words.number(top)} to {printed_down(Fraction(points[-1][1]))} in {len(paid)} charges."
    dots = [axes.dot(point, 3, entry.title) for point, entry in zip(points[2::2], paid, strict=False)]
    shapes = [axes.line(area, "area", closed=True), axes.line(points, "curve"), *(dots if len(paid) <= _POINTS else ())]
    return axes.drawing(sentence, shapes, "What was left over time")


def _seen(steps: Sequence[tuple[float, Fraction]]) -> Sequence[tuple[float, Fraction]]:
    """All of them, or of very many the last in each place that can be told from the next one on the page."""
    start, end = steps[0][0], steps[-1][0]
    if len(steps) <= _PLACES:
        return steps
    last = {round(_PLACES * (time - start) / max(end - start, 1.0)): (time, left) for time, left in steps}
    return list(last.values())


def _left_after(paid: Sequence[Entry], told: Overview, budget: Budget) -> list[Fraction | None]:
    """Epsilon left after each charge; of a composed total only at so many of them as take no long time."""
    composed, added, left = Tally(), Tally(), list[Fraction | None]()
    way, step = told.composition, max(1, len(paid) // _POINTS)
    for number, entry in enumerate(paid, 1):
        composed = composed.after(entry.composed, entry.part)
        added = added.after(entry.cost if entry.announced is None else entry.announced, entry.part)
        seen = not way.composes or number % step == 0 or number == len(paid)
        total = Spent(composed.total(told.neighbours), added.total(told.neighbours))
        spent = pair_of(total, budget, way)[0] if seen else None
        left.append(None if spent is None else budget.epsilon - spent)
    return left


def _times(entries: Sequence[Entry]) -> list[float]:
    """Seconds; a clock that was set back is held, for the order is that of the entries."""
    times: list[float] = []
    for entry in entries:
        try:
            time = datetime.fromisoformat(entry.time).timestamp()
        except ValueError:
            time = 0.0
        times.append(max(time, times[-1]) if times else time)
    return times


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%d %b %Y")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%d %b, %H:%M")


def _second(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")
