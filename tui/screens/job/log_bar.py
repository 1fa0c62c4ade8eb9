"""The bar above the log: filters, search and display options, and the first error.

``LogFilterState`` and ``LogDisplayOptions`` are the state itself; display options are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, timedelta

from textual import events
from textual.message import Message

from api_client.models.logs import LogLine
from tui.analysis.logs.errors import TracebackPart, TracebackReader
from tui.analysis.logs.levels import LogLevel
from tui.analysis.logs.pattern import LogPattern
from tui.text.sanitize import clip, sanitize
from tui.text.times import stamp_text
from tui.text.units import count, percent
from tui.widgets.log_view.gutter import TimeMode
from tui.widgets.log_view.messages import MatchChanged
from tui.widgets.log_view.store import DEFAULT_MAX_LINES, LogStore
from tui.widgets.log_view.view import LogView
from tui.widgets.notice import StatusLine
from tui.widgets.tones import Span


@dataclass(frozen=True, slots=True)
class LogDisplayOptions:
    """Display options: time format, wrapping, folds, minimum level, and lines kept in memory."""

    time: TimeMode = "clock"
    wrap: bool = False
    min_level: LogLevel | None = None
    collapse_progress: bool = True
    fold_tracebacks: bool = True
    max_lines: int = DEFAULT_MAX_LINES


LEVEL_STOPS: tuple[LogLevel | None, ...] = (None, "INFO", "WARNING", "ERROR")
"""Minimum levels to cycle through; None shows all lines."""

SPANS: tuple[timedelta | None, ...] = (
    None,
    timedelta(days=1),
    timedelta(hours=6),
    timedelta(hours=1),
    timedelta(minutes=15),
    timedelta(minutes=5),
)
SPAN_LABELS = ("all", "24 h", "6 h", "1 h", "15 min", "5 min")
"""Labels of the time ranges, which end at the end of the log."""

CONTEXT_STOPS = (0, 1, 3, 10)
"""Numbers of context lines around a match to cycle through."""

_PATTERN_CELLS = 120


@dataclass(frozen=True, slots=True)
class LogFilterState:
    """Filters of the log; the default shows everything.

    Attributes:
        node: the only node shown, or None for all.
        hidden: nodes that are hidden.
        min_level: the minimum level of the lines shown.
        pattern: the pattern that lines must match, or None.
        invert: show the lines that do not match instead.
        context_lines: number of lines shown around each match.
        span: length of the log shown, up to its end: an index into ``SPANS``.
    """

    node: str | None = None
    hidden: frozenset[str] = frozenset()
    min_level: LogLevel | None = None
    pattern: LogPattern | None = None
    invert: bool = False
    context_lines: int = 0
    span: int = 0

    def with_next_level(self) -> LogFilterState:
        """Return the choice with the next minimum level; after the last, all lines."""
        stop = (LEVEL_STOPS.index(self.min_level) + 1) % len(LEVEL_STOPS)
        return replace(self, min_level=LEVEL_STOPS[stop])

    def with_next_span(self, by: int) -> LogFilterState:
        """Return the choice with the time range `by` positions shorter; negative values lengthen it."""
        return replace(self, span=(self.span + by) % len(SPANS))

    def without_last_filter(self) -> LogFilterState | None:
        """Return the choice without one of its filters; None if there is none to remove.

        The order is pattern, level, time range, hidden nodes. The node stays, because the screen owns it.
        """
        if self.pattern:
            return replace(self, pattern=None, invert=False, context_lines=0)
        if self.min_level is not None:
            return replace(self, min_level=None)
        if self.span:
            return replace(self, span=0)
        return replace(self, hidden=frozenset()) if self.hidden else None

    def words(self) -> list[list[Span]]:
        """Describe each filter in words."""
        facts: list[list[Span]] = []
        if self.pattern:
            facts.append(
                [("without " if self.invert else "only ", "muted"), (pattern_text(self.pattern), "accent")]
            )
            if self.context_lines:
                facts[-1].append((f" ±{self.context_lines}", "accent"))
        if self.min_level is not None:
            facts.append([(f"≥ {self.min_level}", "accent")])
        if self.hidden:
            facts.append([(f"{_names(self.hidden)} hidden", "accent")])
        if self.span:
            facts.append([(f"last {SPAN_LABELS[self.span]}", "accent")])
        return facts


def pattern_text(pattern: LogPattern) -> str:
    """Format a pattern; regular expressions are put between slashes."""
    text = clip(sanitize(pattern.text), _PATTERN_CELLS)
    if pattern.regex:
        text = f"/{text}/"
    return text if pattern.case is None else f"{text} ({'Aa' if pattern.case else 'aa'})"


def _names(nodes: Iterable[str]) -> str:
    names = sorted(nodes)
    return clip(sanitize(names[0]), _PATTERN_CELLS) if len(names) == 1 else f"{len(names)} nodes"


SEARCHED_LINES = 400
"""Maximum number of lines to search for a traceback's exception; lines of several ranks interleave."""
MOST_CELLS = 1000
"""Maximum width of an error message to lay out."""
_DAY = slice(0, 10)
_CLOCK, _MONTH_AND_CLOCK = slice(11, 19), slice(5, 19)
_HEADING = "Traceback (most recent call last)"


class FirstErrorLine(StatusLine):
    """The first error, hidden if there is none; a click goes to its line, as its key does."""

    DEFAULT_CSS = """
    FirstErrorLine { display: none; max-height: 20vh; padding: 0 1; }
    FirstErrorLine { background: $error-muted; color: $text-error; }
    FirstErrorLine.-known { display: block; }
    """

    class Chosen(Message):
        """The user wants to go to the first error."""

    _named: tuple[int, str] | None = None
    """Sequence number of the first error, and its message once that is known."""

    def show(self, store: LogStore, time_mode: str, key: str) -> None:
        """Show the first error of these lines, if any, and the key that goes to it."""
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
        self.set_facts([error_spans(entry, said or entry.message, newest_ns, time_mode, key)])

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Chosen())


def exception_of(store: LogStore, seq: int, heading: LogLine) -> str | None:
    """Return the error message of a line; for a traceback, its exception from a later line of the same node.

    Return None if that line has not arrived yet.
    """
    reader = TracebackReader()
    first = reader.read(heading.message)
    if "\n" in heading.message.strip() and _HEADING in heading.message:
        return heading.message.strip().rsplit("\n", 1)[-1]
    if first is None or first.part is not TracebackPart.BEGIN or _HEADING not in heading.message:
        return heading.message
    for later in range(seq + 1, min(seq + SEARCHED_LINES, store.end)):
        entry = store.entry(later)
        if not isinstance(entry, LogLine) or entry.replica != heading.replica:
            continue
        told = reader.read(entry.message)
        if told is not None and told.lane == first.lane and told.part is TracebackPart.END:
            return entry.message
    return None


def error_spans(line: LogLine, said: str, newest_ns: int, time_mode: str, key: str) -> list[Span]:
    """Format the error as one line; include its date if it differs from that of the newest line."""
    zone = UTC if time_mode == "utc" else None
    told = stamp_text(line.timestamp_ns, zone)
    clock = told[_CLOCK if told[_DAY] == stamp_text(newest_ns, zone)[_DAY] else _MONTH_AND_CLOCK]
    node = f"{sanitize(line.replica)} " if line.replica else ""
    first_row = clip(sanitize(said.strip().split("\n", 1)[0]), MOST_CELLS)
    return [
        ("✗ first error ", "bad"),
        (f"{key} ", "key"),
        (f"{clock} {node}", "plain"),
        (first_row, "strong"),
    ]


TIME_LABELS = {"utc": "UTC", "relative": "ages", "elapsed": "since start", "off": "no times"}


@dataclass(frozen=True, slots=True)
class LogStatus:
    """State shown in the log bar."""

    choice: LogFilterState
    columns: tuple[str, ...]
    following: bool
    unseen: int
    ended: bool
    read_part: float | None
    lines: int
    shown: int
    pattern: LogPattern | None
    match: MatchChanged | None
    view: LogView
    day: str
    dropped: int


class LogBar(StatusLine):
    """The log bar. Filters and their match counts come first and are always visible."""

    DEFAULT_CSS = """
    LogBar { padding: 0 1; max-height: 40vh; background: $surface; color: $text-muted; }
    """

    def show(self, log_status: LogStatus) -> None:
        facts = [_node_label(log_status), _follows(log_status)]
        if log_status.pattern is not None:
            facts.append(match_spans(log_status.pattern, log_status.match))
        shown, lines = log_status.shown, log_status.lines
        restrictions = log_status.choice.words()
        facts += restrictions
        if restrictions or log_status.choice.node is not None:
            facts.append([(f"{count(shown)} of {count(lines)}", "plain")])
        priority_count = len(facts)
        if log_status.dropped:
            facts.append([(f"{count(log_status.dropped)} oldest lines dropped", "warn")])
        facts += _switched(log_status.view)
        if log_status.read_part is not None and log_status.read_part < 1:
            facts.append([(f"reading older lines {percent(log_status.read_part)}", "muted")])
        if not restrictions and log_status.choice.node is None:
            facts.append([(f"{count(lines)} lines", "muted")])
        if log_status.day:
            facts.append([(log_status.day, "plain")])
        self.set_facts(facts, priority_count)


def _node_label(log_status: LogStatus) -> list[Span]:
    if log_status.columns:
        names = [sanitize(name) for name in log_status.columns]
        return [("Log ", "title"), (f"{names[0]} … {names[-1]}", "plain")]
    node = log_status.choice.node
    return [("Log ", "title"), (sanitize(node) if node else "all nodes", "plain")]


def _follows(log_status: LogStatus) -> list[Span]:
    if log_status.ended and (log_status.following or not log_status.unseen):
        is_reading = log_status.read_part is not None and log_status.read_part < 1
        return [("job ended" if is_reading else "complete", "muted")]
    if log_status.following:
        return [("following", "good")]
    words: list[Span] = [("paused", "warn")]
    if log_status.unseen:
        words.append((f" ↓ {count(log_status.unseen)} new", "accent"))
    return words


def match_spans(pattern: LogPattern, match: MatchChanged | None) -> list[Span]:
    """Return the search pattern and the position among its matches."""
    words: list[Span] = [(f"/{pattern_text(pattern).strip('/')}", "accent")]
    if match is None:
        return words
    if match.entry is None:
        if match.total_is_final:
            words.append((": not found", "warn"))
        return words
    more = "" if match.total_is_final else "+"
    words.append((f" {count(match.position)} of {count(match.total)}{more}", "plain"))
    if match.wrapped:
        words.append((" wrapped around", "warn"))
    return words


def _switched(view: LogView) -> list[list[Span]]:
    """Return the display options that differ from the default."""
    facts: list[list[Span]] = []
    if view.time_mode in TIME_LABELS:
        facts.append([(TIME_LABELS[view.time_mode], "accent")])
    if view.wrap:
        facts.append([("wrapped", "accent")])
    open_kinds = [
        name
        for name, folded in (
            ("tracebacks", view.fold_tracebacks),
            ("bars", view.collapse_progress),
            ("repeats", view.fold_repeats),
        )
        if not folded
    ]
    if open_kinds:
        facts.append([("all ", "muted"), (", ".join(open_kinds), "accent")])
    return facts
