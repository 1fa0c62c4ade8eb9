"""Two calm themes of our own, and the theme for terminals without color.

Colors stand for states. The accent color, which marks what the user has chosen, has a hue that no state has.
The colors of series and nodes come from the Okabe–Ito set, which people with common color-vision
deficiencies can distinguish.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.color import Color
from textual.theme import Theme

DARK = Theme(
    name="bt-dark",
    primary="#56b4e9",
    secondary="#9db4c0",
    accent="#b9a7f5",
    success="#3fb68b",
    warning="#e6a13c",
    error="#e8705f",
    foreground="#d5dbe1",
    background="#0e1216",
    surface="#12181d",
    panel="#1b232a",
    boost="#232d35",
    dark=True,
    variables={
        "footer-background": "#12181d",
        "footer-item-background": "#12181d",
        "footer-key-background": "#12181d",
        "footer-description-background": "#12181d",
        "footer-key-foreground": "#56b4e9",
        "footer-description-foreground": "#8fa0ad",
        "text-muted": "#8fa0ad",
        "border": "#2b3740",
        "border-blurred": "#2b3740",
        "block-cursor-background": "#172f41",
        "block-cursor-foreground": "#f2f6f9",
        "block-cursor-blurred-background": "#18242d",
        "scrollbar": "#2b3740",
        "scrollbar-hover": "#3c4c58",
        "scrollbar-active": "#56b4e9",
        "scrollbar-background": "#0e1216",
        "scrollbar-background-hover": "#0e1216",
        "scrollbar-background-active": "#0e1216",
        "scrollbar-corner-color": "#0e1216",
    },
)

LIGHT = Theme(
    name="bt-light",
    primary="#0a66a2",
    secondary="#4a5b68",
    accent="#5b45c9",
    success="#07704c",
    warning="#8f5600",
    error="#b8321f",
    foreground="#1c252c",
    background="#fbfbf9",
    surface="#f3f4f1",
    panel="#e8ebe8",
    boost="#dfe4e2",
    dark=False,
    variables={
        "footer-background": "#f3f4f1",
        "footer-item-background": "#f3f4f1",
        "footer-key-background": "#f3f4f1",
        "footer-description-background": "#f3f4f1",
        "footer-key-foreground": "#0a66a2",
        "footer-description-foreground": "#57656f",
        "text-muted": "#57656f",
        "border": "#c8d0d0",
        "border-blurred": "#c8d0d0",
        "block-cursor-background": "#cfe3f0",
        "block-cursor-foreground": "#10222e",
        "block-cursor-blurred-background": "#e2ebef",
        "scrollbar": "#c8d0d0",
        "scrollbar-hover": "#a9b5b7",
        "scrollbar-active": "#0a66a2",
        "scrollbar-background": "#fbfbf9",
        "scrollbar-background-hover": "#fbfbf9",
        "scrollbar-background-active": "#fbfbf9",
        "scrollbar-corner-color": "#fbfbf9",
    },
)

THEMES = (DARK, LIGHT)
NO_COLOR_THEME = "ansi-dark"
"""The theme for NO_COLOR; with any other theme, Textual would turn colors into grays."""


def legible(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a theme's variables, replacing automatic grays, key colors and cursor colors with fixed ones.

    Textual's "auto" colors would be white, even in a light theme, on widgets without a background.
    """
    background, foreground = Color.parse(variables["background"]), Color.parse(variables["foreground"])
    if (
        not variables["text-muted"].startswith("auto")
        or background.ansi is not None
        or foreground.ansi is not None
    ):
        return dict(variables)
    primary, muted = Color.parse(variables["primary"]), background.blend(foreground, 0.62, 1.0).hex
    return {
        **variables,
        "text-muted": muted,
        "footer-key-foreground": primary.hex,
        "footer-description-foreground": muted,
        "block-cursor-foreground": foreground.hex,
        "block-cursor-background": background.blend(primary, 0.25, 1.0).hex,
        "block-cursor-blurred-background": background.blend(primary, 0.12, 1.0).hex,
    }
