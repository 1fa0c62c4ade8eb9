"""Text of jobs in Markdown: data, which formats, links and mentions nothing."""

from __future__ import annotations

from tui.text.sanitize import sanitize


def code(text: str) -> str:
    """Return a text as a code span on one line; backticks, which would end it, become apostrophes."""
    quoted = sanitize(text).replace("`", "'")
    return f"`{quoted}`"
