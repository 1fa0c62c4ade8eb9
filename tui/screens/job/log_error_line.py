"""The first error of all nodes, pinned over the log: when, which node, what."""

from __future__ import annotations

from datetime import UTC

from textual import events
from textual.message import Message

from api_client.streams.records import LogLine
from tui.insight.logs.tracebacks import TracebackPart, TracebackReader
from tui.insight.logs.written import stamp_text
from tui.insight.text import clip, inert
from tui.widgets.line import FactLine
from tui.widgets.log_view.store import LogStore
from tui.widgets.tones import Span

LOOKED_THROUGH = 400
"""Lines among which the exception of a traceback is looked for; ranks interleave."""
MOST_CELLS = 1000
"""More of an error is never laid out."""
_DAY = slice(0, 10)
_CLOCK, _MONTH_AND_CLOCK = slice(11, 19), slice(5, 19)
_HEADING = "Traceback (most recent call last)"


class FirstErrorLine(FactLine):
    """Hidden while there is none; a click goes there, as the key does."""

    DEFAULT_CSS = """
    FirstErrorLine { display: none; max-height: 20vh; padding: 0 1; }
    FirstErrorLine { background: $error-muted; color: $text-error; }
    FirstErrorLine.-known { display: block; }
    """

    class Chosen(Message):
        """Go to the first error."""

    _named: tuple[int, str] | None = None
    """The number of the first error, and what went wrong there, once that is known."""

    def show(self, store: LogStore, time_mode: str, key: str) -> None:
        """Tell of the first error of these lines, if there is one, and of the key that goes there."""
        seq = store.first_error
        entry = None if seq is None else store.entry(seq)
        self.set_class(isinstance(entry, LogLine), "-known")
        if seq is None or not isinstance(entry, LogLine):
            self._named = None
            return
        said = self._named[1] if self._named is not None and self._named[0] == seq else None
        if said is None:
            said = exception_of(store, seq, entry)
            self._named = None if said is None else (seq, said)
        _, newest_ns = store.span_ns or (0, entry.timestamp_ns)
        self.set_facts([error_words(entry, said or entry.message, newest_ns, time_mode, key)])

    def on_click(self, event: events.Click) -> None:
        """Go there."""
        event.stop()
        self.post_message(self.Chosen())


def exception_of(store: LogStore, seq: int, heading: LogLine) -> str | None:
    """What a line says went wrong: of a traceback its exception, a line of the same node further on.

    None while that is not among the lines yet.
    """
    reader = TracebackReader()
    first = reader.read(heading.message)
    if "\n" in heading.message.strip() and _HEADING in heading.message:
        return heading.message.strip().rsplit("\n", 1)[-1]
    if first is None or first.part is not TracebackPart.BEGIN or _HEADING not in heading.message:
        return heading.message
    for later in range(seq + 1, min(seq + LOOKED_THROUGH, store.end)):
        entry = store.entry(later)
        if not isinstance(entry, LogLine) or entry.replica != heading.replica:
            continue
        told = reader.read(entry.message)
        if told is not None and told.lane == first.lane and told.part is TracebackPart.END:
            return entry.message
    return None


def error_words(line: LogLine, said: str, newest_ns: int, time_mode: str, key: str) -> list[Span]:
    """The error in one line; its day, too, where that is not the day of the newest line."""
    zone = UTC if time_mode == "utc" else None
    told = stamp_text(line.timestamp_ns, zone)
    clock = told[_CLOCK if told[_DAY] == stamp_text(newest_ns, zone)[_DAY] else _MONTH_AND_CLOCK]
    node = f"{inert(line.replica)} " if line.replica else ""
    first_row = clip(inert(said.strip().split("\n", 1)[0]), MOST_CELLS)
    return [
        ("✗ first error ", "bad"),
        (f"{key} ", "key"),
        (f"{clock} {node}", "plain"),
        (first_row, "strong"),
    ]
