"""The terminal's title and its notifications as escape sequences, with nothing of the text left to obey.

OSC 2 sets the title; OSC 9 (iTerm2) and OSC 777 (urxvt) notify. tmux and screen hand only what is wrapped
to the terminal around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tui.insight.text import clip, inert

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"
TITLE_CELLS = 80
NOTICE_CELLS = 200
SAVE_TITLE, RESTORE_TITLE = f"{ESC}[22;2t", f"{ESC}[23;2t"
"""xterm's stack of titles; other terminals ignore it."""

OscKind = Literal["off", "9", "777"]
_SPEAK_777 = ("rxvt", "foot")


def title_sequence(text: str) -> str:
    """Set the terminal's title (a pane's, in tmux)."""
    return f"{ESC}]2;{_safe(text, TITLE_CELLS)}{BEL}"


def notification_sequence(kind: OscKind, title: str, text: str, environ: Mapping[str, str]) -> str:
    """A notification of the desktop; empty for ``off``."""
    if kind == "off":
        return ""
    if kind == "777":
        # Semicolons part the fields.
        head, body = (_safe(part, NOTICE_CELLS).replace(";", ",") for part in (title, text))
        sequence = f"{ESC}]777;notify;{head};{body}{BEL}"
    else:
        words = _safe(f"{title}: {text}", NOTICE_CELLS)
        if words[:1].isdigit():
            words = f"– {words}"  # ConEmu's and others' own commands begin with a number
        sequence = f"{ESC}]9;{words}{BEL}"
    return through_multiplexer(sequence, environ)


def through_multiplexer(sequence: str, environ: Mapping[str, str]) -> str:
    """The sequence wrapped for tmux (``allow-passthrough``) or GNU screen, where one of them runs."""
    if environ.get("TMUX"):
        return f"{ESC}Ptmux;{sequence.replace(ESC, ESC + ESC)}{ST}"
    if environ.get("STY"):
        return f"{ESC}P{sequence}{ST}"
    return sequence


def osc_kind(wanted: Literal["off", "9", "777", "auto"], environ: Mapping[str, str]) -> OscKind:
    """What the terminal understands: OSC 9 unless it wants 777; those that know neither ignore it."""
    if wanted != "auto":
        return wanted
    terminal = environ.get("TERM", "")
    if terminal in ("dumb", "linux"):
        return "off"
    if terminal.startswith(_SPEAK_777) or environ.get("VTE_VERSION"):
        return "777"
    return "9"


def _safe(text: str, cells: int) -> str:
    return "".join(letter for letter in clip(inert(text), cells) if letter.isprintable())
