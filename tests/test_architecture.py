"""The page about the architecture is true: its rooms, their order, its arrows, and the walk of a fit."""

import re
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

import numpy as np

from snugdp import LinearRegression, MemoryLedger
from tests.test_house import MODULES, ROOT
from tests.test_layers import ORDER, all_imports, room

PAGE = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
USES = dict(re.findall(r"^\| `(\w+)` \|.*\| ([\w, ]*)\|$", PAGE, re.MULTILINE))
WALK = re.findall(r"`([\w/]+\.py)`", PAGE.split("## The walk")[1])


def test_every_room_is_on_the_page_in_order() -> None:
    assert tuple(USES) == ORDER
    assert {room(module) for module in MODULES} - {""} == set(ORDER)


def test_every_arrow_is_real() -> None:
    listed = {(here, there.strip()) for here, uses in USES.items() for there in uses.split(",") if there.strip()}
    chains = re.findall(r"\w+(?: --> \w+)+", PAGE)
    drawn = {arrow for chain in chains for arrow in pairwise(chain.split(" --> "))}
    assert {name for arrow in drawn for name in arrow} == {*ORDER} - {"lazy"}
    assert listed
    assert drawn | listed <= {(room(module), room(name)) for module, names in all_imports().items() for name in names}


def test_every_file_of_the_walk_is_there_and_walked() -> None:
    """A fit runs through all of them."""
    assert len(WALK) > 10
    for file in WALK:
        assert (ROOT / file).exists(), file
    X = np.linspace(-1, 1, 400).reshape(-1, 2) / 2
    unasked = 1.0417  # an epsilon for which no other test has left its calibration in a cache
    model = LinearRegression(unasked, 1e-6, x_norm=1, y_bound=1, ledger=MemoryLedger(2, 1e-5))
    seen: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        seen.add(frame.f_code.co_filename)  # of a call: lines are not watched

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        model.fit(X, X @ [0.5, -0.5])
    finally:
        sys.settrace(before)
    walked = {str(Path(file).relative_to(ROOT)) for file in seen if file.startswith(str(ROOT))}
    assert set(WALK) <= walked | {"core/outcome.py"}  # plain data: nothing of it is called
    assert type(model.outcome_).__module__ == "snugdp.core.outcome"
