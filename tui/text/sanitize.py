"""Sanitize, measure and cut text from a server for a terminal.

A server's text is data: nothing in it may move the cursor, restyle the screen, reorder adjacent words or
be invisible. Anything that cannot be shown is replaced by a visible stand-in, never dropped silently.
Only escape sequences, which were meant for another terminal, and variation selectors, which only choose
between two looks of one character, are removed.
"""

from __future__ import annotations

import re
import traceback
import unicodedata
from functools import lru_cache

from rich.cells import cell_len, split_graphemes

from api_client.words import counted

REPLACEMENT = "\ufffd"
"""Replaces characters that have no glyph of their own."""

ELLIPSIS = "…"


MARKS_PER_CHARACTER = 2
"""Maximum number of combining marks to keep per character; more would only pile up."""

LONGEST_SHOWN = 1024
"""Maximum number of characters of a name or sentence to show: more than a row of any screen has room for."""

LONGEST_WRAPPED = 4096
"""Maximum number of characters to break into rows of a screen: more than any screen shows."""

_CHARACTERS_PER_CELL = 16  # More than any script needs; the rest of such a text is ignored.
_CONTROL_PICTURES = 0x2400  # Unicode block with a picture for each C0 control
_C0_END = 0x20
_DELETE = 0x7F
_PICTURE_OF_NEWLINE = "\u2424"
_VARIATION_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)

# String sequences end with BEL or ST, but never extend past another escape: an unfinished one loses only its
# introducer, so that malicious text cannot hide the rest of a line. Possessive: linear time.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # CSI: colors, cursor
    # OSC, DCS, SOS, PM, APC: strings with a terminator
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x90-\x9f]*+(?:\x07|\x1b\\|\x9c))?+"
    r"|\x1b[ -/]*+[0-Z\\`-~]"  # the two- and three-character escapes
)
_ESCAPE_INTRODUCERS = re.compile(r"[\x1b\x90-\x9f]")
_NOT_ASCII = re.compile(r"[^ -~]+")
_TROUBLED_MARKS = re.compile(f"[{_VARIATION_SELECTORS}]|[{_MARKS}]{{{MARKS_PER_CHARACTER + 1}}}")
_VARIATIONS = re.compile(f"[{_VARIATION_SELECTORS}]+")
_PILED_MARKS = re.compile(f"([{_MARKS}]{{{MARKS_PER_CHARACTER}}})[{_MARKS}]+")


def strip_ansi(text: str) -> str:
    """Remove ANSI escape sequences (colors, cursor moves, titles, links …).

    This is a single pass: the result may contain stray control characters, which ``sanitize`` handles.
    """
    if _ESCAPE_INTRODUCERS.search(text) is None:
        return text
    return _ANSI.sub("", text)


def last_carriage_segment(text: str) -> str:
    r"""Return the last state of a line that progress bars overwrote with carriage returns.

    A trailing ``\r`` (or ``\r\n``) ends a segment and does not begin an empty one.
    """
    if "\r" not in text:
        return text
    ended = text.rstrip("\r\n")
    return ended[ended.rfind("\r") + 1 :]


def sanitize(text: str) -> str:
    """Sanitize a name or a sentence to a single line of at most ``LONGEST_SHOWN`` characters.

    A longer one is reduced to its two ends with an ellipsis between them, so that showing it never costs more
    than what is visible. ``sanitize_whole`` doesn't shorten; use it for logs and output.
    """
    return _both_ends(sanitize_whole(_both_ends(text)))


def _both_ends(text: str) -> str:
    half = LONGEST_SHOWN // 2
    return text if len(text) <= LONGEST_SHOWN else text[:half] + ELLIPSIS + text[1 - half :]


def sanitize_whole(text: str) -> str:
    """Sanitize a text of any length to a single line that has no effect on a terminal.

    Escape sequences are removed, tabs expanded to spaces, and trailing line breaks dropped. Other control
    characters become control pictures (``␀``, ``␛``, ``␤`` …); bidirectional controls, zero-width
    characters, lone surrogates and unassigned characters become U+FFFD. The function is idempotent, and
    costs almost nothing for plain text.
    """
    if text.isascii():
        if text.isprintable():
            return text
    elif text.isprintable() and _TROUBLED_MARKS.search(text) is None:
        return text
    text = strip_ansi(text.rstrip("\r\n"))
    if "\t" in text:
        # expandtabs restarts its count after line breaks, which the next step turns into control pictures.
        text = text.replace("\n", _PICTURE_OF_NEWLINE).replace("\r", "\u240d").expandtabs(4)
    text = _NOT_ASCII.sub(_replace_run, text)
    if not text.isascii():
        text = _PILED_MARKS.sub(r"\1", _VARIATIONS.sub("", text))
    return text


def _replace_run(match: re.Match[str]) -> str:
    run = match.group()
    return run if run.isprintable() else "".join(map(_stand_in, run))


@lru_cache(maxsize=1024)
def _stand_in(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if character == "\n" or character in "\u2028\u2029":
        return _PICTURE_OF_NEWLINE
    if code < _C0_END:
        return chr(_CONTROL_PICTURES + code)
    if code == _DELETE:
        return "\u2421"
    category = unicodedata.category(character)
    if category == "Zs":
        return "  " if character == "\u3000" else " "
    # Prompt and icon fonts use private use characters: one cell, harmless.
    return character if category == "Co" else REPLACEMENT


def cell_width(text: str) -> int:
    """Return the width of a text in cells, as rich and Textual measure it."""
    if text.isascii() and text.isprintable():
        return len(text)
    return cell_len(text)


def clip(text: str, cells: int, *, ellipsis: str = ELLIPSIS) -> str:
    """Cut the text to at most ``cells`` cells, replacing the end by the ellipsis if it was cut.

    The cost depends on the result, not on the length of the text, which must be sanitized.
    """
    if cells <= 0:
        return ""
    if len(text) <= cells and text.isascii():
        return text
    head = text[: (cells + 1) * _CHARACTERS_PER_CELL]
    if len(head) == len(text) and cell_width(head) <= cells:
        return text
    room = cells - cell_width(ellipsis)
    if room < 0:
        return clip(ellipsis, cells, ellipsis="") if ellipsis else ""
    if head.isascii():
        return head[:room] + ellipsis
    used = 0
    for start, _end, width in split_graphemes(head)[0]:
        used += width
        if used > room:
            return head[:start] + ellipsis
    return head + ellipsis


def sanitize_beginning(text: str) -> str:
    """Sanitize a text for a place that wraps it; shorten a long one to its beginning."""
    rest = len(text) - LONGEST_WRAPPED
    if rest <= 0:
        return sanitize_whole(text)
    return f"{sanitize_whole(text[:LONGEST_WRAPPED])} {ELLIPSIS} {counted(rest, 'more character')}"


def sanitize_multiline(text: str) -> str:
    return "\n".join(sanitize_whole(line) for line in text.splitlines())


def sanitize_lines(text: str) -> str:
    """Sanitize each line and keep every line feed, including a trailing one."""
    return "\n".join(map(sanitize_whole, text.split("\n")))


def crash_text(error: BaseException) -> str:
    """Return the sanitized traceback."""
    return sanitize_multiline("".join(traceback.format_exception(error)))


def markdown_code(text: str) -> str:
    """Return a text as a Markdown code span on one line, in which it cannot format, link or mention anything.

    Backticks, which would end the span, become apostrophes.
    """
    quoted = sanitize(text).replace("`", "'")
    return f"`{quoted}`"
