"""Styles of tones (good, warning, error …), and color scales for series and heat cells.

The hues follow the Okabe–Ito palette, which stays distinguishable with common color-vision deficiencies;
lightness is adjusted so that thin lines are legible on the theme's background. Color is never the only sign
of a meaning: charts have legends, nodes have labels, levels have signs.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError

SERIES_COLOURS = 8
"""Number of series colors before they repeat."""

_DARK = ("#4FB3F6", "#F0A83C", "#3CC9A0", "#E88BC4", "#E9D94F", "#FF8163", "#AEA1FF", "#B9C0CA")
_LIGHT = ("#0B6FB8", "#A85A00", "#00785C", "#A33A80", "#756500", "#C23B12", "#5B45C9", "#50565F")
_ANSI = (
    "ansi_cyan",
    "ansi_yellow",
    "ansi_green",
    "ansi_magenta",
    "ansi_blue",
    "ansi_red",
    "ansi_bright_magenta",
    "ansi_default",
)

HEAT_LEVELS = 5
"""Number of steps in the heat scale."""

_HEAT_DARK = ("#666F8A", "#4F7E98", "#3F97A6", "#42B3A6", "#62D0A4")
_HEAT_LIGHT = ("#8A93A3", "#5B86B0", "#2F6FA3", "#1F5590", "#12386E")
_HEAT_ANSI = ("ansi_magenta", "ansi_blue", "ansi_blue", "ansi_cyan", "ansi_green")


def series_classes(prefix: str) -> frozenset[str]:
    """Return the component classes `PREFIX-0` … of a widget that draws series."""
    return frozenset(f"{prefix}-{index}" for index in range(SERIES_COLOURS))


def series_css(widget: str, prefix: str) -> str:
    """Return CSS rules that color a widget's series classes, for its DEFAULT_CSS."""
    return _rules(widget, prefix, _DARK, _LIGHT, _ANSI)


def heat_classes(prefix: str) -> frozenset[str]:
    """Return the component classes `PREFIX-0` (lowest) … of a widget that draws heat cells."""
    return frozenset(f"{prefix}-{index}" for index in range(HEAT_LEVELS))


def heat_css(widget: str, prefix: str) -> str:
    """Return CSS rules that color a widget's heat classes, for its DEFAULT_CSS."""
    return _rules(widget, prefix, _HEAT_DARK, _HEAT_LIGHT, _HEAT_ANSI)


def _rules(
    widget: str, prefix: str, dark: tuple[str, ...], light: tuple[str, ...], ansi: tuple[str, ...]
) -> str:
    # Order matters: all three selectors have the same specificity, so the last match wins.
    blocks = []
    for selector, colours in (("&", dark), ("&:light", light), ("&:ansi", ansi)):
        blocks += [
            f"{selector} > .{prefix}-{index} {{ color: {colour}; }}" for index, colour in enumerate(colours)
        ]
    return widget + " {\n" + "\n".join(blocks) + "\n}\n"


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
    # The tones of a status (tui.analysis.status).
    "running": "success",
    "starting": "primary",
    "waiting": "text-muted",
    "caution": "warning",
    "unknown": "warning",
}
_BOLD = frozenset({"strong", "key"})


def tone_styles(app: App[object]) -> Mapping[str, Style]:
    """Return a style for each tone in the current theme."""
    variables = app.theme_variables
    styles: dict[str, Style] = {}
    for tone, variable in _VARIABLE_OF_TONE.items():
        styles[tone] = Style(
            color=_rich_colour(variables.get(variable)), bold=True if tone in _BOLD else None
        )
    if app.native_ansi_color:
        # The terminal palette has no spare gray: use dim text for muted tones.
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
