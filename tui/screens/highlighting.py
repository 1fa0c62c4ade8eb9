"""Syntax highlighting for texts of files and configs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax

from tui.text.sanitize import sanitize_beginning
from tui.widgets.text_panel import Line

TOKEN_TONES: dict[tuple[str, ...], str] = {
    ("Comment",): "muted",
    ("Name", "Tag"): "key",  # JSON and YAML keys
    ("Keyword",): "accent",
    ("Literal", "String"): "curve",
    ("Literal", "Number"): "accent",
    ("Generic", "Heading"): "strong",
    ("Generic", "Subheading"): "strong",
    ("Punctuation",): "muted",
}
LEXERS = {
    ".cfg": "ini",
    ".ini": "ini",
    ".jinja": "jinja",
    ".json": "json",
    ".jsonl": "json",
    ".md": "markdown",
    ".py": "python",
    ".sh": "bash",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}
"""Lexers by file suffix. Having pygments search its 500 lexers takes too long for a key press."""


def text_lines(text: str, name: str, tones: Mapping[str, Style]) -> list[Line]:
    """Split a text into sanitized lines, highlighted according to the file's name."""
    sanitized = "\n".join(map(sanitize_beginning, text[: 1024 * 1024].splitlines()))
    lexer = LEXERS.get(PurePosixPath(name).suffix.lower())
    if lexer is None or len(sanitized) > 128 * 1024:  # highlighting a longer text would take too long
        return list(sanitized.split("\n"))
    theme = ANSISyntaxTheme({token: tones[tone] for token, tone in TOKEN_TONES.items()})
    highlighted = Syntax(sanitized, lexer, theme=theme).highlight(sanitized)
    highlighted.rstrip()
    return list(highlighted.split("\n", allow_blank=True))
