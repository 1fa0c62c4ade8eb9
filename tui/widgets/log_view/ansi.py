"""Parse ANSI colors in log lines to styles; all other escape sequences are dropped.

``styled_spans`` is the only way from a server's escape sequences to a style on the screen. It supports SGR
(ECMA-48, 8.3.117; 256 and 24-bit colors as in xterm) and nothing else.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from rich.color import Color
from rich.style import Style
from rich.text import Span

from tui.text.sanitize import sanitize

_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,64}+)m")
_INTRODUCERS = ("\x1b", "\x9b")
_MAX_STYLES = 512
"""Maximum number of style changes to parse in a line, since a malicious line could have one per character."""

_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike", 21: "underline"}
_OFF = {
    22: ("bold", "dim"),
    **{23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)},
    **{39: ("color",), 49: ("bgcolor",)},
}
_EXTENDED = {38: "color", 48: "bgcolor"}
_COLORS = {
    **{30 + number: ("color", number) for number in range(8)},
    **{40 + number: ("bgcolor", number) for number in range(8)},
    **{90 + number: ("color", 8 + number) for number in range(8)},
    **{100 + number: ("bgcolor", 8 + number) for number in range(8)},
}
_INDEXED, _DIRECT = 5, 2
_NUMBERS_OF_COLOR = {_INDEXED: 1, _DIRECT: 3}


def styled_spans(text: str) -> tuple[str, list[Span]]:
    """Return a line of text sanitized, with its styled spans in order and without overlaps.

    The text is the result of ``sanitize``. Text that its style would hide (concealed, or in its background's
    color) stays visible.
    """
    clean = sanitize(text)
    if not any(introducer in text for introducer in _INTRODUCERS):
        return clean, []
    pieces: list[str] = []
    spans: list[Span] = []
    style: dict[str, Any] = {}
    length = done = 0
    for match in [*islice(_SGR.finditer(text), _MAX_STYLES), None]:
        piece = sanitize(text[done : match.start() if match else None])
        if piece and style:
            spans.append(Span(length, length + len(piece), Style(**style)))
        pieces.append(piece)
        length += len(piece)
        if match is not None:
            done = match.end()
            _apply(style, match[1])
    # If the pieces differ from the whole (tabs, combining marks across a border), safety comes first.
    return clean, spans if "".join(pieces) == clean else []


def _apply(style: dict[str, Any], parameters: str) -> None:
    fields = parameters.split(";")
    while fields:
        first, *values = fields.pop(0).split(":")
        code = int(first or 0)
        if code in _EXTENDED:
            if values:  # 38:2::r:g:b, perhaps with a color space
                values = [values[0], *list(filter(None, values[1:]))[-3:]]
            elif fields:
                count = 1 + _NUMBERS_OF_COLOR.get(_number(fields[0]), 0)
                values, fields = fields[:count], fields[count:]
            color = _extended(values)
            if color is not None:
                style[_EXTENDED[code]] = color
        elif code == 0:
            style.clear()
        elif code in _COLORS:
            ground, number = _COLORS[code]
            style[ground] = Color.from_ansi(number)
        elif code in _ON and values != ["0"]:  # 4:0 is no underline, 4:3 a curly one
            style[_ON[code]] = True
        else:
            for name in _OFF.get(24 if code == 4 else code, ()):
                style.pop(name, None)
    if style.get("color") is not None and style.get("color") == style.get("bgcolor"):
        del style["color"], style["bgcolor"]


def _extended(values: list[str]) -> Color | None:
    """Return the color given by ``5, n`` or ``2, r, g, b``."""
    kind = _number(values[0]) if values else 0
    count = _NUMBERS_OF_COLOR.get(kind, 0)
    numbers = [_number(value) for value in values[1 : 1 + count]]
    if not count or len(numbers) < count or not all(0 <= number <= 255 for number in numbers):
        return None
    return Color.from_ansi(numbers[0]) if kind == _INDEXED else Color.from_rgb(*numbers)


def _number(field: str) -> int:
    """Return a field's number; -1 if it has parameters of its own."""
    return -1 if ":" in field else int(field or 0)
