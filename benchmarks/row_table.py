"""Our table of 10,000 rows × 10 columns beside textual's DataTable."""

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
UPDATED_EVERY = 100
SIZE = (160, 40)
JUMPS = 7
FILLED, UPDATED, JUMPED = "10,000 rows filled", "1% of the rows updated", "jump to the other end"
STALL = "worst stall while filling"


@dataclass(frozen=True)
class Record:
    """A row."""

    key: str
    cells: tuple[str, ...]


async def figures() -> AsyncIterator[Figure]:
    """Measure in turn."""
    records = [
        Record(str(row), tuple(f"cell {row} {place}" for place in range(COLUMNS))) for row in range(ROWS)
    ]
    mine = [await ours(records)]
    other = await theirs(records)
    mine += [await ours(records) for _ in range(2)]
    for name, most in ((FILLED, 0.05), (UPDATED, None), (JUMPED, None)):
        rounds = [one[name] for one in mine]
        yield compared(name, rounds, [other[name]], "DataTable", unit="ms", at_most=most)
    yield Figure(STALL, median(one[STALL] for one in mine), unit="ms", at_most=50)


async def ours(records: list[Record]) -> dict[str, float]:
    """Return the times of our table."""

    def cell(place: int) -> Callable[[Record], list[tuple[str, str]]]:
        return lambda record: [(record.cells[place], "plain")]

    columns = [Column(f"c{place}", f"c{place}", cell(place), 12) for place in range(COLUMNS)]
    table: RowTable[Record] = RowTable(columns, lambda record: record.key)
    changed = [
        replace(record, cells=("new", *record.cells[1:])) if row % UPDATED_EVERY == 0 else record
        for row, record in enumerate(records)
    ]
    async with OneWidget(table).run_test(size=SIZE) as pilot:

        async def timed(rows: list[Record]) -> float:
            return await cpu_ms_to_paint(lambda: table.set_rows(rows), pilot.pause)

        table.focus()
        await pilot.pause()
        filled = await timed(records)
        await timed([])
        async with Stalls() as stalls:
            await timed(records)
        updated = [await timed(changed), await timed(records)]
        jumps = [
            await cpu_ms_to_paint(lambda end=jump % 2 == 0: table.action_cursor_to_end(end), pilot.pause)
            for jump in range(JUMPS)
        ]
    return {FILLED: filled, STALL: stalls.cpu_ms, UPDATED: median(updated), JUMPED: median(jumps)}


async def theirs(records: list[Record]) -> dict[str, float]:
    """Return the times of textual's table."""
    table: DataTable[str] = DataTable(cursor_type="row")
    async with OneWidget(table).run_test(size=SIZE) as pilot:
        columns = table.add_columns(*(f"c{place}" for place in range(COLUMNS)))

        def fill() -> None:
            for record in records:
                table.add_row(*record.cells, key=record.key)

        def update() -> None:
            for record in records[::UPDATED_EVERY]:
                table.update_cell(record.key, columns[0], "new")

        filled = await cpu_ms_to_paint(fill, pilot.pause)
        updated = await cpu_ms_to_paint(update, pilot.pause)
        jumps = [
            await cpu_ms_to_paint(
                lambda row=(ROWS - 1) * (1 - jump % 2): table.move_cursor(row=row), pilot.pause
            )
            for jump in range(JUMPS)
        ]
    return {FILLED: filled, UPDATED: updated, JUMPED: median(jumps)}
