"""The log views: one for all nodes, or one per node, side by side. All views share one store of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from tui.screens.job.log_bar import only_node
from tui.text.sanitize import sanitize_beginning
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.view import LogView, Moved

COLUMN_CELLS = 38
"""Minimum width of a column: a time, a node and about 24 characters."""


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
        self.set_class(node is not None, "-titled")
        self.query_one(Static).update(sanitize_beginning(node or ""))


class LogColumns(Horizontal):
    """The log columns; filters and display options apply to all columns."""

    def __init__(self, options: LogOptions, now_s: Callable[[], float]) -> None:
        super().__init__()
        self._now_s = now_s
        self.main_view = LogView(options=options, now_s=now_s, id="log-view")
        self.options = options
        self.is_split = False
        self.nodes: tuple[str, ...] = ()
        """Names of the nodes that are side by side; empty if there is only one column."""
        self.origin_ns: int | None = None
        """The start of elapsed time; None before it is known."""

    def compose(self) -> ComposeResult:
        yield LogColumn(self.main_view)

    @property
    def views(self) -> list[LogView]:
        return [column.view for column in self.query(LogColumn)]

    @property
    def current_view(self) -> LogView:
        """The view with the focus, else the first view."""
        return next((view for view in self.views if view.has_focus), self.main_view)

    def max_columns(self) -> int:
        """Return how many columns fit side by side."""
        return min(4, self.size.width // COLUMN_CELLS)

    def set_options(self, options: LogOptions) -> None:
        """Apply filters and display options; columns side by side show only their own node's lines."""
        self.options = options
        for index, view in enumerate(self.views):
            view.options = self._column_options(index)

    def _column_options(self, index: int) -> LogOptions:
        if index >= len(self.nodes):
            return self.options
        return replace(self.options, nodes=frozenset({self.nodes[index]}))

    def set_origin(self, time_ns: int) -> None:
        if time_ns != self.origin_ns:
            self.origin_ns = time_ns
            for view in self.views:
                view.set_origin(time_ns)

    async def show_nodes(self, names: Sequence[str]) -> None:
        """If split, show as many nodes side by side as fit, the chosen node first; else a single column."""
        visible_names = [name for name in names if name not in self.options.hidden] if self.is_split else []
        node = only_node(self.options)
        first = visible_names.index(node) if node in visible_names else 0
        nodes = (*visible_names[first:], *visible_names[:first])[: max(1, self.max_columns())]
        self.nodes = nodes if len(nodes) > 1 else ()
        columns = list(self.query(LogColumn))
        column_count = max(1, len(self.nodes))
        for column in columns[column_count:]:
            if column.view.has_focus:
                self.screen.set_focus(self.main_view)
            await column.remove()
        for index in range(len(columns), column_count):
            view = LogView(store=self.main_view.store, options=self._column_options(index), now_s=self._now_s)
            await self.mount(LogColumn(view))
            view.viewport.follow = self.main_view.viewport.follow
            if self.origin_ns is not None:
                view.set_origin(self.origin_ns)
        for index, column in enumerate(self.query(LogColumn)):
            column.set_title(self.nodes[index] if self.nodes else None)
        self.set_options(self.options)
        self.call_after_refresh(self.align_columns)

    @on(Moved)
    def _moved(self, message: Moved) -> None:
        if message.view is self.current_view:
            self.align_columns()

    def align_columns(self) -> None:
        """Scroll all other columns to the time of the focused column."""
        focused = self.current_view
        for view in self.views:
            if view is not focused:
                view.viewport.align_with(focused.viewport)

    def focus_next(self, step: int) -> None:
        views = self.views
        self.screen.set_focus(views[(views.index(self.current_view) + step) % len(views)])
