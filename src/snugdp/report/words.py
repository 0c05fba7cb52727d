"""The guarantee in plain words and in symbols. Whatever is rounded here is rounded to the side that promises less."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from markupsafe import Markup, escape

from snugdp.guarantee import Cost, Neighbours, shown

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1)


def number(value: float | Fraction, digits: int = 4) -> str:
    """A number for people, with a few digits.

    >>> number(-12345.678), number(0.00001234), number(1e-6)
    ('−12,346', '1.234 × 10⁻⁵', '10⁻⁶')
    """
    if not math.isfinite(value):
        return "unbounded" if value > 0 else "−unbounded" if value < 0 else "no number"
    if value == 0:
        return "0"
    much = abs(float(value))
    if 1e-3 <= much < 1e9:
        size = math.floor(math.log10(much))
        text = f"{float(value):,.{max(0, digits - 1 - size)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        front, _, power = f"{Decimal(shown(value)):.{digits - 1}e}".partition("e")
        front = front.rstrip("0").rstrip(".") if "." in front else front
        ten = "10" + str(int(power)).translate(_RAISED)
        text = {"1": ten, "-1": f"-{ten}"}.get(front, f"{front} × {ten}")
    return text.replace("-", "−")


def up(value: float, digits: int = 3) -> float:
    """Rounded up to a few digits.

    >>> up(2.7182818), up(1.0)
    (2.72, 1.0)
    """
    if not math.isfinite(value) or value <= 0:
        return value
    exact = Decimal(value)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), ROUND_CEILING))


def factor(epsilon: float) -> str:
    """By how much odds can change, rounded up."""
    return number(up(math.exp(epsilon))) if epsilon < 700 else f"e to the power of {number(epsilon)}"


def chance(delta: float) -> str:
    """A probability as one in so many, the many rounded down.

    >>> chance(1e-6), chance(1e-44), chance(0)
    ('1 in 1,000,000', '10⁻⁴⁴', '0')
    """
    if delta <= 0 or delta < 1e-12:
        return number(delta)
    return f"1 in {math.floor(1 / Fraction(str(float(delta)))):,}"


def percent(share: float) -> str:
    """Out of a hundred, rounded up.

    >>> percent(0.0271828), percent(1.0)
    ('2.8 %', '100 %')
    """
    exact = (Decimal(str(share)) * 100).quantize(Decimal("0.1"), ROUND_CEILING)
    return f"{min(exact, Decimal(100)).normalize():f} %"


@dataclass(frozen=True)
class Attack:
    """An attacker who accuses so many of those who are not in the table finds at most so many of those who are."""

    false_alarms: str
    found: str


def missed(lines: Sequence[tuple[float, float]], false_alarms: float) -> float:
    """The least share of hits that an attack with so many false alarms must miss, by (epsilon, delta) that hold.

    Every pair (e, d) rules out attacks below two lines: 1 - d - exp(e) a, and exp(-e) (1 - d - a).

    >>> round(missed([(0.0, 0.1)], 0.2), 12)
    0.7
    """
    best = 0.0
    for epsilon, delta in lines:
        steep = math.exp(min(epsilon, 700.0))
        best = max(best, 1 - delta - steep * false_alarms, (1 - delta - false_alarms) / steep)
    return min(best, 1 - false_alarms)


def attacks(lines: Sequence[tuple[float, float]]) -> tuple[Attack, ...]:
    """What the best attack can do at a few rates of false alarms."""
    return tuple(Attack(percent(rate), percent(1 - missed(lines, rate))) for rate in _FALSE_ALARMS)


def plainly(what: str, epsilon: float, delta: float, relation: Neighbours) -> tuple[str, ...]:
    """The guarantee in two sentences or three. ``what``: what is seen, such as "this model"."""
    without = {
        Neighbours.ADD_REMOVE: "if that person's row had not been in the table",
        Neighbours.REPLACE: "if that person's row had been replaced by any other",
    }[relation]
    sure = percent(1 / (1 + math.exp(-min(epsilon, 700.0))))
    failure = f", except with probability {chance(delta)}" if delta else ", without exception"
    return (
        f"Whoever sees {what} can tell little more about any one person than {without}: the odds of anything one may "
        f"suspect about that person change by at most a factor of {factor(epsilon)}{failure}.",
        f"Somebody who holds it to be even odds, 50 %, that a person's row was used can be at most {sure} sure "
        f"afterwards{failure}. This holds whatever else is known, now or later, and however much is computed.",
    )


def protected(relation: Neighbours) -> tuple[str, ...]:
    """Who is protected, and what is public."""
    if relation is Neighbours.ADD_REMOVE:
        first = "Every row: tables with the row and without it look alike. How many rows there are is protected too."
    else:
        first = "What is in every row: tables in which one row differs look alike. How many rows there are is public."
    return (
        first,
        "One row stands for one person. Who has k rows is protected less: by the k-th power of the factor, and with a "
        "larger delta.",
    )


def symbols(epsilon: float, delta: float, relation: Neighbours) -> Markup:
    """The guarantee as mathematicians write it."""
    one = {
        Neighbours.ADD_REMOVE: "one of which has one row more than the other",
        Neighbours.REPLACE: "which differ in one row",
    }[relation]
    plus = Markup(" + {}").format(number(delta)) if delta else ""
    return Markup(
        "Pr[<i>M</i>(<i>D</i>) ∈ <i>S</i>] ≤ e<sup>{}</sup> · Pr[<i>M</i>(<i>D</i>′) ∈ <i>S</i>]{} for all sets "
        "<i>S</i> of outcomes, refusal among them, and all tables <i>D</i>, <i>D</i>′, {}."
    ).format(number(epsilon), plus, one)


def parts(cost: Cost) -> Markup:
    """What a ledger adds up, as a formula."""
    said = []
    if cost.mu_squared:
        said.append(Markup("Gaussian part <i>μ</i> = {}").format(number(up(cost.mu, 4))))
    if cost.epsilon:
        said.append(Markup("pure part <i>ε</i>₀ = {}").format(number(cost.epsilon)))
    if cost.delta:
        said.append(Markup("failure part <i>δ</i>₀ = {}").format(number(cost.delta)))
    if cost.variation:
        said.append(Markup("total variation {}").format(number(cost.variation)))
    if runs := len(cost.atoms):
        said.append(escape(f"{runs} perturbed objective{'s' if runs > 1 else ''}"))
    return Markup(", ").join(said) or Markup("nothing")


def not_covered(rehearsed: bool) -> tuple[str, ...]:
    """What no sentence above speaks of."""
    if rehearsed:
        return ("Everything: the noise of a rehearsal can be repeated by whoever knows its seed.",)
    return (
        "What is true of people at large. If a model shows that smokers fall ill, it shows so for a smoker who is "
        "not in the table too.",
        "Other releases from the same people. They add up; the ledger named here knows those that were charged to it.",
        "What was taken from the same rows without being charged: bounds or columns chosen by looking, transformers "
        "that learned from them, scores on private rows.",
        "How long the computation took, and what the machine it ran on shows to others.",
    )
