"""The plan of a selection: what was decided, what it costs and what to expect. Proof: ``select.proof.md``."""

from __future__ import annotations

from snugdp.accounting import selection
from snugdp.mechanisms.selection.routes import Ask, Runs
from snugdp.numerics.printed import printed_up
from snugdp.propose.plan import Plan, Step

PROOF = "mechanisms/selection/select.proof.md#theorem-1"
COMPOSED = "mechanisms/selection/select.proof.md#theorem-2"
TESTED = "mechanisms/selection/select.proof.md#theorem-3-one-test-before-all-runs"
_REHEARSE = "a mistake inside run or score ends in a refusal, and is paid for: rehearse with noise=Simulation(1) first"
_WAYS = {"stop": "a random number of runs", "compose": "every proposal once"}


def planned(ask: Ask, chosen: Runs, other: Runs | None) -> Plan:
    """The plan of a selection, with what was decided and why."""
    k = len(ask.proposals)
    each = f"each with epsilon {printed_up(chosen.whole.epsilon)} at delta {printed_up(chosen.whole.delta)}"
    if chosen.law is None:
        how, proof = f"every one of {k} proposals once, {each}", COMPOSED
    else:
        how, proof = f"a hidden number of runs of {k} proposals, {chosen.law.name}, {each}", PROOF
    if ask.test is not None:
        how, proof = f"one test; {how}", TESTED
    return Plan(
        what=f"the best of {k} proposals",
        proof=proof,
        proposal={"proposals": k} | ({} if chosen.law is None else {"mean_runs": selection.mean(chosen.law)}),
        steps=(Step("select", how, chosen.cost),),
        forecast=(*_expected(ask, chosen), *_compared(ask, chosen, other), _REHEARSE),
        budget=ask.budget,
    )


def _expected(ask: Ask, chosen: Runs) -> tuple[str, ...]:
    k, law = len(ask.proposals), chosen.law
    if law is None:
        return ("the best proposal is tried for certain",)
    return (
        f"the best proposal is tried with probability {selection.best_tried(law, k):.3g}; the winner beats "
        f"{selection.expected_quantile(law):.1%} of all runs on average",
        f"nothing at all with probability {selection.beyond(law, chosen.most):.1g}, after more than {chosen.most} runs",
        "how long it takes tells about the number of runs, which is hidden: keep the time to yourself",
    )


def _compared(ask: Ask, chosen: Runs, other: Runs | None) -> tuple[str, ...]:
    if other is None:
        return ()
    here, there = (runs.strength(ask.budget.delta) for runs in (chosen, other))
    return (
        f"{_WAYS[chosen.route]} leaves a run epsilon {here:.3g} at delta {printed_up(ask.budget.delta)}, "
        f"{_WAYS[other.route]} {there:.3g}",
    )
