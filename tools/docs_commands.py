"""The reference of the command line, from the commands themselves. A hook of mkdocs, named in ``mkdocs.yml``."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

PAGE, MARK = "reference/commands.md", "<!-- commands -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the commands into their page."""
    if page.file.src_uri != PAGE:
        return markdown
    return markdown.replace(MARK, commands())


def commands() -> str:
    """A section for every command, in the order of ``snugdp --help``."""
    from snugdp.cli.main import app

    group: Any = typer.main.get_command(app)
    return "\n\n".join(_section(path, command) for path, command in _all(group, "snugdp"))


def _all(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{path} {name}", command
        if hasattr(command, "list_commands"):
            yield from _all(command, f"{path} {name}")


def _section(path: str, command: Any) -> str:
    told, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
    title = f"{'#' * (path.count(' ') + 1)} {path}\n\n{_cell(told.strip())}"
    if hasattr(command, "list_commands"):
        return title
    context = typer.Context(command, info_name=path)
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [f"| `{_cell(words)}` | {_cell(text)} |" for words, text in filter(None, records)]
    places = [_cell(words).split()[0].upper() for words, _ in filter(None, records) if not words.startswith("-")]
    usage = " ".join([path, *places, "[OPTIONS]"])
    shown = f"```console\n$ {' '.join(example.split())}\n```" if example else ""
    table = "\n".join(["| option | |", "|---|---|", *rows]) if rows else ""
    return "\n\n".join(part for part in (title, f"`{usage}`", table, shown) if part)


def _cell(text: str) -> str:
    """Without what would be taken for a table, a mark or a backslash of the terminal."""
    text = re.sub(r"<list\[(.*)\]>", r"<\1>", text.replace("\b", "")).replace(" range>", ">")
    return re.sub(r"[ \t]+", " ", text).replace("|", "\\|").replace("*", "\\*")
