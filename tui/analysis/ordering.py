"""Sort rows by a value that is missing in some rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, TypeVar

Row = TypeVar("Row")


def ordered(rows: Iterable[Row], value: Callable[[Row], Any], *, descending: bool = False) -> list[Row]:
    """Sort stably by ``value``; rows whose value is None come last in both directions.

    NaN counts as larger than every number, because a NaN loss is worse than any other loss.
    """
    values_and_rows = [(value(row), row) for row in rows]
    nan_rows = [row for row_value, row in values_and_rows if row_value != row_value]
    sortable = [pair for pair in values_and_rows if pair[0] is not None and pair[0] == pair[0]]
    sortable.sort(key=itemgetter(0), reverse=descending)
    sorted_rows = [row for _, row in sortable]
    rows_without_value = [row for row_value, row in values_and_rows if row_value is None]
    return (
        [*nan_rows, *sorted_rows, *rows_without_value]
        if descending
        else [*sorted_rows, *nan_rows, *rows_without_value]
    )
