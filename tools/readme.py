"""The README as a package index shows it: a hook of the build. Its links are those of a repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>(?:[^\[\]]|`[^`]*`)*)\]\((?!https?:|#)(?P<file>[^)\s]+)\)")


class IndexReadme(MetadataHookInterface):  # type: ignore[misc]
    """Sets the long description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = metadata.get("urls", {}).get("Files")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, address)}


def for_index(text: str, address: str | None) -> str:
    """Links into the repository lead to its address; without one they are words, and pictures their descriptions.

    >>> for_index("![A curve](docs/a.svg) [Tables](docs/tables.md), [home](https://example.org)", None)
    '*A curve* Tables, [home](https://example.org)'
    """

    def made(found: re.Match[str]) -> str:
        picture, words, file = found["picture"], found["text"], found["file"]
        if address is None:
            return f"*{words}*" if picture else words
        return f"{picture}[{words}]({address.rstrip('/')}/{file})"

    return _LINK.sub(made, text)
