"""The server beside the tests: there when it can be, gone afterwards, and the command's exit code passed on."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.tools import tool

TOOL = Path(__file__).parent.parent / "tools" / "with_postgres.py"
VARIABLE = "SNUGDP_TEST_POSTGRES"
TELL = f"import os, sys; print(os.environ.get({VARIABLE!r}, 'none')); sys.stdout.flush(); "


MODULE = tool("with_postgres")
needs_server = pytest.mark.skipif(MODULE.programs() is None, reason="no PostgreSQL server on this machine")


def command(code: str) -> list[str]:
    return [sys.executable, str(TOOL), sys.executable, "-c", TELL + code]


def environment(**more: str) -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != VARIABLE} | more


def folder(url: str) -> Path:
    """Where the server's socket and data are."""
    return Path(unquote(url.strip().partition("host=")[2]))


@needs_server
def test_a_server_for_the_time_of_a_command() -> None:
    pytest.importorskip("psycopg")
    look = (
        "import psycopg; link = psycopg.connect(os.environ['SNUGDP_TEST_POSTGRES']);"
        "print(link.execute('SHOW fsync').fetchone()[0]); link.close(); sys.exit(7)"
    )
    done = subprocess.run(command(look), capture_output=True, text=True, env=environment(), check=False)
    url, fsync = done.stdout.split()
    assert (done.returncode, fsync, done.stderr) == (7, "on", "")
    assert url.startswith("postgresql://")
    assert not folder(url).exists()


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_after_a_signal(number: signal.Signals) -> None:
    process = subprocess.Popen(
        command("import time; time.sleep(600)"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment(), start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        home = folder(process.stdout.readline())
        server = int((home / "data" / "postmaster.pid").read_text().split()[0])
        process.send_signal(number)
        assert process.wait(60) != 0
    assert not home.exists()
    assert not running(server)


def running(number: int) -> bool:
    """Whether this process works; one that is dead and waits for its parent to notice does not."""
    for _ in range(50):
        try:
            os.kill(number, 0)
            if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.1)
    return True


def test_without_a_server_the_command_runs_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(MODULE, "programs", lambda: None)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert MODULE.main([sys.executable, "-c", TELL + "sys.exit(5)"]) == 5
    said = capfd.readouterr()
    assert said.out == "none\n"
    assert "no PostgreSQL server" in said.err
    assert said.err.count("\n") == 1


def test_a_server_that_is_given_is_taken() -> None:
    done = subprocess.run(
        command("sys.exit(0)"),
        capture_output=True,
        text=True,
        env=environment(**{VARIABLE: "postgresql://given"}),
        check=True,
    )
    assert done.stdout == "postgresql://given\n"


def test_a_command_is_needed() -> None:
    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_the_programs_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("initdb", "pg_ctl", "postgres"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(tmp_path / "pg_ctl"))
    assert MODULE.programs() == tmp_path
    (tmp_path / "initdb").unlink()
    assert MODULE.programs() != tmp_path
