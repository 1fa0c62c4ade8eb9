"""Quote a server's text in Markdown, so that it cannot format, link or mention anything."""

from __future__ import annotations

from tui.text.sanitize import sanitize


def code(text: str) -> str:
    """Return a text as a code span on one line; backticks, which would end it, become apostrophes."""
    quoted = sanitize(text).replace("`", "'")
    return f"`{quoted}`"
