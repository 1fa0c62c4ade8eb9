"""Our table with 10,000 rows × 10 columns, compared with Textual's DataTable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from statistics import median

from harness import Figure, compared, cpu_ms_to_paint
from one_widget import OneWidget, Stalls
from textual.widgets import DataTable

from tui.tables.column import Column
from tui.widgets.row_table import RowTable

ROWS, COLUMNS = 10_000, 10
ROWS_PER_UPDATE = 100
SIZE = (160, 40)
JUMPS = 7
FILLED, UPDATED, JUMPED = "10,000 rows filled", "1% of the rows updated", "jump to the other end"
STALL = "worst stall while filling"


@dataclass(frozen=True)
class Record:
    """A row of the table."""

    key: str
    cells: tuple[str, ...]


async def figures() -> AsyncIterator[Figure]:
    """Measure both tables in turn."""
    records = [
        Record(str(row), tuple(f"cell {row} {column}" for column in range(COLUMNS))) for row in range(ROWS)
    ]
    our_rounds = [await measure_row_table(records)]
    their_times = await measure_data_table(records)
    our_rounds += [await measure_row_table(records) for _ in range(2)]
    for name, budget in ((FILLED, 0.05), (UPDATED, None), (JUMPED, None)):
        our_times = [times[name] for times in our_rounds]
        yield compared(name, our_times, [their_times[name]], "DataTable", unit="ms", at_most=budget)
    yield Figure(STALL, median(times[STALL] for times in our_rounds), unit="ms", at_most=50)


async def measure_row_table(records: list[Record]) -> dict[str, float]:
    """Return the CPU times (ms) of our table by action."""

    def cell(column: int) -> Callable[[Record], list[tuple[str, str]]]:
        return lambda record: [(record.cells[column], "plain")]

    columns = [Column(f"c{column}", f"c{column}", cell(column), 12) for column in range(COLUMNS)]
    table: RowTable[Record] = RowTable(columns, lambda record: record.key)
    changed = [
        replace(record, cells=("new", *record.cells[1:])) if row % ROWS_PER_UPDATE == 0 else record
        for row, record in enumerate(records)
    ]
    async with OneWidget(table).run_test(size=SIZE) as pilot:

        async def timed(rows: list[Record]) -> float:
            return await cpu_ms_to_paint(lambda: table.set_rows(rows), pilot.pause)

        table.focus()
        await pilot.pause()
        filled_ms = await timed(records)
        await timed([])
        async with Stalls() as stalls:
            await timed(records)
        updated_ms = [await timed(changed), await timed(records)]
        jumps_ms = [
            await cpu_ms_to_paint(lambda end=jump % 2 == 0: table.action_cursor_to_end(end), pilot.pause)
            for jump in range(JUMPS)
        ]
    return {FILLED: filled_ms, STALL: stalls.cpu_ms, UPDATED: median(updated_ms), JUMPED: median(jumps_ms)}


async def measure_data_table(records: list[Record]) -> dict[str, float]:
    """Return the CPU times (ms) of Textual's table by action."""
    table: DataTable[str] = DataTable(cursor_type="row")
    async with OneWidget(table).run_test(size=SIZE) as pilot:
        columns = table.add_columns(*(f"c{column}" for column in range(COLUMNS)))

        def fill() -> None:
            for record in records:
                table.add_row(*record.cells, key=record.key)

        def update() -> None:
            for record in records[::ROWS_PER_UPDATE]:
                table.update_cell(record.key, columns[0], "new")

        filled_ms = await cpu_ms_to_paint(fill, pilot.pause)
        updated_ms = await cpu_ms_to_paint(update, pilot.pause)
        jumps_ms = [
            await cpu_ms_to_paint(
                lambda row=(ROWS - 1) * (1 - jump % 2): table.move_cursor(row=row), pilot.pause
            )
            for jump in range(JUMPS)
        ]
    return {FILLED: filled_ms, UPDATED: updated_ms, JUMPED: median(jumps_ms)}
