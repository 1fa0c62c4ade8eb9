"""Styles of tones (good, warn, bad …), and color scales for series and heat cells.

The hues are those of the Okabe–Ito palette, which people with common color-vision deficiencies can
distinguish. Their lightness is adjusted so that thin lines are legible on the theme's background. Color never
carries a meaning alone: charts have legends, nodes have labels, levels have signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError


@dataclass(frozen=True, slots=True)
class ColorScale:
    """Colors for dark themes, light themes and the terminal's palette; each index is a component class."""

    dark: tuple[str, ...]
    light: tuple[str, ...]
    ansi: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.dark)

    def classes(self, prefix: str) -> frozenset[str]:
        return frozenset(f"{prefix}-{index}" for index in range(len(self)))

    def css(self, widget: str, prefix: str) -> str:
        """Return CSS rules with the colors of ``classes(prefix)``, for the DEFAULT_CSS of a widget."""
        # "&" comes first: of rules that match with the same specificity, the last one applies.
        rules = [
            f"{selector} > .{prefix}-{index} {{ color: {color}; }}"
            for selector, colors in (("&", self.dark), ("&:light", self.light), ("&:ansi", self.ansi))
            for index, color in enumerate(colors)
        ]
        return widget + " {\n" + "\n".join(rules) + "\n}\n"


SERIES = ColorScale(
    dark=("#4FB3F6", "#E88BC4", "#E9D94F", "#AEA1FF", "#3CC9A0", "#B9C0CA", "#F0A83C", "#FF8163"),
    light=("#0B6FB8", "#A33A80", "#756500", "#5B45C9", "#00785C", "#50565F", "#A85A00", "#C23B12"),
    ansi=(
        *("ansi_cyan", "ansi_magenta", "ansi_blue", "ansi_bright_magenta", "ansi_green", "ansi_default"),
        *("ansi_yellow", "ansi_red"),
    ),
)
"""Colors of series. Those that resemble a state, such as a warning or an error, come last."""
SERIES_COLORS = len(SERIES)

HEAT = ColorScale(
    dark=("#F0A83C", "#E0A24A", "#CF9C57", "#A89B76", "#3B7A70"),
    light=("#A85A00", "#A0651A", "#977034", "#857A52", "#7DB3A6"),
    ansi=("ansi_yellow", "ansi_yellow", "ansi_yellow", "ansi_cyan", "ansi_green"),
)
HEAT_LEVELS = len(HEAT)
"""Number of heat levels, from idle (bright) to busy (dim, because busy is normal)."""


_VARIABLE_OF_TONE = {
    "plain": "foreground",
    "strong": "foreground",
    "muted": "text-muted",
    "faint": "border",
    "bar": "primary",
    "curve": "secondary",
    "heading": "foreground",
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


class Recolored:
    """Mixin for widgets that store texts with colors of the theme; the app calls ``recolor`` if it changes.

    If widgets subscribed to Textual's signal of theme changes, the signal would retain removed widgets.
    """

    def recolor(self) -> None:
        raise NotImplementedError


def tone_styles(app: App[object]) -> Mapping[str, Style]:
    """Return the style of each tone in the app's theme."""
    return _styles(
        tuple(map(app.theme_variables.get, _VARIABLE_OF_TONE.values())), is_ansi=app.native_ansi_color
    )


@lru_cache(maxsize=2)
def _styles(values: tuple[str | None, ...], *, is_ansi: bool) -> Mapping[str, Style]:
    styles = {
        tone: Style(color=_rich_color(value), bold=tone in ("strong", "key", "heading") or None)
        for tone, value in zip(_VARIABLE_OF_TONE, values, strict=True)
    }
    if is_ansi:
        # The terminal's palette has no gray that is sure to be legible: use dim text for muted tones.
        styles |= dict.fromkeys(("muted", "faint", "curve", "title", "waiting"), Style(dim=True))
        styles["plain"] = Style()
        styles["strong"] = styles["heading"] = Style(bold=True)
        for tone in ("bad", "warn", "caution"):  # with NO_COLOR, only the weight distinguishes them
            styles[tone] += Style(bold=True)
    return styles


def _rich_color(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        color = Color.parse(value)
    except ColorParseError:
        return None
    return None if color.ansi is not None and color.ansi < 0 else color.rich_color.name
