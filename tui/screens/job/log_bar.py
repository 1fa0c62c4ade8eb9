"""The bar above the log, which shows filters, search and display options; and the line of the first error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import islice

from textual.message import Message

from api_client.models.logs import LogLine
from tui.analysis.logs.errors import TracebackPart, TracebackReader
from tui.analysis.logs.pattern import LogPattern
from tui.tables.column import Span
from tui.text.sanitize import clip, sanitize
from tui.text.times import stamp_text
from tui.text.units import count, counted, percent
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.search import MatchChanged
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.view import LogView
from tui.widgets.status_line import StatusLine


def only_node(options: LogOptions) -> str | None:
    return next(iter(options.nodes)) if options.nodes else None


def filter_spans(options: LogOptions) -> list[list[Span]]:
    facts: list[list[Span]] = []
    if options.pattern:
        facts.append(
            [("without " if options.invert else "only ", "muted"), (pattern_text(options.pattern), "accent")]
        )
    if options.min_level is not None:
        facts.append([(f"≥ {options.min_level}", "accent")])
    if options.hidden:
        names = sorted(filter(None, options.hidden))
        hidden_text = clip(sanitize(names[0]), 120) if len(names) == 1 else counted(len(names), "node")
        facts.append([(f"{hidden_text} hidden", "accent")])
    return facts


def pattern_text(pattern: LogPattern) -> str:
    text = clip(sanitize(pattern.text), 120)
    if pattern.regex:
        text = f"/{text}/"
    return text if pattern.case is None else f"{text} ({'Aa' if pattern.case else 'aa'})"


class FirstErrorLine(StatusLine):
    """Shows the first error, if any; a click, or the key on the line, goes to the error in the log."""

    DEFAULT_CSS = """
    FirstErrorLine { display: none; max-height: 20vh; padding: 0 1; }
    FirstErrorLine { background: $error-muted; color: $text-error; }
    FirstErrorLine.-known { display: block; }
    """

    class Chosen(Message):
        """The user wants to go to the first error."""

    _error_and_message: tuple[LineKey | None, str | None] = None, None
    """Key of the first error, and its message once the log contains it."""

    def show(self, store: LogStore, time_mode: str, key: str) -> None:
        """Show the first error of the store, if any, and the key that goes to it."""
        error_key = store.first_error
        entry = None if error_key is None else store.entry(error_key)
        self.set_class(isinstance(entry, LogLine), "-known")
        if error_key is None or not isinstance(entry, LogLine):
            self._error_and_message = None, None
            return
        text = self._error_and_message[1] if self._error_and_message[0] == error_key else None
        self._error_and_message = error_key, text or exception_of(store, error_key, entry)
        _, newest_ns = store.span_ns or (0, entry.timestamp_ns)
        line = line_spans(entry, self._error_and_message[1] or entry.message, newest_ns, time_mode)
        self.set_facts([[("✗ first error ", "bad"), (f"{key} ", "key"), *line]])

    def on_click(self) -> None:
        self.post_message(self.Chosen())


def exception_of(store: LogStore, key: LineKey, heading: LogLine) -> str | None:
    """Return the error message of a line; for a traceback, its exception, or None if it is not logged yet."""
    message, reader = heading.message.strip(), TracebackReader()
    first_part = reader.read(heading.message)
    is_heading = "Traceback (most recent call last)" in message
    if is_heading and "\n" in message:
        return message.rsplit("\n", 1)[-1]
    if first_part is None or not is_heading:
        return message
    # the lines of several ranks interleave, so the exception may be far below the heading
    for entry in islice(store.entries_after(key), 400):
        if not isinstance(entry, LogLine) or entry.replica != heading.replica:
            continue
        part = reader.read(entry.message)
        if part is not None and part.lane == first_part.lane and part.part is TracebackPart.END:
            return entry.message
    return None


def line_spans(line: LogLine, text: str, newest_ns: int, time_mode: str) -> list[Span]:
    """Format a line on a single row; include its date if it is not the date of the newest line."""
    zone = UTC if time_mode == "utc" else None
    time_text = stamp_text(line.timestamp_ns, zone)
    begin_index = len("2026-03-01 ") if time_text[:10] == stamp_text(newest_ns, zone)[:10] else len("2026-")
    node = f"{sanitize(line.replica)} " if line.replica else ""
    first_row = clip(sanitize(text.strip().split("\n", 1)[0]), 1000)
    return [(f"{time_text[begin_index:19]} {node}", "plain"), (first_row, "strong")]


TIME_LABELS = {"utc": "UTC", "relative": "ages", "elapsed": "since start", "off": "no times"}
"""Labels of the time modes; local time, the default, has none."""


@dataclass
class NodeChosen(Message):
    """The user wants to see only this node, or all nodes."""

    node: str | None


@dataclass(slots=True)
class LogState:
    """How much of a log has been read, and the state of the search."""

    caught_up: bool = False
    """True once the newest lines have been read."""
    ended: bool = False
    """True once the job has ended; a few more lines may arrive."""
    settled: bool = False
    """True once no more lines are expected."""
    read_fraction: float | None = None
    """Fraction of the older lines read so far, by time; None before any."""
    pattern: LogPattern | None = None
    """The pattern that is searched for; None without a search."""
    match: MatchChanged | None = None
    """The newest result of the search."""

    @property
    def is_complete(self) -> bool:
        """True once the job has ended, its whole log has been read, and no late lines are expected."""
        return self.settled and self.read_fraction == 1


class LogBar(StatusLine):
    """The bar above the log. Filters and the number of matches come first, and are always visible."""

    DEFAULT_CSS = """
    LogBar { padding: 0 1; max-height: 40vh; background: $surface; color: $text-muted; }
    """

    def show(self, options: LogOptions, columns: Sequence[str], view: LogView, state: LogState) -> None:
        """Show the state of the log in `view`; `columns` are the nodes that are side by side, if any."""
        facts = [_node_label(options, columns), _follow_state(options, view, state)]
        if state.pattern is not None:
            facts.append(match_spans(state.pattern, state.match))
        facts += filter_spans(options)
        line_count, is_filtered = len(view.store), options.has_filter
        if is_filtered:
            facts.append([(f"{count(view.model.passing_count)} of {count(line_count)}", "plain")])
        priority_count = len(facts)
        if view.store.dropped:
            facts.append([(f"{counted(view.store.dropped, 'older line')} not kept", "muted")])
        facts += _display_options(options)
        if state.caught_up and state.read_fraction not in (None, 1):
            facts.append([(f"reading older lines {percent(state.read_fraction)}", "muted")])
        if not is_filtered and (line_count or state.read_fraction == 1):
            facts.append([(counted(line_count, "line"), "muted")])
        if view.date_unless_today:
            facts.append([(view.date_unless_today, "plain")])
        self.set_facts(facts, priority_count)


def _node_label(options: LogOptions, columns: Sequence[str]) -> list[Span]:
    node = only_node(options)
    label = sanitize(node) if node else "all nodes"
    if columns:
        label = f"{sanitize(columns[0])} … {sanitize(columns[-1])}"
    return [("Log ", "title"), (label, "plain")]


def _follow_state(options: LogOptions, view: LogView, state: LogState) -> list[Span]:
    is_following, unseen_count = view.viewport.follow, view.model.unseen
    if state.ended and (is_following or not unseen_count):
        return [("complete" if state.is_complete else "job ended", "muted")]
    if is_following and options.until_ns is not None:
        return [("end of the range", "muted")]
    if is_following:
        return [("following", "good") if state.caught_up else ("reading", "muted")]
    spans: list[Span] = [("paused", "warn")]
    if unseen_count:
        spans.append((f" ↓ {count(unseen_count)} new", "accent"))
    return spans


def match_spans(pattern: LogPattern, match: MatchChanged | None) -> list[Span]:
    spans: list[Span] = [(f"/{pattern_text(pattern).strip('/')}", "accent")]
    if pattern.regex:
        spans.append((" regex", "muted"))
    if match is None:
        return spans
    if match.entry is not None:
        spans.append((f" {count(match.position)} of {count(match.total)}", "plain"))
    elif match.total:
        spans.append((f" {count(match.total)} found", "plain"))
    else:
        spans.append((": not found", "warn"))
    if match.entry is not None and match.wrapped:
        spans.append((" wrapped around", "warn"))
    return spans


def _display_options(options: LogOptions) -> list[list[Span]]:
    facts: list[list[Span]] = []
    if options.time in TIME_LABELS:
        facts.append([(TIME_LABELS[options.time], "accent")])
    if options.wrap:
        facts.append([("wrapped", "accent")])
    unfolded_kinds = [
        name
        for name, is_folded in (
            ("tracebacks", options.fold_tracebacks),
            ("bars", options.collapse_progress),
            ("repeats", options.fold_repeats),
        )
        if not is_folded
    ]
    if unfolded_kinds:
        facts.append([("all ", "muted"), (", ".join(unfolded_kinds), "accent")])
    return facts
