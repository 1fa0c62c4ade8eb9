"""Base of the screens that show a file tree: the cache, and the files of a checkpoint."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from textual import on
from textual.reactive import var

from tui.analysis.file_tree.tree import ROOT
from tui.screens.base import AppScreen
from tui.screens.filter_field import FilterField
from tui.screens.messages import CopyRequested
from tui.tables.column import Span
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted
from tui.widgets.file_tree import FileTreeView


class TreeScreen(AppScreen):
    """A screen with a file tree, a `FilterField`, and a text ``#stale`` for errors.

    The first of its ``SCOPES`` must own the actions on the tree.
    """

    AUTO_FOCUS = "#tree"

    snapshot: var[Any]

    def on_mount(self) -> None:
        self._show(None, self.snapshot)
        self.run_feed("file feed")

    def watch_snapshot(self, previous: Any, snapshot: Any) -> None:
        if self.is_mounted:
            self._show(previous, snapshot)

    @abstractmethod
    def _show(self, previous: Any, snapshot: Any) -> None:
        """Show a snapshot; ``previous`` is the snapshot shown until now, None at first."""

    @property
    def tree_view(self) -> FileTreeView:
        return self.query_one(FileTreeView)

    def show_stale(self, error: str) -> None:
        """Show a notice that the tree is stale, with the error; hide it if ``error`` is empty."""
        retry_hint = f"Showing last known data; press {self.key_for('screen.refresh')} to retry."
        self.show_text("#stale", f"✗ Not updated: {error} {retry_hint}" if error else "")

    def filter_facts(self) -> list[list[Span]]:
        """Return the filter, and the number and size of matching files; empty without a filter."""
        rows = self.tree_view.visible_rows
        if rows is None or rows.matches is None or not self.tree_view.pattern:
            return []
        matches = rows.matches
        return [
            [(self.key_prefix(f"{self.SCOPES[0]}.filter"), "key"), (sanitize(matches.pattern), "accent")],
            [(f"{counted(matches.file_counts[ROOT], 'file')}, {bytes_iec(matches.sizes[ROOT])}", "plain")],
        ]

    def path_under_cursor(self) -> str | None:
        """Return the path that ``copy_path`` copies."""
        return self.tree_view.cursor_path

    # Filter

    @on(FilterField.Changed)
    def _filter_typed(self, event: FilterField.Changed) -> None:
        self.tree_view.set_pattern(event.value.strip())

    @on(FilterField.Submitted)
    def _filter_submitted(self) -> None:
        self.query_one(FilterField).close()
        self.set_focus(self.tree_view)

    def leave_filter(self) -> bool:
        """Clear and close the filter; return False if it was empty and closed already."""
        was_used = self.query_one(FilterField).clear_text()
        if was_used:
            self.set_focus(self.tree_view)
        return was_used

    # Actions

    def action_open_node(self) -> None:
        self.tree_view.choose()

    def action_open_below(self) -> None:
        self.tree_view.open_below()

    def action_filter(self) -> None:
        self.query_one(FilterField).open()

    def action_sort(self) -> None:
        self.tree_view.set_order(self.tree_view.order.next())

    def action_reverse_sort(self) -> None:
        self.tree_view.set_order(self.tree_view.order.reversed())

    def action_copy_path(self) -> None:
        path = self.path_under_cursor()
        if path is not None:
            self.post_message(CopyRequested(path, "path"))
