"""The views of a log: one, or several side by side over the same lines, a node each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from tui.insight.text import inert
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
