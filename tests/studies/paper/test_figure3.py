"""Figure 3: the exact tables of the vote, and what the printed formulas make of them."""

import csv
import json
import math
from pathlib import Path

import pytest

from snugdp.mechanisms.votes.vote import envelope, log_losing_probability
from snugdp_studies.paper import drawing, figure3
from snugdp_studies.paper.figure3 import Figure3Plan
from tests.cli.people import run

# Error rate; total epsilon of Laplace pure, Laplace with delta, classic PTR, best Gen-PTR: gap 100, delta 1e-6.
COSTS = (
    (1e-1, 0.0240, 0.0208, 0.1418, 0.0208),
    (1e-2, 0.0519, 0.0457, 0.1651, 0.0457),
    (1e-3, 0.0780, 0.0691, 0.1883, 0.0691),
    (1e-5, 0.1282, 0.1143, 0.2348, 0.1143),
    (1e-8, 0.2013, 0.1804, 0.3046, 0.1804),
    (1e-12, 0.2970, 0.2674, 0.3976, 0.2674),
    (1e-20, 0.4859, 0.4399, 0.5837, 0.4399),
    (1e-34, 0.8132, 0.7405, 0.9093, 0.7405),
)
# Scale of the noise; log10 of the errors of Laplace, and at half of its epsilon of Gen-PTR, classic PTR, Laplace.
SPLITS = (
    (0.02, -2168.4, -1069.8, -1069.8, -1082.9),
    (0.1, -431.9, -207.7, -209.9, -215.0),
    (0.2, -215.0, -99.1, -102.4, -106.8),
    (0.3, -142.8, -63.7, -66.6, -70.8),
    (0.5, -85.2, -34.9, -37.9, -42.0),
    (2.0, -20.6, -2.6, -5.7, -10.0),
)
PLAN = Figure3Plan(errors=tuple(row[0] for row in COSTS))


def of(rows: list[dict[str, object]], version: str, method: str, value: str = "epsilon") -> list[float]:
    return [float(str(row[value])) for row in rows if (row["version"], row["method"]) == (version, method)]


@pytest.fixture(scope="module")
def costs() -> list[dict[str, object]]:
    return figure3.costs(PLAN)


@pytest.mark.parametrize(
    ("place", "method"), [(1, "Laplace, pure"), (2, "Laplace"), (3, "classic PTR"), (4, "Gen-PTR, best of all")]
)
def test_the_price_of_an_error_rate(costs: list[dict[str, object]], place: int, method: str) -> None:
    assert of(costs, "honest", method) == pytest.approx([row[place] for row in COSTS], abs=6e-5)


def test_at_equal_privacy_the_order_is_the_reverse_of_the_printed_one(costs: list[dict[str, object]]) -> None:
    printed = {name: of(costs, "as printed", name) for name in ("Laplace", "classic PTR", "Gen-PTR")}
    honest = {name: of(costs, "honest", name) for name in ("Laplace", "classic PTR", "Gen-PTR with a test")}
    split = of(costs, "honest", "Gen-PTR, the paper's split")
    for i in range(len(COSTS)):
        assert printed["Gen-PTR"][i] < printed["Laplace"][i] < printed["classic PTR"][i]
        assert honest["Laplace"][i] < min(honest["classic PTR"][i], honest["Gen-PTR with a test"][i]) < split[i]
        assert honest["Gen-PTR with a test"][i] >= 0.9999 * honest["classic PTR"][i]


def test_the_papers_split() -> None:
    rows = figure3.splits(PLAN)
    names = ("Laplace, its own epsilon", "Gen-PTR, the paper's split", "classic PTR", "Laplace")
    for place, name in enumerate(names, start=1):
        assert of(rows, "honest", name, "log10_error") == pytest.approx([row[place] for row in SPLITS], abs=0.051)


def test_the_papers_split_by_hand() -> None:
    noise, gap, delta = 1.0, 40, 1e-3
    least = next(t for t in range(1, gap) if envelope(noise, t, delta, "add_remove") == 0)
    threshold = math.log(1 / (2 * delta)) / (noise / 2) - (gap - least + 1)  # of Lap(2)
    failing = 0.5 * math.exp(threshold * noise / 2)
    assert threshold < 0
    error = failing / 2 + (1 - failing) * math.exp(log_losing_probability(noise * gap))
    assert math.exp(figure3.split_log_error(noise, gap, delta)) == pytest.approx(error, rel=1e-12)
    assert figure3.split_cost(gap, error, delta) == pytest.approx(noise / 2, rel=1e-6)


def test_losses_by_the_gap() -> None:
    rows = figure3.losses(Figure3Plan(gaps=(0, 1, 5, 20)))
    assert of(rows, "honest", "pure loss") == pytest.approx([8.2082, 9.3939, 9.8241, 9.9517], abs=1e-4)
    printed = of(rows, "as printed", "displayed bound")
    assert printed == sorted(printed, reverse=True)
    assert printed[0] == pytest.approx(17.9176, abs=1e-4)
    for gap in (0, 1, 5, 20):  # it is no bound: the loss at one row more is larger
        loss = log_losing_probability(10 * gap) - log_losing_probability(10 * gap + 10)
        assert figure3.not_private_displayed_bound(10, gap) < 0 < loss
    assert of(rows, "honest", "pure loss")[2] > printed[2]


@pytest.mark.slow
def test_files(tmp_path: Path) -> None:
    plan = Figure3Plan(errors=(1e-1, 1e-5), scales=(0.5,))
    files = {file.name for file in figure3.save(tmp_path, plan)}
    assert files == {"figure3.png", "figure3.svg", "figure3.csv", "figure3.json"}
    with (tmp_path / "figure3.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["version"] for row in rows} == {"as printed", "honest"}
    assert all(("NOT PRIVATE" in row["status"]) == (row["version"] == "as printed") for row in rows)
    content = json.loads((tmp_path / "figure3.json").read_text())
    assert content["plan"]["delta"] == 1e-6
    assert content["plan"]["errors"] == [1e-1, 1e-5]
    assert (tmp_path / "figure3.svg").read_bytes().count(b"NOT PRIVATE") == 2


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def save(folder: Path, plan: Figure3Plan) -> list[Path]:
        asked.append(plan)
        return [folder / "figure3.png"]

    monkeypatch.setattr(figure3, "save", save)
    out = tmp_path / "new"
    answer = run("paper", "figure3", "--quick", "--json", "--out", out)
    assert json.loads(answer.stdout) == {"files": {"figure3": [str(out / "figure3.png")]}}
    assert run("paper", "figure3", "--out", out).stdout.strip() == str(out / "figure3.png")
    assert asked == [figure3.QUICK, Figure3Plan()]


def test_the_same_numbers_give_the_same_picture(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    pictures = []
    for name in ("one", "two"):
        with drawing.look():
            figure = Figure(layout="constrained")
            panel = figure.subplots()
            line = drawing.CurveStyle("line", drawing.RED, "o")
            drawing.drawn(panel, [1, 2, 3], [1, math.inf, 2], line, [(0, 1), (0, 1), (0, 3)])
            drawing.stamped(panel)
            png, svg = drawing.saved(figure, tmp_path, name)
        assert png.read_bytes()[:4] == b"\x89PNG"
        pictures.append(svg.read_bytes())
    assert pictures[0] == pictures[1]
