"""The last barrier between text and terminal: no segment of any widget holds what a terminal would obey.

Texts of servers and files pass ``inert`` where widgets take them, which leaves visible stand-ins. Whatever
slips by loses here what has no width, so that the layout that was made with it stays right.
"""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tui.text.sanitize import REPLACEMENT


class Sanitizer(LineFilter):
    """Takes controls, invisible characters and lone surrogates out of lines, their width unchanged."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the same segments if there is nothing to take out, as nearly always."""
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [Segment(_printable(text), style, control) for text, style, control in segments]


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(map(_stand_in, text))


def _stand_in(character: str) -> str:
    # Private use characters are what icon fonts are made of.
    if character.isprintable() or unicodedata.category(character) == "Co":
        return character
    sign = " " if character.isspace() else REPLACEMENT
    return sign * cell_len(character)
