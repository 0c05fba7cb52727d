"""``snugdp query``: all families of queries under one name."""

from __future__ import annotations

from snugdp.cli.commands.query.columns import app
from snugdp.cli.commands.query.groups import group_by
from snugdp.cli.commands.query.statistics import COMMANDS

__all__ = ["app"]

for name, command in {**COMMANDS, "group-by": group_by}.items():
    app.command(name)(command)
