"""Pretty-print a line that contains a JSON object or a printed Python dict."""

from __future__ import annotations

import ast
import json
import re

from tui.text.sanitize import sanitize_whole, strip_ansi

MAX_PRETTY_ROWS = 2_000


def pretty_rows(text: str) -> list[str] | None:
    """Return the text before the object, then the indented object, all sanitized; None without an object.

    The object may follow other text, such as a logger's prefix, and must be at the end of the line.
    """
    if len(text) > 262_144 or ("{" not in text and "[" not in text):
        return None
    text = strip_ansi(text).rstrip()
    start = _object_start(text)
    if start < 0:
        return None
    decoded = _parse_object(text[start:])
    if not isinstance(decoded, dict | list) or not decoded:
        return None
    try:
        body = json.dumps(decoded, indent=2, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError, TypeError):
        return None
    rows = [sanitize_whole(row) for row in body.split("\n")]
    if len(rows) > MAX_PRETTY_ROWS:
        rows = [*rows[:MAX_PRETTY_ROWS], f"… {len(rows) - MAX_PRETTY_ROWS:,} more rows"]
    prefix = text[:start].rstrip()
    return [sanitize_whole(prefix), *rows] if prefix else rows


def _object_start(text: str) -> int:
    """Return the index at which the object begins; -1 if the line can't end with an object."""
    if text.endswith("}"):
        return text.find("{")
    return 0 if text.endswith("]") and text.startswith("[") else -1


def _parse_object(text: str) -> object:
    if _depth(text) > 40:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    # a printed Python dict takes longer to parse than JSON
    if len(text) <= 16_384:
        try:
            # `nan` and `inf` are not Python literals, so they are shown as strings
            return ast.literal_eval(re.sub(r"(?<=[\s:,\[(])(-?(?:nan|inf))(?=[,\s\])}])", r"'\1'", text))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    return None


def _depth(text: str) -> int:
    """Return an upper bound of the nesting depth; brackets within strings count too."""
    deepest = depth = 0
    for character in text:
        if character in "{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}])":
            depth -= 1
    return deepest
