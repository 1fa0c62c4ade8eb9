"""Files by their paths as a tree with totals, for a hundred thousand of them.

Pure, and never long at a time: what grows with the number of files is a generator that pauses after every
few hundred of them (``build_steps``, ``VisibleRows.…_steps``, ``filter_steps``), so that whoever drives it
can paint in between. ``finish`` runs one to its end. Nothing recurses, however deep a path.
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
