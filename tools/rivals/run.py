"""Rivals side by side: `make rivals` writes docs/rivals.md, docs/rivals.json and docs/images/rivals.svg.

Every rival has an environment of its own in `.venv-rivals`, with whatever versions of numpy and scikit-learn it asks
for, a limit of time and a number of rows and of releases. One that cannot be installed, fails or runs out of time is on
the page as such, with the results it had by then. All together end within `--minutes`. Limits are for an idle machine:
where others work on it too, each is stretched by the load at its start.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import audits
import numpy as np

ROOT = Path(__file__).parent.parent.parent
WORKER, PAGE, HELD = Path(__file__).with_name("worker.py"), ROOT / "docs" / "rivals.md", ROOT / "docs" / "rivals.json"
PICTURE = ROOT / "docs" / "images" / "rivals.svg"


@dataclass(frozen=True)
class Rival:
    """What is installed for it (None: nothing, it is here), and its limits on an idle machine."""

    needs: tuple[str, ...] | None
    seconds: int
    rows: int = 10_000
    releases: int = 60


INSTALLING = 240  # seconds for one environment
RIVALS = {
    "snugdp": Rival(None, 240),
    "numpy": Rival(None, 90),
    "opendp": Rival(None, 90),
    "diffprivlib": Rival(("diffprivlib", "scikit-learn<1.6"), 120),
    "interpret-core": Rival(("interpret-core",), 150),
    "dp-accounting": Rival(("dp-accounting",), 60),
    "pipeline-dp": Rival(("pipeline-dp",), 90, releases=15),
    "smartnoise-sql": Rival(("smartnoise-sql",), 90, releases=15),
    "tmlt.analytics": Rival(("tmlt.analytics",), 300, releases=3),
}
ON_THE_CLOCK = ("tmlt.analytics",)  # Spark works in processes of its own
ROWS, TEST, COLUMNS = 10_000, 5_000, 6
LOOKS = {  # colour, dash, width
    "snugdp": ("#0b6e4f", "-", 2.6),
    "snugdp, no bounds": ("#0b6e4f", "--", 2.0),
    "snugdp, curves": ("#0b6e4f", "-.", 2.0),
    "AdaSSP (in snugdp)": ("#7a8c00", "-", 1.4),
    "diffprivlib": ("#b3261e", "-", 1.4),
    "DP-EBM": ("#8e44ad", "-", 1.4),
    "TukeyEM": ("#c05a00", "-", 1.4),
    "Boosted AdaSSP": ("#1f5f8b", "-", 1.4),
    "Iterative Hessian Mixing": ("#a6761d", "--", 1.4),
    "least squares, not private": ("#555555", ":", 1.4),
}


def tables() -> dict[str, Any]:
    """Made up with a fixed seed: all columns and targets in [-1, 1]."""
    rng = np.random.default_rng(28)
    held: dict[str, Any] = {"tables": ["even", "skewed"], "columns": ["skewed"], "bounds": (0.0, 2000.0)}
    for name in held["tables"]:
        size = (ROWS + TEST, COLUMNS)
        if name == "even":
            X = rng.uniform(-1, 1, size)
            noise = rng.normal(0, 0.15, len(X))
        else:  # narrow columns that depend on each other, and a target with a long tail, far from its bounds
            X = np.clip(0.25 * (rng.normal(size=size) + 0.8 * rng.normal(size=(len(rng.normal(size=size)), 1))), -1, 1)
            noise = 0.04 * rng.standard_t(3, len(X))
        y = np.clip(X @ np.array([0.5, -0.4, 0.3, 0.2, -0.1, 0.0]) * (0.5 if name == "even" else 0.4) + noise, -1, 1)
        held |= {f"{name}_X": X[:ROWS], f"{name}_y": y[:ROWS], f"{name}_test": X[ROWS:], f"{name}_truth": y[ROWS:]}
    held["tables"].append("curved")
    rng_curved = np.random.default_rng(29)
    X = rng_curved.uniform(-1, 1, (ROWS + TEST, COLUMNS))  # no line fits: additive curves
    y = 0.35 * np.sin(4 * X[:, 0]) + 0.3 * (X[:, 1] ** 2 - 1 / 3) + 0.1 * X[:, 2] + rng_curved.normal(0, 0.1, len(X))
    y = np.clip(y, -1, 1)
    held |= {"curved_X": X[:ROWS], "curved_y": y[:ROWS], "curved_test": X[ROWS:], "curved_truth": y[ROWS:]}
    held["skewed_values"] = np.minimum(rng.lognormal(3, 0.8, ROWS), 2000.0)
    return held


class RivalError(Exception):
    """Why a rival has no results, or not all: what was seen."""


def load() -> float:
    """How many processes wanted a processor in the last minute, on average."""
    return os.getloadavg()[0]


class Watch:
    """How much time is left, for one rival and for all."""

    def __init__(self, minutes: float, patience: float | None) -> None:
        self.end, self.patience = time.monotonic() + 60 * minutes, patience

    def of(self, seconds: float) -> float:
        """At most so many seconds of an idle machine, more on a busy one, and no more than all have left."""
        patience = self.patience or max(1.0, load() / (os.cpu_count() or 1))
        left = min(seconds * patience, self.end - time.monotonic())
        if left <= 0:
            raise RivalError("not begun: the time for all rivals was used up")
        return left


def finished(command: Sequence[str], log: Path, seconds: float, doing: str) -> None:
    """Run in a session of its own, which ends with it: helpers that outlive a rival would hold everybody up."""
    quiet = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # imports are long
    with log.open("wb") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, env=quiet, cwd=log.parent)
        try:
            code = running.wait(seconds)
        except subprocess.TimeoutExpired:
            raise RivalError(f"{doing} was stopped after {seconds:.0f} s") from None
        finally:
            _end(running)
    if code != 0:
        raise RivalError(f"{doing} ended with code {code}{_last_words(log)}")


def _end(running: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _last_words(log: Path) -> str:
    """The last line of an error, unless it names files."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f": {lines[-1][:200]}" if lines and "/" not in lines[-1] else ""


def environment(rival: str, folder: Path, watch: Watch) -> Path:
    """The Python of a rival's environment, made if it is not there."""
    needs = RIVALS[rival].needs
    if needs is None:
        return Path(sys.executable)
    home = folder / rival
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        left = watch.of(INSTALLING)
        venv.create(home, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *needs]
        finished(install, folder / f"{rival}.install.log", left, "its installation")
        (home / "ready").touch()
    return python


def run(rivals: list[str], folder: Path, watch: Watch) -> dict[str, Any]:
    """Everybody's results, and why somebody has none or not all."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "tables.npz", **tables())
    done: dict[str, Any] = {"results": [], "versions": {}, "failed": {}, "audits": [], "loads": {}}
    for rival in rivals:
        began, results = time.monotonic(), folder / f"{rival}.results"
        results.unlink(missing_ok=True)
        try:
            one = RIVALS[rival]
            asked = {"rows": one.rows, "releases": one.releases, "draws": audits.asked(rival)}
            command = [str(environment(rival, folder, watch)), str(WORKER), rival, str(folder / "tables.npz")]
            command += [str(results), json.dumps(asked)]
            finished(command, folder / f"{rival}.log", watch.of(one.seconds), "its run")
        except RivalError as error:
            done["failed"][rival] = str(error)
        done["loads"][rival] = round(load(), 1)
        told, *found = _told(results) or [None]
        if told is not None:
            done["versions"][rival] = f"{told['version']} (numpy {told['numpy']})"
        done["audits"] += [audits.judged(rival, each) for each in found if each["what"] == "draws"]
        done["results"] += [each for each in found if each["what"] != "draws"]
        said = done["failed"].get(rival, "done")
        sys.stdout.write(f"{rival}: {said} ({len(found)} results, {time.monotonic() - began:.0f} s)\n")
        sys.stdout.flush()
    day = datetime.now(UTC)
    machine = {"python": platform.python_version(), "processors": os.cpu_count()}
    return {**done, "date": f"{day.day} {day:%B %Y}", **machine}


def _told(results: Path) -> list[Any]:
    """What a rival wrote, but for a line that it was stopped in."""
    lines = results.read_text(encoding="utf-8").splitlines(keepends=True) if results.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def merged(held: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """What was run again in place of what was held."""
    if held is None or new is None:
        return held or new or {}
    measured = [_measured(one) for one in new["results"]]
    kept = [one for one in held["results"] if _measured(one) not in measured]
    again = new["versions"].keys() | new["failed"].keys()
    failed = {name: why for name, why in held["failed"].items() if name not in again}
    judged = [one for one in held["audits"] if one["name"] not in again]
    return {
        **new,
        "results": [*kept, *new["results"]],
        "versions": {**held["versions"], **new["versions"]},
        "failed": {**failed, **new["failed"]},
        "audits": [*judged, *new["audits"]],
        "loads": {**held["loads"], **new["loads"]},
    }


def _measured(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["what"], one["name"], one["table"], one.get("epsilon")


def middle(line: dict[str, Any]) -> float:
    """The median of R², a refusal being 0: then one would predict the same for everybody."""
    return float(np.median([0.0 if value is None else value for value in line["r2"]]))


def draw(done: dict[str, Any]) -> None:
    """The error of predictions against epsilon, for the README."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "snugdp", "font.family": "sans-serif", "font.size": 10}
    from matplotlib import pyplot as plt

    lines = [one for one in done["results"] if one["what"] == "regression"]
    names = list(dict.fromkeys(one["table"] for one in lines))
    figure, axes = plt.subplots(1, len(names), figsize=(11.2, 3.5), sharey=True, layout="constrained")
    shown = {}
    for table, place in zip(names, np.atleast_1d(axes), strict=True):
        for name, (colour, dash, width) in LOOKS.items():
            points = [
                (one["epsilon"], np.sqrt(1 - middle(one)))
                for one in lines
                if (one["name"], one["table"]) == (name, table)
            ]
            if points:
                (shown[name],) = place.plot(*zip(*points, strict=True), dash, color=colour, linewidth=width)
        place.set(xscale="log", xlabel="epsilon (less is more private)", title=f"{table} table", ylim=(0.3, 1.45))
        place.axhline(1, color="#999999", linewidth=0.8)
        place.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
        place.minorticks_off()
        place.grid(alpha=0.25)
        place.spines[["top", "right"]].set_visible(False)
    first = np.atleast_1d(axes)[0]
    first.set_ylabel("error of predictions (less is better)")
    first.text(3, 1.02, "same guess for everybody", ha="right", fontsize=8, color="#555555")
    figure.legend(shown.values(), shown.keys(), loc="outside right center", frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


def page(done: dict[str, Any]) -> str:
    """The tables of the page, in Markdown."""
    results = {what: [one for one in done["results"] if one["what"] == what] for what in ("regression", "column")}
    epsilons = sorted({one["epsilon"] for one in results["regression"]})
    versions = ", ".join(f"{name} {text}" for name, text in done["versions"].items() if name != "numpy")
    said = [f"*`make rivals`, {done['date']}, Python {done['python']}. {versions}. {_busy(done)}*", ""]
    for table in dict.fromkeys(one["table"] for one in results["regression"]):
        lines = {(one["name"], one["epsilon"]): one for one in results["regression"] if one["table"] == table}
        said += _lines(f"The {table} table: median R² of predictions for other rows", lines, epsilons)
    for what in ("mean", "median"):
        answers = {(one["name"], one["epsilon"]): one for one in results["column"] if one[what] is not None}
        said += _answers(f"The {what} of a skewed column between 0 and 2,000: RMS error", what, answers, epsilons)
    said += _accounts([one for one in done["results"] if one["what"] == "accounting"])
    said += [f"Not complete: {name} ({why})." for name, why in done["failed"].items()]
    return "\n".join(said).strip()


def _busy(done: dict[str, Any]) -> str:
    """How busy the machine was: but for Spark, the run is one process."""
    least, most = min(done["loads"].values()), max(done["loads"].values())
    busy = (
        "a busy machine, so times are rough" if most > 1.5 * done["processors"] else "a machine with little else to do"
    )
    return f"Load average {least:g} to {most:g} on {done['processors']} processors: {busy}."


def _lines(title: str, lines: dict[Any, Any], epsilons: list[float]) -> list[str]:
    names = list(dict.fromkeys(name for name, _ in lines))
    best = {name: middle(lines[name, 1.0]) if (name, 1.0) in lines else -np.inf for name in names}
    rows = [f"**{title}**", "", _row("", *(f"epsilon {each:g}" for each in epsilons), "CPU-s of a fit")]
    rows.append(f"|---|{'---|' * (len(epsilons) + 1)}")
    for name in sorted(names, key=best.__getitem__, reverse=True):
        cells = [_cell(lines.get((name, each))) for each in epsilons]
        rows.append(_row(name, *cells, _seconds(lines.get((name, 1.0)), 1, ".2g")))
    return [*rows, ""]


def _answers(title: str, what: str, answers: dict[Any, Any], epsilons: list[float]) -> list[str]:
    rows = [f"**{title}**", "", _row("", *(f"epsilon {each:g}" for each in epsilons), "CPU-ms for both", "releases")]
    rows.append(f"|---|{'---|' * (len(epsilons) + 2)}")
    for name in dict.fromkeys(name for name, _ in answers):
        found = [answers.get((name, each)) for each in epsilons]
        cells = ["" if one is None else f"{one[what]:.3g}" for one in found]
        some = next(one for one in found if one is not None)
        time_of_one = _seconds(answers.get((name, 1.0)), 1000, ",.0f") + (
            " on the clock" if name in ON_THE_CLOCK else ""
        )
        rows.append(_row(name, *cells, time_of_one, str(some["releases"])))
    return [*rows, ""]


def _accounts(counts: list[dict[str, Any]]) -> list[str]:
    kinds = list(dict.fromkeys(one["table"] for one in counts))
    rows = ["**How many releases of one kind fit epsilon 1 and delta 1e-6**", "", _row("", *kinds)]
    rows.append(f"|---|{'---|' * len(kinds)}")
    for name in dict.fromkeys(one["name"] for one in counts):
        by_kind = {one["table"]: f"{one['count']:,}" for one in counts if one["name"] == name}
        rows.append(_row(name, *(by_kind.get(kind, "") for kind in kinds)))
    return [*rows, ""]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _seconds(one: dict[str, Any] | None, times: int, form: str) -> str:
    return "" if one is None else f"{times * one['seconds']:{form}}"


def _cell(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    refused = sum(value is None for value in one["r2"])
    if refused == len(one["r2"]):
        return "refused"
    value = middle(one)
    text = f"{value:.3f}" if value > -10 else "below -10"
    return f"{text} ({refused} of {len(one['r2'])} refused)" if refused else text


def audited(done: dict[str, Any]) -> str:
    """The findings of the audits, in Markdown."""
    rows = [_row("", "claimed", "draws of each table", "epsilon is at least", "claim"), "|---|---|---|---|---|"]
    for one in done["audits"]:
        least = "0" if one["at_least"] == 0 else f"{np.floor(one['at_least'] * 100) / 100:.2f}"
        claim = f"epsilon {one['claimed']:g}, {one['neighbours']}"
        verdict = "refuted" if one["refuted"] else "not refuted"
        rows.append(_row(f"{one['name']}, {one['release']}", claim, f"{one['runs']:,}", least, verdict))
    return "\n".join(rows)


def written(text: str, mark: str, part: str) -> str:
    """The page with a new part between its marks."""
    before, _, rest = text.partition(f"<!-- {mark} -->\n")
    return f"{before}<!-- {mark} -->\n\n{part}\n\n<!-- {mark}: end -->{rest.partition(f'<!-- {mark}: end -->')[2]}"


def main() -> int:
    """Run, draw, and put the tables between the marks of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-rivals", help="where environments are")
    parser.add_argument("--only", nargs="*", choices=RIVALS, default=list(RIVALS), help="these; others are kept")
    parser.add_argument("--minutes", type=float, default=30, help="for all of them together, installations too")
    parser.add_argument("--patience", type=float, help="times the limits of each; the load decides if not given")
    parser.add_argument("--again", action="store_true", help="draw and write from docs/rivals.json, without a run")
    given = parser.parse_args()
    held: dict[str, Any] | None = json.loads(HELD.read_text()) if HELD.exists() else None
    new = None if given.again else run(given.only, given.folder.resolve(), Watch(given.minutes, given.patience))
    done = merged(held if given.again or given.only != list(RIVALS) else None, new)
    HELD.write_text(json.dumps(done, indent=1) + "\n")
    draw(done)
    text = written(PAGE.read_text(encoding="utf-8"), "rivals", page(done))
    PAGE.write_text(written(text, "audits", audited(done)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
