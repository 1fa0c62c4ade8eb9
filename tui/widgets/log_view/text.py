"""Lay out a message as rows of inert text, with its ANSI colors and light highlighting.

``styled_spans`` is the only way from a server's escape sequences to a style on the screen. It supports SGR
(ECMA-48, 8.3.117; 256 and 24-bit colors as in xterm) and nothing else; all other sequences are dropped.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate, islice
from typing import NamedTuple

from rich.ansi import AnsiDecoder
from rich.cells import chop_cells
from rich.color import Color
from rich.style import Style
from rich.text import Span, Text

from tui.analysis.logs.structured import pretty_rows
from tui.text.sanitize import last_carriage_segment, sanitize_whole
from tui.text.units import counted

SHOWN_CHARACTERS = 32_768
"""Maximum number of characters of a message to lay out.

The rest is only counted, so that a hostile or broken line stays cheap.
"""


class TextRow(NamedTuple):
    """A row of sanitized text, and the ranges colored by the job."""

    text: str
    spans: tuple[Span, ...] = ()


def message_rows(message: str, wrap_cells: int | None, *, pretty: bool = False) -> tuple[TextRow, ...]:
    """Return the rows of a message, one per line of text or more if wrapped.

    Progress bars that overwrite themselves (carriage returns) show their last state. With ``pretty``, an
    object in the message is expanded over several rows.
    """
    rows: list[TextRow] | None = None
    if pretty:
        spread = pretty_rows(message)
        rows = None if spread is None else [TextRow(row) for row in spread]
    if rows is None:
        cut = _cut(message)
        parts = cut.rstrip("\r\n").split("\n") if "\n" in cut else [cut]
        rows = [_row(part) for part in parts]
    if wrap_cells is None:
        return tuple(rows)
    return tuple(piece for row in rows for piece in _wrapped(row, wrap_cells))


def _cut(message: str) -> str:
    if len(message) <= SHOWN_CHARACTERS:
        return message
    # A progress bar's last state is at the end; any other text is read from the beginning.
    end = message[-SHOWN_CHARACTERS:]
    if "\r" in end.rstrip("\r\n") and "\n" not in message.rstrip("\r\n"):
        return last_carriage_segment(end)
    rest = len(message) - SHOWN_CHARACTERS
    return f"{message[:SHOWN_CHARACTERS]} … {counted(rest, 'more character')}"


def _row(text: str) -> TextRow:
    plain, spans = styled_spans(last_carriage_segment(text))
    return TextRow(plain, tuple(spans))


def _wrapped(row: TextRow, cells: int) -> list[TextRow]:
    text, spans = row
    if not text.isascii():
        pieces = chop_cells(text, cells) or [""]
    elif len(text) <= cells:
        return [row]
    else:
        pieces = [text[begin : begin + cells] for begin in range(0, len(text), cells)]
    if not spans:
        return [TextRow(piece) for piece in pieces]
    ends = accumulate(map(len, pieces[:-1]))
    return [TextRow(line.plain, tuple(line.spans)) for line in Text(text, spans=list(spans)).divide(ends)]


_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,64}+)m")
_MAX_STYLES = 512
"""Maximum number of style changes to parse in a line, since a malicious line could have one per character."""
_ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")


def styled_spans(text: str) -> tuple[str, list[Span]]:
    """Return a line of text sanitized, with its styled spans in order and without overlaps.

    The text is the result of ``sanitize_whole``. Text that its style would hide (concealed, or in its
    background's color) stays visible.
    """
    clean = sanitize_whole(text)
    if not any(introducer in text for introducer in ("\x1b", "\x9b")):
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


_PARTS = re.compile(
    r"(?P<bar>[█▉▊▋▌▍▎▏░▒▓━╺╸]+|\#{3,})"
    r"|(?P<path>(?:[a-z0-9]{1,10}:/|(?<![\w.]))/[\w.@+~-]+(?:/[\w.@+~-]+)+)"
    r"|(?P<name>'[\w./ -]{1,60}':|\"[\w./ -]{1,60}\":|\b[A-Za-z_][\w./-]{0,60}=(?=[\w\"'.(\[{-])|\bINFO\b)"
    r"|(?P<number>(?<![\w.])[-+]?\d{1,30}(?:[.,]\d{1,30}){0,6}(?:e[-+]?\d{1,4})?(?![\w.]))"
)

Part = tuple[int, int, str]
"""Begin, end and kind of a part of a text."""


@lru_cache(maxsize=2048)
def highlights(text: str) -> tuple[Part, ...]:
    """Return the parts to style, in order, without overlaps."""
    return tuple((*match.span(), match.lastgroup or "") for match in _PARTS.finditer(text))
