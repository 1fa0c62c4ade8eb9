"""The app and its terminal: sanitized output, limited shutdown, and crash reports.

Widgets sanitize text from servers and files, which leaves visible placeholders. ``Sanitizer`` catches the
rest in the output of all widgets and keeps the width of each line, so that the layout stays valid.

A crash leaves a few lines on the terminal, and a report that holds no data: an error's message and the source
around it may contain a key or text from a server, so the report only names error types and locations in the
code.
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
    return text if text.isprintable() else "".join(map(_replacement_for, text))


def _replacement_for(character: str) -> str:
    # Keep private-use characters, because icon fonts use them.
    if character.isprintable() or unicodedata.category(character) == "Co":
        return character
    replacement = " " if character.isspace() else REPLACEMENT
    return replacement * cell_len(character)


EXIT_HUNG_UP = 129
"""Exit status that shells report for a process ended by SIGHUP."""


class Shutdown:
    """Kills the process if its shutdown takes longer than ``limit_s`` seconds.

    Before that, ``restore`` restores the terminal, which would be unusable otherwise.
    """

    def __init__(self, restore: Callable[[], object] = lambda: None, *, limit_s: float = 10.0) -> None:
        self._restore = restore
        self._limit_s = limit_s
        self._is_over = threading.Event()
        self._has_begun = False

    def begin(self, exit_code: int) -> None:
        """Start the time limit, after which the process exits with this code; later calls have no effect."""
        if not self._has_begun:
            self._has_begun = True
            threading.Thread(
                target=self._exit_after_limit, args=(exit_code,), name="shutdown", daemon=True
            ).start()

    def finish(self) -> None:
        """Cancel the time limit: the shutdown is complete."""
        self._is_over.set()

    def _exit_after_limit(self, exit_code: int) -> None:
        if self._is_over.wait(self._limit_s):
            return
        # in a thread, because a stopped terminal would block the call
        restore_thread = threading.Thread(target=self._restore, daemon=True)
        restore_thread.start()
        restore_thread.join(1.0)
        os._exit(exit_code)


@contextmanager
def drawing_on_stdout() -> Iterator[None]:
    """Let Textual draw on standard output if standard error is redirected, as in ``bt-tui 2>log``.

    Textual draws on ``sys.__stderr__`` and would fill that file with escape sequences. Output to
    ``sys.stderr`` still goes there.
    """
    standard_error = sys.__stderr__
    if not sys.stdout.isatty() or (standard_error is not None and standard_error.isatty()):
        yield
        return
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace") as output:
        sys.__stderr__ = output  # type: ignore[misc]  # the only file that Textual writes to
        try:
            yield
        finally:
            sys.__stderr__ = standard_error  # type: ignore[misc]


@contextmanager
def reporting_thread_errors(report: Callable[[Exception], object]) -> Iterator[None]:
    """Call ``report`` with each error that a thread does not catch.

    By default, Python prints such errors, but Textual hides the output.
    """

    def report_error(args: threading.ExceptHookArgs) -> None:
        if isinstance(args.exc_value, Exception):
            report(args.exc_value)

    previous_hook, threading.excepthook = threading.excepthook, report_error
    try:
        yield
    finally:
        threading.excepthook = previous_hook


CRASH_NOTICE = """\
bt-tui stopped because of an unexpected error: {summary}
Please report it with this file, which holds no keys and no data:
{path}"""


def crash_notice(error: BaseException) -> str:
    """Save a crash report; return a text that says what happened, what to do, and where the report is.

    If no file can be written, the text contains the report instead of its path.
    """
    report = crash_report(error)
    path = _save_report(report)
    return CRASH_NOTICE.format(summary=_summary(error), path=report if path is None else sanitize(str(path)))


def crash_report(error: BaseException) -> str:
    """Return the error and its causes: types and code locations, no messages, source lines or values."""
    from importlib.metadata import version  # deferred: 1 % of the start-up time

    lines = [
        f"bt-tui {__version__}, textual {version('textual')}, Python {platform.python_version()}, "
        f"{platform.system()}",
        *_lines_of(error, seen_ids=set()),
    ]
    return "\n".join(map(sanitize, lines))


def _lines_of(error: BaseException, *, seen_ids: set[int]) -> Iterator[str]:
    """Yield lines about an error and its causes, except for errors whose ``id()`` is in ``seen_ids``."""
    seen_ids.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen_ids:
        yield from _lines_of(cause, seen_ids=seen_ids)
    yield f"{_type_name(error)}:"
    for location in _locations(error):
        yield f"  {location}"
    for nested_error in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        if id(nested_error) not in seen_ids:
            yield from _lines_of(nested_error, seen_ids=seen_ids)


def _locations(error: BaseException) -> list[str]:
    """Return the innermost 100 code locations of the error's traceback, which may be very long."""
    stack = traceback.StackSummary.extract(
        traceback.walk_tb(error.__traceback__), limit=-100, lookup_lines=False
    )
    return [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in stack]


def _summary(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    locations = _locations(error)
    own_locations = [location for location in locations if str(Path(__file__).parents[1]) in location]
    return sanitize(", ".join([_type_name(error), *(own_locations or locations)[-1:]]))


def _type_name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _save_report(report: str) -> Path | None:
    """Write the report to a new private file in the folder of saved state, else in the temporary folder."""
    name_prefix = datetime.now(UTC).strftime("crash-%Y%m%d-%H%M%S-")
    for folder in (memory_path().parent, Path(tempfile.gettempdir())):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, path = tempfile.mkstemp(prefix=name_prefix, suffix=".txt", dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{report}\n")
            return Path(path)
    return None
