"""The app and its terminal: sanitized output, and what is left there when the app ends or crashes.

Widgets sanitize text from servers and files, which leaves visible placeholders. ``Sanitizer`` catches the
rest in the output of all widgets and keeps the width of each line, so that the layout stays valid.

A crash leaves a few lines on the terminal, and a report that holds no data: an error's message and the source
around it may contain a key or text from a server, so it names only the kinds of the errors and the places in
the code.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import threading
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from api_client.version import __version__
from tui.settings.remembered import memory_path
from tui.text.sanitize import REPLACEMENT, sanitize


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


NOTICE = """\
bt-tui stopped because of an unexpected error: {summary}
Please report it with this file, which holds no keys and no data:
{path}"""


def crash_notice(error: BaseException) -> str:
    """Save a report; return what to print: what happened, what to do, and the report's path.

    If no file can be written, the report itself takes the place of its path.
    """
    report = crash_report(error)
    saved_at = _saved(report)
    return NOTICE.format(
        summary=_summary(error), path=report if saved_at is None else sanitize(str(saved_at))
    )


def crash_report(error: BaseException) -> str:
    """Return the error and its causes: kinds and places, without messages, source lines or values."""
    from importlib.metadata import version  # 1% of the time to the first picture

    lines = [
        f"bt-tui {__version__}, textual {version('textual')}, Python {platform.python_version()}, "
        f"{platform.system()}",
        *_lines_of(error, seen=set()),
    ]
    return "\n".join(map(sanitize, lines))


def _lines_of(error: BaseException, *, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        yield from _lines_of(cause, seen=seen)
    yield f"{_kind(error)}:"
    for frame in _places(error):
        yield f"  {frame}"
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        if id(part) not in seen:
            yield from _lines_of(part, seen=seen)


def _places(error: BaseException) -> list[str]:
    """Return the innermost places of the error; a recursion has a thousand."""
    stack = traceback.StackSummary.extract(
        traceback.walk_tb(error.__traceback__), limit=-100, lookup_lines=False
    )
    return [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in stack]


def _summary(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    places = _places(error)
    own = [frame for frame in places if str(Path(__file__).parents[1]) in frame]
    return sanitize(", ".join([_kind(error), *(own or places)[-1:]]))


def _kind(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _saved(report: str) -> Path | None:
    """Write the report to a new private file in the folder of remembered state, else of temporary files."""
    name = datetime.now(UTC).strftime("crash-%Y%m%d-%H%M%S-")
    for folder in (memory_path().parent, Path(tempfile.gettempdir())):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, path = tempfile.mkstemp(prefix=name, suffix=".txt", dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{report}\n")
            return Path(path)
    return None
