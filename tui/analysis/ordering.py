"""Sort rows by a value that some of them lack."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, TypeVar

Row = TypeVar("Row")


def ordered(rows: Iterable[Row], value: Callable[[Row], Any], *, descending: bool = False) -> list[Row]:
    """Sort stably by ``value``; rows for which it is None come last in both directions.

    NaN counts as larger than every number: it is the worst loss.
    """
    keyed = [(value(row), row) for row in rows]
    nan = [row for key, row in keyed if key != key]
    with_value = [pair for pair in keyed if pair[0] is not None and pair[0] == pair[0]]
    with_value.sort(key=itemgetter(0), reverse=descending)
    comparable = [row for _, row in with_value]
    unknown = [row for key, row in keyed if key is None]
    return [*nan, *comparable, *unknown] if descending else [*comparable, *nan, *unknown]
