"""The site builds without a warning and without the net; its reference and its benchmarks come from the code."""

import html
import importlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import snugdp
from snugdp.cli.commands import demo_table
from snugdp.cli.models import described
from tests.tools import tool

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
PRINTED = """a note with a * in it
    three
┏━━━┳━━━━━┓
┃ a ┃ b   ┃
┡━━━╇━━━━━┩
│ 1 │ 2|3 │
├───┼─────┤
│   │ *   │
└───┴─────┘
done
"""


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")  # whoever asks the net fails
    environment = {**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert not done.stdout + done.stderr  # quiet: only warnings and errors are printed
    assert done.returncode == 0
    pages = {
        page.relative_to(tmp_path).with_suffix("").as_posix(): page.read_text() for page in tmp_path.rglob("*.html")
    }
    the_reference_is_made_of_docstrings(pages)
    every_command_is_there(words(pages["reference/commands"]))
    readers_fetch_nothing_from_elsewhere(pages)
    it_can_be_searched_where_pages_are_files(tmp_path, pages)


def it_can_be_searched_where_pages_are_files(site: Path, pages: dict[str, str]) -> None:
    index = (site / "search" / "index.js").read_text()
    assert index.startswith("window.siteIndex = ")
    held = json.loads(index.removeprefix("window.siteIndex = ").removesuffix(";"))["docs"]
    assert any("Which epsilon?" in doc["title"] for doc in held)
    assert {(site / doc["location"].partition("#")[0]).exists() for doc in held if doc["location"]} == {True}
    for name in ("index", "tutorials/first-release"):
        assert pages[name].index("search/index.js") < pages[name].index("assets/search.js")


def the_reference_is_made_of_docstrings(pages: dict[str, str]) -> None:
    told = words(pages["reference/estimators"])
    assert "LinearRegression" in told
    assert "Each fit is (epsilon, delta)-DP under add/remove" in told
    assert "x_norm: Real | None = None" in told
    assert "&gt;&gt;&gt; " in told
    reference = "".join(page for name, page in pages.items() if name.startswith("reference/"))
    assert [name for name in snugdp.__all__ if f'id="snugdp.{name}"' not in reference] == []


def every_command_is_there(told: str) -> None:
    for line in ("snugdp schema init", "snugdp bench pca", "--ledger", "Save the model to this JSON file."):
        assert line in told


def readers_fetch_nothing_from_elsewhere(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        fetched = re.findall(r'<(?:script|img|iframe)\b[^>]*\bsrc="?(?:https?:)?//', page)
        linked = re.findall(r'<link\b[^>]*\brel="?(?:stylesheet|preconnect|icon)[^>]*\bhref="?(?:https?:)?//', page)
        assert not fetched + linked, name


def words(page: str) -> str:
    """The text of a page without its tags."""
    return " ".join(re.sub(r"<[^>]+>", "", page).split())


def test_every_public_name_is_in_the_reference_once() -> None:
    reference = "\n".join(page.read_text() for page in REFERENCE.glob("*.md"))
    told = Counter(re.findall(r"^::: snugdp\.(\S+)", reference, re.MULTILINE))
    assert {name: told[name] for name in snugdp.__all__} == dict.fromkeys(snugdp.__all__, 1)
    assert max(told.values()) == 1


def test_every_page_of_the_reference_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in REFERENCE.glob("*.md"):
        assert f"reference/{page.name}" in navigation, page.name


def test_workflows_run_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([\w./]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = importlib.import_module("yaml").safe_load(file.read_text())["jobs"].values()
        commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
        made = {target for command in commands for target in re.findall(r"^make ([\w./]+)$", command)}
        assert made <= targets, file.name
        assert made & {"unit", "nightly"}, file.name


def test_docstrings_become_markdown() -> None:
    docstring = (
        "Adds mu**2.\n\n``rows``: how many. ``noise``, ``ledger``: a ``Simulation``\nor ``Adder``.\n\n"
        "Guarantee (``add.proof.md``): exact,\nalways.\n\n>>> add(1, 2)  # doctest: +ELLIPSIS\n3"
    )
    made = tool("docs_docstrings").markdown(docstring, frozenset({"Simulation", "Adder"}), "Adder")
    assert made == (
        "Adds mu\\*\\*2.\n\n- ``rows``: how many.\n"
        "- ``noise``, ``ledger``: a [`Simulation`][snugdp.Simulation] or ``Adder``.\n\n"
        '!!! success "Guarantee (add.proof.md)"\n\n    Exact,\n    always.\n\n```pycon\n>>> add(1, 2)\n3\n```'
    )


def test_the_sections_of_a_docstring_stay_for_griffe() -> None:
    docstring = (
        "Adds.\n\nParameters\n----------\nnoise : Noise\n    A ``Simulation``, or mu**2.\n\n"
        "Examples\n--------\n>>> 2**3  # of ``Simulation``\n8"
    )
    assert tool("docs_docstrings").markdown(docstring, frozenset({"Simulation"})) == (
        "Adds.\n\nParameters\n----------\nnoise : Noise\n    A [`Simulation`][snugdp.Simulation], or mu\\*\\*2.\n\n"
        "Examples\n--------\n>>> 2**3  # of ``Simulation``\n8"
    )


def test_printed_tables_become_markdown() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2\\|3 |\n|  | \\* |"
    as_markdown = tool("bench_page").as_markdown
    assert as_markdown(PRINTED) == f"a note with a \\* in it\n\n**three**\n\n{table}\n\ndone"
    folded = f'<details markdown="1"><summary>three</summary>\n\n{table}\n\n</details>'
    assert as_markdown(PRINTED * 4).count(folded) == 4


def test_benchmarks_go_into_their_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def block(command: str, slow: str = "") -> str:
        return f"<!-- bench{slow}: snugdp bench {command} -->\nold {command}\n<!-- bench: end -->\n"

    page = tmp_path / "page.md"
    page.write_text(f"before\n{block('noise')}between\n{block('pca --data DATA/x')}{block('pate', ' slow')}after\n")
    bench, asked = tool("bench_page"), []

    def run(command: str, data: Path | None) -> tuple[str, float]:
        asked.append((command, data))
        return PRINTED, 12.3

    monkeypatch.setattr(bench, "run", run)
    assert bench.main(["--page", str(page)]) == 0
    assert asked == [("snugdp bench noise", None)]
    text = page.read_text()
    assert re.search(
        r"before\n<!-- bench: snugdp bench noise -->\n\n\*`OPENBLAS_NUM_THREADS=1 snugdp bench noise`, \d", text
    )
    assert ", 12 s. Python " in text
    assert "| 1 | 2\\|3 |" in text
    assert "old noise" not in text
    assert text.endswith(f"between\n{block('pca --data DATA/x')}{block('pate', ' slow')}after\n")
    bench.main(["--page", str(page), "--data", "tables", "--slow", "--only", "bench p"])
    assert asked[1:] == [("snugdp bench pca --data DATA/x", Path("tables")), ("snugdp bench pate", Path("tables"))]
    assert "old" not in page.read_text()
    assert "left as it is (needs DATA=)" in capsys.readouterr().out


def test_a_benchmark_that_fails_keeps_its_numbers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- bench: snugdp bench nothing-of-this-name -->\nold\n<!-- bench: end -->\n")
    before = page.read_text()
    assert tool("bench_page").main(["--page", str(page)]) == 1
    assert page.read_text() == before
    assert "failed, left as it is" in capfd.readouterr().out


def test_every_block_of_the_benchmarks_is_a_command_with_its_date() -> None:
    from typer.testing import CliRunner

    from snugdp.cli.main import app

    text = (ROOT / "docs" / "benchmarks.md").read_text()
    bench = tool("bench_page")
    assert text.count("<!-- bench: end -->") == len(bench.jobs(text)) == len({job.command for job in bench.jobs(text)})
    for _, _, command, body, _ in bench.BLOCK.findall(text):
        assert re.search(r"\b20\d\d\b", body.strip().partition("\n\n")[0]), command
        result = CliRunner().invoke(app, [*command.split()[1:3], "--help"])
        assert result.exit_code == 0, command


@pytest.mark.slow
def test_the_pictures_are_small_fetch_nothing_and_show_the_present_plan(tmp_path: Path) -> None:
    for image in (ROOT / "docs" / "images").iterdir():
        assert image.stat().st_size < 200_000, image.name
        assert image.suffix != ".svg" or "url(http" not in image.read_text().replace('"', ""), image.name
    demo_table.orders().head(50).write_csv(tmp_path / "orders.csv")
    schema = described(tmp_path / "orders.csv", "amount", person="customer_id").schema
    plan = str(snugdp.LinearRegression(1, 1e-7, schema=schema, rows=12_000).plan(rows=12_000))
    drawn = re.sub(r"<[^>]+>", "", (ROOT / "docs" / "images" / "plan.svg").read_text())
    shown = " ".join(html.unescape(drawn).split())
    for line in plan.splitlines():
        assert " ".join(line.split())[:70] in shown, "the picture is older than the plan: make screenshots"


def test_the_top_of_the_navigation_is_short_and_has_the_four_parts() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    top = re.findall(r"^  - ([^:]+):", text[text.index("nav:") : text.index("validation:")], re.MULTILINE)
    assert len(top) <= 7
    assert {"Tutorials", "How-to", "Reference", "Explanation"} <= set(top)


def test_the_index_is_a_script_without_tags() -> None:
    made = tool("docs_search").as_script([{"location": "a.html#b", "title": "A &amp; B", "text": "<p>x</p> <b>y</b>"}])
    assert (
        made
        == 'window.siteIndex = {"root": "../", "docs": [{"location": "a.html#b", "title": "A & B", "text": "x y"}]};'
    )


@pytest.fixture
def rivals(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools" / "rivals")
    return tool("rivals/run")


def test_the_page_of_rivals_is_that_of_its_numbers(rivals: ModuleType) -> None:
    done = json.loads((ROOT / "docs" / "rivals.json").read_text())
    page = (ROOT / "docs" / "rivals.md").read_text()
    assert rivals.page(done) in page
    assert rivals.audited(done) in page
    assert re.search(r"\b20\d\d\b", done["date"])
    assert done["versions"].keys() | done["failed"].keys() == rivals.RIVALS.keys()


def test_rivals_end_within_their_time_and_say_what_stopped_them(rivals: ModuleType, tmp_path: Path) -> None:
    limits = [one.seconds + (0 if one.needs is None else rivals.INSTALLING) for one in rivals.RIVALS.values()]
    assert max(limits) < 600  # one that hangs leaves time for the others
    log, left = tmp_path / "log", "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'while True: pass'])"
    rivals.finished([sys.executable, "-c", left], log, 60, "its run")  # what it leaves behind ends with it
    with pytest.raises(rivals.RivalError, match=r"^its run was stopped after 0 s$"):
        rivals.finished([sys.executable, "-c", "while True: pass"], log, 0.1, "its run")
    with pytest.raises(rivals.RivalError, match=r"^its run ended with code 1: ValueError: no such column$"):
        rivals.finished([sys.executable, "-c", "raise ValueError('no such column')"], log, 60, "its run")
    with pytest.raises(rivals.RivalError, match="not begun"):
        rivals.Watch(minutes=0, patience=1).of(60)
