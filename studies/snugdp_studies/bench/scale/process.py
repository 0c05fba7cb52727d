"""One job in a process of its own: its processor seconds, its seconds, and the most memory that it ever had.

As a program, ``python -m snugdp_studies.bench.scale.process NAME FILE SMALL``: the job of this name on the small file,
to load and calibrate what a process does once, then on the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from snugdp_studies.bench.contest.speed import one_thread, peak_megabytes


@dataclass(frozen=True)
class JobSpent:
    """What a job took."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def spent(name: str, path: Path, small: Path) -> JobSpent:
    """What a job takes, in a process of its own."""
    command = [sys.executable, "-m", "snugdp_studies.bench.scale.process", name, str(path), str(small)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return JobSpent(**json.loads(ran.stdout.splitlines()[-1]))


def main(arguments: Sequence[str]) -> None:
    """Run one job, and print what it took."""
    from snugdp_studies.bench.scale.work import JOBS

    name, path, small = arguments
    with one_thread():
        JOBS[name](Path(small))
        begin, start = process_time(), perf_counter()
        JOBS[name](Path(path))
    taken = {"cpu_s": process_time() - begin, "wall_s": perf_counter() - start, "peak_mb": peak_megabytes()}
    sys.stdout.write(json.dumps(taken) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
