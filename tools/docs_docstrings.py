"""Docstrings as pages of the reference: guarantees and examples stand out, names are links.

An extension of griffe, named in ``mkdocs.yml``. What stands before the first section of numpydoc becomes Markdown; the
sections themselves are read by griffe.
"""

import ast
import inspect
import pydoc
import re
from textwrap import indent
from typing import Any

import griffe

QUERIES = "snugdp.queries."
KEYWORD = griffe.ParameterKind.keyword_only
_PARAGRAPHS = re.compile(r"\n\s*\n")
_ENTRY = re.compile(r"(?:^|(?<=[.!?)])\s+)(?=``[^`]+``(?:,? (?:and )?``[^`]+``)*: )")  # ``a``, ``b``: what they are
_GUARANTEE = re.compile(r"Guarantee(?: \(([^:]+)\))?: ")
_POWER = re.compile(r"(?<=\w)\*\*(?=[\w-])")
_SECTION = re.compile(r"^(?:Parameters|Attributes|Returns|Raises|Examples)\n-+$", re.MULTILINE)
_EXAMPLES = re.compile(r"^Examples\n-+$", re.MULTILINE)
_CODE = re.compile(r"``([^`]+)``")


class Docstrings(griffe.Extension):
    """Makes every docstring of the package Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.path.startswith(QUERIES) and obj.docstring is not None and (obj.is_class or obj.is_function):
            complete(obj)
        if obj.docstring is not None:
            public = frozenset(map(str, obj.package.exports or ()))
            obj.docstring.value = markdown(obj.docstring.value, public, obj.name)


def complete(obj: griffe.Object) -> None:
    """Queries inherit the parameters that they explain, and functions take them from their query: as ``help`` shows."""
    shown: Any = pydoc.locate(obj.path)
    assert obj.docstring is not None
    obj.docstring.value = inspect.getdoc(shown) or ""
    if isinstance(obj, griffe.Function) and hasattr(shown, "__signature__"):
        named = [each for each in inspect.signature(shown).parameters.values() if each.name not in obj.parameters]
        del obj.parameters["options"]
        for each in named:
            default = None if each.default is each.empty else repr(getattr(each.default, "value", each.default))
            annotation = griffe.safe_get_annotation(ast.parse(each.annotation, mode="eval").body, obj.module)
            obj.parameters.add(griffe.Parameter(each.name, annotation=annotation, kind=KEYWORD, default=default))


def markdown(text: str, public: frozenset[str] = frozenset(), own: str = "") -> str:
    """A docstring as Markdown: names in ``public`` are linked, but for the object's own."""
    text = text.strip()
    section, examples = (
        found.start() if found else len(text) for found in (_SECTION.search(text), _EXAMPLES.search(text))
    )
    told = "\n\n".join(_paragraph(part, public, own) for part in _PARAGRAPHS.split(text[:section].strip()))
    return "\n\n".join(filter(None, (told, _words(text[section:examples], public, own).strip(), text[examples:])))


def _paragraph(text: str, public: frozenset[str], own: str) -> str:
    if text.startswith(">>>"):
        shown = re.sub(r"  # doctest: .*", "", text)
        return f"```pycon\n{shown}\n```"
    if text.startswith((" ", "- ", "* ", "|", "```")):
        return text
    if promise := _GUARANTEE.match(text):
        title = f"Guarantee ({promise[1]})".replace("`", "") if promise[1] else "Guarantee"
        body = text[promise.end() :]
        return f'!!! success "{title}"\n\n' + indent(_words(body[:1].upper() + body[1:], public, own), "    ")
    first, *entries = (_words(part, public, own) for part in _ENTRY.split(text))
    listed = "\n".join("- " + entry.replace("\n", " ") for entry in entries)
    return "\n\n".join(part for part in (first, listed) if part)


def _words(text: str, public: frozenset[str], own: str) -> str:
    """Powers are no emphasis, and public names lead to their place."""

    def linked(found: re.Match[str]) -> str:
        name = found[1].removeprefix("snugdp.")
        return f"[`{found[1]}`][snugdp.{name}]" if name in public and name != own else found[0]

    pieces = re.split(r"(``[^`]+``)", text)
    told = [piece if piece.startswith("``") else _POWER.sub(r"\\*\\*", piece) for piece in pieces]
    return _CODE.sub(linked, "".join(told))
