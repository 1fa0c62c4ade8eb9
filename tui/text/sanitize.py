"""Sanitize, measure and cut text from a server for a terminal.

Text from a server is data: nothing in it may move the cursor, restyle the screen, reorder adjacent words or
be invisible. A character that cannot be shown is replaced by a visible one, never dropped silently. Only
escape sequences and variation selectors (which choose between two glyphs of one character) are removed.
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


MAX_MARKS_PER_CHARACTER = 2
"""Maximum number of combining marks per character; marks beyond it are removed, as they would stack up."""

MAX_SHOWN_LENGTH = 1024
"""Maximum length of a name or sentence that is shown in one row: more than fits into a row of any screen."""

MAX_WRAPPED_LENGTH = 4096
"""Maximum length of a text that is wrapped into rows: more than fits on any screen."""

_CHARACTERS_PER_CELL = 16  # clip reads no more than this: no script needs so many characters in a cell
_CONTROL_PICTURES = 0x2400  # Unicode block with a picture for each C0 control
_C0_END = 0x20
_DELETE = 0x7F
_PICTURE_OF_NEWLINE = "\u2424"
_VARIATION_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)

# A string sequence ends with BEL or ST, but never extends past another escape: of an unterminated sequence
# only the introducer is removed, so that malicious text cannot hide the rest of a line. The quantifiers are
# possessive, so that matching takes linear time.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # CSI: colors, cursor
    # OSC, DCS, SOS, PM, APC: strings with a terminator
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x90-\x9f]*+(?:\x07|\x1b\\|\x9c))?+"
    r"|\x1b[ -/]*+[0-Z\\`-~]"  # escapes of two or three characters
)
_ESCAPE_INTRODUCERS = re.compile(r"[\x1b\x90-\x9f]")
_NOT_PRINTABLE_ASCII = re.compile(r"[^ -~]+")
_NEEDS_REMOVAL = re.compile(f"[{_VARIATION_SELECTORS}]|[{_MARKS}]{{{MAX_MARKS_PER_CHARACTER + 1}}}")
_VARIATION_SELECTOR_RUN = re.compile(f"[{_VARIATION_SELECTORS}]+")
_EXCESS_MARKS = re.compile(f"([{_MARKS}]{{{MAX_MARKS_PER_CHARACTER}}})[{_MARKS}]+")


def strip_ansi(text: str) -> str:
    """Remove ANSI escape sequences (colors, cursor moves, titles, links …).

    Other control characters may remain; ``sanitize`` replaces them.
    """
    if _ESCAPE_INTRODUCERS.search(text) is None:
        return text
    return _ANSI.sub("", text)


def last_carriage_segment(text: str) -> str:
    r"""Return the text after the last carriage return: the last state of a progress bar.

    A ``\r`` or ``\r\n`` at the end of the text is ignored.
    """
    if "\r" not in text:
        return text
    stripped = text.rstrip("\r\n")
    return stripped[stripped.rfind("\r") + 1 :]


def sanitize(text: str) -> str:
    """Sanitize a name or a sentence to a single line of at most ``MAX_SHOWN_LENGTH`` characters.

    The middle of a longer text is replaced by an ellipsis, so that a huge text costs no more than what is
    visible. ``sanitize_whole`` doesn't shorten; use it for logs and output.
    """
    # Shorten again afterwards, because sanitizing may lengthen a text: tabs become spaces.
    return _without_middle(sanitize_whole(_without_middle(text)))


def _without_middle(text: str) -> str:
    half = MAX_SHOWN_LENGTH // 2
    return text if len(text) <= MAX_SHOWN_LENGTH else text[:half] + ELLIPSIS + text[1 - half :]


def sanitize_whole(text: str) -> str:
    """Sanitize a text of any length to a single line that is safe to print on a terminal.

    Escape sequences and trailing line breaks are removed, and tabs are expanded to spaces. Other control
    characters become control pictures (``␀``, ``␛``, ``␤`` …); bidirectional controls, zero-width
    characters, lone surrogates and unassigned characters become U+FFFD. The function is idempotent, and
    fast for plain text.
    """
    if text.isascii():
        if text.isprintable():
            return text
    elif text.isprintable() and _NEEDS_REMOVAL.search(text) is None:
        return text
    text = strip_ansi(text.rstrip("\r\n"))
    if "\t" in text:
        # expandtabs restarts its count after line breaks, which the next step turns into control pictures.
        text = text.replace("\n", _PICTURE_OF_NEWLINE).replace("\r", "\u240d").expandtabs(4)
    text = _NOT_PRINTABLE_ASCII.sub(_make_run_visible, text)
    if not text.isascii():
        text = _EXCESS_MARKS.sub(r"\1", _VARIATION_SELECTOR_RUN.sub("", text))
    return text


def _make_run_visible(match: re.Match[str]) -> str:
    run = match.group()
    return run if run.isprintable() else "".join(map(_visible_character, run))


@lru_cache(maxsize=1024)
def _visible_character(character: str) -> str:
    """Return a printable character as it is, and the visible replacement of any other."""
    if character.isprintable():
        return character
    code_point = ord(character)
    if character == "\n" or character in "\u2028\u2029":
        return _PICTURE_OF_NEWLINE
    if code_point < _C0_END:
        return chr(_CONTROL_PICTURES + code_point)
    if code_point == _DELETE:
        return "\u2421"
    category = unicodedata.category(character)
    if category == "Zs":
        return "  " if character == "\u3000" else " "
    # Icon fonts for shell prompts use private use characters: they take one cell and are harmless.
    return character if category == "Co" else REPLACEMENT


def cell_width(text: str) -> int:
    """Return the number of terminal cells that a text takes, as rich and Textual count them."""
    if text.isascii() and text.isprintable():
        return len(text)
    return cell_len(text)


def clip(text: str, cells: int, *, ellipsis: str = ELLIPSIS) -> str:
    """Cut a sanitized text to at most ``cells`` cells, replacing its end by the ellipsis if it was cut.

    The time depends on ``cells``, not on the length of the text.
    """
    if cells <= 0:
        return ""
    if len(text) <= cells and text.isascii():
        return text
    head = text[: (cells + 1) * _CHARACTERS_PER_CELL]
    if len(head) == len(text) and cell_width(head) <= cells:
        return text
    room_cells = cells - cell_width(ellipsis)
    if room_cells < 0:
        return clip(ellipsis, cells, ellipsis="") if ellipsis else ""
    if head.isascii():
        return head[:room_cells] + ellipsis
    used_cells = 0
    for start, _end, width in split_graphemes(head)[0]:
        used_cells += width
        if used_cells > room_cells:
            return head[:start] + ellipsis
    return head + ellipsis


def sanitize_beginning(text: str) -> str:
    """Sanitize a text that is wrapped; of more than ``MAX_WRAPPED_LENGTH``, keep only the beginning."""
    excess = len(text) - MAX_WRAPPED_LENGTH
    if excess <= 0:
        return sanitize_whole(text)
    return f"{sanitize_whole(text[:MAX_WRAPPED_LENGTH])} {ELLIPSIS} {counted(excess, 'more character')}"


def sanitize_multiline(text: str) -> str:
    r"""Sanitize each line of a text; ``\r`` and the Unicode line separators end a line, too."""
    return "\n".join(sanitize_whole(line) for line in text.splitlines())


def sanitize_lines(text: str) -> str:
    r"""Sanitize each line of a text, split at ``\n`` only; keep every ``\n``, including one at the end."""
    return "\n".join(map(sanitize_whole, text.split("\n")))


def traceback_text(error: BaseException) -> str:
    """Return the traceback of an exception, sanitized."""
    return sanitize_multiline("".join(traceback.format_exception(error)))


def markdown_code(text: str) -> str:
    """Return a text as a Markdown code span of one line: formatting, links and mentions have no effect in it.

    Backticks would end the span, so they become apostrophes.
    """
    quoted = sanitize(text).replace("`", "'")
    return f"`{quoted}`"
