"""``snugdp pate``: labels from the votes of teachers, and a student that may be published."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.options import Data, Delta, Epsilon, Multiline, OptionGroup, PersonOptions, RawText, SchemaFile, Target
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing

if TYPE_CHECKING:
    from snugdp.pate.labelling import Labels
    from snugdp.tables.schema.kinds import Column

app = typer.Typer(
    no_args_is_help=True,
    help="Private aggregation of teacher ensembles (PATE): label public queries by noisy votes, train a student.",
)

Classes = Annotated[
    str | None,
    typer.Option(help="The number of classes (0, 1, 2, ...), or their names separated by commas.", show_default=False),
]


@dataclass(frozen=True, kw_only=True)
class Aggregation(OptionGroup):
    """How votes become labels, and what is believed of them."""

    gap: Annotated[
        str | None,
        typer.Option(help="Your belief about the lead of the plurality, in votes; several separated by commas."),
    ] = None
    proxy: Annotated[
        Path | None, typer.Option(help="Your belief as a file of votes: public histograms of similar queries.")
    ] = None
    sigma: Annotated[
        str | None, typer.Option(help="Standard deviation of the noise on every count; by default the plan chooses.")
    ] = None
    test: Annotated[
        str, typer.Option(help='"distance"; "smooth", the test of the paper; or "none", which is never refused.')
    ] = "distance"
    threshold: Annotated[
        str | None, typer.Option(help="Answer only queries whose largest count reaches this after noise.")
    ] = None

    def numbers(self, multiline: bool) -> dict[str, Any]:
        """The belief, read, and the other numbers, by name."""
        proxy = None if self.proxy is None else _votes(self.proxy, multiline)
        return {"sigma": self.sigma, "gap": _gap(self.gap), "proxy": proxy, "threshold": self.threshold}


@app.command()
@releasing
def label(
    votes: Annotated[Path, typer.Argument(help="A .csv, .npy, .npz, .parquet or .arrow file.", show_default=False)],
    *,
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    classes: Classes = None,
    form: Annotated[
        str,
        typer.Option(help='"histograms"; or labels with one row per teacher ("teachers") or per query ("queries").'),
    ] = "histograms",
    teachers: Annotated[
        int | None, typer.Option(min=1, help="The number of teachers; needed if they may abstain.", show_default=False)
    ] = None,
    how: Aggregation,
    multiline: Multiline = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv file for the labels; without it they are printed.")
    ] = None,
    raw_text: RawText = False,
    choices: ReleaseOptions,
) -> None:
    """Label public queries by the votes of teachers, or refuse.

    Neighbouring tables differ in the rows of one teacher. The queries, --gap and --proxy must not come from the votes.

    Example: snugdp pate label votes.npy --classes 10 --epsilon 1 --gap 200 --ledger people.ledger -o labels.csv
    """
    from snugdp.core.guarantee import Budget
    from snugdp.core.outcome import Unit
    from snugdp.pate import labelling
    from snugdp.pate.proposals import Size
    from snugdp.pate.votes import read
    from snugdp.release.context import ReleaseContext

    _check_output(output)
    budget, named = Budget(epsilon, delta), _classes(classes)
    panel, inside = read(_votes(votes, multiline), form=form, n_teachers=teachers, classes=named)  # type: ignore[arg-type]
    numbers, test = labelling.Numbers(**how.numbers(multiline), threshold_sigma=None), how.test
    size = Size(panel.teachers, panel.queries, len(panel.classes))
    proposal = labelling.propose(budget, size, test, numbers)  # type: ignore[arg-type]
    aside = output is None
    context = ReleaseContext(None, choices.agreed(proposal.plan, aside=aside), budget, unit=Unit.TEACHER)
    asked = context.with_question(lambda: labelling.asked(budget, panel, test, numbers))  # type: ignore[arg-type]
    outcome = labelling.run(proposal, panel, inside, asked)
    shown: dict[str, Any] = {"labels": None, "answered": None}
    words = None
    if outcome.value is not None:
        released = outcome.value
        shown = {"labels": released.labels.tolist(), "answered": released.answered.tolist()}
        if output is not None or not choices.as_json:
            _write(released, output, raw_text)
        words = f"Released: labels of {int(released.answered.sum()):,} of {len(released):,} queries"
    public = {"classes": list(panel.classes), "teachers": panel.teachers, "queries": panel.queries}
    choices.tell(
        outcome,
        proposal.plan,
        ReleaseResult(words, shown, {"labels": output if words else None}, public=public, aside=aside),
    )


@app.command()
@releasing
def train(
    data: Data,
    schema: SchemaFile,
    *,
    queries: Annotated[
        str,
        typer.Option(help="A file of public rows without labels, with the columns of the table.", show_default=False),
    ],
    epsilon: Epsilon,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Save the model to this JSON file.", show_default=False)
    ],
    delta: Delta = "1e-6",
    target: Target = None,
    persons: PersonOptions,
    teachers: Annotated[int, typer.Option(min=1, help="The number of teachers; each learns from its own rows.")] = 250,
    how: Aggregation,
    multiline: Multiline = True,
    jobs: Annotated[int | None, typer.Option(help="How many teachers to train at a time.")] = None,
    choices: ReleaseOptions,
) -> None:
    """Train teachers on the rows and a linear student on their noisy labels of public queries.

    The schema lists the columns to use, all numbers or booleans, and the classes of the target. With --person all rows
    of a person go to one teacher.

    Example: snugdp pate train people.parquet people.toml --target risk --queries public.parquet --epsilon 1 -o model.json
    """  # noqa: E501  one line to copy
    from snugdp.cli import reading

    _check_output(output, ".json")
    features, answer, labels = _columns(schema, target)
    whose = persons.persons(schema)
    private = reading.opened(data, {**features, answer[0]: answer[1]})
    models.require_person(private, whose["person"])
    public = reading.frame(reading.opened(queries, features), features)
    given = {"epsilon": epsilon, "delta": delta, "classes": labels, "queries": public, "n_jobs": jobs, **whose}
    model = _ensemble(teachers, **given, test=how.test, **how.numbers(multiline))
    plan = model.plan()
    account = choices.agreed(plan)
    rows = reading.ReadSource(private, {**features, answer[0]: answer[1]})
    model.set_params(ledger=account).fit(rows, answer[0])
    if model.released_ and not hasattr(model, "student_"):
        raise ValueError(
            "labels were released and paid for, but no student can be trained on them: perhaps all are the same. "
            "Give more queries, or a larger epsilon"
        )
    words = f"Released: a student of {int(model.answered_.sum()):,} labels" if model.released_ else None
    title = f"A student of private teachers: {answer[0]}"
    choices.tell(model.outcome_, plan, ReleaseResult(words, {}, {"model": output}, model=model, title=title))


def _ensemble(teachers: int, **given: Any) -> Any:
    """Teachers that scale what they see, and a student whose coefficients are in the units of the table."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from snugdp.estimators.pate.classifier import PATEClassifier

    teacher = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    student = LogisticRegression(solver="newton-cholesky", C=100.0, max_iter=200)  # which units do not slow down
    return PATEClassifier(teacher, student, teachers, **given)


def _columns(file: Path, target: str | None) -> tuple[dict[str, Column], tuple[str, Column], Sequence[Any]]:
    """The columns to learn from, the target, and its classes, all from the schema."""
    from snugdp.tables.schema.schema import Boolean, Category

    schema = models.schema_of(file, target)
    name = str(schema.target)
    answer = schema.columns[name]
    if not isinstance(answer, Boolean | Category):
        raise TypeError(f'the target "{name}" must be a category or a boolean: the schema says a number')
    features = {other: column for other, column in schema.columns.items() if other != name}
    if texts := [other for other, column in features.items() if isinstance(column, Category)]:
        raise TypeError(
            f'column "{texts[0]}" is a category, but teachers take numbers: leave it out of the schema, or make it one '
            "column of 0 and 1 for each value"
        )
    return features, (name, answer), [False, True] if isinstance(answer, Boolean) else list(answer.levels)


def _votes(file: Path, multiline: bool) -> Any:
    """A file of votes."""
    import numpy as np

    from snugdp.cli import reading

    if file.suffix == ".npy":
        return _loaded(file)
    if file.suffix == ".npz":
        with _loaded(file) as arrays:
            if len(arrays.files) != 1:
                raise ValueError(f"{file} holds {len(arrays.files)} arrays: save the votes alone")
            return np.asarray(arrays[arrays.files[0]])
    if file.name.endswith((".csv", ".csv.gz")):
        return reading.table(file, multiline)
    return file


def _loaded(file: Path) -> Any:
    """An array that runs nothing when it is read."""
    import numpy as np

    from snugdp.secrecy.silence import attempt

    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    worked, array = attempt(lambda: np.load(file, allow_pickle=False))
    if not worked or array is None:
        raise ValueError(
            f"{file} is not a whole file of numbers or text: write it again with numpy.save or numpy.savez"
        )
    return array


def _classes(text: str | None) -> list[Any] | None:
    if text is None:
        return None
    if text.strip().isdecimal():
        return list(range(int(text)))
    names = [name.strip() for name in text.split(",")]
    return [int(name) for name in names] if all(name.lstrip("-").isdecimal() for name in names) else names


def _gap(text: str | None) -> Any:
    if text is None:
        return None
    try:
        leads = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError("--gap must be a number of votes, or several separated by commas") from None
    return leads[0] if len(leads) == 1 else leads


def _check_output(output: Path | None, ending: str = ".csv") -> None:
    if output is not None and output.suffix != ending:
        raise ValueError(f"{output} must end in {ending}")


def _write(released: Labels, output: Path | None, raw_text: bool) -> None:
    """One line for each query that has an answer; the queries count from 0."""
    from snugdp.serial.files import result_file, without_formula

    lines: list[list[Any]] = [["query", "label"]]
    lines += [
        [index, name if raw_text else without_formula(name)]
        for index, (name, known) in enumerate(zip(released.labels.tolist(), released.answered, strict=True))
        if known
    ]
    if output is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    with result_file(output) as fresh, open(fresh, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
