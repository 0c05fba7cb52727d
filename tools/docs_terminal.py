"""Pictures of the terminal for the documentation, in ``docs/images``: ``make screenshots``.

Drawn by rich as SVG from what the commands print, with the fonts of whoever reads: nothing is fetched.
"""

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from snugdp.cli.commands import demo

WIDTH = 100
IMAGES = Path(__file__).parent.parent / "docs" / "images"
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
PLAN = "snugdp plan linear orders.csv --target amount --person customer_id --epsilon 1 --delta 1e-7 --rows 12000"


def main() -> None:
    """Run the demonstration and a plan on its table, and draw both."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.chdir(folder):  # so that no path of this machine is shown
            Path("demo").mkdir()
            console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
            demo.show(console, Path("demo"))
        draw("snugdp demo --out demo", Text.from_ansi(console.export_text(styles=True)), "demo")
        program, *words = shlex.split(PLAN)
        asked = [str(Path(sys.executable).with_name(program)), *words]
        done = subprocess.run(asked, cwd=Path(folder, "demo"), stdout=subprocess.PIPE, text=True, check=True)
        draw(PLAN, Text(done.stdout), "plan")


def draw(command: str, printed: Text, name: str) -> None:
    """What a command printed as a picture, with lines broken as a terminal does."""
    printed.rstrip()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    console.print(Text(f"$ {command}", style="bold"))
    console.print(printed, overflow="fold")
    svg = console.export_svg(title="snugdp", unique_id=name)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code, monospace", FONTS)
    (IMAGES / f"{name}.svg").write_text(svg, encoding="utf-8")
    sys.stdout.write(f"docs/images/{name}.svg, {len(svg) // 1000} kB\n")


if __name__ == "__main__":
    main()
