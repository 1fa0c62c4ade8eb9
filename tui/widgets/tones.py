"""Tones: what a piece of text means, and how the theme of the moment shows it.

Pure code names a tone ("good", "muted"); only here a tone becomes a colour.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError

Span = tuple[str, str]
"""A piece of text and the name of its tone."""

_VARIABLE_OF_TONE = {
    "plain": "foreground",
    "strong": "foreground",
    "muted": "text-muted",
    "title": "text-muted",
    "key": "primary",
    "accent": "accent",
    "good": "success",
    "warn": "warning",
    "bad": "error",
    # The tones of a status (tui.insight.status).
    "running": "success",
    "starting": "primary",
    "waiting": "text-muted",
    "caution": "warning",
    "unknown": "warning",
}
_BOLD = frozenset({"strong", "key"})


def tone_styles(app: App[object]) -> Mapping[str, Style]:
    """A style for each tone under the theme of the moment."""
    variables = app.theme_variables
    styles: dict[str, Style] = {}
    for tone, variable in _VARIABLE_OF_TONE.items():
        styles[tone] = Style(
            color=_rich_colour(variables.get(variable)), bold=True if tone in _BOLD else None
        )
    if app.native_ansi_color:
        # The terminal's own colours have no grey to spare: faint says muted.
        styles["muted"] = styles["title"] = styles["waiting"] = Style(dim=True)
        styles["plain"] = Style()
        styles["strong"] = Style(bold=True)
    return styles


def _rich_colour(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        colour = Color.parse(value)
    except ColorParseError:
        return None
    return None if colour.ansi is not None and colour.ansi < 0 else colour.rich_color.name
