"""The views of a log: one, or several side by side over the same lines, a node each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static

from api_client.models.logs import LogEntry, LogLine, stamp_ns
from tui.screens.job.log_bar import SPANS, LogChoice, LogWays
from tui.text.names import natural_key
from tui.text.sanitize import inert
from tui.widgets.log_view.line_filter import LineFilter
from tui.widgets.log_view.store import DEFAULT_MAX_LINES
from tui.widgets.log_view.view import LogView

COLUMN_CELLS = 38
"""The least width of a view when there are several: a time, a node and two dozen characters."""
MOST_COLUMNS = 4


class LogColumn(Vertical):
    """A node's name over its lines; the name is only seen when there are several."""

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
        """Whose lines, and the lines."""
        yield Static(classes="column-title", markup=False)
        yield self.view

    def set_title(self, node: str | None) -> None:
        """Name the node; None when there is only one column."""
        self.set_class(node is not None, "-titled")
        self.query_one(Static).update(inert(node or ""))


class LogColumns(Horizontal):
    """Keeps the views alike: what is switched in one is switched in all."""

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        super().__init__()
        self.main = LogView(max_lines=max_lines, id="log-view")
        self._side_by_side: tuple[str, ...] = ()
        self._filter = LineFilter()
        self._origin_ns: int | None = None

    def compose(self) -> ComposeResult:
        """One view to begin with."""
        yield LogColumn(self.main)

    @property
    def views(self) -> list[LogView]:
        """All views, from left to right."""
        return [column.view for column in self.query(LogColumn)]

    @property
    def current(self) -> LogView:
        """The view that keys go to."""
        return next((view for view in self.views if view.has_focus), self.main)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes shown side by side; empty when there is one log."""
        return self._side_by_side

    def room(self) -> int:
        """How many columns fit."""
        return min(MOST_COLUMNS, self.size.width // COLUMN_CELLS)

    def set_filter(self, wanted: LineFilter) -> None:
        """Show only these lines; side by side, each of its node."""
        self._filter = wanted
        for position, view in enumerate(self.views):
            view.set_filter(self._of_column(position))

    def set_origin(self, time_ns: int) -> None:
        """Elapsed times count from there."""
        self._origin_ns = time_ns
        for view in self.views:
            view.set_origin(time_ns)

    async def split(self, nodes: Sequence[str]) -> None:
        """Show these nodes side by side; fewer than two show one log again."""
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
        """Keys go to another column."""
        views = self.views
        views[(views.index(self.current) + by) % len(views)].focus()

    def _of_column(self, position: int) -> LineFilter:
        if position >= len(self._side_by_side):
            return self._filter
        return replace(self._filter, nodes=frozenset({self._side_by_side[position]}))


def _like(view: LogView, model: LogView) -> None:
    """Give a new view the ways of another."""
    view.wrap, view.time_mode, view.follow = model.wrap, model.time_mode, model.follow
    view.fold_tracebacks = model.fold_tracebacks
    view.collapse_progress = model.collapse_progress
    view.fold_repeats = model.fold_repeats


NANOSECONDS = 1_000_000_000
SPAN_STEPS = 20
"""The beginning of a span that is shown moves on with the log, by such a part of it."""


class LogShown(Vertical):
    """Knows the nodes and times of a log and what the reader chose to see of it; the views follow."""

    class NodeWanted(Message):
        """Show this node alone, or all."""

        def __init__(self, node: str | None) -> None:
            super().__init__()
            self.node = node

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._node_names: tuple[str, ...] = ()
        self._choice = LogChoice()
        self._since_ns: int | None = None
        self.newest_ns = 0
        """The time of the newest line, epoch nanoseconds; 0 while there is none."""
        self.oldest_ns = 0
        self.is_split = False
        """Whether nodes stand side by side."""

    def show_standing(self) -> None:
        """Say what is shown, and how."""
        raise NotImplementedError

    @property
    def columns(self) -> LogColumns:
        """The views."""
        return self.query_one(LogColumns)

    @property
    def view(self) -> LogView:
        """The view that keys go to."""
        return self.columns.current

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes known, from metrics and from the log itself."""
        return self._node_names

    @property
    def choice(self) -> LogChoice:
        """What the reader chose to see."""
        return self._choice

    @property
    def current_entry(self) -> LogEntry | None:
        """The line under the cursor."""
        return self.view.cursor_entry

    def set_nodes(self, names: Collection[str]) -> None:
        """Learn of nodes, from the metrics or from the lines themselves."""
        if not set(names) <= set(self._node_names):
            self._node_names = tuple(sorted({*self._node_names, *names}, key=natural_key))

    def forget_times(self) -> None:
        """There are no lines any more."""
        self.newest_ns = self.oldest_ns = 0

    def learn_times(self, entries: tuple[LogEntry, ...]) -> None:
        """Lines of these times are there now; a span that is shown moves on with them."""
        first, last = stamp_ns(entries[0]), stamp_ns(entries[-1])
        self.oldest_ns = min(self.oldest_ns, first) if self.oldest_ns else first
        self.newest_ns = max(self.newest_ns, last)
        span = SPANS[self._choice.span]
        if span is not None:
            step_ns = int(span.total_seconds() * NANOSECONDS) // SPAN_STEPS
            if self._since_ns is None or self.newest_ns - step_ns * (SPAN_STEPS + 1) > self._since_ns:
                self._apply()

    # How it is shown

    def begin_with(self, ways: LogWays) -> None:
        """Show it in these ways; the number of lines in memory is settled when the pane is made."""
        for view in self.columns.views:
            view.time_mode, view.wrap = ways.time, ways.wrap
            view.collapse_progress, view.fold_tracebacks = ways.collapse_progress, ways.fold_tracebacks
        if ways.min_level is not None:
            self.choose(replace(self._choice, min_level=ways.min_level))

    def ways(self) -> LogWays:
        """In which ways it is shown now."""
        main = self.columns.main
        return LogWays(
            time=main.time_mode,
            wrap=main.wrap,
            min_level=self._choice.min_level,
            collapse_progress=main.collapse_progress,
            fold_tracebacks=main.fold_tracebacks,
            max_lines=main.store.max_lines,
        )

    # What is shown of it

    def choose(self, choice: LogChoice) -> None:
        """Show something else."""
        if choice != self._choice:
            self._choice = choice
            self._apply()
            self.show_standing()

    def _apply(self) -> None:
        choice, span = self._choice, SPANS[self._choice.span]
        self._since_ns = None
        if span is not None and self.newest_ns:
            self._since_ns = self.newest_ns - int(span.total_seconds() * NANOSECONDS)
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
        """One node alone, or all; side by side, those from it on."""
        hidden = self._choice.hidden - {node} if node is not None else self._choice.hidden
        self.choose(replace(self._choice, node=node, hidden=hidden))
        if self.is_split:
            self._arrange()

    def hide_node(self) -> None:
        """Hide the node of the line under the cursor, unless it is the last one shown."""
        entry = self.current_entry
        node = entry.replica if isinstance(entry, LogLine) else None
        hidden = self._choice.hidden | {node} if node else self._choice.hidden
        if node is None:
            self.notify("The line under the cursor has no node.")
        elif set(self._node_names) <= hidden:
            self.notify("This is the last node that is shown.")
        else:
            self.choose(replace(self._choice, node=None, hidden=hidden))
            self.post_message(self.NodeWanted(None))
            if self.is_split:
                self._arrange()

    def show_all_nodes(self) -> None:
        """No node is hidden, none alone."""
        self.choose(replace(self._choice, node=None, hidden=frozenset()))
        self.post_message(self.NodeWanted(None))
        if self.is_split:
            self._arrange()

    def toggle_split(self) -> None:
        """The nodes side by side, or one log again."""
        if self.is_split:
            self.is_split = False
        elif len(self._node_names) < 2:
            self.notify("There is only one node in this log.")
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
        """Another number of columns may fit."""
        if self.is_split:
            self.call_after_refresh(self._arrange)

    def _arrange(self) -> None:
        self.run_worker(self._columns_anew(), group="log columns", exclusive=True, exit_on_error=False)

    async def _columns_anew(self) -> None:
        nodes: list[str] = []
        if self.is_split:
            shown = [name for name in self._node_names if name not in self._choice.hidden]
            first = shown.index(self._choice.node) if self._choice.node in shown else 0
            nodes = (shown[first:] + shown[:first])[: max(1, self.columns.room())]
        await self.columns.split(nodes)
        self.show_standing()
