"""Mistakes of people at the keyboard: nothing is lost, nothing is charged, and no traceback is shown."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import snugdp
from snugdp.cli import releases
from tests.cli import people
from tests.cli.people import charges, new_ledger, run
from tests.effort import sampled

QUICK = ("--method", "adassp", "--epsilon", 1)
FIT = ("fit", "linear", "people.parquet", "people.toml", *QUICK)
LEDGER = ("--ledger", "people.ledger")
MEDIAN = ("query", "median", "people.parquet", "--lower", 0, "--upper", 120)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    people.write(tmp_path, rows=300)
    monkeypatch.chdir(tmp_path)
    new_ledger()
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix in (".parquet", ".csv", ".toml")}


@sampled(2)
@pytest.mark.parametrize("option", ["-o", "--report"])
@pytest.mark.parametrize("over", ["people.parquet", "people.toml", "people.ledger", "people.ledger.anchor"])
def test_a_release_writes_over_nothing_that_it_reads(folder: Path, option: str, over: str) -> None:
    before = content(folder)
    assert "give the output another name" in run(*FIT, *LEDGER, option, over, code=1).stderr
    assert content(folder) == before
    assert charges() == 0


def test_whoever_stops_reading_gets_no_error() -> None:
    """As in snugdp ledger show people.ledger | head -1."""
    asked = [sys.executable, "-c", "from snugdp.cli.main import app; app()", "ledger", "show", "people.ledger"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(asked, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_nor_by_another_name_nor_over_a_match_of_a_pattern(folder: Path) -> None:
    (folder / "link.json").symlink_to(folder / "people.parquet")
    assert "another name" in run(*FIT, *LEDGER, "-o", "link.json", code=1).stderr
    words = ("fit", "linear", "peop*.parquet", "people.toml", *QUICK, *LEDGER)
    assert "another name" in run(*words, "-o", "../" + folder.name + "/people.parquet", code=1).stderr
    assert charges() == 0


def test_nothing_is_written_into_a_folder_that_is_read(folder: Path) -> None:
    (folder / "rows").mkdir()
    (folder / "people.parquet").rename(folder / "rows/people.parquet")
    words = ("fit", "linear", "rows", "people.toml", *QUICK, *LEDGER)
    assert "write to another folder" in run(*words, "-o", "rows/model.json", code=1).stderr
    assert charges() == 0
    run(*words, "-o", "rows/_model.json")  # which is never read


def test_two_outputs_are_two_files() -> None:
    assert "two outputs" in run(*FIT, *LEDGER, "-o", "x.json", "--report", "./x.json", code=1).stderr
    assert charges() == 0


def test_predictions_and_reports_write_over_nothing_that_they_read(folder: Path) -> None:
    run(*FIT, "-o", "model.json")
    before = content(folder)
    assert "another name" in run("predict", "model.json", "people.csv", "-o", "people.csv", code=1).stderr
    assert "another name" in run("predict", "model.json", "people.parquet", "-o", "people.parquet", code=1).stderr
    assert "another name" in run("report", "model.json", "-o", "model.json", "--force", code=1).stderr
    assert "another name" in run("schema", "init", "people.csv", "-o", "people.csv", "--force", code=1).stderr
    assert "another name" in run("ledger", "export", "people.ledger", "-o", "people.ledger", code=1).stderr
    assert content(folder) == before
    assert charges() == 0


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "model.json", "people.parquet", "-o", "none/p.csv"),
        ("predict", "model.json", "people.parquet", "-o", "none/p.parquet"),
        ("report", "model.json", "-o", "none/r.html"),
        ("schema", "init", "people.parquet", "-o", "none/s.toml"),
        ("ledger", "export", "people.ledger", "-o", "none/e.json"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_folder_that_is_not_there_is_named(words: tuple[str, ...]) -> None:
    said = run(*words, code=1).stderr
    assert "no such folder; make it first" in said
    assert "Errno" not in said


def test_a_folder_is_no_file_and_permissions_are_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "it is a folder" in run(*FIT, *LEDGER, "-o", ".", code=1).stderr
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)
    assert "this user may not" in run(*FIT, *LEDGER, "-o", "m.json", code=1).stderr
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert charges() == 0


@sampled(8)
@pytest.mark.parametrize("epsilon", ["1e308", "1e400", "1e-320", "1e-3200", "1e10"])
@pytest.mark.parametrize(
    "words",
    [
        ("plan", "linear", "people.toml", "--rows", 300, "--method", "adassp"),
        ("fit", "linear", "people.parquet", "people.toml", "--method", "adassp"),
        ("fit", "pca", "people.parquet", "people.toml"),
        ("bounds", "people.parquet", "--column", "age"),
        (*MEDIAN, "--column", "age"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_an_epsilon_out_of_all_proportion_is_refused_in_a_sentence(words: tuple[object, ...], epsilon: str) -> None:
    said = run(*words, "--epsilon", epsilon, *LEDGER, code=1).stderr
    assert said.startswith("Error: epsilon must be")
    assert said.count("\n") == 1
    assert charges() == 0


def test_and_so_is_such_a_delta() -> None:
    words = (*MEDIAN, "--column", "age", "--epsilon", 1, "--beta", 1)
    assert "at least 1e-100" in run(*words, "--delta", "1e-3200", code=1).stderr
    assert "0 < delta" in run(*words, "--delta", "0.0e5", code=1).stderr
    assert run(*words, "--epsilon", "1/2", "--delta", "1/1000", "--plan").stdout.count("epsilon 0.25") == 2


@sampled(2)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("bounds", "people.parquet", "--column", "city"), 'column "city" is of type String: it must hold numbers'),
        (("bounds", "people.parquet", "--column", "town"), 'no column "town"'),
        ((*MEDIAN, "--column", "city", "--beta", 1), "Convert it, or ask for its mode"),
        ((*MEDIAN, "--column", "town", "--beta", 1), 'no column "town"'),
        (("fit", "linear", "other.parquet", "people.toml", "--method", "adassp"), 'no column "city"'),
        (("fit", "pca", "other.parquet", "people.toml"), 'no column "city"'),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_wrong_column_is_found_before_anybody_is_asked(
    words: tuple[object, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl.read_parquet("people.parquet").drop("city").write_parquet("other.parquet")
    monkeypatch.setattr(releases, "is_terminal", lambda: True)
    result = run(*words, "--epsilon", 1, *LEDGER, code=1)
    assert says in result.stderr
    assert "Charge" not in result.stderr
    assert "Plan" not in result.output
    assert charges() == 0


def test_pca_needs_no_target(folder: Path) -> None:
    pl.read_parquet("people.parquet").drop("income").write_parquet("other.parquet")
    run("fit", "pca", "other.parquet", "people.toml", "--epsilon", 1)


def test_a_table_without_columns_has_no_schema() -> None:
    pl.DataFrame().write_parquet("none.parquet")
    assert "has no columns" in run("schema", "init", "none.parquet", code=1).stderr


def test_a_budget_that_is_too_small_is_told_in_words() -> None:
    said = run(*MEDIAN, "--column", "age", "--beta", 1, "--epsilon", 3, *LEDGER, code=4).stderr
    assert "it needs epsilon 3, delta 1e-06; left: epsilon 2 and delta 1e-06" in said
    assert "Nothing was charged" in said
    assert "Cost(" not in said
    assert charges() == 0


@pytest.mark.slow
def test_ctrl_c_at_the_question_means_no() -> None:
    """polars lets a read begin again after Ctrl-C: at a real terminal, nothing happened."""
    pty = pytest.importorskip("pty")
    program = "import polars; from snugdp.cli.terminal import agrees; print('agrees:', agrees('Sure?'))"
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", program], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE) as ask:
        os.close(theirs)
        said = b""
        while b"Sure?" not in said:
            said += os.read(ours, 1024)
        time.sleep(0.2)  # until it reads
        ask.send_signal(signal.SIGINT)
        try:
            told, _ = ask.communicate(timeout=20)
        finally:
            ask.kill()
            os.close(ours)
    assert told.strip() == b"agrees: False"


def test_the_end_of_the_input_means_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "is_terminal", lambda: True)
    assert "Nothing was charged" in run(*FIT, *LEDGER, code=1, input="").stderr
    assert charges() == 0


@pytest.mark.parametrize("words", [("linear", "--method", "adassp"), ("pca",)], ids=lambda words: words[0])
def test_brackets_in_names_are_no_markup(words: tuple[str, ...], folder: Path) -> None:
    """They made a fit fail after it was paid, before the model was saved."""
    odd = "[/b] length [cm]"
    pl.read_parquet("people.parquet").rename({"age": odd}).write_parquet("odd.parquet")
    (folder / "odd.toml").write_text(people.SCHEMA.replace("columns.age", f'columns."{odd}"'))
    model, *rest = words
    found = run("fit", model, "odd.parquet", "odd.toml", *rest, "--epsilon", 1, *LEDGER, "-o", "m.json")
    assert odd in found.stdout
    assert (folder / "m.json").exists()


def test_brackets_in_classes_are_no_markup(folder: Path) -> None:
    names = {"Rome": "[/b]", "Oslo": "[red]Oslo", "Lima": "Lima"}
    pl.read_parquet("people.parquet").with_columns(pl.col("city").replace(names)).write_parquet("odd.parquet")
    text = people.SCHEMA.replace('"Rome"', '"[/b]"').replace('"Oslo"', '"[red]Oslo"')
    (folder / "odd.toml").write_text(text)
    words = ("--target", "city", "--method", "objective", "--epsilon", 4)
    found = run("fit", "logistic", "odd.parquet", "odd.toml", *words)
    assert "[/b]" in found.stdout
    assert "[red]Oslo" in found.stdout


def test_what_was_paid_for_is_kept_if_nobody_listens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("rich.console.Console.print", deaf)
    run(*FIT, *LEDGER, "-o", "m.json", "--report", "r.html", code=1)
    assert snugdp.load(folder / "m.json").released_
    assert (folder / "r.html").exists()


def test_validation_rows_must_be_there() -> None:
    pl.read_parquet("people.parquet").clear().write_parquet("none.parquet")
    words = ("select", "linear", "people.parquet", "people.toml", "--validation", "none.parquet", "--epsilon", 1)
    assert "none.parquet has no rows" in run(*words, *LEDGER, code=1).stderr
    assert charges() == 0


def test_a_csv_file_in_another_encoding_has_no_schema(folder: Path) -> None:
    (folder / "latin.csv").write_bytes("Größe,city\n180,Köln\n".encode("latin-1"))
    said = run("schema", "init", "latin.csv", code=1).stderr
    assert "not UTF-8" in said
    assert "180" not in said
    (folder / "fine.csv").write_text("Größe,city\n180,Köln\n", encoding="utf-8")
    assert '[columns."Größe"]' in run("schema", "init", "fine.csv").stdout
