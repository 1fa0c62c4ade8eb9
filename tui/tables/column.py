"""A column of a table: its cells, its sort key, its export, and how columns share the available width."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar, cast

from tui.analysis.export import ExportTable, Value
from tui.analysis.ordering import ordered
from tui.text.sanitize import cell_width, clip, sanitize

Row = TypeVar("Row")
OtherRow = TypeVar("OtherRow")

Span = tuple[str, str]
"""A text and the name of its tone (a key of ``tui.widgets.tones.tone_styles``)."""

FILL_MARKER: Span = ("", "fill")
"""Stands for the spare space of a cell: the spans after it are aligned to the cell's right edge."""

Heading = tuple[int, Sequence[Span]]
"""A heading above a group of rows: the index of the group's first row, and the spans of the heading."""

GAP, WIDE_GAP = 1, 2
"""Number of blank cells between columns; the wide gap is used only if no column has to be narrowed for it."""
MARGIN = 1
"""Number of blank cells left of the first column and right of the last one."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table on the screen, of a command's output, and of CSV and JSON exports.

    Cells and exported values are not sanitized: the code that draws, prints or writes them must do that.
    """

    id: str
    title: str = ""
    """Heading on the screen."""
    cell: Callable[[Row], Sequence[Span]] = lambda _row: ()
    """Returns the content of a row's cell; a column without it is only exported."""
    width: int = 0
    """Minimum width in cells; a sortable column is at least as wide as its title and sort arrow."""
    flex: int = 0
    """Share of the spare width, relative to the ``flex`` of the other columns."""
    max_width: int = 0
    """Maximum width in cells that ``flex`` may lead to; 0 for no limit."""
    align: Literal["left", "right"] = "left"
    clip: Literal["end", "middle"] = "end"
    """Where a text that is too long is cut."""
    priority: int = 0
    """If the table is too narrow, the column with the lowest priority is dropped first."""
    needed_by: Callable[[Row], Any] | None = None
    """Returns True for a row that needs the column; the column is dropped if no row needs it."""
    cells_without: Mapping[str, Callable[[Row], Sequence[Span]]] = field(default_factory=dict)
    """Cells to use instead of ``cell`` while another column is dropped, by the ID of that column."""
    heading: str = ""
    """Heading in a command's output; by default the title in capitals."""
    shrinks: bool = False
    """True if commands may cut the column on a narrow terminal."""
    sort_key: Callable[[Row], Any] | None = None
    """Returns a row's sort key, None for a row without a value; a column without it is not sortable."""
    descending: bool = False
    """True if the first sort by this column is descending."""
    export: Callable[[Row], Value] | None = None
    """Returns a row's value for exports; a column without it is not exported."""
    field: str = ""
    """Name of the value in exports; by default the ID."""

    def for_rows(self, get_row: Callable[[OtherRow], Row]) -> Column[OtherRow]:
        """Return this column for rows of another type, from which ``get_row`` returns rows of this type."""

        def adapted(function: Callable[[Row], Any] | None) -> Callable[[OtherRow], Any] | None:
            return None if function is None else lambda other_row: function(get_row(other_row))

        row_functions = ("cell", "sort_key", "export", "needed_by")
        changes: dict[str, Any] = {name: adapted(getattr(self, name)) for name in row_functions}
        return cast("Column[OtherRow]", replace(self, **changes))

    @property
    def min_cells(self) -> int:
        return max(self.width, self.title_cells) if self.sort_key is not None else self.width

    @property
    def title_cells(self) -> int:
        """Width of the title and of the sort arrow, which follows it while rows are sorted by the column."""
        return cell_width(self.title) + (1 if self.sort_key is not None else 0)


def fill_cell(spans: Sequence[Span], cells: int) -> Sequence[Span]:
    """Replace ``FILL_MARKER`` by as many spaces as are needed to fill ``cells``; texts must be sanitized.

    If the texts are too long for the cell, the first one is cut.
    """
    if FILL_MARKER not in spans:
        return spans
    spare_cells = cells - sum(cell_width(text) for text, _tone in spans)
    (text, tone), *rest = [(" " * spare_cells, "plain") if span == FILL_MARKER else span for span in spans]
    return [(clip(text, cell_width(text) + min(spare_cells, 0)), tone), *rest]


def text_cell(text_of: Callable[[Row], str], tone: str = "plain") -> Callable[[Row], Sequence[Span]]:
    """Return a ``Column.cell`` that shows the text that ``text_of`` returns, in one tone."""
    return lambda row: [(text_of(row), tone)]


def text_column(
    title: str,
    text_of: Callable[[Row], str],
    tone: str = "plain",
    *,
    right_aligned: bool = False,
    shrinks: bool = False,
) -> Column[Row]:
    """Return a column that is only printed by commands, as texts of one tone."""
    align: Literal["left", "right"] = "right" if right_aligned else "left"
    return Column(title, title, text_cell(text_of, tone), align=align, heading=title or " ", shrinks=shrinks)


def export_table(name: str, columns: Iterable[Column[Row]], rows: Iterable[Row]) -> ExportTable:
    """Return the values of the exported columns for all rows; ``name`` is the name of the table."""
    fields = {column.field or column.id: column.export for column in columns if column.export is not None}
    values = tuple(tuple(export(row) for export in fields.values()) for row in rows)
    return ExportTable(name, tuple(fields), values)


def needed_columns(columns: Iterable[Column[Row]], rows: Sequence[Row]) -> tuple[Column[Row], ...]:
    """Return the columns without those that no row needs."""
    return tuple(column for column in columns if column.needed_by is None or any(map(column.needed_by, rows)))


def sized_columns(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[Column[Row]]:
    """Size columns by content: width that short columns don't use goes to columns that would be cut.

    Columns that are empty in all rows are left out. Of many rows, only a sample is measured: formatting
    5,000 rows would delay the handling of keys.
    """
    rows = rows[:: 1 + len(rows) // 400]
    content_cells = {
        column.id: max((_content_cells(column.cell(row)) for row in rows), default=0) for column in columns
    }
    sized = [
        replace(column, width=min(column.min_cells, max(content_cells[column.id], column.title_cells)))
        for column in columns
        if content_cells[column.id]
    ]
    spare_cells = width - 2 * MARGIN - sum(column.width + GAP for column in sized) + GAP
    for index, column in sorted(enumerate(sized), key=lambda item: -item[1].priority):
        extra_cells = max(0, min(spare_cells, content_cells[column.id] - column.width))
        sized[index] = replace(column, width=column.width + extra_cells)
        spare_cells -= extra_cells
    return sized or list(columns)


def _content_cells(spans: Sequence[Span]) -> int:
    return cell_width(sanitize("".join(text for text, _ in spans)))


def gap_between(columns: Sequence[Column[Row]], width: int) -> int:
    """Return the gap between columns: ``WIDE_GAP`` if it fits without narrowing a column."""
    spare_cells = width - 2 * MARGIN - sum(column.min_cells for column in columns)
    return WIDE_GAP if spare_cells >= WIDE_GAP * (len(columns) - 1) else GAP


def fitted_columns(
    all_columns: Sequence[Column[Row]], width: int, gap: int = GAP
) -> tuple[tuple[Column[Row], int], ...]:
    """Return the columns that fit into ``width`` cells, with their widths."""
    columns = list(all_columns)
    available_cells = width - 2 * MARGIN

    def needed_cells() -> int:
        return sum(column.min_cells for column in columns) + gap * (len(columns) - 1)

    while len(columns) > 1 and needed_cells() > available_cells:
        columns.remove(min(reversed(columns), key=lambda column: column.priority))
    spare_cells = max(0, available_cells - needed_cells())
    flex_sum = sum(column.flex for column in columns)
    extra_widths = [spare_cells * column.flex // flex_sum if flex_sum else 0 for column in columns]
    most_flexible_index = max(range(len(columns)), key=lambda index: columns[index].flex)
    remainder_cells = spare_cells - sum(extra_widths) if flex_sum else 0
    extra_widths[most_flexible_index] += remainder_cells
    widths = [
        min(column.min_cells, available_cells) + extra
        for column, extra in zip(columns, extra_widths, strict=True)
    ]
    widths = [
        min(width, column.max_width) if column.max_width else width
        for column, width in zip(columns, widths, strict=True)
    ]
    dropped_ids = {column.id for column in all_columns} - {column.id for column in columns}
    fitting = [_with_alternative_cell(column, dropped_ids) for column in columns]
    return tuple(zip(fitting, widths, strict=True))


def _with_alternative_cell(column: Column[Row], dropped_ids: Collection[str]) -> Column[Row]:
    """Return the column, with a cell from ``cells_without`` if it has an entry for a dropped column."""
    cell = next((cell for id, cell in column.cells_without.items() if id in dropped_ids), None)
    return column if cell is None else replace(column, cell=cell)


def select_columns(columns: Iterable[Column[Row]], ids: str) -> tuple[Column[Row], ...]:
    """Return the columns with these IDs (separated by spaces), in the order of the IDs."""
    column_by_id = {column.id: column for column in columns}
    return tuple(column_by_id[id] for id in ids.split())


Sort = tuple[str, bool]
"""A sort order: the ID of the column that rows are sorted by, and True if descending."""


def sortable_columns(columns: Iterable[Column[Row]]) -> dict[str, Column[Row]]:
    """Return the columns that rows can be sorted by, by ID, in the given order."""
    return {column.id: column for column in columns if column.sort_key is not None}


def _initial_sort(column: Column[Row]) -> Sort:
    return column.id, column.descending


def next_sort(columns: Iterable[Column[Row]], sort: Sort, shown_ids: Collection[str]) -> Sort:
    """Return the sort by the next column on the screen; after the last column, by the first."""
    column_by_id = sortable_columns(columns)
    ids = [id for id in column_by_id if id in {*shown_ids, sort[0]}]
    next_id = ids[(ids.index(sort[0]) + 1) % len(ids)]
    return _initial_sort(column_by_id[next_id])


def clicked_sort(columns: Iterable[Column[Row]], sort: Sort, column_id: str) -> Sort:
    """Return the sort after a click on a column's heading: by that column, or reversed if already by it."""
    if column_id == sort[0]:
        return column_id, not sort[1]
    column = sortable_columns(columns).get(column_id)
    return sort if column is None else _initial_sort(column)


def sorted_rows(columns: Iterable[Column[Row]], rows: Iterable[Row], sort: Sort) -> list[Row]:
    """Sort rows stably by a column; rows without a sort key come last in both directions."""
    column_id, descending = sort
    sort_key = sortable_columns(columns)[column_id].sort_key
    assert sort_key is not None
    return ordered(rows, sort_key, descending=descending)
