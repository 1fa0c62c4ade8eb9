"""The log pane: the bar, the first error and the lines, with all actions on them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.message import Message
from textual.reactive import var

from api_client.files import why_not_written
from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S, LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.levels import LogLevel
from tui.analysis.logs.not_kept import NotKept
from tui.analysis.logs.pattern import LogPattern
from tui.feeds.run_log import LogPart
from tui.screens.base import AppScreen, key_for_widget
from tui.screens.job.log_bar import (
    FirstErrorLine,
    LogBar,
    LogState,
    NodeChosen,
    line_spans,
)
from tui.screens.job.log_columns import COLUMN_CELLS, LogColumns
from tui.screens.job.log_field import FieldSwitches, LogField
from tui.screens.messages import CopyRequested, FilesSaved
from tui.settings.model import Loaded
from tui.settings.remembered import JobState
from tui.system.external_programs import MAX_COPY_BYTES, Program, program_of, show_in_program
from tui.system.saved_files import delivery_path, expanded_path, proposed_path, save_entries
from tui.tables.column import Span
from tui.text.log_entries import message_text
from tui.text.names import natural_key
from tui.text.sanitize import sanitize
from tui.text.times import LogTimes, moment_at, parse_time
from tui.text.units import counted
from tui.widgets.background import run_in_background
from tui.widgets.log_view.gutter import TIME_MODES
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.search import MatchChanged, has_match
from tui.widgets.log_view.view import GapRetryRequested, LogView, StatusChanged
from tui.widgets.opening import MountsWithChildren
from tui.widgets.text_panel import WrappedText

REMEMBERED_OPTIONS = ("wrap", "collapse_progress", "fold_tracebacks")
"""The log options that are remembered, in addition to the time mode."""


def log_options(settings: Loaded, job_state: JobState) -> LogOptions:
    """Return the initial options of a log: settings given explicitly, else remembered options, else defaults.

    The minimum level is not remembered: users might not notice that lines are hidden.
    """
    options = settings.configuration.logs
    defaults = LogOptions(
        time=options.time,
        wrap=options.wrap,
        min_level=options.min_level,
        collapse_progress=options.collapse_progress,
        fold_tracebacks=options.fold_tracebacks,
        max_lines=options.max_lines_in_memory,
    )
    remembered: dict[str, Any] = {name: getattr(job_state, name) for name in REMEMBERED_OPTIONS}
    remembered["time"] = job_state.time if job_state.time in TIME_MODES else None
    return replace(
        defaults,
        **{
            name: value
            for name, value in remembered.items()
            if value is not None and not settings.is_given(f"logs.{name}")
        },
    )


LEVEL_CYCLE: tuple[LogLevel | None, ...] = (None, "INFO", "WARNING", "ERROR")
"""Minimum levels in the order in which the key steps through them; None shows all lines."""


class LogPane(MountsWithChildren, Vertical):
    """The log of all nodes in one time order, or nodes side by side."""

    DEFAULT_CSS = """
    LogPane {
        & > LogColumns { height: 1fr; }
        & > LogColumns.-empty { height: 0; }
        & > #no-log { height: 1fr; content-align: center middle; color: $text-muted; }
    }
    """

    @dataclass
    class TimeRequested(Message):
        """Request to go to a time, perhaps outside the visible range."""

        time_ns: int

    @dataclass
    class LengthRequested(Message):
        """Request for the next shorter time range (1), or the next longer time range (-1)."""

        step: int

    nodes: var[tuple[str, ...]] = var[tuple[str, ...]]((), init=False)
    """Names of the known nodes, from the metrics and from the log."""
    is_searching: var[bool] = var(False, init=False)

    def __init__(
        self,
        job: TrainingJob,
        options: LogOptions,
        *,
        now_s: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.columns = LogColumns(options, now_s)
        self.field = LogField(id="log-field")
        self._proposed_path = proposed_path(job.name or job.id, suffix=".log", fallback_name="job")
        self._replaceable: Path | None = None
        """Existing file that the user was warned about; saving to it again replaces it."""
        self._options_before_field = options
        self._log_state = LogState()
        self._delayed_parts: list[LogPart] | None = None

    def compose(self) -> ComposeResult:
        yield LogBar(id="log-bar")
        yield FirstErrorLine(id="log-first-error")
        yield self.columns
        yield WrappedText("Reading the log…", id="no-log")
        yield self.field

    def on_mount(self) -> None:
        self.show_log_status()

    @property
    def options(self) -> LogOptions:
        return self.columns.options

    @property
    def view(self) -> LogView:
        return self.columns.current_view

    def focus_view(self) -> None:
        self.screen.set_focus(self.view)

    async def run_action(self, action: str, namespaces: Mapping[str, DOMNode] | None = None) -> None:
        """Run an action of this pane, or of the focused log view if the pane has no such action."""
        is_pane_action = hasattr(self, f"action_{action.partition('(')[0]}")
        await (super().run_action if is_pane_action else self.view.run_action)(action, namespaces)

    # New parts

    def set_origin(self, begin: datetime | None) -> None:
        if begin is not None:
            self.columns.set_origin(int(begin.timestamp() * NS_PER_S))

    def set_nodes(self, names: Collection[str]) -> None:
        self.nodes = tuple(sorted({*self.nodes, *names}, key=natural_key))

    def add_part(self, part: LogPart) -> None:
        """Append or prepend log entries to the store, or fill a gap with them.

        If the log is read again from the start, clear the store instead.
        """
        if self._delayed_parts is not None:
            self._delayed_parts.append(part)
            return
        state, store = self._log_state, self.columns.main_view.store
        if part.is_restart:
            self.columns.main_view.clear()
            state = self._log_state = LogState(pattern=state.pattern)
        elif part.filled_gap is not None:
            viewport = self.view.viewport
            if store.replace_gap(part.filled_gap, part.entries) and not viewport.follow:
                # show the lines that the user requested
                viewport.go_to_time(part.filled_gap.start_ns if part.wanted_ns is None else part.wanted_ns)
            if not isinstance(part.filled_gap, NotKept):
                self._report_filled_gap(part.entries)
        elif part.is_older:
            store.prepend(part.entries)
        else:
            store.append(part.entries)
            state.caught_up = True
        state.ended, state.settled = state.ended or part.has_ended, state.settled or part.is_settled
        state.read_fraction = state.read_fraction if part.read_fraction is None else part.read_fraction
        self.set_nodes({line.replica for line in part.entries if isinstance(line, LogLine) and line.replica})
        self.show_log_status()

    def _report_filled_gap(self, entries: Sequence[LogEntry]) -> None:
        gap_count = sum(isinstance(entry, LogGap) for entry in entries)
        lines_text = counted(len(entries) - gap_count, "line")
        if gap_count:
            self.notify(f"{lines_text} recovered; some are still missing.", severity="warning")
        else:
            self.notify(f"Gap filled: {lines_text}.")

    @contextmanager
    def _delaying_parts(self) -> Iterator[None]:
        """Delay new parts until the ``with`` block ends, because the block iterates over all lines."""
        self._delayed_parts = []
        try:
            yield
        finally:
            delayed_parts, self._delayed_parts = self._delayed_parts, None
            for part in delayed_parts:
                self.add_part(part)

    # Options

    def set_options(self, options: LogOptions) -> None:
        if options != self.options:
            self.columns.set_options(options)
            self.show_log_status()

    def step_back(self) -> bool:
        """Close the field, else clear selection, search, filter or columns; return False if none is active.

        The screen itself resets the chosen node and the time range.
        """
        options, purpose = self.options, self.field.purpose
        if self.field.is_open:
            self._close_field()
            self._cancel_typed()
            if purpose == "filter":
                self.set_options(self._options_before_field)
            elif purpose == "find":
                self._find(None)
            return True
        if self.view.viewport.clear_selection():
            return True
        if self._log_state.pattern is not None:
            self._find(None)
        elif options.pattern:
            self.set_options(replace(options, pattern=None, invert=False))
        elif options.min_level is not None:
            self.set_options(replace(options, min_level=None))
        elif options.hidden:
            self.set_options(replace(options, hidden=frozenset()))
        elif self.columns.is_split:
            self.action_split_log()
        else:
            return False
        return True

    def action_next_level(self) -> None:
        next_levels = dict(pairwise(LEVEL_CYCLE))
        self.set_options(replace(self.options, min_level=next_levels.get(self.options.min_level)))

    def show_range(self, start_s: float | None, end_s: float | None) -> None:
        """Show only the lines of a time range (epoch seconds)."""
        since_ns, until_ns = (None if at_s is None else int(at_s * NS_PER_S) for at_s in (start_s, end_s))
        self.set_options(replace(self.options, since_ns=since_ns, until_ns=until_ns))

    def action_next_length(self, step: int) -> None:
        self.post_message(self.LengthRequested(step))

    def action_toggle_option(self, option: str) -> None:
        change: dict[str, Any] = {option: not getattr(self.options, option)}
        self.set_options(replace(self.options, **change))

    def action_next_time_mode(self) -> None:
        next_index = TIME_MODES.index(self.options.time) + 1
        self.set_options(replace(self.options, time=TIME_MODES[next_index % len(TIME_MODES)]))

    # Nodes

    def show_node(self, node: str | None) -> None:
        """Show only the lines of this node, or of all nodes (None); side by side, begin with this node."""
        nodes = None if node is None else frozenset({node})
        self._choose_nodes(replace(self.options, nodes=nodes, hidden=self.options.hidden - {node}))

    def _choose_nodes(self, options: LogOptions) -> None:
        self.set_options(options)
        if self.columns.is_split:
            self._start_rebuilding_columns()

    def action_hide_node(self) -> None:
        entry = self.view.model.cursor_entry
        node = entry.replica if isinstance(entry, LogLine) else None
        hidden = self.options.hidden | {node} if node else self.options.hidden
        if node is None:
            self.notify("This line has no node.")
        elif set(self.nodes) <= hidden:
            self.notify("Can't hide the last visible node.")
        else:
            self._choose_nodes(replace(self.options, nodes=None, hidden=hidden))
            self.post_message(NodeChosen(None))

    def action_show_all_nodes(self) -> None:
        self._choose_nodes(replace(self.options, nodes=None, hidden=frozenset()))
        self.post_message(NodeChosen(None))

    def action_split_log(self) -> None:
        columns = self.columns
        if not columns.is_split and len(self.nodes) < 2:
            self.notify("This log has only one node.")
        elif not columns.is_split and columns.max_columns() < 2:
            self.notify(
                f"Side by side needs a width of {2 * COLUMN_CELLS} characters;"
                f" this log has {columns.size.width}."
            )
        else:
            columns.is_split = not columns.is_split
            self._start_rebuilding_columns()

    def action_focus_column(self, step: int) -> None:
        if not self.columns.is_split:
            self.notify(f"Not side by side; {key_for_widget(self, 'logs.split_log')} splits the log by node.")
        self.columns.focus_next(step)

    def on_resize(self) -> None:
        if self.columns.is_split:
            self.call_after_refresh(self._start_rebuilding_columns)

    def _start_rebuilding_columns(self) -> None:
        self._start_work(self._rebuild_columns, "log columns")

    async def _rebuild_columns(self) -> None:
        await self.columns.show_nodes(self.nodes)
        self.show_log_status()

    # Typed text

    def action_find_in_log(self) -> None:
        pattern = self._log_state.pattern
        self.field.open("find", pattern.text if pattern else "", is_selected=True)

    def action_filter_log(self) -> None:
        self._options_before_field = self.options
        self.field.open_filter(self.options)

    def action_go_to_time(self) -> None:
        self.field.open("time")

    def action_save_log(self) -> None:
        self._replaceable = None
        self.field.open("save", str(self._proposed_path), FieldSwitches())

    def _close_field(self) -> None:
        self.field.close()
        self.focus_view()

    @on(LogField.Typed)
    def _typed(self, message: LogField.Typed) -> None:
        if message.purpose == "filter" and not self.field.problem:
            self._resolve_pattern(self._filter)
        elif message.purpose == "find" and not self.field.problem:
            self._resolve_pattern(partial(self._find, moves_cursor=False))

    def _filter(self, pattern: LogPattern | None) -> None:
        invert = pattern is not None and self.field.switches.invert
        self.set_options(replace(self.options, pattern=pattern, invert=invert))

    @on(LogField.Submitted)
    def _submitted(self, message: LogField.Submitted) -> None:
        field = self.field
        if message.purpose == "save":
            self._start_work(partial(self._save, message.text), "save log")
        elif field.problem:
            return
        elif message.purpose == "time":
            self._go_to_typed_time(message.text)
        else:
            self._close_field()
            if message.purpose == "find" and field.pattern:
                self._resolve_pattern(self._find)

    def _resolve_pattern(self, apply: Callable[[LogPattern | None], object]) -> None:
        """Call ``apply`` with the typed pattern, as a regular expression if no line contains it literally."""
        pattern, store = self.field.pattern, self.view.store
        self._cancel_typed()
        if pattern is None or self.field.switches.regex is False or pattern.as_expression is None:
            apply(pattern)
            return

        async def work() -> None:
            apply(pattern if await has_match(store, pattern) else pattern.as_expression)

        self._start_work(work, f"typed {self.field.purpose}")

    def _cancel_typed(self) -> None:
        self.workers.cancel_group(self, f"typed {self.field.purpose}")

    # Searching

    def _find(self, pattern: LogPattern | None, *, moves_cursor: bool = True) -> None:
        self._log_state.pattern, self._log_state.match = pattern, None
        self.is_searching = pattern is not None
        for view in self.columns.views:
            view.find(pattern if view is self.view else None, goes_to_match=moves_cursor)
        self.show_log_status()

    @on(MatchChanged)
    def _match_changed(self, message: MatchChanged) -> None:
        if self._log_state.pattern is not None:
            self._log_state.match = message
            self.show_log_status()

    @on(FirstErrorLine.Chosen)
    def action_first_error(self) -> None:
        """Go to the first error of all nodes; views that do not show it go to its time."""
        first = self.view.store.first_error
        if first is None:
            is_complete = self._log_state.is_complete
            screen = self.screen
            if is_complete and isinstance(screen, AppScreen) and "why" not in screen.hidden_hints:
                self.notify(f"No errors in the log; {screen.key_for('job.why')} shows what is wrong.")
            else:
                self.notify("No errors." if is_complete else "No errors so far.")
            return
        self.show_time(first.time_ns)
        view_with_error = next((view for view in self.columns.views if view.viewport.go_to(first)), None)
        if view_with_error is not None and self.view.has_focus:
            self.screen.set_focus(view_with_error)
        elif view_with_error is None and self.view.store.not_kept_at(first.time_ns) is None:
            key = key_for_widget(self, "screen.back")
            self.notify(f"The first error is filtered out; {key} shows more.")

    # Reading

    def action_jump(self, seconds: int) -> None:
        for view in self.columns.views:
            view.viewport.jump(seconds)

    def _go_to_typed_time(self, typed: str) -> None:
        entry = self.view.model.cursor_entry
        oldest_ns, newest_ns = self.view.store.span_ns or (0, 0)
        newest = _datetime_of(newest_ns)
        times = LogTimes(
            oldest=_datetime_of(self.columns.origin_ns or oldest_ns),
            newest=newest,
            current=_datetime_of(stamp_ns(entry)) if entry is not None else newest,
            timezone=self._timezone,
        )
        try:
            time_ns = int(parse_time(typed, times).timestamp() * NS_PER_S)
        except (ValueError, OverflowError) as error:
            self.field.problem = str(error)
            return
        self._close_field()
        self.post_message(self.TimeRequested(time_ns))

    @property
    def chosen_ns(self) -> int | None:
        """The time of the line under the cursor; None while following."""
        entry = None if self.view.viewport.follow else self.view.model.cursor_entry
        return None if entry is None else stamp_ns(entry)

    def cursor_line_spans(self) -> list[Span]:
        """Return the line under the cursor, or the newest line while following."""
        entry = self.view.model.cursor_entry
        if not isinstance(entry, LogLine):
            return []
        _, newest_ns = self.view.store.span_ns or (0, 0)
        (time_text, _), (text, _) = line_spans(entry, entry.message, newest_ns, self.options.time)
        return [(time_text, "muted"), (text, "plain")]

    def show_time(self, time_ns: int) -> None:
        """Go to a time; if its lines were dropped from memory, request them again."""
        dropped_mark = self.view.store.not_kept_at(time_ns)
        for view in self.columns.views:
            if len(view.model):
                view.viewport.go_to_time(time_ns if dropped_mark is None else dropped_mark.start_ns)
        if dropped_mark is not None:
            self.post_message(GapRetryRequested(dropped_mark, time_ns))

    # Copying, saving and opening lines

    @property
    def _timezone(self) -> tzinfo | None:
        return UTC if self.options.time == "utc" else None

    def action_copy_lines(self) -> None:
        entries = self.view.model.selected_entries()
        text = "\n".join(message_text(entry) for entry in entries)
        if not entries:
            self.notify("No line to copy.")
        elif len(text.encode("utf-8", "replace")) > MAX_COPY_BYTES:
            noun = counted(len(entries), "line is", "lines are")
            self.notify(f"{noun} too long for the clipboard: save them to a file instead.")
        else:
            noun = "line" if len(entries) == 1 else counted(len(entries), "line")
            self.post_message(CopyRequested(text, noun, keeps_line_breaks=True))

    async def _save(self, typed: str) -> None:
        """Save the lines that pass the filter, or all, to a path; show a problem in the field."""
        path = delivery_path(self.app, expanded_path(typed))
        can_replace = path == self._replaceable
        try:
            with self._delaying_parts():
                entries = self.view.model.entries(filtered=not self.field.switches.whole_log)
                line_count = await save_entries(entries, path, timezone=self._timezone, replace=can_replace)
        except FileExistsError:
            self._replaceable = path
            self.field.problem = f"{path} already exists; press enter again to replace it"
        except OSError as error:
            self.field.problem = f"not saved: {why_not_written(error)}"
        except ValueError as error:
            self.field.problem = f"not saved: {error}"
        else:
            self._close_field()
            target_text = f"as {path.name}" if self.app.is_web else f"to {path}"
            self.notify(f"Saved {counted(line_count, 'line')} {target_text}.")
            self.post_message(FilesSaved((path,)))

    def action_open_outside(self, program: Program) -> None:
        self._start_work(partial(self._show_outside, program), "log outside")

    async def _show_outside(self, program: Program) -> None:
        view, command = self.view, program_of(program, os.environ)
        if command is None:
            self.notify(f"No {program} found; set ${program.upper()}.", severity="warning")
            return
        if view.model.passing_count > 50_000:  # writing so many lines takes a moment
            lines_text = counted(view.model.passing_count, "line")
            self.notify(f"Preparing {lines_text} for {sanitize(command[0])}…")
        try:
            with self._delaying_parts():
                await show_in_program(
                    command,
                    view.model.entries(filtered=True),
                    self._proposed_path.stem,
                    start_entry=None if view.viewport.follow else view.model.cursor_entry,
                    timezone=self._timezone,
                    environ=os.environ,
                    suspended=self.app.suspend,
                )
        except SuspendNotSupported:
            self.notify("This terminal can't run an external program.", severity="warning")
        except (OSError, subprocess.SubprocessError) as error:
            self.notify(f"Can't start {sanitize(command[0])}: {error}", severity="error")

    def _start_work(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        run_in_background(self, work, group, exclusive=True)

    # Status

    @on(StatusChanged)
    def show_log_status(self) -> None:
        store, placeholder = self.columns.main_view.store, self.query_one("#no-log", WrappedText)
        is_empty = placeholder.display = len(store) == 0
        self.columns.set_class(is_empty, "-empty")  # hiding the columns would lose the focus
        if is_empty:
            empty_text = (
                "The job ended without logging anything." if self._log_state.ended else "No log lines yet."
            )
            placeholder.update(empty_text if self._log_state.read_fraction == 1 else "Reading the log…")
        self.query_one(FirstErrorLine).show(
            store, self.options.time, key_for_widget(self, "logs.first_error")
        )
        self.query_one(LogBar).show(self.options, self.columns.nodes, self.view, self._log_state)


def _datetime_of(time_ns: int) -> datetime:
    return moment_at(time_ns, UTC) or datetime.fromtimestamp(0, UTC)
