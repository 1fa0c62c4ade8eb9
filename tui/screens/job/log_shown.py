"""The log views: one for all nodes, or several side by side over the same store, one per node.

``BaseLogPane`` applies the user's filters to all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static

from api_client.models.logs import NS_PER_S, LogEntry, LogLine, stamp_ns
from tui.screens.job.log_bar import SPANS, LogDisplayOptions, LogFilterState
from tui.text.names import natural_key
from tui.text.sanitize import sanitize
from tui.widgets.log_view.line_filter import LineFilter
from tui.widgets.log_view.store import DEFAULT_MAX_LINES
from tui.widgets.log_view.view import LogView

COLUMN_CELLS = 38
"""Minimum width of a column: a time, a node and about 24 characters."""
MAX_LOG_COLUMNS = 4


class LogColumn(Vertical):
    """A log view below a node's name, which is visible only if there are several columns."""

    DEFAULT_CSS = """
    LogColumn {
        width: 1fr; height: 1fr;
        & > .column-title { height: 1; padding: 0 1; display: none; }
        & > .column-title { background: $surface; color: $text-muted; }
        & > LogView { height: 1fr; margin-left: 1; }
        &.-titled > .column-title { display: block; }
        &:focus-within > .column-title { color: $text; text-style: bold; }
    }
    """

    def __init__(self, view: LogView) -> None:
        super().__init__()
        self.view = view

    def compose(self) -> ComposeResult:
        yield Static(classes="column-title", markup=False)
        yield self.view

    def set_title(self, node: str | None) -> None:
        """Set the node's name; None hides the title."""
        self.set_class(node is not None, "-titled")
        self.query_one(Static).update(sanitize(node or ""))


class LogColumns(Horizontal):
    """The log columns; display options apply to all of them."""

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        super().__init__()
        self.main = LogView(max_lines=max_lines, id="log-view")
        self._side_by_side: tuple[str, ...] = ()
        self._filter = LineFilter()
        self._origin_ns: int | None = None

    def compose(self) -> ComposeResult:
        yield LogColumn(self.main)

    @property
    def views(self) -> list[LogView]:
        """All views, from left to right."""
        return [column.view for column in self.query(LogColumn)]

    @property
    def current(self) -> LogView:
        """The view with the focus, else the first one."""
        return next((view for view in self.views if view.has_focus), self.main)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes shown side by side; empty if there is only one column."""
        return self._side_by_side

    def room(self) -> int:
        """Return the number of columns that fit."""
        return min(MAX_LOG_COLUMNS, self.size.width // COLUMN_CELLS)

    def set_filter(self, wanted: LineFilter) -> None:
        """Filter the lines; columns side by side show only their own node's lines."""
        self._filter = wanted
        for position, view in enumerate(self.views):
            view.set_filter(self._of_column(position))

    def set_origin(self, time_ns: int) -> None:
        """Set the time from which elapsed times count."""
        self._origin_ns = time_ns
        for view in self.views:
            view.set_origin(time_ns)

    async def split(self, nodes: Sequence[str]) -> None:
        """Show these nodes side by side; with fewer than two, show one log."""
        self._side_by_side = tuple(nodes) if len(nodes) > 1 else ()
        columns = list(self.query(LogColumn))
        wanted = max(1, len(self._side_by_side))
        for column in columns[wanted:]:
            if column.view.has_focus:
                self.main.focus()
            await column.remove()
        for position in range(len(columns), wanted):
            view = LogView(store=self.main.store)
            await self.mount(LogColumn(view))
            _like(view, self.main)
            if self._origin_ns is not None:
                view.set_origin(self._origin_ns)
            view.set_filter(self._of_column(position))
        for position, column in enumerate(self.query(LogColumn)):
            column.set_title(self._side_by_side[position] if self._side_by_side else None)
        self.set_filter(self._filter)

    def focus_next(self, by: int) -> None:
        """Move the focus by that many columns."""
        views = self.views
        views[(views.index(self.current) + by) % len(views)].focus()

    def _of_column(self, position: int) -> LineFilter:
        if position >= len(self._side_by_side):
            return self._filter
        return replace(self._filter, nodes=frozenset({self._side_by_side[position]}))


def _like(view: LogView, model: LogView) -> None:
    """Copy the display options of another view."""
    view.wrap, view.time_mode, view.follow = model.wrap, model.time_mode, model.follow
    view.fold_tracebacks = model.fold_tracebacks
    view.collapse_progress = model.collapse_progress
    view.fold_repeats = model.fold_repeats


SPAN_STEPS = 20
"""A following time range moves its start in steps of this fraction of its length (1/n)."""


class BaseLogPane(Vertical):
    """Tracks the nodes and times of a log and the user's filters, and applies them to the views."""

    @dataclass
    class NodeWanted(Message):
        """The user wants to see only this node, or all nodes."""

        node: str | None

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._node_names: tuple[str, ...] = ()
        self._choice = LogFilterState()
        self._since_ns: int | None = None
        self.newest_ns = 0
        """Time of the newest line in epoch nanoseconds; 0 if there is none."""
        self.oldest_ns = 0
        self.is_split = False
        """True while nodes are shown side by side."""

    def show_log_status(self) -> None:
        """Update the status line, the first error and the placeholder."""
        raise NotImplementedError

    @property
    def columns(self) -> LogColumns:
        """The log columns."""
        return self.query_one(LogColumns)

    @property
    def view(self) -> LogView:
        """The view with the focus, else the first one."""
        return self.columns.current

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the known nodes, from the metrics and from the log."""
        return self._node_names

    @property
    def choice(self) -> LogFilterState:
        """The current filters."""
        return self._choice

    @property
    def current_entry(self) -> LogEntry | None:
        """The line under the cursor."""
        return self.view.cursor_entry

    def set_nodes(self, names: Collection[str]) -> None:
        """Add nodes, known from the metrics or from the lines."""
        if not set(names) <= set(self._node_names):
            self._node_names = tuple(sorted({*self._node_names, *names}, key=natural_key))

    def forget_times(self) -> None:
        """Reset the times, because all lines were removed."""
        self.newest_ns = self.oldest_ns = 0

    def update_times(self, entries: tuple[LogEntry, ...]) -> None:
        """Update the times from new lines; a following time range moves along."""
        first, last = stamp_ns(entries[0]), stamp_ns(entries[-1])
        self.oldest_ns = min(self.oldest_ns, first) if self.oldest_ns else first
        self.newest_ns = max(self.newest_ns, last)
        span = SPANS[self._choice.span]
        if span is not None:
            step_ns = int(span.total_seconds() * NS_PER_S) // SPAN_STEPS
            if self._since_ns is None or self.newest_ns - step_ns * (SPAN_STEPS + 1) > self._since_ns:
                self._apply()

    # Display options

    def apply_display_options(self, display_options: LogDisplayOptions) -> None:
        """Apply these display options; the number of lines in memory is fixed when the pane is created."""
        for view in self.columns.views:
            view.time_mode, view.wrap = display_options.time, display_options.wrap
            view.collapse_progress, view.fold_tracebacks = (
                display_options.collapse_progress,
                display_options.fold_tracebacks,
            )
        if display_options.min_level is not None:
            self.choose(replace(self._choice, min_level=display_options.min_level))

    def display_options(self) -> LogDisplayOptions:
        """Return the current display options."""
        main = self.columns.main
        return LogDisplayOptions(
            time=main.time_mode,
            wrap=main.wrap,
            min_level=self._choice.min_level,
            collapse_progress=main.collapse_progress,
            fold_tracebacks=main.fold_tracebacks,
            max_lines=main.store.max_lines,
        )

    # Filters

    def choose(self, choice: LogFilterState) -> None:
        """Apply these filters."""
        if choice != self._choice:
            self._choice = choice
            self._apply()
            self.show_log_status()

    def _apply(self) -> None:
        choice, span = self._choice, SPANS[self._choice.span]
        self._since_ns = None
        if span is not None and self.newest_ns:
            self._since_ns = self.newest_ns - int(span.total_seconds() * NS_PER_S)
        pattern = choice.pattern
        self.columns.set_filter(
            LineFilter(
                nodes=None if choice.node is None else frozenset({choice.node}),
                hidden=choice.hidden,
                min_level=choice.min_level,
                pattern=pattern if pattern and not pattern.problem else None,
                invert=choice.invert,
                context_lines=choice.context_lines,
                since_ns=self._since_ns,
            )
        )

    def show_node(self, node: str | None) -> None:
        """Show only one node, or all; side by side, the columns start from that node."""
        hidden = self._choice.hidden - {node} if node is not None else self._choice.hidden
        self.choose(replace(self._choice, node=node, hidden=hidden))
        if self.is_split:
            self._arrange()

    def hide_node(self) -> None:
        """Hide the node of the line under the cursor, unless it is the only one shown."""
        entry = self.current_entry
        node = entry.replica if isinstance(entry, LogLine) else None
        hidden = self._choice.hidden | {node} if node else self._choice.hidden
        if node is None:
            self.notify("This line has no node.")
        elif set(self._node_names) <= hidden:
            self.notify("Can't hide the last visible node.")
        else:
            self.choose(replace(self._choice, node=None, hidden=hidden))
            self.post_message(self.NodeWanted(None))
            if self.is_split:
                self._arrange()

    def show_all_nodes(self) -> None:
        """Remove the node filter and show hidden nodes."""
        self.choose(replace(self._choice, node=None, hidden=frozenset()))
        self.post_message(self.NodeWanted(None))
        if self.is_split:
            self._arrange()

    def toggle_split(self) -> None:
        """Toggle between nodes side by side and one log."""
        if self.is_split:
            self.is_split = False
        elif len(self._node_names) < 2:
            self.notify("This log has only one node.")
            return
        elif self.columns.room() < 2:
            self.notify(
                f"Side by side needs {2 * COLUMN_CELLS} columns; this log has {self.columns.size.width}."
            )
            return
        else:
            self.is_split = True
        self._arrange()

    def on_resize(self) -> None:
        if self.is_split:
            self.call_after_refresh(self._arrange)

    def _arrange(self) -> None:
        self.run_worker(self._rebuild_columns(), group="log columns", exclusive=True, exit_on_error=False)

    async def _rebuild_columns(self) -> None:
        nodes: list[str] = []
        if self.is_split:
            shown = [name for name in self._node_names if name not in self._choice.hidden]
            first = shown.index(self._choice.node) if self._choice.node in shown else 0
            nodes = (shown[first:] + shown[:first])[: max(1, self.columns.room())]
        await self.columns.split(nodes)
        self.show_log_status()
