"""A row of a tree of files as toned spans."""

from __future__ import annotations

from tui.insight.file_tree import VisibleRows
from tui.insight.share_bar import share_bar
from tui.insight.text import cell_width, clip, inert
from tui.insight.units import age, bytes_iec, count, percent
from tui.widgets.file_tree.layout import BAR_CELLS, GAP, TreeLayout
from tui.widgets.tones import Span

INDENT_CELLS = 2
OPEN_SIGN, CLOSED_SIGN, FILE_SIGN, MARK_SIGN = "▾ ", "▸ ", "  ", "✓"


def row_spans(rows: VisibleRows, node: int, layout: TreeLayout, *, now_s: float, marked: bool) -> list[Span]:
    """The row of a node, exactly as wide as the layout."""
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
                text, tone = ("< 1 %" if small else percent(share)).rjust(column.width), "muted"
            case "count":
                text = count(rows.file_count(node)) if is_directory else ""
                text, tone = text.rjust(column.width), "muted"
            case "age":
                newest_s = rows.tree.newest_s[node]
                text = age(now_s - newest_s) if newest_s is not None else "–"
                text, tone = text.rjust(column.width), "muted"
            case _:
                text = clip(inert(rows.tree.type_of(node)), column.width)
                text, tone = text + " " * (column.width - cell_width(text)), "muted"
        spans.append((text, tone))
    return spans


def _name_spans(rows: VisibleRows, node: int, cells: int, *, marked: bool) -> list[Span]:
    tree = rows.tree
    is_directory = tree.is_directory(node)
    indent = " " * min(INDENT_CELLS * tree.depths[node], cells)
    if len(indent) > cells // 2:
        # So deep that names would have no room: say how deep instead.
        indent = clip(f"{tree.depths[node]}› ", cells // 2)
    sign = (OPEN_SIGN if rows.is_open(node) else CLOSED_SIGN) if is_directory else FILE_SIGN
    name = inert(tree.names[node]) + ("/" if is_directory else "")
    room = cells - len(indent) - len(sign)
    name = middle_cut(name, max(1, room))
    found = rows.matches is not None and bool(rows.matches.hits[node])
    tone = "accent" if found else "strong" if is_directory else "plain"
    mark: Span = (MARK_SIGN if marked else " ", "good")
    pad = " " * max(0, room - cell_width(name))
    return [mark, (indent, "muted"), (sign, "muted"), (name, tone), (pad, "plain")]


def middle_cut(text: str, cells: int) -> str:
    """The text cut in its middle to ``cells``: beginnings and endings tell files apart."""
    if len(text) <= cells and cell_width(text) <= cells:
        return text
    if cells < 8 or not text.isascii():
        return clip(text, cells)
    tail = cells // 2
    return text[: cells - tail - 1] + "…" + text[-tail:]
