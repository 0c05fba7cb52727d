"""Our black-box audit pointed at other libraries: `python tools/rivals/audits.py` writes its part of docs/rivals.md.

Each draws many means and medians of two small tables that differ in one row, in an environment of its own; the draws
are then judged here, as those of any black box. That nothing is found says little: two tables were tried.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from run import PAGE, ROOT, environment

from snugdp import Budget
from snugdp.audit import black_box

EPSILON, RUNS = 1.0, 2_000
NONE, TEN = [0.0] * 19, [0.0] * 10 + [1.0] * 9
AUDITED = {  # which tables they call neighbours, and two pairs of these: one for the mean, one for the median
    "opendp": ("add_remove", ([*NONE, 1.0], NONE), ([*TEN, 1.0, 1.0], [*TEN, 1.0])),
    "diffprivlib": ("replace", ([*NONE, 1.0], [*NONE, 0.0]), ([*TEN, 1.0], [*TEN, 0.0])),
}
DRAWS = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import worker
ask = worker.COLUMNS[sys.argv[2]](0.0, 1.0, float(sys.argv[3]))
tables = json.loads(sys.argv[5])
print(json.dumps([[ask(np.array(table)) for _ in range(int(sys.argv[4]))] for table in tables]))
"""


def judged(rival: str, folder: Path) -> list[dict[str, Any]]:
    """What two pairs of tables tell of a rival's means and medians."""
    found = list[dict[str, Any]]()
    neighbours, *pairs = AUDITED[rival]
    for place, (name, pair) in enumerate(zip(("mean", "median"), pairs, strict=True)):
        asked = [
            str(environment(rival, folder)),
            "-c",
            DRAWS,
            str(Path(__file__).parent),
            rival,
            str(EPSILON),
            str(RUNS),
        ]
        said = subprocess.run([*asked, json.dumps(pair)], capture_output=True, text=True, check=True).stdout
        draws = [iter([one[place] for one in side]) for side in json.loads(said.splitlines()[-1])]
        claim = Budget(EPSILON, neighbours=neighbours)
        finding = black_box(next, (draws[0], draws[1]), claim, score=float, runs=RUNS)
        found.append({"what": name, "claim": f"epsilon {EPSILON:g}, {neighbours}", "finding": str(finding)})
    return found


def main() -> int:
    """Draw, judge, and put the findings between their marks."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv-rivals"
    lines = ["| | claimed | what the audit says |", "|---|---|---|"]
    for rival in AUDITED:
        lines += [f"| {rival}, {one['what']} | {one['claim']} | {one['finding']} |" for one in judged(rival, folder)]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- audits -->\n")
    after = rest.partition("<!-- audits: end -->")[2]
    text = "\n".join(lines)
    PAGE.write_text(f"{before}<!-- audits -->\n\n{text}\n\n<!-- audits: end -->{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
