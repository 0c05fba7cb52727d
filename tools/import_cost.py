"""What an import costs beyond the libraries that it loads: ``python tools/import_cost.py [NAME]``.

Prints how many modules of ours ``from snugdp import NAME`` loads, and its CPU time beyond that of a process which
imports the same modules of others, in the same order. Both are the least of several runs with bytecode, as an installed
package has it: a busy machine only adds.
"""

import os
import subprocess
import sys
import tempfile

_RUNS = 7
_LISTED = "import sys; {}; print(*(name for name, found in sys.modules.items() if getattr(found, '__spec__', None)))"
_TIMED = "{}\nimport os; times = os.times(); print(times.user + times.system)"


def output(code: str, folder: str) -> str:
    """What a process prints; its bytecode is kept in a folder."""
    here = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**here, "PYTHONPYCACHEPREFIX": folder, "OMP_NUM_THREADS": "1"}
    return subprocess.check_output([sys.executable, "-c", code], text=True, env=environment)


def main(name: str = "LinearRegression") -> None:
    """Print the cost of one public name."""
    statement = f"from snugdp import {name}"
    with tempfile.TemporaryDirectory() as folder:
        loaded = output(_LISTED.format(statement), folder).split()
        own = [module for module in loaded if module.partition(".")[0] == "snugdp"]
        others = "import importlib\n" + "\n".join(
            f"importlib.import_module({module!r})" for module in loaded if module not in (*own, "__main__")
        )
        whole, libraries = (
            min(float(output(_TIMED.format(code), folder)) for _ in range(_RUNS)) for code in (statement, others)
        )
    print(f"{statement}: {len(own)} modules of ours, {whole:.3f} CPU-s, {whole - libraries:.3f} beyond other libraries")


if __name__ == "__main__":
    main(*sys.argv[1:])
