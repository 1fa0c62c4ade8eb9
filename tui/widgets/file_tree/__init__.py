"""A tree of files with totals, drawn a visible line at a time."""

from tui.widgets.file_tree.view import FileTreeView

__all__ = ["FileTreeView"]
