"""Lay out and draw the rows of a file tree: which columns fit, and the names cut in the middle."""

from __future__ import annotations

from dataclasses import dataclass

from tui.analysis.file_tree.rows import SortKey, VisibleRows
from tui.tables.column import Span
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.units import age, bytes_iec, count, percent, share_bar

BAR_CELLS = 8
NAME_CELLS = 18
PREFERRED_NAME_CELLS = 30
"""Minimum width of names while more than two columns are shown; ``NAME_CELLS`` applies below that."""
GAP = 1


@dataclass(frozen=True, slots=True)
class TreeColumn:
    id: str
    title: str
    width: int
    keep: int
    sorts_by: SortKey | None = None


COLUMNS = (
    TreeColumn("size", "size", 9, 9, SortKey.SIZE),
    TreeColumn("share", "share", BAR_CELLS, 7, SortKey.SIZE),
    TreeColumn("percent", "", 4, 4, SortKey.SIZE),
    TreeColumn("count", "files", 7, 3),
    TreeColumn("age", "age", 5, 6, SortKey.TIME),
    TreeColumn("type", "type", 11, 5, SortKey.TYPE),
)


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """The columns that fit in ``width`` cells; names take the remaining width."""

    width: int
    name_cells: int
    columns: tuple[TreeColumn, ...]

    def key_at(self, x: int) -> SortKey | None:
        left = 1 + self.name_cells
        if x < left:
            return SortKey.NAME
        for column in self.columns:
            left += GAP + column.width
            if x < left:
                return column.sorts_by
        return None


def lay_out(width: int) -> TreeLayout:
    columns = list(COLUMNS)

    def name_cells() -> int:
        return width - 2 - sum(column.width + GAP for column in columns)

    while columns and name_cells() < (PREFERRED_NAME_CELLS if len(columns) > 2 else NAME_CELLS):
        columns.remove(min(columns, key=lambda column: column.keep))
    return TreeLayout(width, max(1, name_cells()), tuple(columns))


INDENT_CELLS = 2
OPEN_SIGN, CLOSED_SIGN, FILE_SIGN, MARK_SIGN = "▾ ", "▸ ", "  ", "✓"


def row_spans(rows: VisibleRows, node: int, layout: TreeLayout, *, now_s: float, marked: bool) -> list[Span]:
    is_directory = rows.tree.is_directory(node)
    spans = _name_spans(rows, node, layout.name_cells, marked=marked)
    for column in layout.columns:
        spans.append((" " * GAP, "plain"))
        match column.id:
            case "size":
                text, tone = bytes_iec(rows.size_bytes(node)).rjust(column.width), "plain"
            case "share":
                bar = share_bar(rows.share_of_parent(node), BAR_CELLS, empty=" ")
                text, tone = bar, "accent" if is_directory else "running"
            case "percent":
                share = rows.share_of_parent(node)
                small = 0 < share < 0.005
                text, tone = ("<1%" if small else percent(share)).rjust(column.width), "muted"
            case "count":
                text = count(rows.file_count(node)) if is_directory else ""
                text, tone = text.rjust(column.width), "muted"
            case "age":
                newest_s = rows.tree.newest_s[node]
                text = age(now_s - newest_s) if newest_s is not None else "–"
                text, tone = text.rjust(column.width), "muted"
            case _:
                text = clip(sanitize(rows.tree.type_of(node)), column.width)
                text, tone = text + " " * (column.width - cell_width(text)), "muted"
        spans.append((text, tone))
    return spans


def _name_spans(rows: VisibleRows, node: int, cells: int, *, marked: bool) -> list[Span]:
    tree = rows.tree
    is_directory = tree.is_directory(node)
    indent = " " * min(INDENT_CELLS * tree.depths[node], cells)
    if len(indent) > cells // 2:
        # At this depth indentation leaves no room for names: show the depth as a number.
        indent = clip(f"{tree.depths[node]}› ", cells // 2)
    sign = (OPEN_SIGN if rows.is_open(node) else CLOSED_SIGN) if is_directory else FILE_SIGN
    name = sanitize(tree.names[node]) + ("/" if is_directory else "")
    room = cells - len(indent) - len(sign)
    name = middle_cut(name, max(1, room))
    is_match = rows.matches is not None and bool(rows.matches.hits[node])
    tone = "accent" if is_match else "strong" if is_directory else "plain"
    mark: Span = (MARK_SIGN if marked else " ", "good")
    pad = " " * max(0, room - cell_width(name))
    return [mark, (indent, "muted"), (sign, "muted"), (name, tone), (pad, "plain")]


def middle_cut(text: str, cells: int) -> str:
    """Shorten `text` in the middle, because files differ at both ends; short or not ASCII, at the end."""
    if len(text) <= cells and cell_width(text) <= cells:
        return text
    if cells < 8 or not text.isascii():
        return clip(text, cells)
    tail = cells // 2
    return text[: cells - tail - 1] + "…" + text[-tail:]
