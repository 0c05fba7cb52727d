"""Groups of commands that are loaded when they are called: help and completion read a table instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from snugdp.cli.errors import ERROR, fail


class Verb(NamedTuple):
    """A command that is not loaded yet: "module:attribute" (a function or a ``Typer``), and its help in one line."""

    home: str
    help: str


class LazyGroup(TyperGroup):
    """A group whose commands are in ``verbs``; they are listed as they stand there, and imported when one is called."""

    verbs: ClassVar[Mapping[str, Verb]] = {}
    _listing = False

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        listed = {name: TyperCommand(name, help=verb.help) for name, verb in self.verbs.items()}
        self.commands: Any = {**listed, **self.commands}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself; while commands are listed, only what the table says."""
        if self._listing or cmd_name not in self.verbs:
            return super().get_command(ctx, cmd_name)
        return loaded(cmd_name, self.verbs[cmd_name])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Help from the table."""
        with self._as_listed():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Names from the table."""
        with self._as_listed():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _as_listed(self) -> Iterator[None]:
        self._listing = True
        try:
            yield
        finally:
            self._listing = False


def lazy(verbs: Mapping[str, Verb]) -> type[LazyGroup]:
    """The group of these commands, for ``typer.Typer(cls=...)``."""
    return type("Verbs", (LazyGroup,), {"verbs": verbs})


def loaded(name: str, verb: Verb) -> Any:
    """The command of a verb."""
    module, _, attribute = verb.home.partition(":")
    if find_spec(module.partition(".")[0]) is None:
        fail(f"`snugdp {name}` is part of snugdp-studies: pip install snugdp-studies", ERROR)
    return _built(name, getattr(import_module(module), attribute))


@cache
def _built(name: str, target: Any) -> Any:
    """The command of a function or of a ``Typer``: Typer reads the signature once."""
    if isinstance(target, typer.Typer):
        command: Any = typer.main.get_group(target)
        command.name = name
        return _flowing(command)
    alone = typer.Typer(add_completion=False)
    alone.command(name)(target)
    return _flowing(typer.main.get_command(alone))


def _flowing(command: Any) -> Any:
    """With help whose paragraphs break where the terminal ends, not where the source does; examples stay lines."""
    paragraphs = (command.help or "").split("\n\n")
    command.help = "\n\n".join(text if ": snugdp " in text else " ".join(text.split()) for text in paragraphs)
    for each in getattr(command, "commands", {}).values():
        _flowing(each)
    return command
