"""Write a document as one self-contained HTML file: nothing is fetched, and only our own script runs.

Names in the data are arbitrary. So the data stand in a block that is no script, in ASCII without ``<`` and ``&``; the
script puts them into text nodes only; and the page's policy allows the one script and the one style by their hashes,
and no connections.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

SCRIPTS = ("values.js", "table.js", "plot.js", "page.js")
"""The scripts, in their order in the page."""
SAFE_INTEGER = (1 << 53) - 1
"""The largest integer up to which JavaScript has every integer; larger ones are written as texts."""
DANGEROUS = {character: f"\\u{ord(character):04x}" for character in "<>&"}


def html_page(document: Any) -> bytes:
    """Return the page, as UTF-8."""
    style, script = _read("page.css"), "\n".join(map(_read, SCRIPTS))
    parts = {
        "STYLE": style,
        "STYLE_HASH": _hash(style),
        "SCRIPT": script,
        "SCRIPT_HASH": _hash(script),
        "DATA": embedded_json(document),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _read("page.html")).encode()


def embedded_json(value: Any) -> str:
    """Return JSON that cannot end an HTML element, whatever it contains."""
    text = json.dumps(_readable(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: DANGEROUS[match[0]], text)


def _readable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _readable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    if isinstance(value, int) and not -SAFE_INTEGER <= value <= SAFE_INTEGER:
        return str(value)
    return value


def _read(name: str) -> str:
    return (resources.files("offsets_log.report") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
