"""A table's column: its cells, and how columns share the width that there is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from tui.text.sanitize import cell_width

Row = TypeVar("Row")

Span = tuple[str, str]
"""Text with the name of its tone."""

GAP = 1
MARGIN = 1
"""Cells left of the first column and right of the last."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A table column: cell contents, and behavior when space is limited.

    ``width`` is the minimum width in cells. ``flex`` is the column's share of spare width, up to ``most``
    cells in all (0: no limit). ``clip`` is where a text that is too long is cut. Columns with the lowest
    ``keep`` are dropped first when the table is too narrow. ``without`` maps IDs of other columns to the
    cell to use while that column is left out.

    Commands print the column under ``heading``, by default the title in capitals. On a narrow terminal they
    cut it if it ``shrinks``.
    """

    id: str
    title: str
    cell: Callable[[Row], Sequence[Span]]
    width: int = 0
    flex: int = 0
    most: int = 0
    align: Literal["left", "right"] = "left"
    clip: Literal["end", "middle"] = "end"
    keep: int = 0
    without: Mapping[str, Callable[[Row], Sequence[Span]]] = field(default_factory=dict)
    heading: str = ""
    shrinks: bool = False


def text_column(
    title: str, read: Callable[[Row], str], tone: str = "plain", *, right: bool = False, shrinks: bool = False
) -> Column[Row]:
    """Return a column of a command's table, whose cells are texts of one tone."""
    align: Literal["left", "right"] = "right" if right else "left"
    return Column(
        title, title, lambda row: [(read(row), tone)], align=align, heading=title or " ", shrinks=shrinks
    )


def sized_columns(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Column[Row]]:
    """Size columns by content: space left by short and empty columns goes to those that would be cut."""
    cells = [[sum(cell_width(text) for text, _ in column.cell(row)) for row in rows] for column in columns]
    needs = [max(column, default=0) for column in cells]
    sized = [
        replace(column, width=min(column.width, max(need, cell_width(column.title))))
        for column, need in zip(columns, needs, strict=True)
        if need
    ]
    wanted = {column.id: need for column, need in zip(columns, needs, strict=True)}
    spare = width - 2 * MARGIN - sum(column.width + GAP for column in sized) + GAP
    for place, column in sorted(enumerate(sized), key=lambda found: -found[1].keep):
        more = max(0, min(spare, wanted[column.id] - column.width))
        sized[place] = replace(column, width=column.width + more)
        spare -= more
    return sized or list(columns)


def fitted_columns(all_columns: Sequence[Column[Row]], width: int) -> tuple[tuple[Column[Row], int], ...]:
    """Return the columns that fit into `width` cells, with their widths."""
    columns = list(all_columns)
    room = width - 2 * MARGIN

    def needed() -> int:
        return sum(column.width for column in columns) + GAP * (len(columns) - 1)

    while len(columns) > 1 and needed() > room:
        columns.remove(min(reversed(columns), key=lambda column: column.keep))
    spare = max(0, room - needed())
    shares = sum(column.flex for column in columns)
    extras = [spare * column.flex // shares if shares else 0 for column in columns]
    greediest = max(range(len(columns)), key=lambda position: columns[position].flex)
    extras[greediest] += spare - sum(extras) if shares else 0
    widths = [min(column.width, room) + extra for column, extra in zip(columns, extras, strict=True)]
    widths = [
        min(width, column.most) if column.most else width
        for column, width in zip(columns, widths, strict=True)
    ]
    left_out = {column.id for column in all_columns} - {column.id for column in columns}
    shown = [_reading(column, left_out) for column in columns]
    return tuple(zip(shown, widths, strict=True))


def _reading(column: Column[Row], left_out: Collection[str]) -> Column[Row]:
    cell = next((cell for other, cell in column.without.items() if other in left_out), None)
    return column if cell is None else replace(column, cell=cell)


def chosen(columns: Iterable[Column[Row]], ids: str) -> tuple[Column[Row], ...]:
    """Return the columns with these ids, separated by spaces, in this order."""
    by_id = {column.id: column for column in columns}
    return tuple(by_id[name] for name in ids.split())
