"""A table's column: its cells, and how columns share the available width."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar, cast

from tui.analysis.export import ExportTable, Value
from tui.analysis.ordering import ordered
from tui.text.sanitize import cell_width, clip, sanitize

Row = TypeVar("Row")
Whole = TypeVar("Whole")

Span = tuple[str, str]
"""Text with the name of its tone."""

FILL: Span = ("", "fill")
"""A marker: the spans after it are aligned to the right edge of the cell."""

Heading = tuple[int, Sequence[Span]]
"""A heading above a group of rows: the index of the group's first row, and the text."""

GAP, WIDE_GAP = 1, 2
"""Cells between columns; the wide gap only where no text has to be cut for it."""
MARGIN = 1
"""Cells left of the first column and right of the last."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A table column: cell contents, and behavior when space is limited.

    ``width`` is the minimum width in cells; a sortable column has at least that of its title and sort arrow.
    ``flex`` is the column's share of spare width, up to ``most`` cells in all (0: no limit). ``clip`` is
    where a text that is too long is cut. Columns with the lowest ``keep`` are dropped first when the table
    is too narrow; a column whose ``needed_by`` is true of no row is always left out. ``without`` maps IDs of
    other columns to the cell to use while that column is left out.

    ``value`` returns the sort key of a row, None for a row without a value; a column without ``value`` is
    not sortable. ``descending`` is the direction of the first sort by it.

    Commands print the column under ``heading``, by default the title in capitals. On a narrow terminal they
    cut it if it ``shrinks``.

    CSV and JSON exports have the value that ``export`` returns under the name ``field``, by default the
    ID; without it, the column isn't exported. A column without a cell is only exported.

    Cells and values are not sanitized: the code that draws, prints or writes them must do that.
    """

    id: str
    title: str = ""
    cell: Callable[[Row], Sequence[Span]] = lambda _row: ()
    width: int = 0
    flex: int = 0
    most: int = 0
    align: Literal["left", "right"] = "left"
    clip: Literal["end", "middle"] = "end"
    keep: int = 0
    needed_by: Callable[[Row], Any] | None = None
    without: Mapping[str, Callable[[Row], Sequence[Span]]] = field(default_factory=dict)
    heading: str = ""
    shrinks: bool = False
    value: Callable[[Row], Any] | None = None
    descending: bool = False
    export: Callable[[Row], Value] | None = None
    field: str = ""

    def of(self, part: Callable[[Whole], Row]) -> Column[Whole]:
        """Return this column for rows of another type; ``part`` returns the row of this column from them."""

        def applied(function: Callable[[Row], Any] | None) -> Callable[[Whole], Any] | None:
            return None if function is None else lambda whole: function(part(whole))

        of_a_row = ("cell", "value", "export", "needed_by")
        changes: dict[str, Any] = {name: applied(getattr(self, name)) for name in of_a_row}
        return cast("Column[Whole]", replace(self, **changes))

    @property
    def min_cells(self) -> int:
        return max(self.width, self.title_cells) if self.value is not None else self.width

    @property
    def title_cells(self) -> int:
        arrow = 1 if self.value is not None else 0  # follows the title, if the table is sorted by this column
        return cell_width(self.title) + arrow


def filled(spans: Sequence[Span], cells: int) -> Sequence[Span]:
    """Replace ``FILL`` by spaces, so that the sanitized texts fill ``cells``; cut the first one if needed."""
    if FILL not in spans:
        return spans
    room = cells - sum(cell_width(text) for text, _tone in spans)
    (text, tone), *rest = [(" " * room, "plain") if span == FILL else span for span in spans]
    return [(clip(text, cell_width(text) + min(room, 0)), tone), *rest]


def text_cell(read: Callable[[Row], str], tone: str = "plain") -> Callable[[Row], Sequence[Span]]:
    """Return a function that makes a cell of the text that ``read`` returns, in one tone."""
    return lambda row: [(read(row), tone)]


def text_column(
    title: str, read: Callable[[Row], str], tone: str = "plain", *, right: bool = False, shrinks: bool = False
) -> Column[Row]:
    """Return a column of a command's table, whose cells are texts of one tone."""
    align: Literal["left", "right"] = "right" if right else "left"
    return Column(title, title, text_cell(read, tone), align=align, heading=title or " ", shrinks=shrinks)


def exported(name: str, columns: Iterable[Column[Row]], rows: Iterable[Row]) -> ExportTable:
    """Return a table of the values of the exported columns."""
    fields = {column.field or column.id: column.export for column in columns if column.export is not None}
    values = tuple(tuple(export(row) for export in fields.values()) for row in rows)
    return ExportTable(name, tuple(fields), values)


def needed_columns(columns: Iterable[Column[Row]], rows: Sequence[Row]) -> tuple[Column[Row], ...]:
    """Leave out columns that no row needs."""
    return tuple(column for column in columns if column.needed_by is None or any(map(column.needed_by, rows)))


def sized_columns(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Column[Row]]:
    """Size columns by content: space left by short and empty columns goes to those that would be cut.

    Of many rows, only a sample is measured: formatting all of 5,000 would delay keys.
    """
    rows = rows[:: 1 + len(rows) // 400]
    needs = [max((_shown_cells(column.cell(row)) for row in rows), default=0) for column in columns]
    sized = [
        replace(column, width=min(column.min_cells, max(need, column.title_cells)))
        for column, need in zip(columns, needs, strict=True)
        if need
    ]
    needed = {column.id: need for column, need in zip(columns, needs, strict=True)}
    spare = width - 2 * MARGIN - sum(column.width + GAP for column in sized) + GAP
    for index, column in sorted(enumerate(sized), key=lambda item: -item[1].keep):
        more = max(0, min(spare, needed[column.id] - column.width))
        sized[index] = replace(column, width=column.width + more)
        spare -= more
    return sized or list(columns)


def _shown_cells(spans: Sequence[Span]) -> int:
    return cell_width(sanitize("".join(text for text, _ in spans)))


def gap_between(columns: Sequence[Column[Row]], width: int) -> int:
    """Return the gap between columns: ``WIDE_GAP`` if it fits without narrowing a column."""
    room = width - 2 * MARGIN - sum(column.min_cells for column in columns)
    return WIDE_GAP if room >= WIDE_GAP * (len(columns) - 1) else GAP


def fitted_columns(
    all_columns: Sequence[Column[Row]], width: int, gap: int = GAP
) -> tuple[tuple[Column[Row], int], ...]:
    """Return the columns that fit into `width` cells, with their widths."""
    columns = list(all_columns)
    room = width - 2 * MARGIN

    def needed() -> int:
        return sum(column.min_cells for column in columns) + gap * (len(columns) - 1)

    while len(columns) > 1 and needed() > room:
        columns.remove(min(reversed(columns), key=lambda column: column.keep))
    spare = max(0, room - needed())
    shares = sum(column.flex for column in columns)
    extras = [spare * column.flex // shares if shares else 0 for column in columns]
    greediest = max(range(len(columns)), key=lambda position: columns[position].flex)
    extras[greediest] += spare - sum(extras) if shares else 0
    widths = [min(column.min_cells, room) + extra for column, extra in zip(columns, extras, strict=True)]
    widths = [
        min(width, column.most) if column.most else width
        for column, width in zip(columns, widths, strict=True)
    ]
    left_out = {column.id for column in all_columns} - {column.id for column in columns}
    shown = [_with_alternative_cell(column, left_out) for column in columns]
    return tuple(zip(shown, widths, strict=True))


def _with_alternative_cell(column: Column[Row], left_out: Collection[str]) -> Column[Row]:
    cell = next((cell for other, cell in column.without.items() if other in left_out), None)
    return column if cell is None else replace(column, cell=cell)


def chosen(columns: Iterable[Column[Row]], ids: str) -> tuple[Column[Row], ...]:
    """Return the columns with these ids, separated by spaces, in this order."""
    by_id = {column.id: column for column in columns}
    return tuple(by_id[name] for name in ids.split())


Sort = tuple[str, bool]
"""The id of the column that rows are sorted by, and True if descending."""


def sortable(columns: Iterable[Column[Row]]) -> dict[str, Column[Row]]:
    """Return the columns that rows can be sorted by, by id, in the order in which they are shown."""
    return {column.id: column for column in columns if column.value is not None}


def first_sort(column: Column[Row]) -> Sort:
    return column.id, column.descending


def next_sort(columns: Iterable[Column[Row]], sort: Sort, shown: Collection[str]) -> Sort:
    """Return the sort by the next shown column; after the last one, by the first."""
    by_id = sortable(columns)
    ids = [column_id for column_id in by_id if column_id in {*shown, sort[0]}]
    following = ids[(ids.index(sort[0]) + 1) % len(ids)]
    return first_sort(by_id[following])


def clicked_sort(columns: Iterable[Column[Row]], sort: Sort, column_id: str) -> Sort:
    """Return the sort after a click on a column's heading: by this column, reversed if it already was."""
    if column_id == sort[0]:
        return column_id, not sort[1]
    column = sortable(columns).get(column_id)
    return sort if column is None else first_sort(column)


def sorted_rows(columns: Iterable[Column[Row]], rows: Iterable[Row], sort: Sort) -> list[Row]:
    """Sort stably by a column; rows without a value come last in both directions."""
    value = sortable(columns)[sort[0]].value
    assert value is not None
    return ordered(rows, value, descending=sort[1])
