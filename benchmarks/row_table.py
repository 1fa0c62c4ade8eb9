"""Our table of 10,000 rows × 10 columns beside textual's DataTable, in one run."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from textual.widgets import DataTable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Report
from one_widget import OneWidget, Stalls

from tui.tables.column import Column
from tui.widgets.row_table import RowTable

ROWS, COLUMNS = 10_000, 10
UPDATED = ROWS // 100
SIZE = (160, 40)
ROUNDS = 7


@dataclass(frozen=True)
class Record:
    """A row."""

    key: str
    cells: tuple[str, ...]


async def timed(work: Callable[[], object], rest: Callable[[], Awaitable[object]]) -> float:
    """CPU ms from a change to the painted screen."""
    begun = time.process_time()
    work()
    await rest()
    return (time.process_time() - begun) * 1000


async def ours(records: list[Record]) -> dict[str, float]:
    """Our table."""

    def cell(place: int) -> Callable[[Record], list[tuple[str, str]]]:
        return lambda record: [(record.cells[place], "plain")]

    columns = [Column(f"c{place}", f"c{place}", cell(place), 12) for place in range(COLUMNS)]
    table: RowTable[Record] = RowTable(columns, lambda record: record.key)
    async with OneWidget(table).run_test(size=SIZE) as pilot:
        table.focus()
        await pilot.pause()
        fill = await timed(lambda: table.set_rows(records), pilot.pause)
        table.set_rows([])
        await pilot.pause()
        stalls = Stalls()
        watcher = asyncio.create_task(stalls.watch())
        table.set_rows(records)
        await pilot.pause()
        watcher.cancel()
        changed = [
            replace(record, cells=("new", *record.cells[1:])) if place % (ROWS // UPDATED) == 0 else record
            for place, record in enumerate(records)
        ]
        updates = [await timed(lambda: table.set_rows(changed), pilot.pause)]
        updates.append(await timed(lambda: table.set_rows(records), pilot.pause))
        jumps = [
            await timed(lambda last=number % 2 == 0: table.action_cursor_to_end(last), pilot.pause)
            for number in range(ROUNDS)
        ]
        return {
            "fill": fill,
            "stall": stalls.cpu_ms,
            "update": statistics.median(updates),
            "jump": statistics.median(jumps),
        }


async def theirs(records: list[Record]) -> dict[str, float]:
    """Textual's table."""
    table: DataTable[str] = DataTable(cursor_type="row")
    async with OneWidget(table).run_test(size=SIZE) as pilot:
        columns = table.add_columns(*(f"c{place}" for place in range(COLUMNS)))

        def fill() -> None:
            for record in records:
                table.add_row(*record.cells, key=record.key)

        filled = await timed(fill, pilot.pause)

        def update() -> None:
            for record in records[:: ROWS // UPDATED]:
                table.update_cell(record.key, columns[0], "new")

        updated = await timed(update, pilot.pause)
        jumps = [
            await timed(
                lambda last=number % 2 == 0: table.move_cursor(row=ROWS - 1 if last else 0), pilot.pause
            )
            for number in range(ROUNDS)
        ]
        return {"fill": filled, "update": updated, "jump": statistics.median(jumps)}


async def main() -> None:
    """Measure in turn."""
    records = [
        Record(str(row), tuple(f"cell {row} {place}" for place in range(COLUMNS))) for row in range(ROWS)
    ]
    report = Report("row_table")
    mine = [await ours(records)]
    other = await theirs(records)
    mine += [await ours(records) for _ in range(2)]
    best = {name: statistics.median(one[name] for one in mine) for name in mine[0]}
    against = "DataTable"
    report.compare(
        "10,000 rows filled", best["fill"], other["fill"], against=against, unit="ms", at_most=0.05
    )
    report.compare("1% of the rows updated", best["update"], other["update"], against=against, unit="ms")
    report.compare("jump to the other end", best["jump"], other["jump"], against=against, unit="ms")
    report.figure("worst stall while filling", best["stall"], unit="ms", at_most=50)
    report.close()


if __name__ == "__main__":
    asyncio.run(main())
