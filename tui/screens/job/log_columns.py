"""The log views: one for all nodes, or several side by side over the same store, one per node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from tui.text.sanitize import sanitize
from tui.widgets.log_view.options import LogOptions
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
    """The log columns; options apply to all of them."""

    def __init__(self, options: LogOptions) -> None:
        super().__init__()
        self.main = LogView(options=options, id="log-view")
        self._options = options
        self._side_by_side: tuple[str, ...] = ()
        self._origin_ns: int | None = None

    def compose(self) -> ComposeResult:
        yield LogColumn(self.main)

    @property
    def views(self) -> list[LogView]:
        """The views, from left to right."""
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

    def set_options(self, options: LogOptions) -> None:
        """Show the log in this way; columns side by side show only their own node's lines."""
        self._options = options
        for position, view in enumerate(self.views):
            view.options = self._of_column(position)

    def _of_column(self, position: int) -> LogOptions:
        if position >= len(self._side_by_side):
            return self._options
        return replace(self._options, nodes=frozenset({self._side_by_side[position]}))

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
            view = LogView(store=self.main.store, options=self._of_column(position))
            await self.mount(LogColumn(view))
            view.follow = self.main.follow
            if self._origin_ns is not None:
                view.set_origin(self._origin_ns)
        for position, column in enumerate(self.query(LogColumn)):
            column.set_title(self._side_by_side[position] if self._side_by_side else None)
        self.set_options(self._options)

    def focus_next(self, by: int) -> None:
        """Move the focus by that many columns."""
        views = self.views
        views[(views.index(self.current) + by) % len(views)].focus()
