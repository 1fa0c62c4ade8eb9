"""Which columns of a tree of files fit, and how wide each is."""

from __future__ import annotations

from dataclasses import dataclass

from tui.insight.file_tree import SortKey

BAR_CELLS = 8
NAME_CELLS = 18
WISHED_NAME_CELLS = 30
"""The least width of names; as long as there are more than the two foremost columns, the greater one."""
GAP = 1


@dataclass(frozen=True, slots=True)
class TreeColumn:
    """A column right of the names."""

    id: str
    title: str
    width: int
    keep: int
    sorts_by: SortKey | None = None


COLUMNS = (
    TreeColumn("size", "size", 9, 9, SortKey.SIZE),
    TreeColumn("share", "share", BAR_CELLS, 7, SortKey.SIZE),
    TreeColumn("percent", "", 5, 4, SortKey.SIZE),
    TreeColumn("count", "files", 7, 3),
    TreeColumn("age", "age", 5, 6, SortKey.TIME),
    TreeColumn("type", "type", 11, 5, SortKey.TYPE),
)


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """The columns that fit in ``width`` cells; names take what is left over."""

    width: int
    name_cells: int
    columns: tuple[TreeColumn, ...]

    def key_at(self, x: int) -> SortKey | None:
        """What a click on the heading at that cell sorts by."""
        left = 1 + self.name_cells
        if x < left:
            return SortKey.NAME
        for column in self.columns:
            left += GAP + column.width
            if x < left:
                return column.sorts_by
        return None


def lay_out(width: int) -> TreeLayout:
    """The columns that leave names their least width; the least important go first."""
    columns = list(COLUMNS)

    def name_cells() -> int:
        return width - 2 - sum(column.width + GAP for column in columns)

    while columns and name_cells() < (WISHED_NAME_CELLS if len(columns) > 2 else NAME_CELLS):
        columns.remove(min(columns, key=lambda column: column.keep))
    return TreeLayout(width, max(1, name_cells()), tuple(columns))
