"""The guarantee in plain words and in symbols. Whatever is rounded here is rounded to the side that promises less."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TypeAlias

from markupsafe import Markup, escape

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.core.outcome import Unit
from snugdp.numerics import balls
from snugdp.numerics.printed import decimal_up
from snugdp.numerics.rationals import float_up, rational

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1)
_PARTS = {
    "mu": Markup("Gaussian part <i>μ</i> = {}"),
    "epsilon": Markup("pure part <i>ε</i>₀ = {}"),
    "delta": Markup("failure part <i>δ</i>₀ = {}"),
    "variation": Markup("total variation {}"),
}


def number(value: float | Fraction, digits: int = 4) -> str:
    """A number for people, with a few digits.

    >>> number(-12345.678), number(0.00001234), number(1e-6)
    ('−12,346', '1.234 × 10⁻⁵', '10⁻⁶')
    """
    if not math.isfinite(value):
        return "unbounded" if value > 0 else "−unbounded" if value < 0 else "not a number"
    much = abs(float(value))
    if 1e-3 <= much < 1e9:
        size = math.floor(math.log10(much))
        return _styled(f"{float(value):,.{max(0, digits - 1 - size)}f}")
    return _styled(f"{float(value):.{digits - 1}e}")


def at_most(value: float | Fraction, digits: int = 4) -> str:
    """An amount of privacy, never rounded down; a float is the decimal that it prints as.

    >>> at_most(Fraction(1, 3)), at_most(Fraction("1.0000004")), at_most(Fraction(1, 10**6 + 1))
    ('0.3334', '1.0000004', '10⁻⁶')
    """
    if not math.isfinite(value):
        return number(value)
    exact = decimal_up(_exact(value), digits)
    if -4 < exact.adjusted() < 9:
        return _styled(f"{exact:,f}")
    return _styled(f"{exact:.{len(exact.as_tuple().digits) - 1}e}".replace("E", "e"))


def _exact(value: float | Fraction) -> Fraction:
    return value if isinstance(value, Fraction) else rational(value, "an amount")


def _styled(text: str) -> str:
    """Without zeros at the end, powers as powers."""
    front, _, power = text.partition("e")
    front = front.rstrip("0").rstrip(".") if "." in front else front
    if front.strip("-0") == "":
        return "0"
    if power:
        ten = "10" + str(int(power)).translate(_RAISED)
        front = {"1": ten, "-1": f"-{ten}"}.get(front, f"{front} × {ten}")
    return front.replace("-", "−")


def near(value: float, error: float) -> str:
    """A number with the digits that an error of this size leaves: the error itself would be written with three.

    >>> near(7494.6, 30110), near(494.9412, 9.02), near(-0.7917, 108)
    ('7,500', '494.94', '−1')
    """
    if not 0 < error < math.inf:
        return number(value)
    place = math.floor(math.log10(error)) - 2
    if place > -7 and max(abs(value), error) < 1e9:
        text = f"{round(value, -place):,.{max(-place, 0)}f}"
        return (text if any(digit in text for digit in "123456789") else "0").replace("-", "−")
    size = math.floor(math.log10(abs(value))) if value else place
    return number(value, max(size - place + 1, 1))


def apart(name: object) -> str:
    """A name inside a sentence: one of letters that may run from the right keeps its direction to itself.

    >>> apart("age"), len(apart("سن"))
    ('age', 4)
    """
    text = str(name)
    return text if text.isascii() else f"\u2068{text}\u2069"


def factor(epsilon: float | Fraction) -> str:
    """By how much odds can change, rounded up.

    >>> factor(1.0), factor(0.0)
    ('2.72', '1')
    """
    if not epsilon < 700:
        return f"e to the power of {at_most(epsilon)}"
    exact = _exact(epsilon)
    return at_most(balls.rational_above(lambda: balls.exp(balls.ball(exact))), 3)


def chance(delta: float | Fraction) -> str:
    """A probability as one in so many, the many rounded down.

    >>> chance(1e-6), chance(1e-44), chance(0)
    ('1 in 1,000,000', '10⁻⁴⁴', '0')
    """
    if delta <= 0 or delta < 1e-12:
        return at_most(delta)
    return f"1 in {math.floor(1 / _exact(delta)):,}"


def percent(share: float) -> str:
    """Out of a hundred, rounded up; close to a hundred with so many digits that it does not become that.

    >>> percent(0.0271828), percent(0.99966465), percent(1.0)
    ('2.8 %', '99.967 %', '100 %')
    """
    exact = Decimal(str(share)) * 100
    left = 100 - exact
    digits = 1 if left <= 0 or left > Decimal("0.5") else min(1 - left.adjusted(), 12)
    exact = exact.quantize(Decimal(1).scaleb(-digits), ROUND_CEILING)
    return f"{min(exact, Decimal(100)).normalize():f} %"


@dataclass(frozen=True)
class Attack:
    """An attacker who accuses so many of those who are not in the table finds at most so many of those who are."""

    false_positive_rate: str
    true_positive_rate: str


def missed(lines: Sequence[tuple[float, float]], false_alarms: float, *, both: bool = True) -> float:
    """The least share of hits that an attack with so many false alarms must miss, by (epsilon, delta) that hold.

    Every pair (e, d) rules out attacks below a line: 1 - d - exp(e) a, and below exp(-e) (1 - d - a) if it holds in
    ``both`` directions. NaN rules out nothing.

    >>> round(missed([(0.0, 0.1)], 0.2), 12)
    0.7
    """
    best = 0.0
    for epsilon, delta in lines:
        steep = math.exp(min(epsilon, 700.0))
        best = max(best, 1 - delta - steep * false_alarms, (1 - delta - false_alarms) / steep if both else 0.0)
    return min(best, 1 - false_alarms)


def attacks(lines: Sequence[tuple[float, float]]) -> tuple[Attack, ...]:
    """What the best attack can do at a few rates of false alarms."""
    return tuple(Attack(percent(rate), percent(1 - missed(lines, rate))) for rate in _FALSE_ALARMS)


@dataclass(frozen=True)
class Protected:
    """Whom a promise protects, in the words that the sentences need."""

    whom: str  # "person"
    short: str  # "one row more or less"
    without: str  # "if any one person's row had not been in the table"
    used: str  # "a person's row was used"
    tables: str  # of the formula
    who: tuple[str, ...]

    @classmethod
    def of(cls, relation: Neighbours, unit: Unit = Unit.ROW) -> Protected:
        """Of a relation between tables of rows, or between votes of teachers."""
        if unit is Unit.TEACHER:
            return _TEACHER
        if unit is Unit.PERSON:
            return _PERSON_ADDED if relation is Neighbours.ADD_REMOVE else _PERSON_REPLACED
        return _ADDED if relation is Neighbours.ADD_REMOVE else _REPLACED


_K_ROWS = (
    "One row stands for one person. A person with k rows is protected less: by the k-th power of the factor, and with "
    "a larger delta, if there is one."
)
_ADDED = Protected(
    "person",
    "one row more or less",
    "if any one person's row had not been in the table",
    "a person's row was used",
    "all tables <i>D</i>, <i>D</i>′, one of which has one row more than the other",
    ("Every row: tables with and without it look alike. The number of rows is protected too.", _K_ROWS),
)
_REPLACED = Protected(
    "person",
    "one row replaced by another",
    "if any one person's row had been replaced by another",
    "it is a person's own row that was used, and not another",
    "all tables <i>D</i>, <i>D</i>′ which differ in one row",
    ("The content of every row: tables that differ in one row look alike. The number of rows is public.", _K_ROWS),
)
_TOGETHER = (
    "All rows with the same identifier belong to the same person, whatever their number. A row without an identifier "
    "counts as a person of its own, and a person with two identifiers as two."
)
_PERSON_ADDED = Protected(
    "person",
    "one person more or less, whatever the number of rows",
    "if any one person, with all their rows, had not been in the table",
    "a person's rows were used",
    "all tables <i>D</i>, <i>D</i>′, one of which has the rows of one person more than the other",
    ("Every person: tables with and without all rows of that person look alike. The numbers of persons and of rows are "
     "protected too.", _TOGETHER),
)  # fmt: skip
_PERSON_REPLACED = Protected(
    "person",
    "all rows of one person replaced by those of another",
    "if all rows of any one person had been replaced by those of another",
    "it is a person's own rows that were used, and not those of another",
    "all tables <i>D</i>, <i>D</i>′ which differ in the rows of one person",
    ("Every person: tables that differ in the rows of one person look alike. The number of persons is public, the "
     "number of rows is not.", _TOGETHER),
)  # fmt: skip
_TEACHER = Protected(
    "teacher",
    "the votes of one teacher",
    "if any one teacher had voted otherwise",
    "a teacher has learned from a person's rows",
    "all votes <i>D</i>, <i>D</i>′ that differ in those of one teacher",
    (
        "Every teacher: votes in which one teacher gives other labels to any queries, or none, look alike.",
        "So is a person, if all rows of that person went to one teacher, and if the rows that a teacher got did not "
        "depend on those of others. Whether that was so, this page cannot tell. The numbers of teachers and of "
        "queries are public.",
    ),
)


Pair: TypeAlias = tuple[float | Fraction, float | Fraction]  # (epsilon, delta), exact where that is known


def plainly(what: str, lines: Sequence[tuple[float, float]], pair: Pair, unit: Protected) -> tuple[str, ...]:
    """The guarantee in a few sentences, each of them exact. ``what``: what is seen, such as "this model".

    ``lines``: pairs (e, d) that hold; ``pair``: the one that was promised. The first sentence is the promise itself.
    "Except with probability delta" would be wrong: odds may change by more than the factor somewhat more often than
    that. So the last sentence is computed from the pairs (``surest``).
    """
    epsilon, delta = pair
    plus = f", plus a probability of at most {chance(delta)}" if delta else ""
    near = upwards(epsilon), upwards(delta)
    sure, rarely = surest(lines, near)[0], 2 * delta
    above = f"more than {percent(sure)} certain"
    seldom = f"{above} only with a probability of at most {chance(rarely)}" if rarely else f"never {above}"
    return (
        f"Anything that can be seen in {what} is at most {factor(epsilon)} times as likely as it would be "
        f"{unit.without}{plus}. The same holds the other way round.",
        f"Suppose there is an even chance, 50 %, that {unit.used}. Somebody who sees {what}, and knows everything "
        f"else, can guess right in at most {best_guess(lines, pair)} of all cases.",
        f"Some outcomes leave them more certain than others, but {seldom}.",
        "This holds whatever else they know, now or later, and however much they compute.",
    )


def best_guess(lines: Sequence[tuple[float, float]], pair: Pair) -> str:
    """How often the best guess is right at most, after even odds: by the total variation.

    >>> best_guess([], (0.0, 0.0))
    '50 %'
    """
    near = upwards(pair[0]), upwards(pair[1])
    apart = min(((math.expm1(e) + 2 * d) / (math.exp(e) + 1) for e, d in _sane([*lines, near])), default=1.0)
    return percent((1 + min(apart, 1.0)) / 2)


def surest(lines: Sequence[tuple[float, float]], pair: tuple[float, float]) -> tuple[float, float]:
    """How sure one can be after even odds, but for a probability: no more than twice the delta that was promised.

    If a pair (e, d) holds, then odds change by more than exp(s), s > e, with probability at most d / (1 - exp(e - s)),
    because d is at least the mean of 1 - exp(e - change) where that is positive. A pure promise has no exception.

    >>> surest([(0.0, 0.3), (1.0, 0.0)], (1.0, 0.0))[1]
    0.0
    """
    epsilon, delta = pair
    if not delta:
        return 1 / (1 + math.exp(-min(epsilon, 700.0))), 0.0
    goal = 2 * math.nextafter(delta, 0)  # no more than twice the exact one
    held = [*_sane(lines), (epsilon, delta)]

    def rarely(size: float) -> float:
        return min((d / -math.expm1(e - size) for e, d in held if e < size), default=1.0)

    low, high = 0.0, epsilon + math.log(2) + 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rarely(middle) <= goal else (middle, high)
    return 1 / (1 + math.exp(-min(high, 700.0))), min(2 * delta, 1.0)


def upwards(value: float | Fraction) -> float:
    """A float that is not below."""
    return float_up(value) if isinstance(value, Fraction) else value


def _sane(lines: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(e, d) for e, d in lines if 0 <= e < 700]


def symbols(epsilon: float | Fraction, delta: float | Fraction, unit: Protected) -> Markup:
    """The guarantee as mathematicians write it."""
    plus = Markup(" + {}").format(at_most(delta)) if delta else ""
    return Markup(
        "Pr[<i>M</i>(<i>D</i>) ∈ <i>S</i>] ≤ e<sup>{}</sup> · Pr[<i>M</i>(<i>D</i>′) ∈ <i>S</i>]{} for all sets "
        "<i>S</i> of outcomes, refusal among them, and {}."
    ).format(at_most(epsilon), plus, Markup(unit.tables))


def parts(cost: Cost) -> Markup:
    """What a ledger adds up, as a formula."""
    said = [_PARTS[name].format(at_most(value)) for name, value in cost.exact().items()]
    if runs := len(cost.atoms):
        said.append(escape(f"{runs} perturbed objective{'s' if runs > 1 else ''}"))
    return Markup(", ").join(said) or Markup("nothing")


def not_covered(rehearsed: bool) -> tuple[str, ...]:
    """What no sentence above speaks of."""
    if rehearsed:
        return ("Everything: the noise of a rehearsal can be repeated by whoever knows its seed.",)
    return (
        "What is true of people in general. If a model shows that smokers fall ill, it says so about smokers who are "
        "not in the table, too.",
        "Other releases about the same people. Their costs add up; a ledger knows only those charged to it.",
        "What was taken from the same rows without being charged: bounds or columns chosen by looking at them, "
        "transformers fitted to them, scores on private rows.",
        "How long the computation took, and whatever else the machine it ran on may reveal.",
    )
