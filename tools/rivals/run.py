"""Rivals side by side: `make rivals` writes docs/rivals.md, docs/rivals.json and docs/images/rivals.svg.

Every rival is installed into an environment of its own in `.venv-rivals`, with whatever versions of numpy and
scikit-learn it asks for. What cannot be installed or does not run is left out, and the page says so.
"""

import argparse
import json
import platform
import subprocess
import sys
import venv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent.parent
WORKER, PAGE, HELD = Path(__file__).with_name("worker.py"), ROOT / "docs" / "rivals.md", ROOT / "docs" / "rivals.json"
PICTURE = ROOT / "docs" / "images" / "rivals.svg"
NEEDS = {  # None: this environment
    "snugdp": None,
    "numpy": None,
    "opendp": None,
    "diffprivlib": ["diffprivlib", "scikit-learn<1.6"],
    "interpret-core": ["interpret-core"],
    "pipeline-dp": ["pipeline-dp"],
    "smartnoise-sql": ["smartnoise-sql"],
    "tmlt.analytics": ["tmlt.analytics"],
    "dp-accounting": ["dp-accounting"],
}
ROWS, TEST, COLUMNS = 10_000, 5_000, 6
LOOKS = {  # colour, dash, width
    "snugdp": ("#0b6e4f", "-", 2.6),
    "snugdp, no bounds": ("#0b6e4f", "--", 2.0),
    "snugdp, splines": ("#0b6e4f", "-.", 2.0),
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


def environment(rival: str, folder: Path) -> Path:
    """The Python of a rival's environment, made if it is not there."""
    needs = NEEDS[rival]
    if needs is None:
        return Path(sys.executable)
    home = folder / rival
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", *needs], check=True)
        (home / "ready").touch()
    return python


def run(rivals: list[str], folder: Path, only: list[str]) -> dict[str, Any]:
    """Everybody's results, and why somebody has none."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "tables.npz", **tables())
    done: dict[str, Any] = {"results": [], "versions": {}, "failed": {}}
    for rival in rivals:
        sys.stdout.write(f"{rival} ...\n")
        sys.stdout.flush()
        try:
            python = environment(rival, folder)
            asked = [str(python), str(WORKER), rival, str(folder / "tables.npz"), *only]
            said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=1800).stdout
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            code = getattr(error, "returncode", None)
            lines = str(getattr(error, "stderr", None) or "").strip().splitlines()
            why = "took too long" if code is None else f"ended with code {code}"
            done["failed"][rival] = lines[-1][:200] if lines and "/" not in lines[-1] else why
            continue
        told = json.loads(said.strip().splitlines()[-1])
        done["versions"][rival] = f"{told['version']} (numpy {told['numpy']})"
        done["results"] += told["results"]
    day = datetime.now(UTC)
    return {**done, "date": f"{day.day} {day:%B %Y}", "python": platform.python_version()}


def merged(held: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """What was run again in place of what was held."""
    if held is None or new is None:
        return held or new or {}
    names = {(one["what"], one["name"], one["table"]) for one in new["results"]}
    kept = [one for one in held["results"] if (one["what"], one["name"], one["table"]) not in names]
    failed = {name: why for name, why in held["failed"].items() if name not in new["versions"]}
    versions = {**held["versions"], **new["versions"]}
    return {**new, "results": [*kept, *new["results"]], "versions": versions, "failed": {**failed, **new["failed"]}}


def middle(line: dict[str, Any]) -> float:
    """The median of R², a refusal being 0: then one would predict the same for everybody."""
    return float(np.median([0.0 if value is None else value for value in line["r2"]]))


def draw(done: dict[str, Any]) -> None:
    """R² against epsilon, for the README."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "snugdp", "font.family": "sans-serif", "font.size": 10}
    from matplotlib import pyplot as plt

    lines = [one for one in done["results"] if one["what"] == "regression"]
    names = list(dict.fromkeys(one["table"] for one in lines))
    figure, axes = plt.subplots(1, len(names), figsize=(11.2, 3.3), sharey=False, layout="constrained")
    for table, place in zip(names, np.atleast_1d(axes), strict=True):
        for name, (colour, dash, width) in LOOKS.items():
            points = [(one["epsilon"], middle(one)) for one in lines if (one["name"], one["table"]) == (name, table)]
            if points:
                at, reached = zip(*points, strict=True)
                place.plot(at, np.maximum(reached, -0.5), dash, color=colour, linewidth=width, label=name)
        place.set(
            xscale="log",
            xlabel="epsilon (less is more private)",
            title=f"{table} table, {ROWS:,} rows",
            ylim=(-0.25, 1),
        )
        place.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
        place.minorticks_off()
        place.grid(alpha=0.25)
        place.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(axes)[0].set_ylabel("R² on other rows (more is better)")
    shown = {
        text: line
        for place in np.atleast_1d(axes)
        for line, text in zip(*place.get_legend_handles_labels(), strict=True)
    }
    figure.legend(shown.values(), shown.keys(), loc="outside right center", frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


def page(done: dict[str, Any]) -> str:
    """The tables of the page, in Markdown."""
    lines = [one for one in done["results"] if one["what"] == "regression"]
    epsilons = sorted({one["epsilon"] for one in lines})
    versions = ", ".join(f"{name} {text}" for name, text in done["versions"].items() if name != "numpy")
    said = [f"*`make rivals`, {done['date']}, Python {done['python']}. {versions}.*", ""]
    for table in dict.fromkeys(one["table"] for one in lines):
        own = {(one["name"], one["epsilon"]): one for one in lines if one["table"] == table}
        named = list(dict.fromkeys(name for name, _ in own))
        said += [f"**{table} table, linear regression: median R² on other rows**", ""]
        said += [f"| | {' | '.join(f'epsilon {each:g}' for each in epsilons)} | CPU-s of a fit |"]
        said += [f"|---|{'---|' * (len(epsilons) + 1)}"]
        for name in sorted(named, key=lambda each: -middle(own[each, 1.0])):
            cells = [_cell(own[name, each]) for each in epsilons]
            said.append(f"| {name} | {' | '.join(cells)} | {own[name, 1.0]['seconds']:.2g} |")
        said.append("")
    columns = [one for one in done["results"] if one["what"] == "column"]
    for what in ("mean", "median"):
        said += [f"**The {what} of a skewed column, bounds 0 to 2,000: RMS error**", ""]
        said += [
            f"| | {' | '.join(f'epsilon {each:g}' for each in epsilons)} | CPU-ms for both |",
            f"|---|{'---|' * (len(epsilons) + 1)}",
        ]
        for name in dict.fromkeys(one["name"] for one in columns):
            by_epsilon = {one["epsilon"]: one for one in columns if one["name"] == name}
            if by_epsilon[1.0][what] is None:
                continue
            cells = [f"{by_epsilon[each][what]:.3g}" for each in epsilons]
            said.append(f"| {name} | {' | '.join(cells)} | {1000 * by_epsilon[1.0]['seconds']:.2g} |")
        said.append("")
    counts = [one for one in done["results"] if one["what"] == "accounting"]
    kinds = list(dict.fromkeys(one["table"] for one in counts))
    said += ["**How many releases of one kind fit epsilon 1 and delta 1e-6**", ""]
    said += [f"| | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for name in dict.fromkeys(one["name"] for one in counts):
        by_kind = {one["table"]: one["count"] for one in counts if one["name"] == name}
        said.append(f"| {name} | {' | '.join(f'{by_kind[kind]:,}' for kind in kinds)} |")
    said.append("")
    said += [f"Not run here: {name} ({why})." for name, why in done["failed"].items()]
    return "\n".join(said).strip()


def _cell(one: dict[str, Any]) -> str:
    refused = sum(value is None for value in one["r2"])
    if refused == len(one["r2"]):
        return "refused"
    value = middle(one)
    text = f"{value:.3f}" if value > -10 else f"{value:.0e}"
    return f"{text} ({refused} of {len(one['r2'])} refused)" if refused else text


def main() -> int:
    """Run, draw, and put the tables between the marks of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-rivals", help="where environments are")
    parser.add_argument("--only", nargs="*", choices=NEEDS, default=list(NEEDS))
    parser.add_argument("--tables", nargs="*", default=[], help='these alone, or "accounting"; others are kept')
    parser.add_argument("--again", action="store_true", help="draw and write from docs/rivals.json, without a run")
    given = parser.parse_args()
    new = None if given.again else run(given.only, given.folder, given.tables)
    part = given.only != list(NEEDS) or given.tables
    held: dict[str, Any] | None = json.loads(HELD.read_text()) if new is None or (part and HELD.exists()) else None
    done = merged(held, new)
    if not given.again:
        HELD.write_text(json.dumps(done, indent=1) + "\n")
    draw(done)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- rivals -->\n")
    after = rest.partition("<!-- rivals: end -->")[2]
    PAGE.write_text(f"{before}<!-- rivals -->\n\n{page(done)}\n\n<!-- rivals: end -->{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
