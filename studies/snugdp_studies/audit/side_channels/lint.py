"""A lint for silence: below the estimators nothing may print, log or warn, and no error may quote a row.

What is said aloud where rows are read may depend on them, so it is not said there at all. The few places that show
something have a reason in ``ALLOWED``. The lint reads source code and runs nothing.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import snugdp
from snugdp.audit.finding import Finding

SILENT = (
    "secrecy", "numerics", "accounting", "core", "serial", "ledger", "noise", "propose", "tables", "release", "certify",
    "mechanisms", "recipe", "queries", "pate", "inference", "scores",
)  # fmt: skip
QUIET = ("estimators",)  # may warn, in words that were written before any row was read
_CALLS = {"print", "pprint", "breakpoint", "input", "displayhook", "excepthook", "print_exc", "print_exception"}
_IMPORTS = {"logging", "traceback", "pdb", "pprint", "faulthandler", "syslog", "rich", "tqdm", "click", "typer"}
_STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
_WARNERS = {"warn", "warn_explicit", "showwarning"}

ALLOWED: dict[tuple[str, str], str] = {
    ("ledger/stores/postgres/store.py", "warn"): "names the address of a database, as the caller gave it",
    ("core/screen.py", "stderr"): "asks whether there is a terminal",
    ("release/progress.py", "rich"): "shows the time since a selection began, and nothing else",
    ("tables/engines.py", "rich"): "shows how many bytes of a file were read: its size can be listed anyway",
    ("estimators/pate/teachers.py", "stderr"): "asks whether there is a terminal",
    ("estimators/pate/teachers.py", "rich"): "counts teachers, whose number is public",
    (
        "estimators/workflows/pipelines.py",
        "warn",
    ): "names steps of a pipeline by their names and types, which are public",
}
"""(file, what is used): why it may be."""

CARRIED: dict[tuple[str, str], str] = {
    ("estimators/pate/classifier.py", "_proposal"): "the first error is about public parameters",
    ("estimators/pate/teachers.py", "rehearse"): "the first error is about public queries with made-up labels",
}
"""(file, function): why its errors may carry the ones before them along."""

PRIVATE = {"X", "y", "row", "rows", "cell", "cells", "data", "votes", "groups", "targets", "column", "values", "value"}
"""Names that hold rows, or one of them, wherever rows are read."""
_ROOMS_OF_ROWS = ("tables", "release", "certify", "estimators", "pate", "queries", "noise", "mechanisms", "scores")
_PUBLIC = {"shape", "ndim", "name", "names", "dtype", "__name__", "width", "columns", "lower", "upper", "kind"}
PUBLIC_VALUES: dict[str, str] = {
    "tables/schema/schema.py": "reads declared columns and values: the schema is public",
    "tables/schema/toml.py": "reads a schema file, which is public",
    "tables/schema/kinds.py": "reads declared bounds and values",
    "tables/schema/scaling.py": "reads declared columns, and the declared values of a target",
}
"""Files whose names speak of public things."""


@dataclass(frozen=True)
class Breach:
    """One place that breaks a rule."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}"


def lint(root: Path | None = None) -> list[Finding]:
    """One finding for each rule, over all modules below ``root``: by default the library."""
    modules = list(_modules(root or Path(snugdp.__file__).parent))
    if root is None and (gone := {*SILENT, *QUIET, *_ROOMS_OF_ROWS} - {_room(file) for file, _ in modules}):
        raise LookupError(f"the lint looks at rooms that are no more: {', '.join(sorted(gone))}")
    noises = [mark for file, nodes in modules if _room(file) in SILENT for mark in noisy(file, nodes, warn=False)]
    said = [mark for file, nodes in modules if _room(file) in QUIET for mark in noisy(file, nodes, warn=True)]
    quotes = [mark for file, nodes in modules if _room(file) in _ROOMS_OF_ROWS for mark in quoting(file, nodes)]
    chained = [mark for file, nodes in modules if _room(file) in (*SILENT, *QUIET) for mark in carrying(file, nodes)]
    return [
        _finding("nothing below the estimators prints, logs or warns", noises, len(modules)),
        _finding("estimators print and log nothing, and warn in fixed words", said, len(modules)),
        _finding("no error interpolates a row, a cell or a target", quotes, len(modules)),
        _finding("no error raised while another is handled carries it along", chained, len(modules)),
    ]


def noisy(file: str, nodes: Iterable[ast.AST], *, warn: bool) -> Iterator[Breach]:
    """Whatever shows something. ``warn``: warnings of fixed words are allowed.

    >>> [str(mark) for mark in noisy("tables/rows.py", ast.walk(ast.parse("print(rows)")), warn=False)]
    ['tables/rows.py:1 print']
    """
    for node in nodes:
        for what in _shows(node, warn):
            if (file, what) not in ALLOWED:
                yield Breach(file, getattr(node, "lineno", 0), what)


def quoting(file: str, nodes: Iterable[ast.AST]) -> Iterator[Breach]:
    """Errors whose text is made from a variable that holds rows."""
    if file in PUBLIC_VALUES:
        return
    for node in nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            for name in _interpolated(node.exc):
                if name in PRIVATE:
                    yield Breach(file, node.lineno, f"an error says {name}")


def carrying(file: str, nodes: Sequence[ast.AST]) -> Iterator[Breach]:
    """Errors raised in a handler: Python keeps the first one as their context, with the values that it quotes.

    ``from None`` hides it from tracebacks, and is asked for; where no trace may stay, raise outside the handler.
    """
    if not any(isinstance(node, ast.ExceptHandler) for node in nodes):
        return
    for function in nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and (file, function.name) not in CARRIED:
            handlers = (node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler))
            for inner in (node for handler in handlers for node in ast.walk(handler)):
                if isinstance(inner, ast.Raise) and inner.exc is not None and not _cut(inner.cause):
                    yield Breach(file, inner.lineno, "an error carries another one along")


def _cut(cause: ast.expr | None) -> bool:
    return isinstance(cause, ast.Constant) and cause.value is None


def _finding(claim: str, marks: list[Breach], modules: int) -> Finding:
    shown = f"{len(marks)} places in {modules} modules"
    return Finding("B", "lint", claim, shown, passed=not marks, detail="; ".join(map(str, marks)))


def _shows(node: ast.AST, warn: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.split(".")[0] for alias in node.names if alias.name.split(".")[0] in _IMPORTS)
    elif isinstance(node, ast.ImportFrom):
        first = (node.module or "").split(".")[0]
        if first in _IMPORTS:
            yield first
        if first in ("warnings", "sys"):
            yield from (alias.name for alias in node.names if alias.name in _WARNERS | _STREAMS)
    elif isinstance(node, ast.Attribute) and node.attr in _STREAMS:
        yield node.attr
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _CALLS:
            yield name
        if name in _WARNERS and not (warn and node.args and _fixed(node.args[0])):
            yield name


def _fixed(message: ast.expr) -> bool:
    """A text that was written before any row was read."""
    return isinstance(message, ast.Constant) or (isinstance(message, ast.Name) and message.id.isupper())


def _interpolated(error: ast.expr) -> Iterator[str]:
    """The names whose values enter the text, but for public parts of them such as ``X.shape``."""
    for node in ast.walk(error):
        if isinstance(node, ast.FormattedValue):
            yield from _loose(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.Add) and _text(node.left):
            yield from _loose(node.right)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "format":
            yield from (name for part in (*node.args, *(k.value for k in node.keywords)) for name in _loose(part))


def _loose(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, ast.Attribute):
        if value.attr not in _PUBLIC:
            yield from _loose(value.value)
    elif not (isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("type", "type_name")):
        yield from (name for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr) for name in _loose(part))


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _modules(root: Path) -> Iterator[tuple[str, list[ast.AST]]]:
    """The nodes of each module, in the order of a walk."""
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root).as_posix(), list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _room(file: str) -> str:
    return file.split("/", maxsplit=1)[0].removesuffix(".py")
