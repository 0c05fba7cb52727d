"""The wheel, as somebody gets it: built, installed where nothing of ours is, and used."""

import json
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

import snugdp
from tests.tools import tool

ROOT = Path(__file__).parent.parent
FIT = """
import numpy as np, snugdp
X = np.linspace(-1, 1, 2000).reshape(-1, 2) / 2
model = snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=1).fit(X, X @ [0.5, -0.5])
assert model.released_ and model.coef_.shape == (2,)
snugdp.save(model, "model.json")
print(snugdp.__file__)
"""


def run(*words: object, folder: Path | None = None) -> str:
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (file,) = folder.glob("*.whl")
    return file


@pytest.mark.slow
def test_a_package_index_shows_no_link_into_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        told = archive.read(name).decode()
    assert "make demo" in told
    assert "](docs/" not in told


def test_links_of_the_readme_lead_to_the_address_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = SimpleNamespace(MetadataHookInterface=object)  # hatchling is there when a wheel is built
    for part in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, part, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", hook)
    for_index, text = tool("readme").for_index, (ROOT / "README.md").read_text()
    assert "](docs/" in text
    assert "](docs/" not in for_index(text, None)
    found = for_index(text, "https://example.org/files/")
    assert "](docs/" not in found
    assert found.count("https://example.org/files/docs/") == text.count("](docs/")
    for file in re.findall(r"\]\(((?!https?:)[^)#\s]+)", text):
        assert (ROOT / file).exists(), file


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    kinds = Counter(Path(name).suffix or "other" for name in names)
    with capsys.disabled():
        print(f"\n{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(names)} files: {dict(kinds.most_common())}")
    assert wheel.name.startswith(f"snugdp-{snugdp.__version__}-")
    tops = {name.split("/")[0] for name in names}
    assert tops == {"snugdp", f"snugdp-{snugdp.__version__}.dist-info"}
    assert not [name for name in names if {"tests", "studies", "snugdp_studies"} & set(name.split("/"))]
    assert {"snugdp/py.typed", "snugdp/cli/main.py"} <= set(names)
    assert sum(name.endswith(".proof.md") for name in names) == len(list(ROOT.glob("src/**/*.proof.md")))
    assert any(name.startswith("snugdp/report/templates/") for name in names)


@pytest.mark.slow
def test_an_empty_environment_can_fit_and_report(wheel: Path, tmp_path: Path) -> None:
    """Only the dependencies come from here: no other snugdp, no studies."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel)
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    used = run(python, "-I", "-c", FIT, folder=tmp_path).strip()
    assert Path(used).is_relative_to(site)
    snugdp_cli = (python, "-I", "-c", "from snugdp.cli.main import app; app()")
    assert run(*snugdp_cli, "--version").strip() == snugdp.__version__
    run(*snugdp_cli, "report", "model.json", "--output", "report.html", folder=tmp_path)
    assert "<html" in (tmp_path / "report.html").read_text()
    shown = json.loads(run(*snugdp_cli, "report", "model.json", "--json", "--force", folder=tmp_path))
    assert shown
    run(*snugdp_cli, "demo", "--out", "demo", folder=tmp_path)  # schema, plan, ledger, fit, report
    assert (tmp_path / "demo" / "report.html").is_file()
    refused = subprocess.run([*snugdp_cli, "bench", "noise"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.strip() == "`snugdp bench` is part of snugdp-studies: pip install snugdp-studies"
