"""Public tables and votes that are too large for the repository: in the folder that ``SNUGDP_DATA`` names."""

import os
from pathlib import Path

import pytest


def real_data(name: str) -> Path:
    """Where the file is; without it the test is skipped."""
    folder = os.environ.get("SNUGDP_DATA")
    if folder is None or not (path := Path(folder) / name).is_file():
        pytest.skip(f"needs SNUGDP_DATA to name a folder with {name}")
    return path
