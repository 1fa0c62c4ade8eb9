"""Build a tree with totals from a hundred thousand file paths.

Pure functions that never block for long: anything that grows with the number of files is a generator that
pauses every few hundred of them (``build_steps``, ``VisibleRows.…_steps``, ``filter_steps``), so the
caller can repaint in between. ``finish`` runs one to completion. Nothing is recursive, however deep a
path.
"""

from tui.analysis.file_tree.rows import (
    BY_NAME,
    Matches,
    Order,
    SortKey,
    VisibleRows,
    compile_pattern,
    filter_steps,
)
from tui.analysis.file_tree.tree import (
    ROOT,
    FileEntry,
    FileTree,
    Steps,
    TreeBuilder,
    build,
    build_steps,
    finish,
)

__all__ = [
    "BY_NAME",
    "ROOT",
    "FileEntry",
    "FileTree",
    "Matches",
    "Order",
    "SortKey",
    "Steps",
    "TreeBuilder",
    "VisibleRows",
    "build",
    "build_steps",
    "compile_pattern",
    "filter_steps",
    "finish",
]
