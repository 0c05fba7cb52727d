"""Plans, outcomes, models and audits as notebooks show them: the parts of the report, of released numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from snugdp.report.audit import by_layer
from snugdp.report.plan_text import forecast_lines, plan_text, step_label, step_words
from snugdp.report.released import OWN_SCALE, ReportTable, table_of, tables_of
from snugdp.report.words import Protected, at_most

if TYPE_CHECKING:
    from snugdp.audit.run import Report
    from snugdp.core.guarantee import Cost
    from snugdp.propose.plan import Plan

_STYLE = Markup(
    "<style>.snugdp{max-width:60rem}.snugdp table{border-collapse:collapse}.snugdp caption{text-align:left;"
    "font-weight:600}.snugdp th,.snugdp td{padding:.15rem .7rem .15rem 0;text-align:left;font-weight:400}"
    ".snugdp thead th{color:#566066}.snugdp .no{color:#a8201a;font-weight:600}.snugdp svg{width:18rem;height:auto}"
    "</style>"
)


def plan_html(plan: Plan) -> str:
    """What will be done and paid, and what to expect; all of it on request."""
    budget = plan.budget
    pair = "" if budget is None else f"epsilon {at_most(budget.epsilon)}, delta {at_most(budget.delta)}"
    steps = [(step_label(step), step_words(step)) for step in plan.steps]
    whom = Protected.of(plan.cost.neighbours, plan.unit).short
    known = [*([("cost", pair)] if pair else []), ("protects", whom), *steps]
    expected = [("expect", line) for line in forecast_lines(plan.forecast)]
    whole = Markup("<details><summary>the whole plan</summary><pre>{}</pre></details>").format(plan_text(plan))
    return _page(_table(f"Plan: {plan.title}", (), [*known, *expected]), whole)


def outcome_html(outcome: Any) -> str:
    """What was released, or that it was refused, and what it cost."""
    head = Markup("")
    if not hasattr(outcome, "receipt"):
        head = Markup('<p class="no">NOT PRIVATE: a rehearsal</p>')
    if outcome.refused:
        head += Markup('<p class="no">refused</p><p>It costs the same as a release; the reason is private.</p>')
        return _page(head, _paid(outcome.cost, getattr(outcome, "receipt", None)))
    own = getattr(outcome.value, "_repr_html_", None)
    body = Markup(own()) if own is not None else _shown([table_of(outcome.value, None)])
    return _page(head, body, _paid(outcome.cost, getattr(outcome, "receipt", None)))


def model_html(model: Any) -> str:
    """An estimator of ours: what was released, and the guarantee; before a fit its repr."""
    if not hasattr(model, "released_"):
        return _page(Markup("<pre>{}</pre>").format(repr(model)))
    if not model.released_:
        return _page(Markup('<p class="no">{} was refused</p>').format(type(model).__name__))
    promise = model.guarantee_
    line = (
        Markup('<p class="no">NOT PRIVATE: a rehearsal</p>') if promise is None else Markup("<p>{}</p>").format(promise)
    )
    if any(hasattr(model, name) for name in ("coef_", "components_", "labels_")):
        return _page(_shown(tables_of(model)), line)
    found = getattr(model, "bounds_", None)  # of a transformer
    return _page(Markup("<pre>{}</pre>").format(repr(model) if found is None else repr(found)), line)


def value_html(value: Any) -> str:
    """The answer of a query."""
    return _page(_shown([table_of(value, None)]))


def audit_html(report: Report) -> str:
    """How many claims were attacked in every layer, and what failed."""
    rows = [(name, str(count), str(wrong)) for _, name, count, wrong, _ in by_layer(report)]
    word = Markup("<p>every claim holds</p>") if report.passed else Markup('<p class="no">claims failed</p>')
    failed = [(one.case, one.claim, one.measured) for one in report.failures]
    wrong = _table("What failed", ("of", "claimed", "measured"), failed) if failed else Markup("")
    return _page(word, _table("Audit", ("layer", "claims", "failed"), rows), wrong)


def _paid(cost: Cost, receipt: Any) -> Markup:
    entry = "" if receipt is None else f", receipt {receipt.sequence} of {receipt.ledger}"
    if receipt is not None and receipt.ledger == "this call":
        entry = "; no ledger was given, so it is not counted against any budget"
    return Markup("<p>paid: {}{}</p>").format(cost.words, entry)


def _shown(tables: Iterable[ReportTable]) -> Markup:
    return Markup("").join(
        _table(
            table.title,
            ("", "value", table.within) if table.with_noise else ("", "value"),
            [(line.name, line.value, *([line.within] if table.with_noise else [])) for line in table.lines],
        )
        + Markup("").join(table.plots)
        + Markup("<p>{}</p>").format(table.note.replace(OWN_SCALE, ""))  # there are no bars here
        for table in tables
    )


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    head = Markup("<thead><tr>{}</tr></thead>").format(Markup("").join(Markup("<th>{}</th>").format(h) for h in heads))
    cells = (Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row) for row in rows)
    body = Markup("").join(Markup("<tr>{}</tr>").format(row) for row in cells)
    return Markup("<table><caption>{}</caption>{}<tbody>{}</tbody></table>").format(title, head if heads else "", body)


def _page(*parts: Markup) -> str:
    return str(_STYLE + Markup('<div class="snugdp">{}</div>').format(Markup("").join(parts)))
