"""The lint is silent on this package, and finds every planted noise."""

from pathlib import Path

import pytest

import snugdp
from snugdp_studies.audit.side_channels import lint as rules
from snugdp_studies.audit.side_channels.lint import lint

ROOT = Path(snugdp.__file__).parent


def planted(tmp_path: Path, file: str, code: str) -> list[str]:
    """What the lint says about one module."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(code)
    return [finding.detail for finding in lint(tmp_path) if not finding.passed]


def test_this_package_is_silent() -> None:
    for finding in lint():
        assert finding.passed, str(finding)
        assert finding.layer == "B"


@pytest.mark.parametrize(
    "code",
    [
        "print(1)",
        "import logging",
        "from logging import getLogger",
        "import warnings\nwarnings.warn('x')",
        "from warnings import warn",
        "import sys\nsys.stdout.write('x')",
        "import sys\nprint('x', file=sys.stderr)",
        "from sys import stderr",
        "breakpoint()",
        "import traceback\ntraceback.print_exc()",
        "def f():\n    import rich.progress",
        "from tqdm.auto import tqdm",
        "import pprint",
        "import sys\nsys.excepthook(1, 2, 3)",
    ],
)
@pytest.mark.parametrize("room", ["tables", "release", "mechanisms", "noise", "queries", "pate", "ledger"])
def test_a_planted_noise_is_found(tmp_path: Path, room: str, code: str) -> None:
    assert planted(tmp_path, f"{room}/deep/planted.py", code)


@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError(f'bad {row}')",
        "raise ValueError(f'bad {row!r:>10}')",
        "raise ValueError(f'{len(X)} rows')",
        "raise ValueError(f'{X[0].tolist()}')",
        "raise ValueError('bad %s' % row)",
        "raise ValueError('bad ' + str(cell))",
        "raise ValueError('bad {}'.format(value))",
        "raise ValueError(f'{max(values)} is too large')",
    ],
)
def test_a_quoted_row_is_found(tmp_path: Path, code: str) -> None:
    assert planted(tmp_path, "estimators/planted.py", code)


def test_public_parts_may_be_said(tmp_path: Path) -> None:
    said = "raise ValueError(f'{X.shape[1]} {type(data).__name__} {X.ndim} {width} {type_name(column)}')"
    assert not planted(tmp_path, "tables/planted.py", said)


def test_an_error_that_carries_another_is_found(tmp_path: Path) -> None:
    code = "def f(x):\n    try:\n        g(x)\n    except ValueError{}:\n        raise TypeError('no'){}\n"
    assert planted(tmp_path / "1", "tables/planted.py", code.format("", ""))
    assert planted(tmp_path / "2", "tables/planted.py", code.format(" as e", " from e"))
    assert not planted(tmp_path / "3", "tables/planted.py", code.format("", " from None"))


def test_warnings_of_estimators_have_fixed_words(tmp_path: Path) -> None:
    assert planted(tmp_path / "1", "estimators/planted.py", "warnings.warn(f'{n} rows')")
    assert planted(tmp_path / "2", "estimators/planted.py", "print('fitted')")
    assert not planted(tmp_path / "3", "estimators/planted.py", "warnings.warn('in vain', UserWarning)")
    assert not planted(tmp_path / "4", "cli/planted.py", "print('in vain')")


def test_all_that_is_allowed_is_still_there() -> None:
    """An exception that nobody needs any more is a hole."""
    for file, what in rules.ALLOWED:
        assert what in (ROOT / file).read_text(), (file, what)
    for file, function in rules.CARRIED:
        assert f"def {function}(" in (ROOT / file).read_text(), (file, function)
    for file in rules.PUBLIC_VALUES:
        assert (ROOT / file).exists(), file
