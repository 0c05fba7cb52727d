"""Real Spark sessions for the tests, and a table for them."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from snugdp.tables.schema.schema import Category, Number, Schema
from tests.tables.tallies import Tally

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(ROOT / "src")])  # the tests, and the library beside them
TABLE = pl.DataFrame(
    {
        "a": [0.1 * i if i % 7 else None for i in range(4000)],
        "b": [float("nan") if i % 11 == 0 else float("inf") if i % 13 == 0 else -i / 3 for i in range(4000)],
        "kind of": [["x", "y", None, "z"][i % 4] for i in range(4000)],
    }
)
ODD_NAMES = {"a": "way.out", "b": "`", "kind of": "the `kind.of`"}  # Spark reads dots and backticks in names
WORK = Tally(("a", "b"))
SCHEMA = Schema({"a": Number(0, 300), "kind of": Category(["x", "y"]), "b": Number(-900, 0)}, target="b")
MARKS = [
    pytest.mark.skipif(
        not (shutil.which("java") or os.environ.get("JAVA_HOME")), reason="Spark needs Java 17, which is not installed"
    ),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # py4j leaves them to the collector
]


def needs_pyspark() -> None:
    """Skips the module, with a message, where pyspark is missing."""
    pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'snugdp[spark]'")


@contextmanager
def spark_session(master: str, folder: Path) -> Iterator[Any]:
    """In an environment that was not activated: the first ``python3`` cannot run anything.

    Workers are other processes: they find the passes of the tests by PYTHONPATH.
    """
    with pytest.MonkeyPatch.context() as patch:
        wrong = folder / "python3"
        wrong.write_text("#!/bin/sh\nexit 1\n")
        wrong.chmod(0o755)
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        patch.delenv("PYSPARK_PYTHON", raising=False)
        patch.setenv("PYTHONPATH", PATH)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = started(master)
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def connect_session(folder: Path) -> Iterator[Any]:
    """A session of Spark Connect, with a server of its own in another process."""
    from pyspark.sql.connect.session import SparkSession

    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PATH, "SPARK_LOCAL_IP": "127.0.0.1"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-W", "ignore", "-m", "tests.tables.connect_server", port]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert "ready\n" in server.stdout, "the server did not start"
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        try:
            yield session
        finally:
            session.stop()
            server.communicate()  # it ends when nobody can write to it


def started(master: str, **more: str) -> Any:
    """A classic session with few needs."""
    from pyspark.sql import SparkSession

    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": PATH,
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.shuffle.io.retryWait": "200ms",  # before what an executor had is given up
        "spark.driver.extraJavaOptions": quick, "spark.executor.extraJavaOptions": quick, **more,
    }  # fmt: skip
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def in_files(session: Any, folder: Path) -> Any:
    """The table as five Parquet files, seen by Spark."""
    folder.mkdir()
    for i in range(5):
        TABLE[i * 800 : (i + 1) * 800].write_parquet(folder / f"{i}.parquet")
    return session.read.parquet(str(folder))
