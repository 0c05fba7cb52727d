"""Plans for tests: steps by their ids, with what each costs."""

from collections.abc import Mapping
from typing import Any

from snugdp.core.guarantee import Cost
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem


def plan_of(title: str, costs: Cost | Mapping[str, Cost], **more: Any) -> Plan:
    """A plan with these steps, or with the one step "release"."""
    each = {"release": costs} if isinstance(costs, Cost) else costs
    steps = tuple(Step(name, StepKind.RELEASE, StepNoise("noise"), cost) for name, cost in each.items())
    return Plan(title, theorem("release/1"), steps, **more)
