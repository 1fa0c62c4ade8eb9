"""The app and its terminal: sanitized output, failing threads, and a limit for the end.

Widgets sanitize text from servers and files, which leaves visible placeholders. ``Sanitizer`` catches the
rest in the output of all widgets and keeps the width of each line, so that the layout stays valid.
"""

from __future__ import annotations

import os
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


EXIT_HUNG_UP = 129
"""Exit status that shells report for a process ended by SIGHUP."""


class Shutdown:
    """Limits the time that the process takes to end: whatever it waits for, no dead terminal is left.

    ``restore`` is called before the process is killed.
    """

    def __init__(self, restore: Callable[[], object] = lambda: None, *, limit_s: float = 10.0) -> None:
        self._restore = restore
        self._limit_s = limit_s
        self._is_over = threading.Event()
        self._is_begun = False

    def begin(self, exit_code: int) -> None:
        """Kill the process with this exit code unless it has ended in time. The first call counts."""
        if not self._is_begun:
            self._is_begun = True
            threading.Thread(target=self._wait, args=(exit_code,), name="shutdown", daemon=True).start()

    def finish(self) -> None:
        """Let the process continue."""
        self._is_over.set()

    def _wait(self, exit_code: int) -> None:
        if self._is_over.wait(self._limit_s):
            return
        restoring = threading.Thread(target=self._restore, daemon=True)  # a stopped terminal would block it
        restoring.start()
        restoring.join(1.0)
        os._exit(exit_code)


@contextmanager
def drawn_on_stdout() -> Iterator[None]:
    """Draw on standard output if standard error is redirected, as in ``bt-tui 2>log``.

    Textual draws on ``sys.__stderr__`` and would fill that file with escape sequences. Output to
    ``sys.stderr`` still goes there.
    """
    standard_error = sys.__stderr__
    if not sys.stdout.isatty() or (standard_error is not None and standard_error.isatty()):
        yield
        return
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace") as screen:
        sys.__stderr__ = screen  # type: ignore[misc]  # the only place where textual looks
        try:
            yield
        finally:
            sys.__stderr__ = standard_error  # type: ignore[misc]


@contextmanager
def watched_threads(report: Callable[[Exception], object]) -> Iterator[None]:
    """Call ``report`` with the error of a thread that fails; Python prints it, which Textual hides."""

    def failed(thread: threading.ExceptHookArgs) -> None:
        if isinstance(thread.exc_value, Exception):
            report(thread.exc_value)

    usual, threading.excepthook = threading.excepthook, failed
    try:
        yield
    finally:
        threading.excepthook = usual
