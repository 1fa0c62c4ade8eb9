"""Styles of tones (good, warning, error …), and color scales for series and heat cells.

The hues follow the Okabe–Ito palette, which stays distinguishable with common color-vision deficiencies;
lightness is adjusted so that thin lines are legible on the theme's background. Color is never the only sign
of a meaning: charts have legends, nodes have labels, levels have signs.
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
    """Colors for dark and light themes and for the terminal's own, as component classes of a widget."""

    dark: tuple[str, ...]
    light: tuple[str, ...]
    ansi: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.dark)

    def classes(self, prefix: str) -> frozenset[str]:
        return frozenset(f"{prefix}-{index}" for index in range(len(self)))

    def css(self, widget: str, prefix: str) -> str:
        """Return CSS rules that color a widget's classes, for its DEFAULT_CSS."""
        # Order matters: all three selectors have the same specificity, so the last match wins.
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
"""Colors that resemble a state, such as a warning or an error, come last."""
SERIES_COLORS = len(SERIES)

HEAT = ColorScale(
    dark=("#F0A83C", "#E0A24A", "#CF9C57", "#A89B76", "#3B7A70"),
    light=("#A85A00", "#A0651A", "#977034", "#857A52", "#7DB3A6"),
    ansi=("ansi_yellow", "ansi_yellow", "ansi_yellow", "ansi_cyan", "ansi_green"),
)
HEAT_LEVELS = len(HEAT)
"""Number of heat levels, from idle (bright) to busy (dim, because it is normal)."""


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
    """Mixin of widgets whose texts contain styles of the theme: the app calls ``recolor`` when it changes.

    A subscription to Textual's signal would keep removed widgets in memory until the theme changes.
    """

    def recolor(self) -> None:
        raise NotImplementedError


def tone_styles(app: App[object]) -> Mapping[str, Style]:
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
        # The terminal palette has no spare gray: use dim text for muted tones.
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
