"""The last barrier between text and terminal: removes control characters from the output of all widgets.

Widgets sanitize text from servers and files with ``inert``, which leaves visible placeholders. This
filter catches the rest and keeps the width of each line, so that the layout stays valid.
"""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tui.text.sanitize import REPLACEMENT


class Sanitizer(LineFilter):
    """Replaces control characters, invisible characters and lone surrogates without changing the width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the same segments if there is nothing to replace, which is nearly always the case."""
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [Segment(_printable(text), style, control) for text, style, control in segments]


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(map(_stand_in, text))


def _stand_in(character: str) -> str:
    # Keep private-use characters, because icon fonts use them.
    if character.isprintable() or unicodedata.category(character) == "Co":
        return character
    sign = " " if character.isspace() else REPLACEMENT
    return sign * cell_len(character)
