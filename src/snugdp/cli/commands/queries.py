"""``snugdp query``: all families of queries under one name."""

from __future__ import annotations

from snugdp.cli.commands import query, statistics

app = query.app
for name, command in statistics.COMMANDS.items():
    app.command(name)(command)
