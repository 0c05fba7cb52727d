"""What commands that release have in common: the plan first, a question before the charge, and what is told after."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.errors import ERROR, REFUSED, fail, in_plain_words
from snugdp.cli.options import AsJson, LedgerAt, Multiline, OptionGroup, can_write, of_ledger, spelt_out
from snugdp.cli.terminal import agrees, is_terminal, say

if TYPE_CHECKING:
    from snugdp.core.outcome import Outcome
    from snugdp.ledger.book import Ledger
    from snugdp.propose.plan import Plan
    from snugdp.tables.found import FoundCap

_READ = ("data", "schema", "validation", "queries", "votes", "proxy")  # arguments of commands: what they read
_TABLES = ("data", "validation", "queries")
_NO_LEDGER = "No ledger: this release is not counted against any budget. Keeping track of the total is up to you."
_REFUSED = (
    "Refused: the private test did not pass, or there were too few rows to find what was not given, such as bounds. "
    "The budget is spent, and the reason is private. More rows, a larger epsilon or delta, tighter bounds or another "
    "proposal may help: compare plans, which are free."
)
_NOTHING_FOUND = (
    "Refused: the target was not found, or there was nothing to learn from. The budget is spent. Too few rows lie "
    "within a factor of two, or have the same label, for noise of this size; the plan says how many it takes. Declare "
    "the bounds or the classes of the target in a schema ('snugdp schema init' writes one), ask for a larger epsilon, "
    "or leave out columns."
)


def _refusal(plan: Plan) -> str:
    """What a refusal means, by the plan: without a test in it, only what was to be found can be the reason."""
    from snugdp.propose.plan import StepKind

    looks = any(note.code == "rows-to-find" for note in plan.forecast.notes)
    tests = any(step.kind in (StepKind.TEST, StepKind.RUNS) for step in plan.steps)
    return _NOTHING_FOUND if looks and not tests else _REFUSED


_IN_SCHEMA = '; by default what section "about" of the schema says.'


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions(OptionGroup):
    """How one release is paid for and told: a ledger or none, a key or none, for people or for machines."""

    ledger: LedgerAt = None
    key: Annotated[
        str | None, typer.Option(help="A name for this release: a retry prints the same output and costs nothing.")
    ] = None
    part: Annotated[
        str | None,
        typer.Option(
            help="Read the rows of one part alone, which the ledger pays for: a declared column and a value of it, "
            "such as region=north."
        ),
    ] = None
    report: Annotated[Path | None, typer.Option(help="Write a report to this HTML file.")] = None
    owner: Annotated[str | None, typer.Option(help=f"For the report: who answers for the data{_IN_SCHEMA}")] = None
    purpose: Annotated[str | None, typer.Option(help=f"For the report: what the release is for{_IN_SCHEMA}")] = None
    period: Annotated[str | None, typer.Option(help=f"For the report: the period of the data{_IN_SCHEMA}")] = None
    dataset: Annotated[str | None, typer.Option(help=f"For the report: the name of the data{_IN_SCHEMA}")] = None
    contact: Annotated[str | None, typer.Option(help=f"For the report: whom to ask{_IN_SCHEMA}")] = None
    only_plan: Annotated[bool, typer.Option("--plan", help="Print the plan and stop. It is public and free.")] = False
    as_json: AsJson = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Charge without asking.")] = False

    def __post_init__(self) -> None:
        if self.ledger is None and self.key is not None:
            raise ValueError("--key names a release in a ledger: give --ledger too")
        if self.part is not None and (self.ledger is None or "=" not in self.part):
            raise ValueError("--part names a part that a ledger declares: give --ledger, and --part column=value")
        if self.report is not None:
            import snugdp.report.model  # noqa: F401  what it needs and is not installed is missed now
        _ = self._payer  # which must be there

    @functools.cached_property
    def book(self) -> Ledger | None:
        """The ledger, opened."""
        return models.opened(self.ledger)

    @functools.cached_property
    def _payer(self) -> Any:
        """The ledger, or a part of it."""
        if self.book is None or self.part is None:
            return self.book
        column, _, value = self.part.partition("=")
        return self.book.part(column, value)

    @property
    def part_column(self) -> str | None:
        """The column that says to which part a row belongs."""
        return None if self.part is None else self.part.partition("=")[0]

    def agreed(self, plan: Plan, *, aside: bool = False) -> Any:
        """Show the plan and return what to charge; the command ends here if the plan is all that was asked for.

        ``aside``: on the error stream, because the output has a form of its own.
        """
        models.require_same(self.book, plan)
        if self.only_plan:
            say(json.dumps(self._planned(plan), allow_nan=False) if self.as_json else f"{plan}{self._left(plan)}")
            raise typer.Exit
        if not self.as_json:
            say(f"{plan}\n", err=aside)
        if self.book is None:
            typer.echo(_NO_LEDGER, err=True)
        account: Any = self._payer if self.book is None or self.key is None else self._payer.once(self.key)
        if self.book is not None and not account.affords(plan):
            from snugdp.ledger.errors import BudgetExceededError

            raise BudgetExceededError(models.exceeded(self.book, plan))
        if not self.yes and is_terminal() and not agrees("Charge this and release?"):
            fail("Nothing was charged.", ERROR)
        return account

    def tell(self, outcome: Outcome[Any], plan: Plan, told: ReleaseResult) -> None:
        """What came of it, and into which files; a refusal ends the command with its exit code.

        The files come first: what was paid for is kept, even if nobody listens any more.
        """
        self._write(outcome, plan, told)
        if self.as_json:
            files = {name: str(file) for name, file in {**told.files, "report": self.report}.items() if file}
            shown = {**told.shown, **_found_as_json(outcome), **self._paid(outcome, plan), "files": files}
            typer.echo(json.dumps(shown, allow_nan=False))
        else:
            if told.tables:
                from rich.console import Console

                Console().print(*told.tables)
            if not outcome.refused and told.words is not None:
                say(told.words, err=told.aside)
            for line in (*_found_lines(outcome), *_kept_lines(outcome, plan, told)):
                say(line, err=told.aside)
            if self.book is not None:
                receipt: Any = getattr(outcome, "receipt", None)
                typer.echo(
                    f"Receipt {receipt.sequence} of {self.book.address}; left: {self.book.remaining}", err=told.aside
                )
            for made in (*told.files.values(), self.report):
                if made is not None:
                    typer.echo(f"Wrote {made}", err=told.aside)
        if outcome.refused:
            fail(_refusal(plan), REFUSED)

    def _write(self, outcome: Outcome[Any], plan: Plan, told: ReleaseResult) -> None:
        model, file = told.model, told.files.get("model")
        if model is not None and file is not None:
            from snugdp.estimators.files.model_file import save

            save(model, file)
        if self.report is not None:
            from snugdp.report.about import About
            from snugdp.report.model import render
            from snugdp.serial.files import write_text

            subject = outcome if model is None else model
            held = plan if model is None else None  # a model has its own
            about = About(self.owner, self.purpose, self.period, self.dataset, self.contact)
            page = render(
                subject, plan=held, title=told.title, rows=told.rows, public=told.public, within=told.within,
                about=about,
            )  # fmt: skip
            write_text(self.report, page)

    def _planned(self, plan: Plan) -> dict[str, Any]:
        accepted = None if self.book is None else self._payer.affords(plan)
        ledger = None if self.book is None else {**self._left_in(self.book), "accepted": accepted}
        return {**models.plan_as_json(plan), "ledger": ledger}

    def _left(self, plan: Plan) -> str:
        if self.book is None:
            return ""
        after = "" if self._payer.affords(plan) else " It would not accept this release."
        return f"\nLedger {self.book.address}: {self.book.remaining} left.{after}"

    def _paid(self, outcome: Outcome[Any], plan: Plan) -> dict[str, Any]:
        from snugdp.serial.costs import cost_told

        receipt: Any = getattr(outcome, "receipt", None)
        names = ("ledger", "sequence", "what", "key", "hash")
        told = None if receipt is None else {name: getattr(receipt, name) for name in names}
        return {
            "outcome": "refused" if outcome.refused else "released",
            **models.plan_as_json(plan),
            "cost": cost_told(outcome.cost),
            "receipt": None if told is None else {**told, "unit": receipt.unit.value},
            "ledger": None if self.book is None else self._left_in(self.book),
        }

    @staticmethod
    def _left_in(book: Ledger) -> dict[str, Any]:
        return {"address": book.address, "left": models.as_amounts(book.remaining)}


def _found(outcome: Outcome[Any]) -> dict[str, Any]:
    """Bounds that were found for a release, by column; without a name for the only one."""
    from snugdp.tables.found import FoundNumber

    certificate: Any = outcome.certificate
    if isinstance(certificate, FoundNumber):
        return {"": certificate}
    several = isinstance(certificate, dict) and all(isinstance(one, FoundNumber) for one in certificate.values())
    return dict(certificate) if several else {}


def _cap(outcome: Outcome[Any]) -> FoundCap | None:
    """A cap that was found for a release."""
    from snugdp.tables.found import FoundCap

    return outcome.certificate if isinstance(outcome.certificate, FoundCap) else None


def _found_as_json(outcome: Outcome[Any]) -> dict[str, Any]:
    if (cap := _cap(outcome)) is not None:
        return {"found": {"cap": float(cap.cap), "largest": cap.largest, "lost": float(cap.lost)}}
    found = {name: dataclasses.asdict(one) for name, one in _found(outcome).items()}
    return {"found": found.get("", found)} if found else {}


def _found_lines(outcome: Outcome[Any]) -> list[str]:
    if (cap := _cap(outcome)) is not None:
        lost = f"; about {float(cap.lost):,.3g} rows a count were cut off, and are added to it" if cap.lost else ""
        return [f"Found privately: a person contributes at most as much as {float(cap.cap):,.4g} rows{lost}"]
    return [
        f"Found privately{f' of {name}' if name else ''}: from {one.lower:,.6g} to {one.upper:,.6g}, around "
        f"{one.centre:,.6g}, with a spread of {one.scale:,.3g} ({one.flag})"
        for name, one in _found(outcome).items()
    ]


def _kept_lines(outcome: Outcome[Any], plan: Plan, told: ReleaseResult) -> list[str]:
    """Of a count or a sum nobody should think that it is that of all rows."""
    one = any(note.code == "persons-one" for note in plan.forecast.notes)
    if outcome.refused or told.model is not None or not one:
        return []
    return ["One row of each person counts: numbers of rows are numbers of persons (--max-rows lets more count)"]


@dataclass(frozen=True)
class ReleaseResult:
    """What a command tells. ``words``, after ``tables``: for people; ``shown``: for machines; ``files``: by content.

    ``model``: an estimator, saved to the file "model" and shown by the report instead of the outcome. ``title``,
    ``public`` and ``rows``: of the report. ``within``: public bounds on the answer.
    """

    words: str | None
    shown: Mapping[str, Any]
    files: Mapping[str, Path | None] = field(default_factory=dict)
    model: Any = None
    title: str | None = None
    public: Mapping[str, Any] | None = None
    rows: int | None = None
    within: tuple[float, float] = (-math.inf, math.inf)
    aside: bool = False
    tables: Sequence[Any] = ()


def _tell_about(given: dict[str, Any]) -> None:
    """Whose data, what for and of when, for the report: as given, or as the schema says."""
    from snugdp.tables.schema.toml import ABOUT, about

    if given["report"] is None:
        unused = next((name for name in ABOUT if given.get(name) is not None), None)
        if unused is not None:
            raise ValueError(f"--{unused} is for the report: give --report too")
    elif given.get("schema") is not None:
        known = about(given["schema"])
        given |= {name: known.get(name) for name in ABOUT if name in given and given[name] is None}


def releasing(command: Callable[..., None]) -> Callable[..., None]:
    """A command that releases: every one has the option ``--multiline`` too.

    With ``--no-multiline`` it is given its tables opened; it may ask for the option itself, for other files.

    What is wrong is said in plain words, and before the charge: also what its ``--output`` would do.
    """
    asked = inspect.signature(command).parameters
    whole = spelt_out(command)
    own = inspect.signature(whole)
    option = inspect.Parameter("multiline", inspect.Parameter.KEYWORD_ONLY, default=True, annotation=Multiline)

    @functools.wraps(whole)
    def run(**given: Any) -> None:
        with in_plain_words():
            models.in_range(given["epsilon"], given.get("delta"))
            read = [given.get(name) for name in _READ]
            can_write(given.get("output"), given["report"], read=[*read, *of_ledger(given["ledger"])])
            _tell_about(given)
            multiline = given["multiline"] if "multiline" in asked else given.pop("multiline")
            if not multiline:
                from snugdp.cli.reading import table

                given |= {name: table(given[name], multiline) for name in _TABLES if name in given}
            whole(**given)

    if "multiline" not in asked:
        run.__signature__ = own.replace(parameters=[*own.parameters.values(), option])  # type: ignore[attr-defined]
        run.__annotations__ = {**whole.__annotations__, "multiline": Multiline}
    return run
