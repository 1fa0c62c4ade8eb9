"""The columns of a table: how a record's cells read, and which of them fit into how much room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

from rich.cells import cell_len

from tui.widgets.tones import Span

Row = TypeVar("Row")

GAP = 1
"""Cells between two columns."""
MARGIN = 1
"""Cells left of the first column and right of the last."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: how a record's cell reads, and how the column behaves when room is scarce.

    ``width`` is the least width in cells; ``flex`` shares what is left over, up to ``most`` cells in all
    (0: any number); columns with the lowest ``keep`` go first when the table is too narrow. ``without`` says
    how the cell reads while other columns, named by their ids, are left out.
    """

    id: str
    title: str
    cell: Callable[[Row], Sequence[Span]]
    width: int
    flex: int = 0
    most: int = 0
    align: Literal["left", "right"] = "left"
    keep: int = 0
    without: Mapping[str, Callable[[Row], Sequence[Span]]] = field(default_factory=dict)


def sized_columns(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Column[Row]]:
    """Size columns by their cells: what short and empty ones leave free goes to those that would be cut."""
    cells = [[sum(cell_len(text) for text, _ in column.cell(row)) for row in rows] for column in columns]
    needs = [max(column, default=0) for column in cells]
    sized = [
        replace(column, width=min(column.width, max(need, cell_len(column.title))))
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
    """Which columns fit into a table of so many cells, and how wide each is."""
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
    """The column as it reads while others are left out."""
    cell = next((cell for other, cell in column.without.items() if other in left_out), None)
    return column if cell is None else replace(column, cell=cell)
