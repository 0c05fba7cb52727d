"""The report in a real browser: on a phone, a screen and paper, light and dark. ``make screenshots`` keeps them."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import snugdp
from snugdp.report.model import render

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
KEPT = os.environ.get("SNUGDP_SCREENSHOTS")
LONG = "a_column_with_a_very_long_name_" * 6
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the report was not looked at in a browser"),
    pytest.mark.xdist_group("browser"),
]

PROBE = """
<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe id="page" style="border:0;width:{width}px;height:{height}px" srcdoc="{page}"></iframe>
<pre id="found"></pre>
<script>
document.getElementById("page").onload = function () {{
  const page = this.contentDocument, root = page.documentElement, wide = [];
  for (const each of page.querySelectorAll("body *")) {{
    const box = each.getBoundingClientRect();
    if (!each.closest("svg, thead") && box.right > {width} + 1) wide.push(each.tagName);
  }}
  const dark = page.defaultView.getComputedStyle(page.body).backgroundColor;
  document.getElementById("found").textContent = JSON.stringify(
    [root.scrollWidth, wide.length, page.querySelectorAll("h2").length, root.scrollHeight, dark]);
}};
</script>
"""


@pytest.fixture(scope="module")
def page() -> str:
    schema = snugdp.Schema(
        {
            "age": snugdp.Number(18, 90),
            LONG: snugdp.Number(0, 1),
            "<b>sector": snugdp.Category(["a", "b"]),
            "income": snugdp.Number(0, 100_000),
        },
        target="income",
    )
    place = np.arange(6000)
    frame = {
        "age": 20.0 + place % 60, LONG: place % 7 / 7.0, "<b>sector": np.where(place % 3 > 0, "a", "b"),
        "income": 20_000 + 500.0 * (place % 60),
    }  # fmt: skip
    import polars as pl

    ledger = snugdp.MemoryLedger(epsilon=2, delta=1e-5)
    model = snugdp.LinearRegression(1, 1e-6, method="output", schema=schema, rows=6000, ledger=ledger)
    return render(model.fit(pl.DataFrame(frame)))


def chromium(folder: Path, *given: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--disable-dev-shm-usage", "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", *given]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def seen(page: str, folder: Path, width: int, *more: str) -> tuple[list[str], str]:
    """What a browser measures at this width, and what it complains about."""
    file = folder / f"probe{width}.html"
    file.write_text(PROBE.format(width=width, height=1200, page=html.escape(page)), encoding="utf-8")
    done = chromium(folder, *more, "--virtual-time-budget=4000", "--dump-dom", file.as_uri())
    found = re.search(r'<pre id="found">\[(.*)\]</pre>', done.stdout)
    assert found is not None
    complaints = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return [part.strip('"') for part in found[1].split(",", 4)], complaints


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_it_fits_without_scrolling_sideways(page: str, tmp_path: Path, width: int) -> None:
    (across, wide, headings, height, colour), complaints = seen(page, tmp_path, width)
    assert int(across) <= width
    assert int(wide) == 0
    assert int(headings) == page.count("<h2")
    assert int(height) > 1000
    assert colour == "rgb(244, 243, 239)"
    assert complaints == ""


def test_it_is_dark_where_dark_is_preferred(page: str, tmp_path: Path) -> None:
    (*_, colour), complaints = seen(page, tmp_path, 390, "--blink-settings=preferredColorScheme=0")
    assert colour == "rgb(18, 22, 23)"
    assert complaints == ""


def test_the_probe_finds_what_is_too_wide(tmp_path: Path) -> None:
    across, wide, *_ = seen('<body><h2>x</h2><p style="width:900px">wide</p>', tmp_path, 390)[0]
    assert int(across) > 390
    assert int(wide) > 0


def test_it_prints(page: str, tmp_path: Path) -> None:
    source, printed = tmp_path / "report.html", tmp_path / "report.pdf"
    source.write_text(page, encoding="utf-8")
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={printed}", source.as_uri())
    held = printed.read_bytes()
    assert held.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", held)) <= 12


def test_all_text_is_there(page: str, tmp_path: Path) -> None:
    source = tmp_path / "report.html"
    source.write_text(page, encoding="utf-8")
    shown = html.unescape(re.sub(r"<[^>]*>", " ", chromium(tmp_path, "--dump-dom", source.as_uri()).stdout))
    for words in (LONG, "<b>sector=a", "What is not covered", "except with probability 1 in 1,000,000", "Receipt"):
        assert words in shown


@pytest.mark.skipif(KEPT is None, reason="make screenshots keeps screenshots")
@pytest.mark.parametrize(("name", "width", "dark"), [("phone", 390, 0), ("screen", 1200, 0), ("dark", 390, 1)])
def test_screenshots(page: str, tmp_path: Path, name: str, width: int, dark: int) -> None:
    folder = Path(str(KEPT)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    height = int(seen(page, tmp_path, width)[0][3])
    file = tmp_path / "shot.html"
    file.write_text(PROBE.format(width=width, height=height, page=html.escape(page)), encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    size = f"--window-size={max(width, 500)},{height}"  # no window is narrower than 500
    chromium(tmp_path, *scheme, size, f"--screenshot={folder / f'report-{name}.png'}", file.as_uri())
    assert (folder / f"report-{name}.png").stat().st_size > 10_000
