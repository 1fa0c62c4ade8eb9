"""The traces of a crash: a few lines on the terminal, and a report that holds no data.

An error's message and the source around it may contain a key or text from a server, so a report names only
the kinds of the errors and the places in the code.
"""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from api_client.version import __version__
from tui.settings.remembered import memory_path
from tui.text.sanitize import sanitize

NOTICE = """\
bt-tui stopped because of an unexpected error: {summary}
Please report it with this file, which holds no keys and no data:
{path}"""

PACKAGE = str(Path(__file__).parents[1])


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
    own = [frame for frame in places if PACKAGE in frame]
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
