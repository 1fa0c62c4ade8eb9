"""The log tab: the bar, the first error and the lines, with what the pane does on each action."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from textual import on
from textual.app import ComposeResult
from textual.message import Message

from api_client.models.logs import NS_PER_S, LogGap, LogLine, stamp_ns
from tui.analysis.logs.pattern import LogPattern
from tui.feeds.run_log import LogPart
from tui.screens.base import key_on
from tui.screens.job.log_bar import FirstErrorLine, LogBar, LogFilterState, LogStatus
from tui.screens.job.log_field import FieldPurpose, FieldSwitches, LogField
from tui.screens.job.log_shown import BaseLogPane, LogColumns
from tui.text.times import LogTimes, moment_at, moment_of
from tui.text.units import count
from tui.widgets.log_view.messages import (
    FirstErrorChanged,
    FollowChanged,
    GapRetryRequested,
    MatchChanged,
    UnseenChanged,
)
from tui.widgets.log_view.store import DEFAULT_MAX_LINES
from tui.widgets.text_panel import WrappedText


class LogPane(BaseLogPane):
    """The log of all nodes in one time order, or nodes side by side."""

    DEFAULT_CSS = """
    LogPane {
        & > LogColumns { height: 1fr; }
        & > LogColumns.-empty { height: 0; }
        & > #no-log { height: 1fr; content-align: center middle; color: $text-muted; }
    }
    """

    @dataclass
    class GapWanted(Message):
        """The user wants this gap to be read again."""

        gap: LogGap

    @dataclass
    class SaveWanted(Message):
        """The user wants to save the lines shown, or all lines, to this file."""

        path: str
        everything: bool = field(kw_only=True)

    def __init__(self, *, max_lines: int = DEFAULT_MAX_LINES, id: str | None = None) -> None:
        super().__init__(id=id)
        self._max_lines = max_lines
        self._before_field = LogFilterState()
        self._pattern: LogPattern | None = None
        self._match: MatchChanged | None = None
        self._origin: datetime | None = None
        self._ended = False
        self._read_part: float | None = None
        self._held: list[LogPart] | None = None
        self._reported_dropped = False

    def compose(self) -> ComposeResult:
        yield LogBar(id="log-bar")
        yield FirstErrorLine(id="log-first-error")
        yield LogColumns(self._max_lines)
        yield WrappedText("Reading the log…", id="no-log")
        yield LogField(id="log-field")

    def on_mount(self) -> None:
        self.show_log_status()

    # New parts

    @property
    def field(self) -> LogField:
        """The input field of the pane."""
        return self.query_one(LogField)

    def set_origin(self, begin: datetime | None) -> None:
        """Set the time from which elapsed times count."""
        if begin is not None and begin != self._origin:
            self._origin = begin
            self.columns.set_origin(int(begin.timestamp() * NS_PER_S))

    def take(self, part: LogPart) -> None:
        """Show one more part of the log."""
        if self._held is not None:
            self._held.append(part)
            return
        view = self.columns.main
        if part.restarted:
            view.clear()
            self._ended, self._match = False, None
            self.forget_times()
            self._reported_dropped = False
        elif part.filled is not None:
            if view.replace_gap(part.filled, part.entries) and not self.view.follow:
                self.view.go_to_time(part.filled.start_ns)  # show the lines that the user asked for
            self._report_filled(part)
        elif part.older:
            view.prepend(part.entries)
        else:
            view.append(part.entries)
        self._ended = self._ended or part.ended
        if part.read_part is not None:
            self._read_part = part.read_part
        self.set_nodes({line.replica for line in part.entries if isinstance(line, LogLine) and line.replica})
        if part.entries:
            self.update_times(part.entries)
        self._report_dropped()
        self.show_log_status()

    def _report_dropped(self) -> None:
        """Notify the user once; the log bar continues to show the number of dropped lines."""
        if self.columns.main.dropped and not self._reported_dropped:
            self._reported_dropped = True
            self.notify(
                "Disk full: the oldest lines were dropped from this view. "
                "The log itself is complete; bt-tui logs reads all of it.",
                severity="warning",
            )

    def _report_filled(self, part: LogPart) -> None:
        gaps = sum(isinstance(entry, LogGap) for entry in part.entries)
        lines = len(part.entries) - gaps
        if gaps:
            self.notify(f"{count(lines)} lines recovered; some are still missing.", severity="warning")
        else:
            self.notify(f"Gap filled: {count(lines)} lines.")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold back new parts within the block, so that a pass over all lines sees a stable log."""
        self._held = []
        try:
            yield
        finally:
            waiting, self._held = self._held, None
            for part in waiting:
                self.take(part)

    # Going back

    def leave(self) -> bool:
        """Undo one step: field, selection, search, filter, columns; return False if there was none."""
        if self.field.is_open:
            self.close_field()
            self.choose(self._before_field)
            return True
        if self.view.clear_selection():
            return True
        if self._pattern is not None:
            self._find(None)
            return True
        looser = self._choice.without_last_filter()
        if looser is not None:
            self.choose(looser)
            return True
        if self.is_split:
            self.toggle_split()
            return True
        return False

    def focus_view(self) -> None:
        self.view.focus()

    # Typed text

    def open_field(self, purpose: FieldPurpose, text: str = "") -> None:
        """Open the field for a search, a filter, a time, or a path."""
        self._before_field = self._choice
        known = self._choice.pattern if purpose == "filter" else None
        switches = self.field.switches
        if purpose == "filter":
            switches = replace(switches, invert=self._choice.invert, context_lines=self._choice.context_lines)
        if known:
            text, switches = known.text, replace(switches, regex=known.regex, case=known.case)
        self.field.open(purpose, text, switches if purpose != "save" else FieldSwitches())

    def close_field(self) -> None:
        """Close the field and focus the lines."""
        self.field.close()
        self.focus_view()

    @on(LogField.Typed)
    def _typed(self, message: LogField.Typed) -> None:
        message.stop()
        field = self.field
        if message.purpose not in ("find", "filter"):
            return
        pattern = field.pattern
        field.problem = pattern.problem if pattern else ""
        if message.purpose == "filter" and not field.problem:
            switches = field.switches
            self.choose(
                replace(
                    self._choice,
                    pattern=pattern,
                    invert=switches.invert and bool(pattern),
                    context_lines=switches.context_lines if pattern else 0,
                )
            )

    @on(LogField.Given)
    def _given(self, message: LogField.Given) -> None:
        message.stop()
        if self.field.problem and message.purpose != "save":
            return
        if message.purpose == "time":
            self._go_to(message.text)
        elif message.purpose == "save":
            self.post_message(self.SaveWanted(message.text, everything=self.field.switches.everything))
        else:
            self.close_field()
            if message.purpose == "find" and self.field.pattern:
                self._find(self.field.pattern)

    def _find(self, pattern: LogPattern | None) -> None:
        self._pattern, self._match = pattern, None
        for view in self.columns.views:
            if view is not self.view:
                view.find(None)
        self.view.find(pattern)
        self.show_log_status()

    def _go_to(self, typed: str) -> None:
        entry = self.current_entry
        newest = _moment(self.newest_ns)
        times = LogTimes(
            oldest=self._origin or _moment(self.oldest_ns),
            newest=newest,
            here=_moment(stamp_ns(entry)) if entry is not None else newest,
            timezone=UTC if self.view.time_mode == "utc" else None,
        )
        try:
            moment = moment_of(typed, times)
            time_ns = int(moment.timestamp() * NS_PER_S)
        except (ValueError, OverflowError) as error:
            self.field.problem = str(error)
            return
        self.close_field()
        for view in self.columns.views:
            view.go_to_time(time_ns)

    # Messages from the views

    @on(MatchChanged)
    def _searched(self, message: MatchChanged) -> None:
        if self._pattern is not None:
            self._match = message
            self.show_log_status()

    @on(GapRetryRequested)
    def _gap_opened(self, message: GapRetryRequested) -> None:
        self.post_message(self.GapWanted(message.gap))

    @on(FirstErrorChanged)
    @on(FollowChanged)
    @on(UnseenChanged)
    def _view_moved(self) -> None:
        self.show_log_status()

    def show_log_status(self) -> None:
        """Update the status line, the first error and the placeholder."""
        main = self.columns.main
        empty = main.line_count == 0
        self.query_one("#no-log", WrappedText).display = empty
        self.columns.set_class(empty, "-empty")  # hiding it would lose the focus
        if empty:
            self.query_one("#no-log", WrappedText).update(
                "The job ended without logging anything." if self._ended else "No log lines yet."
            )
        self.query_one(FirstErrorLine).show(main.store, main.time_mode, key_on(self, "logs.first_error"))
        self.query_one(LogBar).show(
            LogStatus(
                choice=self._choice,
                columns=self.columns.nodes,
                following=self.view.follow,
                unseen=self.view.unseen,
                ended=self._ended,
                read_part=self._read_part,
                lines=main.line_count,
                shown=self.view.shown_count,
                pattern=self._pattern,
                match=self._match,
                view=self.view,
                day=main.only_day,
                dropped=main.dropped,
            )
        )


def _moment(time_ns: int) -> datetime:
    return moment_at(time_ns, UTC) or datetime.fromtimestamp(0, UTC)
