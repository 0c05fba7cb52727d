"""The plan of a selection: what was decided, what it costs and what to expect. Proof: ``select.proof.md``."""

from __future__ import annotations

from snugdp.accounting import selection
from snugdp.mechanisms.selection.routes import Ask, Runs
from snugdp.propose.forecast import Amount, Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem

STOPPED, COMPOSED, TESTED = theorem("select/1"), theorem("select-all/1"), theorem("select-tested/1")
STEP = "select"


def planned(ask: Ask, chosen: Runs, other: Runs | None) -> Plan:
    """The plan of a selection, with what was decided and why."""
    k, law = len(ask.proposals), chosen.law
    params: dict[str, Amount] = {"epsilon": chosen.whole.epsilon, "delta": chosen.whole.delta, "proposals": k}
    proved, on = (COMPOSED, "every-proposal") if law is None else (STOPPED, "hidden-runs")
    if law is not None:
        params["runs"] = law.name
    if ask.test is not None:
        proved, params["tests"] = TESTED, 1
    step = Step(STEP, StepKind.RUNS, StepNoise(on, params=params), chosen.cost)
    proposal: dict[str, float] = {"proposals": k} if law is None else {"proposals": k, "mean_runs": selection.mean(law)}
    notes = (*_expected(ask, chosen), *_compared(ask, chosen, other), Note("rehearse-first"))
    return Plan(f"The best of {k} proposals", proved, (step,), proposal, Forecast(notes=notes), ask.budget)


def _expected(ask: Ask, chosen: Runs) -> tuple[Note, ...]:
    k, law = len(ask.proposals), chosen.law
    if law is None:
        return (Note("best-tried-surely"),)
    tried = {"probability": selection.best_tried(law, k), "quantile": selection.expected_quantile(law)}
    beyond = {"probability": selection.beyond(law, chosen.most), "most": chosen.most}
    return Note("best-tried", tried), Note("too-many-runs", beyond), Note("time-tells-runs")


def _compared(ask: Ask, chosen: Runs, other: Runs | None) -> tuple[Note, ...]:
    if other is None:
        return ()
    here, there = (runs.strength(ask.budget.delta) for runs in (chosen, other))
    return (
        Note(
            "routes-compared",
            {
                "chosen": chosen.route,
                "epsilon": here,
                "other": other.route,
                "other_epsilon": there,
                "delta": ask.budget.delta,
            },
        ),
    )
