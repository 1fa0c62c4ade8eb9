"""Parse ANSI colors in log lines to data; all other escape sequences are dropped.

``styled_runs`` is the only way from a server's escape sequences to a style on the screen. It supports SGR
(ECMA-48, 8.3.117; 256 and 24-bit colors as in xterm) and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from tui.text.sanitize import sanitize

Colour = int | tuple[int, int, int]
"""An index into the 256 terminal colors, or red, green, blue of 0 … 255."""

_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,64}+)m")
_INTRODUCERS = ("\x1b", "\x9b")
_MAX_STYLED_RUNS = 512
"""Maximum number of style changes to parse in a line, since a malicious line could have one per character."""
_INDEXED, _DIRECT = 5, 2
_BRIGHT = 8
_LARGEST = 255


@dataclass(frozen=True, slots=True)
class AnsiStyle:
    """The style of characters; a color of None is the terminal's default."""

    foreground: Colour | None = None
    background: Colour | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False

    def __bool__(self) -> bool:
        return self != PLAIN


PLAIN = AnsiStyle()

Run = tuple[int, int, AnsiStyle]
"""First character, end (exclusive), and style of text that is not plain."""


def styled_runs(text: str) -> tuple[str, list[Run]]:
    """Return a line of text sanitized, with its styled runs in order and without overlaps.

    The text is the result of ``sanitize``. Text that its style would hide (concealed, or in its background's
    color) stays visible.
    """
    if not any(introducer in text for introducer in _INTRODUCERS):
        return sanitize(text), []
    pieces: list[str] = []
    runs: list[Run] = []
    style, length, done = PLAIN, 0, 0
    for count, found in enumerate(_SGR.finditer(text)):
        if count >= _MAX_STYLED_RUNS:
            break
        length = _add(pieces, runs, text[done : found.start()], length, style)
        style = _after(style, found[1])
        done = found.end()
    _add(pieces, runs, text[done:], length, style)
    plain = "".join(pieces)
    whole = sanitize(text)
    # If the pieces differ from the whole (tabs, combining marks across a border), safety comes first.
    return (plain, runs) if plain == whole else (whole, [])


def _add(pieces: list[str], runs: list[Run], raw: str, length: int, style: AnsiStyle) -> int:
    piece = sanitize(raw) if raw else ""
    if not piece:
        return length
    end = length + len(piece)
    pieces.append(piece)
    if style:
        if runs and runs[-1][1] == length and runs[-1][2] == style:
            runs[-1] = (runs[-1][0], end, style)
        else:
            runs.append((length, end, style))
    return end


@lru_cache(maxsize=512)
def _after(style: AnsiStyle, parameters: str) -> AnsiStyle:
    fields = parameters.split(";")
    position = 0
    while position < len(fields):
        field = fields[position]
        position += 1
        if ":" in field:
            style = _colons(style, field.split(":"))
            continue
        code = int(field) if field else 0
        if code in (38, 48):
            colour, used = _extended(fields[position:])
            position += used
            style = _coloured(style, code, colour)
        else:
            style = _simple(style, code)
    if style.foreground is not None and style.foreground == style.background:
        style = replace(style, foreground=None, background=None)
    return style


def _colons(style: AnsiStyle, parts: list[str]) -> AnsiStyle:
    """Apply colon-separated parameters: ``38:5:n``, ``38:2::r:g:b``, ``4:3`` (curly underline)."""
    code = int(parts[0] or 0)
    if code in (38, 48):
        values = parts[1:2] + [part for part in parts[2:] if part][-3:]
        return _coloured(style, code, _extended(values)[0])
    if code == 4:
        return replace(style, underline=parts[1] != "0")
    return style


def _extended(fields: list[str]) -> tuple[Colour | None, int]:
    """Return the color given by ``5;n`` or ``2;r;g;b``, and the number of fields used."""
    kind = int(fields[0] or 0) if fields and ":" not in fields[0] else 0
    wanted = {_INDEXED: 1, _DIRECT: 3}.get(kind, 0)
    values = [int(field or 0) for field in fields[1 : 1 + wanted] if ":" not in field]
    if not wanted or len(values) < wanted or max(values) > _LARGEST:
        return None, min(len(fields), 1 + wanted)
    return (values[0] if kind == _INDEXED else (values[0], values[1], values[2])), 1 + wanted


def _coloured(style: AnsiStyle, code: int, colour: Colour | None) -> AnsiStyle:
    if colour is None:
        return style
    return replace(style, foreground=colour) if code == 38 else replace(style, background=colour)


_SWITCHES: dict[int, dict[str, bool]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
    29: {"strike": False},
}


def _simple(style: AnsiStyle, code: int) -> AnsiStyle:
    if code == 0:
        return PLAIN
    if code in _SWITCHES:
        return replace(style, **_SWITCHES[code])
    tens, unit = divmod(code, 10)
    if tens in (3, 9) and unit < _BRIGHT:
        return replace(style, foreground=unit + (_BRIGHT if tens == 9 else 0))
    if tens in (4, 10) and unit < _BRIGHT:
        return replace(style, background=unit + (_BRIGHT if tens == 10 else 0))
    if code == 39:
        return replace(style, foreground=None)
    if code == 49:
        return replace(style, background=None)
    return style
