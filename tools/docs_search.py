"""A hook of mkdocs: the index of the search as a script too, so that it can be searched where pages are files."""

import html
import json
import re
from pathlib import Path
from typing import Any

INDEX, SCRIPT = Path("search", "search_index.json"), "search/index.js"


def on_config(config: Any) -> Any:
    """Every page loads the index as a script, and then what searches it, if it was opened as a file."""
    config.extra_javascript = [SCRIPT, "assets/search.js", *config.extra_javascript]
    return config


def on_post_build(config: Any) -> None:
    """Beside the index that the theme fetches from a server."""
    site = Path(config.site_dir)
    held = json.loads((site / INDEX).read_text(encoding="utf-8"))
    (site / SCRIPT).write_text(as_script(held["docs"]), encoding="utf-8")


def as_script(docs: list[dict[str, str]]) -> str:
    """The index without tags. ``root``: from the script that searches, in assets/, to the site.

    >>> print(as_script([{"location": "a.html", "title": "A", "text": "<p>x &lt; y</p>"}]))
    window.siteIndex = {"root": "../", "docs": [{"location": "a.html", "title": "A", "text": "x < y"}]};
    """
    plain = [{name: _plain(doc[name]) for name in ("location", "title", "text")} for doc in docs]
    return f"window.siteIndex = {json.dumps({'root': '../', 'docs': plain}, ensure_ascii=False)};"


def _plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
