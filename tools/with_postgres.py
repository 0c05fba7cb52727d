"""Run a command beside a throw-away PostgreSQL server: ``python tools/with_postgres.py make test``.

The server listens on a socket in a temporary folder only, with fsync on, and is gone afterwards, whatever happens. The
command finds its address in ``SNUGDP_TEST_POSTGRES``; if that is set already, it is used instead. Without PostgreSQL's
programs the command runs without a server.
"""

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import quote

VARIABLE = "SNUGDP_TEST_POSTGRES"


def programs() -> Path | None:
    """The folder with ``initdb``, ``pg_ctl`` and ``postgres``: that of PATH, else the newest Debian version."""
    found = shutil.which("pg_ctl")
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    folders = ([Path(found).resolve().parent] if found else []) + versions
    needed = ("initdb", "pg_ctl", "postgres")
    return next((folder for folder in folders if all((folder / name).is_file() for name in needed)), None)


def _version(folder: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", folder.parent.name)]


def _owner() -> pwd.struct_passwd | None:
    """Whom to run the server as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise SystemExit("with_postgres: PostgreSQL does not run as root, and there is no user postgres or nobody")


def _run(command: Sequence[str | Path], owner: pwd.struct_passwd | None, folder: Path) -> None:
    """Run one of the server's programs in silence; show what it said if it fails."""
    with (folder / "said").open("w+b") as said:  # a file: the server inherits it, and a pipe would stay open
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=folder, check=False,
            user=owner and owner.pw_uid, group=owner and owner.pw_gid, extra_groups=[] if owner else None,
        ).returncode  # fmt: skip
        said.seek(0)
        if code:
            log = folder / "log"
            sys.stderr.write(said.read().decode(errors="replace") + (log.read_text() if log.is_file() else ""))
            raise SystemExit(f"with_postgres: {Path(command[0]).name} failed with code {code}")


@contextmanager
def server(binaries: Path) -> Iterator[str]:
    """A running server's URL, for the time of the block."""
    owner = _owner()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path has at most 107 bytes
    if owner:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data, log = folder / "data", folder / "log"
    settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=on -c max_connections=100"
    make = ["--username=snugdp", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
    try:
        _run([binaries / "initdb", "-D", data, *make], owner, folder)
        _run([binaries / "pg_ctl", "-D", data, "-l", log, "-o", settings, "-w", "-t", "60", "start"], owner, folder)
        yield f"postgresql://snugdp@/postgres?host={quote(str(folder), safe='')}"
    finally:
        if (data / "postmaster.pid").exists():
            _run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], owner, folder)
        shutil.rmtree(folder, ignore_errors=True)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second one must not cut the tidying short
    raise SystemExit(128 + number)


def _wait(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run the command, and pass on the signal that ends us."""
    with subprocess.Popen(command, env=environment) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            raise
    return code if code >= 0 else 128 - code


def main(command: Sequence[str]) -> int:
    """Run the command with a server if there is one; its exit code."""
    if not command:
        sys.stderr.write("usage: with_postgres.py COMMAND [ARGUMENT...]\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    if os.environ.get(VARIABLE):  # somebody has a server for us
        return _wait(command, dict(os.environ))
    binaries = programs()
    if binaries is None:
        sys.stderr.write("with_postgres: no PostgreSQL server on this machine: its tests will be skipped\n")
        return _wait(command, dict(os.environ))
    with server(binaries) as url:
        return _wait(command, {**os.environ, VARIABLE: url})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
