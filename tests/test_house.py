"""The structure: no import cycle, no private name across modules, no class name twice, few passages twice."""

from __future__ import annotations

import ast
import functools
import gc
import io
import tokenize
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path

import pytest

import snugdp

ROOT = Path(snugdp.__file__).parent
MODULES = {
    ".".join(("snugdp", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

MAX_PASSAGES = 11  # there were 149 pairs: lower this number with every passage that goes
PASSAGE = 6  # lines


@functools.cache  # when a test asks, not in every process that collects tests
def texts() -> dict[str, str]:
    """The source of every module."""
    return {name: path.read_text() for name, path in MODULES.items()}


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module."""
    gc.disable()  # millions of nodes, none of them garbage
    try:
        return {name: ast.parse(text) for name, text in texts().items()}
    finally:
        gc.freeze()
        gc.enable()


@functools.cache
def nodes() -> dict[str, list[ast.AST]]:
    """The nodes of every module, in the order of a walk."""
    return {name: list(ast.walk(tree)) for name, tree in trees().items()}


def loaded_with(name: str) -> set[str]:
    """The modules of ours that are loaded with a module; what a function imports is loaded later."""
    found: set[str] = set()
    todo: list[ast.AST] = [trees()[name]]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & MODULES.keys() or {str(node.module)}
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)
    return found & MODULES.keys() - {name}


def test_no_import_cycle() -> None:
    try:
        TopologicalSorter({name: loaded_with(name) for name in MODULES}).prepare()
    except CycleError as cycle:
        raise AssertionError(" -> ".join(cycle.args[1])) from None


def test_no_limit_without_a_noun() -> None:
    """A constant says what it limits: MAX_CLASSES, not MOST."""
    vague = {"FEW", "MOST", "MANY", "FARTHEST", "LEAST", "OFTEN", "SURE"}
    found = {
        (module, name.id)
        for module, tree in trees().items()
        for node in tree.body
        if isinstance(node, ast.Assign)
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name.id.lstrip("_") in vague
    }
    assert not found


def test_validations_are_not_asserted() -> None:
    """Under -O there are no asserts: those that there are tell a type checker what is known, and raise nothing."""
    found = {
        (module, ast.unparse(node.test))
        for module, inside in nodes().items()
        for node in inside
        if isinstance(node, ast.Assert)
        and (node.msg is not None or not ast.unparse(node.test).endswith("is not None"))
        and "isinstance(" not in ast.unparse(node.test)
    }
    assert not found


def test_no_private_name_crosses_modules() -> None:
    found = {
        name
        for name, inside in nodes().items()
        for node in inside
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("snugdp")
        and any(alias.name.startswith("_") and not alias.name.startswith("__") for alias in node.names)
    }  # fmt: skip
    assert not found, f"import public names only: {sorted(found)}"


def test_no_class_name_twice() -> None:
    """Neither in the library nor in the studies beside it, if they are there."""
    homes = defaultdict(list)
    studies = {str(path): path.read_text() for path in sorted((ROOT.parent.parent / "studies").rglob("*.py"))}
    parsed = trees() | {path: ast.parse(text) for path, text in studies.items()}
    for module, tree in parsed.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    found = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert not found, f"one name, one thing: {found}"


def code_lines(source: str) -> list[str]:
    """Lines of code with spaces folded, without comments, docstrings, imports and lone punctuation."""
    kept: dict[int, list[str]] = defaultdict(list)
    fresh = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        if token.type == tokenize.NEWLINE:
            fresh = True
        elif not (fresh and token.type == tokenize.STRING):
            kept[token.start[0]].append(token.string)
            fresh = False
    lines = [" ".join(words) for _, words in sorted(kept.items())]
    return [line for line in lines if any(map(str.isalnum, line)) and not line.startswith(("import ", "from "))]


def passages(sources: dict[str, str]) -> list[tuple[str, str]]:
    """Pairs of modules, a module with itself included, that share six lines in a row or more."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, source in sources.items():
        lines = code_lines(source)
        for start in range(len(lines) - PASSAGE + 1):
            places[tuple(lines[start : start + PASSAGE])].append((name, start))
    pairs = {
        (first[0], second[0])
        for found in places.values()
        for first, second in combinations(found, 2)
        if first[0] != second[0] or second[1] - first[1] >= PASSAGE
    }
    return sorted(pairs)


@pytest.mark.slow
def test_few_passages_stand_twice() -> None:
    found = passages(texts())
    print(*(f"{first} ~ {second}" for first, second in found), f"{len(found)} pairs", sep="\n")
    assert len(found) <= MAX_PASSAGES


def test_passages_are_counted() -> None:
    text = "\n".join(f"value{i} = call({i})  # {i}" for i in range(PASSAGE))
    other = text.replace("  #", "   # another comment")
    assert passages(
        {"a": text, "b": f"import os\n'''A docstring.'''\n{other}\n", "c": text.replace("call(3)", "x")}
    ) == [("a", "b")]
    assert passages({"a": f"{text}\nmiddle = 1\n{text}\n"}) == [("a", "a")]
