"""``snugdp score``: how good a released model is on the private rows of a table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from snugdp.cli.options import Data, Delta, Epsilon, ModelIn, PersonOptions, Relation, Rows
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing


@releasing
def score(
    model: ModelIn,
    data: Data,
    *,
    epsilon: Epsilon,
    delta: Delta = "0",
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="auc, accuracy, calibration, log-loss, r2, mse and more; repeat for more."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column of the target, if the model does not name it.")] = None,
    lower: Annotated[str | None, typer.Option(help="The smallest target that counts, if the model has none.")] = None,
    upper: Annotated[str | None, typer.Option(help="The largest target that counts.")] = None,
    max_error: Annotated[str | None, typer.Option(help="The largest error of a number that counts.")] = None,
    floor: Annotated[str, typer.Option(help="For log-loss: probabilities are clipped to this.")] = "0.01",
    rows: Rows = None,
    neighbours: Relation = "add_remove",
    persons: PersonOptions,
    choices: ReleaseOptions,
) -> None:
    """Score a released model on private rows: accuracy, ROC curve, calibration, losses and errors, with intervals.

    By default all scores that share one release. Rows without a target are left out.

    Example: snugdp score model.json people.parquet --metric auc --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.estimators.files.model_file import load
    from snugdp.report.scores import texts_of
    from snugdp.scores.score import Score

    released: Any = load(model)
    query = Score(
        model=released,
        metric=metric,
        epsilon=epsilon,
        delta=delta,
        bounds=None if lower is None or upper is None else (lower, upper),
        max_error=max_error,
        floor=floor,
        rows=rows,
        neighbours=neighbours,
        **persons.persons(),
    )
    plan = query.plan()
    query.opened(data, target)  # what is wrong with the table is said before the plan
    outcome = query.release(data, target, ledger=choices.agreed(plan))
    shown: dict[str, Any] = {"query": "score", "model": str(model)}
    words = None
    if (scores := outcome.value) is not None:
        shown |= {"scores": scores.to_dict(), "unscored": scores.unscored, **_curves(scores)}
        words = "\n".join(texts_of(scores))
    public = {"model": str(model), "rows": "unknown" if rows is None else str(rows)}
    choices.tell(outcome, plan, ReleaseResult(words, shown, title=f"Scores of {model.name}", public=public))


def _curves(scores: Any) -> dict[str, Any]:
    """The curves and the confusion matrix, for machines."""
    from dataclasses import asdict

    return {
        "confusion_matrix": [list(line) for line in scores.confusion_matrix],
        "roc_curve": [asdict(point) for point in scores.roc_curve],
        "calibration_curve": [asdict(each) for each in scores.calibration_curve],
    }
