"""The page of an audit: what failed, what was claimed and measured, and the curves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from snugdp.audit.finding import LAYERS, Finding
from snugdp.report.audited import pictures

if TYPE_CHECKING:
    from snugdp.audit.run import Report


@dataclass(frozen=True)
class Drawn:
    """A finding with its two pictures."""

    finding: Finding
    pictures: Markup


def page(report: Report) -> str:
    """One page of HTML that needs nothing else: no script, no font, no picture from elsewhere."""
    from snugdp.report.model import pages_of

    return (
        pages_of()
        .get_template("audit.html")
        .render(
            report=report,
            layers=LAYERS,
            table=by_layer(report),
            groups=grouped(report),
            curves=[(group, drawn(findings)) for group, findings in grouped(report)],
        )
    )


def grouped(report: Report) -> list[tuple[str, list[Finding]]]:
    """The findings by group of their cases; what belongs to no case comes last. Failures first in each."""
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(report.groups.get(finding.case, "behind all mechanisms"), []).append(finding)
    known = {name: place for place, name in enumerate(dict.fromkeys(report.groups.values()))}
    ordered = sorted(found.items(), key=lambda entry: known.get(entry[0], len(known)))
    return [(group, sorted(findings, key=lambda one: one.passed)) for group, findings in ordered]


def by_layer(report: Report) -> list[tuple[str, str, int, int, float]]:
    """For each layer that was looked at: its letter, name, number of claims, of failures, and seconds."""
    rows = []
    for layer, name in LAYERS.items():
        own = [finding for finding in report.findings if finding.layer == layer]
        if own:
            wrong = sum(not finding.passed for finding in own)
            rows.append((layer, name, len(own), wrong, report.seconds.get(layer, 0.0)))
    return rows


def drawn(findings: Iterable[Finding]) -> list[Drawn]:
    """One finding of every case that has a curve: the first that failed, or what was seen of all that is drawn."""
    chosen: dict[str, Finding] = {}
    for one in findings:
        if one.curve and (one.case not in chosen or (chosen[one.case].passed and not one.passed)):
            chosen[one.case] = one
    return [Drawn(one, pictures(one.curve, f"{one.case}, layer {one.layer}")) for one in chosen.values() if one.curve]
