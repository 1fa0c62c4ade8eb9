"""Parse ANSI colors in log lines to styles; all other escape sequences are dropped.

``styled_spans`` is the only way from a server's escape sequences to a style on the screen. It supports SGR
(ECMA-48, 8.3.117; 256 and 24-bit colors as in xterm) and nothing else.
"""

from __future__ import annotations

import re
from itertools import islice

from rich.ansi import AnsiDecoder
from rich.color import Color
from rich.style import Style
from rich.text import Span

from tui.text.sanitize import sanitize_whole

_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,64}+)m")
_INTRODUCERS = ("\x1b", "\x9b")
_MAX_STYLES = 512
"""Maximum number of style changes to parse in a line, since a malicious line could have one per character."""
_ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")


def styled_spans(text: str) -> tuple[str, list[Span]]:
    """Return a line of text sanitized, with its styled spans in order and without overlaps.

    The text is the result of ``sanitize_whole``. Text that its style would hide (concealed, or in its
    background's color) stays visible.
    """
    clean = sanitize_whole(text)
    if not any(introducer in text for introducer in _INTRODUCERS):
        return clean, []
    pieces: list[str] = []
    spans: list[Span] = []
    decoder, style = AnsiDecoder(), Style.null()
    length = done = 0
    for match in [*islice(_SGR.finditer(text), _MAX_STYLES), None]:
        piece = sanitize_whole(text[done : match.start() if match else None])
        if piece and style:
            spans.append(Span(length, length + len(piece), style))
        pieces.append(piece)
        length += len(piece)
        if match is not None:
            done = match.end()
            decoder.decode_line(f"\x1b[{_without_colons(match[1])}m")
            style = _visible(decoder.style)
    # If the pieces differ from the whole (tabs, combining marks across a border), safety comes first.
    return clean, spans if "".join(pieces) == clean else []


def _without_colons(parameters: str) -> str:
    """Write colors such as ``38:2::9:8:7`` as ``38;2;9;8;7``; drop the details of other codes."""
    return ";".join(
        re.sub(":+", ";", field) if field.startswith(("38:", "48:")) else field.partition(":")[0]
        for field in parameters.split(";")
    )


def _visible(style: Style) -> Style:
    """Return the colors and attributes that leave text readable and are no links."""
    color, background = _own(style.color), _own(style.bgcolor)
    if color == background:
        color = background = None
    attributes = {name: getattr(style, name) or None for name in _ATTRIBUTES}
    return Style(color=color, bgcolor=background, **attributes)


def _own(color: Color | None) -> Color | None:
    return None if color is None or color.is_default else color
