"""A line that holds one JSON object, or one dict as Python prints it, spread over several lines."""

from __future__ import annotations

import ast
import json
import re

from tui.text.sanitize import inert, strip_ansi

LONGEST_JSON = 262_144
"""Characters of JSON that are worth spreading out."""
LONGEST_PYTHON = 16_384
"""Of a dict as Python prints it, which takes longer to read."""
MOST_ROWS = 2_000
_DEEPEST = 40
_NO_NUMBER = re.compile(r"(?<=[\s:,\[(])(-?(?:nan|inf))(?=[,\s\])}])")
"""What Python prints for them is no literal; shown as text."""
_CUT = "… {} more rows"


def pretty_rows(text: str) -> list[str] | None:
    """The line's own words, then its object indented, every row inert; None when it holds no object.

    The object may follow other text (a logger's prefix) and must end the line.
    """
    if "{" not in text and "[" not in text:
        return None
    text = strip_ansi(text).rstrip()
    begin = _begin(text)
    if begin < 0:
        return None
    decoded = _decoded(text[begin:])
    if not isinstance(decoded, dict | list) or not decoded:
        return None
    try:
        body = json.dumps(decoded, indent=2, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError, TypeError):
        return None
    rows = [inert(row) for row in body.split("\n")]
    if len(rows) > MOST_ROWS:
        rows = [*rows[:MOST_ROWS], _CUT.format(f"{len(rows) - MOST_ROWS:,}")]
    before = text[:begin].rstrip()
    return [inert(before), *rows] if before else rows


def _begin(text: str) -> int:
    """Where the object begins: the first brace whose partner may end the line."""
    if text.endswith("}"):
        return text.find("{")
    return 0 if text.endswith("]") and text.startswith("[") else -1


def _decoded(text: str) -> object:
    if _depth(text) > _DEEPEST:
        return None
    if len(text) <= LONGEST_JSON:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    if len(text) <= LONGEST_PYTHON:
        try:
            return ast.literal_eval(_NO_NUMBER.sub(r"'\1'", text))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    return None


def _depth(text: str) -> int:
    """An upper bound of how deep it nests, brackets within texts counted too."""
    deepest = depth = 0
    for character in text:
        if character in "{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}])":
            depth -= 1
    return deepest
