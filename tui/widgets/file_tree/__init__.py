"""A tree of files with directory totals that draws only the visible lines."""

from tui.widgets.file_tree.view import FileTreeView

__all__ = ["FileTreeView"]
