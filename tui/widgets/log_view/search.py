"""Looking for a text through all rows without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from api_client.streams.records import LogLine
from tui.widgets.log_view.rows import VisibleRows

_CHECK_EVERY_ROWS = 1024


def _order(count: int, start: int, backwards: bool, include_start: bool) -> Iterator[range]:
    """Stretches of indices in the order of the search: from the start to one end, then around to it."""
    if backwards:
        first = start if include_start else start - 1
        yield range(min(first, count - 1), -1, -1)
        yield range(count - 1, max(first, -1), -1)
    else:
        first = start if include_start else start + 1
        yield range(max(0, first), count)
        yield range(min(first, count))


async def find_row(
    visible: VisibleRows,
    needle: str,
    start: int,
    *,
    backwards: bool,
    include_start: bool,
    slice_s: float,
    monotonic_s: Callable[[], float],
) -> int | None:
    """The index of the nearest row that holds a lower-case text, or None; goes around the ends.

    Gives way to other work every `slice_s` seconds. Rows that come or go at the front meanwhile are
    made up for by looking for the entry that was found.
    """
    deadline_s = monotonic_s() + slice_s
    rows = list(visible.rows)  # a snapshot: references only
    for stretch in _order(len(rows), start, backwards, include_start):
        for begin in range(0, len(stretch), _CHECK_EVERY_ROWS):
            for index in stretch[begin : begin + _CHECK_EVERY_ROWS]:
                entry = rows[index]
                if isinstance(entry, LogLine) and needle in entry.message.lower():
                    return _now_at(visible, entry, index)
            if monotonic_s() >= deadline_s:
                await asyncio.sleep(0)
                deadline_s = monotonic_s() + slice_s
    return None


def _now_at(visible: VisibleRows, entry: LogLine, index: int) -> int | None:
    rows = visible.rows
    if index < len(rows) and rows[index] is entry:
        return index
    return next((position for position, other in enumerate(rows) if other is entry), None)
