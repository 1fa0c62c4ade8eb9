"""The log tab: the bar, the first error and the lines, with everything that can be done with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from api_client.errors import RequestError
from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S, LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.pattern import LogPattern
from tui.feeds.run_log import LogPart
from tui.screens.base import key_on
from tui.screens.job.log_bar import (
    FirstErrorLine,
    LogBar,
    LogStatus,
    only_node,
    with_next_level,
    with_next_span,
    without_last_filter,
)
from tui.screens.job.log_columns import COLUMN_CELLS, LogColumns
from tui.screens.job.log_export import LogExport
from tui.screens.job.log_field import FieldPurpose, FieldSwitches, LogField
from tui.text.names import natural_key
from tui.text.times import LogTimes, moment_at, moment_of
from tui.text.units import count
from tui.widgets.log_view.gutter import TIME_MODES
from tui.widgets.log_view.messages import GapRetryRequested, MatchChanged, StatusChanged
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.view import LogView
from tui.widgets.text_panel import WrappedText

SPAN_STEPS = 20
"""A following time range moves its start in steps of this fraction of its length (1/n)."""
MINUTE_S = 60
HOUR_S = 3600
NO_BOOKMARK = "No bookmarks yet."


class LogPane(Vertical):
    """The log of all nodes in one time order, or nodes side by side."""

    DEFAULT_CSS = """
    LogPane {
        & > LogColumns { height: 1fr; }
        & > LogColumns.-empty { height: 0; }
        & > #no-log { height: 1fr; content-align: center middle; color: $text-muted; }
    }
    """

    @dataclass
    class NodeWanted(Message):
        """The user wants to see only this node, or all nodes."""

        node: str | None

    def __init__(
        self,
        job: TrainingJob,
        options: LogOptions,
        *,
        retry: Callable[[LogGap], Awaitable[object]],
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.options = options
        self.nodes: tuple[str, ...] = ()
        """Names of the known nodes, from the metrics and from the log."""
        self.is_split = False
        """True while nodes are shown side by side."""
        self._export = LogExport(self, job, self._hold)
        self.retry = retry
        """Reads the lines of a gap again."""
        self._before_field = options
        self._newest_ns = self._oldest_ns = 0
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
        yield LogColumns(self.options)
        yield WrappedText("Reading the log…", id="no-log")
        yield LogField(id="log-field")

    def on_mount(self) -> None:
        self.show_log_status()

    @property
    def columns(self) -> LogColumns:
        return self.query_one(LogColumns)

    @property
    def view(self) -> LogView:
        """The view with the focus, else the first one."""
        return self.columns.current

    @property
    def field(self) -> LogField:
        return self.query_one(LogField)

    def focus_view(self) -> None:
        self.view.focus()

    # New parts

    def set_origin(self, begin: datetime | None) -> None:
        """Set the time from which elapsed times count."""
        if begin is not None and begin != self._origin:
            self._origin = begin
            self.columns.set_origin(int(begin.timestamp() * NS_PER_S))

    def set_nodes(self, names: Collection[str]) -> None:
        """Add nodes, known from the metrics or from the lines."""
        if not set(names) <= set(self.nodes):
            self.nodes = tuple(sorted({*self.nodes, *names}, key=natural_key))

    def take(self, part: LogPart) -> None:
        """Show one more part of the log."""
        if self._held is not None:
            self._held.append(part)
            return
        view = self.columns.main
        if part.restarted:
            view.clear()
            self._ended, self._match, self._reported_dropped = False, None, False
            self._newest_ns = self._oldest_ns = 0
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
        if part.entries:
            self._learn(part.entries)
        self._report_dropped()
        self.show_log_status()

    def _learn(self, entries: tuple[LogEntry, ...]) -> None:
        """Learn nodes and times from new lines; a following time range moves along."""
        self.set_nodes({line.replica for line in entries if isinstance(line, LogLine) and line.replica})
        first, last = stamp_ns(entries[0]), stamp_ns(entries[-1])
        self._oldest_ns = min(self._oldest_ns, first) if self._oldest_ns else first
        self._newest_ns = max(self._newest_ns, last)
        span, since_ns = self.options.span, self.options.since_ns
        if span is not None:
            step_ns = int(span.total_seconds() * NS_PER_S) // SPAN_STEPS
            if since_ns is None or self._newest_ns - step_ns * (SPAN_STEPS + 1) > since_ns:
                self._apply(self.options)

    def _report_dropped(self) -> None:
        """Notify the user once; the log bar continues to show the number of dropped lines."""
        if self.columns.main.store.dropped and not self._reported_dropped:
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
    def _hold(self) -> Iterator[None]:
        """Hold back new parts within the block, so that a pass over all lines sees a stable log."""
        self._held = []
        try:
            yield
        finally:
            waiting, self._held = self._held, None
            for part in waiting:
                self.take(part)

    # Options

    def choose(self, options: LogOptions) -> None:
        """Show the log in this way."""
        if options != self.options:
            self._apply(options)
            self.show_log_status()

    def _apply(self, options: LogOptions) -> None:
        since_ns = None
        if options.span is not None and self._newest_ns:
            since_ns = self._newest_ns - int(options.span.total_seconds() * NS_PER_S)
        self.options = replace(options, since_ns=since_ns)
        self.columns.set_options(self.options)

    def leave(self) -> bool:
        """Undo one step: field, selection, search, filter, columns; return False if there was none."""
        if self.field.is_open:
            self._close_field()
            self.choose(self._before_field)
            return True
        if self.view.clear_selection():
            return True
        if self._pattern is not None:
            self._find(None)
            return True
        looser = without_last_filter(self.options)
        if looser is not None:
            self.choose(looser)
            return True
        if self.is_split:
            self.action_split_log()
            return True
        return False

    def action_next_level(self) -> None:
        self.choose(with_next_level(self.options))

    def action_shorter_log(self) -> None:
        self.choose(with_next_span(self.options, 1))

    def action_longer_log(self) -> None:
        self.choose(with_next_span(self.options, -1))

    def action_toggle_wrap(self) -> None:
        self.choose(replace(self.options, wrap=not self.options.wrap))

    def action_toggle_tracebacks(self) -> None:
        self.choose(replace(self.options, fold_tracebacks=not self.options.fold_tracebacks))

    def action_toggle_progress(self) -> None:
        """Toggle between the last state of a progress bar and all its states."""
        self.choose(replace(self.options, collapse_progress=not self.options.collapse_progress))

    def action_toggle_repeats(self) -> None:
        """Toggle folding of a line that many ranks repeat."""
        self.choose(replace(self.options, fold_repeats=not self.options.fold_repeats))

    def action_next_time_mode(self) -> None:
        after = TIME_MODES.index(self.options.time) + 1
        self.choose(replace(self.options, time=TIME_MODES[after % len(TIME_MODES)]))

    # Nodes

    def show_node(self, node: str | None) -> None:
        """Show only one node, or all; side by side, the columns start from that node."""
        if node is None:
            self._choose_nodes(replace(self.options, nodes=None))
        else:
            hidden = self.options.hidden - {node}
            self._choose_nodes(replace(self.options, nodes=frozenset({node}), hidden=hidden))

    def _choose_nodes(self, options: LogOptions) -> None:
        self.choose(options)
        if self.is_split:
            self._arrange()

    def action_hide_node(self) -> None:
        """Hide the node of the line under the cursor, unless it is the only one shown."""
        entry = self.view.cursor_entry
        node = entry.replica if isinstance(entry, LogLine) else None
        hidden = self.options.hidden | {node} if node else self.options.hidden
        if node is None:
            self.notify("This line has no node.")
        elif set(self.nodes) <= hidden:
            self.notify("Can't hide the last visible node.")
        else:
            self._choose_nodes(replace(self.options, nodes=None, hidden=hidden))
            self.post_message(self.NodeWanted(None))

    def action_show_all_nodes(self) -> None:
        """Remove the node filter and show hidden nodes."""
        self._choose_nodes(replace(self.options, nodes=None, hidden=frozenset()))
        self.post_message(self.NodeWanted(None))

    def action_split_log(self) -> None:
        """Toggle between nodes side by side and one log."""
        columns = self.columns
        if self.is_split:
            self.is_split = False
        elif len(self.nodes) < 2:
            self.notify("This log has only one node.")
            return
        elif columns.room() < 2:
            self.notify(f"Side by side needs {2 * COLUMN_CELLS} columns; this log has {columns.size.width}.")
            return
        else:
            self.is_split = True
        self._arrange()

    def action_next_column(self) -> None:
        self.columns.focus_next(1)

    def action_previous_column(self) -> None:
        self.columns.focus_next(-1)

    def on_resize(self) -> None:
        if self.is_split:
            self.call_after_refresh(self._arrange)

    def _arrange(self) -> None:
        self._begin(self._rebuild_columns(), "log columns")

    async def _rebuild_columns(self) -> None:
        nodes: list[str] = []
        if self.is_split:
            shown = [name for name in self.nodes if name not in self.options.hidden]
            node = only_node(self.options)
            first = shown.index(node) if node in shown else 0
            nodes = (shown[first:] + shown[:first])[: max(1, self.columns.room())]
        await self.columns.split(nodes)
        self.show_log_status()

    # Typed text

    def action_find_in_log(self) -> None:
        self._open_field("find")

    def action_filter_log(self) -> None:
        self._open_field("filter")

    def action_go_to_time(self) -> None:
        self._open_field("time")

    def action_save_log(self) -> None:
        self._open_field("save", self._export.suggested_path())

    def _open_field(self, purpose: FieldPurpose, text: str = "") -> None:
        """Open the field for a search, a filter, a time, or a path."""
        options = self._before_field = self.options
        switches = self.field.switches
        if purpose == "filter":
            switches = replace(switches, invert=options.invert, context_lines=options.context_lines)
            if options.pattern:
                text = options.pattern.text
                switches = replace(switches, regex=options.pattern.regex, case=options.pattern.case)
        self.field.open(purpose, text, switches if purpose != "save" else FieldSwitches())

    def _close_field(self) -> None:
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
                    self.options,
                    pattern=pattern,
                    invert=switches.invert and bool(pattern),
                    context_lines=switches.context_lines if pattern else 0,
                )
            )

    @on(LogField.Given)
    def _given(self, message: LogField.Given) -> None:
        message.stop()
        field = self.field
        if message.purpose == "save":
            self._begin(self._save(message.text), "save log")
        elif field.problem:
            return
        elif message.purpose == "time":
            self._go_to(message.text)
        else:
            self._close_field()
            if message.purpose == "find" and field.pattern:
                self._find(field.pattern)

    # Searching

    def _find(self, pattern: LogPattern | None) -> None:
        self._pattern, self._match = pattern, None
        for view in self.columns.views:
            if view is not self.view:
                view.find(None)
        self.view.find(pattern)
        self.show_log_status()

    @on(MatchChanged)
    def _searched(self, message: MatchChanged) -> None:
        if self._pattern is not None:
            self._match = message
            self.show_log_status()

    def action_next_match(self) -> None:
        self.view.action_next_match()

    def action_previous_match(self) -> None:
        self.view.action_previous_match()

    @on(FirstErrorLine.Chosen)
    def action_first_error(self) -> None:
        """Go to the first error of all nodes.

        Views without that line go to its time, to show what their nodes did then.
        """
        first = self.view.first_error
        if first is None:
            is_complete = self._ended and self._read_part in (None, 1)
            self.notify("No errors." if is_complete else "No errors so far.")
            return
        views = self.columns.views
        went = [view.go_to_first_error() for view in views]
        for view, has_it in zip(views, went, strict=True):
            if not has_it:
                view.go_to_time(stamp_ns(first))
        if not any(went):
            key = key_on(self, "screen.back")
            self.notify(f"The first error is filtered out; {key} shows more.")

    def action_next_error(self) -> None:
        self._notify_unless(self.view.next_error(), "No more errors below.")

    def action_previous_error(self) -> None:
        self._notify_unless(self.view.next_error(backwards=True), "No more errors above.")

    def action_toggle_bookmark(self) -> None:
        self.view.toggle_bookmark()

    def action_next_bookmark(self) -> None:
        self._notify_unless(self.view.go_to_bookmark(), NO_BOOKMARK)

    def action_previous_bookmark(self) -> None:
        self._notify_unless(self.view.go_to_bookmark(backwards=True), NO_BOOKMARK)

    def _notify_unless(self, went: bool, words: str) -> None:
        if not went:
            self.notify(words)

    # Reading

    def action_toggle_follow(self) -> None:
        self.view.action_toggle_follow()

    def action_oldest_line(self) -> None:
        self.view.action_first()

    def action_newest_line(self) -> None:
        """Go to the newest line and follow."""
        self.view.action_last()

    def action_toggle_fold(self) -> None:
        self.view.action_open_row()

    def action_minute_back(self) -> None:
        self._jump(-MINUTE_S)

    def action_minute_on(self) -> None:
        self._jump(MINUTE_S)

    def action_hour_back(self) -> None:
        self._jump(-HOUR_S)

    def action_hour_on(self) -> None:
        self._jump(HOUR_S)

    def _jump(self, seconds: int) -> None:
        for view in self.columns.views:
            view.jump(seconds)

    def _go_to(self, typed: str) -> None:
        entry = self.view.cursor_entry
        newest = _moment(self._newest_ns)
        times = LogTimes(
            oldest=self._origin or _moment(self._oldest_ns),
            newest=newest,
            here=_moment(stamp_ns(entry)) if entry is not None else newest,
            timezone=UTC if self.options.time == "utc" else None,
        )
        try:
            time_ns = int(moment_of(typed, times).timestamp() * NS_PER_S)
        except (ValueError, OverflowError) as error:
            self.field.problem = str(error)
            return
        self._close_field()
        for view in self.columns.views:
            view.go_to_time(time_ns)

    @on(GapRetryRequested)
    def _gap_opened(self, message: GapRetryRequested) -> None:
        self.notify("Retrying the gap…")
        self._begin(self._read_gap(message.gap), "gap")

    async def _read_gap(self, gap: LogGap) -> None:
        try:
            await self.retry(gap)
        except RequestError as error:
            self.notify(str(error), title="Still missing", severity="warning")

    # Taking lines elsewhere

    def action_extend_down(self) -> None:
        self.view.action_extend_selection(1)

    def action_extend_up(self) -> None:
        self.view.action_extend_selection(-1)

    def action_copy_lines(self) -> None:
        self._export.copy(self.view)

    async def _save(self, path: str) -> None:
        field = self.field
        field.problem = await self._export.save(self.view, path, everything=field.switches.everything)
        if not field.problem:
            self._close_field()

    def action_page_log(self) -> None:
        self._begin(self._export.open(self.view, "pager"), "log outside")

    def action_edit_log(self) -> None:
        self._begin(self._export.open(self.view, "editor"), "log outside")

    def _begin(self, work: Coroutine[None, None, None], group: str) -> None:
        """Run a task that replaces others of its group."""
        self.run_worker(work, name=group, group=group, exclusive=True, exit_on_error=False)

    # Status

    @on(StatusChanged)
    def show_log_status(self) -> None:
        """Update the status line, the first error and the placeholder."""
        main, view = self.columns.main, self.view
        empty = main.line_count == 0
        self.query_one("#no-log", WrappedText).display = empty
        self.columns.set_class(empty, "-empty")  # hiding it would lose the focus
        if empty:
            self.query_one("#no-log", WrappedText).update(
                "The job ended without logging anything." if self._ended else "No log lines yet."
            )
        self.query_one(FirstErrorLine).show(main.store, self.options.time, key_on(self, "logs.first_error"))
        self.query_one(LogBar).show(
            LogStatus(
                options=self.options,
                columns=self.columns.nodes,
                following=view.follow,
                unseen=view.unseen,
                ended=self._ended,
                read_part=self._read_part,
                lines=main.line_count,
                shown=view.shown_count,
                pattern=self._pattern,
                match=self._match,
                day=main.only_day,
                dropped=main.store.dropped,
            )
        )


def _moment(time_ns: int) -> datetime:
    return moment_at(time_ns, UTC) or datetime.fromtimestamp(0, UTC)
