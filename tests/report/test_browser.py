"""The report in a real browser: on a phone, a screen and paper, light and dark. ``make screenshots`` keeps them."""

import html
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.report.about import About
from snugdp.report.model import render

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
KEPT = os.environ.get("SNUGDP_SCREENSHOTS")
LONG = "a_column_with_a_very_long_name_" * 6
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the report was not looked at in a browser"),
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow,
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


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
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
    covered = "plus a probability of at most 1 in 1,000,000"
    for words in (LONG, "<b>sector=b", "What is not covered", covered, "Receipt"):
        assert words in shown


def others() -> dict[str, str]:
    """Pages of other kinds."""
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (1500, 40))
    y = np.where(X[:, 0] > 0, "yes", "a_label_that_is_longer_than_labels_should_be" * 3)
    labels = sorted(set(y.tolist()))
    query = snugdp.Median(bounds=(0, 123_456_789), epsilon=1, delta=1e-9, beta=0.001, step=0.001)
    mode = snugdp.Mode(categories=[LONG, "b"], epsilon=2, delta=1e-6)
    votes, budget = [[290, 5]] * 9, snugdp.Budget(8, 1e-6)
    plan = snugdp.pate.plan(budget, n_queries=9, n_teachers=300, n_classes=2, test="none")
    small: dict[str, Any] = {"epsilon": 2, "rows": 1500}
    return {
        "logistic": render(snugdp.LogisticRegression(classes=labels, x_norm=1, **small).fit(X, y)),
        "sparse": render(snugdp.SparseLinearRegression(3, method="adassp", y_bound=1, **small).fit(X, X[:, 0])),
        "pca": render(snugdp.PCA(2, epsilon=2, x_norm=5).fit(X)),
        "refused": render(query.release([0.0, 1e8]), plan=query.plan(), title=LONG),
        "mode": render(mode.release([LONG] * 400), plan=mode.plan()),
        "labels": render(snugdp.pate.label(votes, budget, test="none"), plan=plan, public={"classes": [LONG, 1]}),
    }


def test_other_kinds_fit_on_a_phone(tmp_path: Path) -> None:
    for name, page in others().items():
        (across, wide, headings, _, _), complaints = seen(page, tmp_path, 390)
        assert (int(across), int(wide), complaints) == (390, 0, ""), name
        assert int(headings) == page.count("<h2"), name


def shop(epsilon: float, **given: Any) -> str:
    """The report of a line through the table of the demonstration, with what the shop declares."""
    from snugdp.cli.commands import demo_table

    columns: dict[str, Any] = {
        "items": snugdp.Number(0, 12), "city": snugdp.Category(["Lima", "Oslo", "Rome"]),
        "express": snugdp.Category(["no", "yes"]), "voucher": snugdp.Number(0, 50), "amount": snugdp.Number(0, 200),
    }  # fmt: skip
    schema = snugdp.Schema(columns, target="amount", person="customer_id")
    ledger = snugdp.MemoryLedger(epsilon=5, delta=1e-5, label="orders", unit="person")
    model = snugdp.LinearRegression(epsilon, 1e-7, schema=schema, ledger=ledger, **given)
    about = About(owner="A made-up shop", purpose="to publish what makes an order large", period="2026")
    return render(model.fit(demo_table.orders()), about=about)


@pytest.mark.skipif(KEPT is None, reason="make screenshots keeps screenshots")
@pytest.mark.parametrize(
    ("name", "width", "height", "dark"),
    [("phone", 390, 1500, 0), ("desktop", 1000, 1300, 0), ("dark", 390, 1500, 1), ("refused", 390, 1100, 0)],
)
def test_screenshots(tmp_path: Path, name: str, width: int, height: int, dark: int) -> None:
    """The top of the page, as the documentation shows it."""
    folder = Path(str(KEPT)).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    refused = {"method": "posterior", "proposals": {"gamma": 1e6, "ridge": 0.001}}
    page = shop(1, **refused) if name == "refused" else shop(1, method="adassp")
    file, made = tmp_path / "shot.html", folder / f"report-{name}.png"
    frame = PROBE.format(width=width, height=height, page=html.escape(page))
    centred = "margin:0;display:flex;justify-content:center;background:#8a9499;height:100vh;overflow:hidden"
    file.write_text(frame.replace("margin:0", centred, 1).replace("<pre id", "<pre hidden id"), encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    size = f"--window-size={max(width, 500)},{height}"  # no window is narrower than 500
    chromium(tmp_path, *scheme, "--virtual-time-budget=4000", size, f"--screenshot={made}", file.as_uri())
    assert 10_000 < made.stat().st_size < 200_000
