"""Line numbers that survive insertions: observers of changes, and sorted sets of numbers."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol


class LogStoreObserver(Protocol):
    """Keeps line numbers and is notified when they change."""

    def lines_appended(self, low: int, high: int) -> None:
        """Lines ``low <= seq < high`` were appended."""

    def lines_prepended(self, low: int, high: int) -> None:
        """Lines ``low <= seq < high`` were added before all others."""

    def lines_inserted(self, places: Sequence[int]) -> None:
        """Lines were inserted before those numbered ``places``.

        The numbers are ascending; one past the last line means the end.
        """

    def line_removed(self, seq: int) -> None:
        """A line was removed; the numbers after it decrease by one."""

    def lines_dropped(self, low: int) -> None:
        """All lines before ``low`` were dropped."""

    def store_cleared(self) -> None:
        """All lines were removed."""


def shifted(seq: int, places: Sequence[int]) -> int:
    """Return the new number of a line after lines were inserted at ``places``."""
    return seq + bisect_right(places, seq)


def holds(numbers: Sequence[int], number: int) -> bool:
    """Return True if `number` is in an ascending sequence."""
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number


class SortedIds:
    """Ascending, unique numbers that grow quickly at both ends.

    Prepended numbers are kept in pieces until they are needed. A million lines are processed backwards, a
    thousand at a time, and moving all existing numbers each time would take a second.
    """

    __slots__ = ("_before", "_count_before", "_items")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._items: array[int] = array("q", numbers)
        self._before: list[array[int]] = []  # pending pieces; the oldest numbers last
        self._count_before = 0

    def __len__(self) -> int:
        return self._count_before + len(self._items)

    def __iter__(self) -> Iterator[int]:
        return iter(self._whole())

    def __getitem__(self, at: int) -> int:
        before = self._count_before
        if before and at >= before:
            return self._items[at - before]
        return self._whole()[at]

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        items = self._items if self._is_late(number) else self._whole()
        return holds(items, number)

    def _is_late(self, number: int) -> bool:
        """Return True if the number cannot be among the pending pieces."""
        return not self._before or (bool(self._items) and number >= self._items[0])

    def _whole(self) -> array[int]:
        if self._before:
            whole = array("q")
            for piece in reversed(self._before):
                whole.extend(piece)
            whole.extend(self._items)
            self._items, self._before, self._count_before = whole, [], 0
        return self._items

    def index_of(self, number: int) -> int:
        """Return the count of smaller numbers."""
        if self._is_late(number):
            return self._count_before + bisect_left(self._items, number)
        return bisect_left(self._whole(), number)

    def between(self, low: int, high: int) -> array[int]:
        """Return the numbers ``low <= number < high``."""
        items = self._items if self._is_late(low) else self._whole()
        return items[bisect_left(items, low) : bisect_left(items, high)]

    def extend(self, more: Iterable[int]) -> None:
        self._items.extend(more)

    def prepend_all(self, more: Iterable[int]) -> None:
        """Prepend numbers smaller than all others."""
        piece = array("q", more)
        if piece:
            self._before.append(piece)
            self._count_before += len(piece)

    def open_gaps(self, places: Sequence[int]) -> None:
        """Shift numbers after lines were inserted before those numbered ``places`` (ascending)."""
        numbers = self._whole()
        begin = bisect_left(numbers, places[0])
        if begin == len(numbers):
            return
        moved: list[int] = []
        for index, place in enumerate(places):
            stop = bisect_left(numbers, places[index + 1], begin) if index + 1 < len(places) else len(numbers)
            if place <= numbers[-1] and stop > begin:
                by = index + 1
                moved += [number + by for number in numbers[begin:stop]]
                begin = stop
        numbers[len(numbers) - len(moved) :] = array("q", moved)

    def close_gap(self, removed: int) -> None:
        """Remove a number and decrease all greater ones by one."""
        self.remove_id(removed)
        numbers = self._whole()
        begin = bisect_right(numbers, removed)
        numbers[begin:] = array("q", [number - 1 for number in numbers[begin:]])

    def merge(self, more: Iterable[int]) -> None:
        """Insert ascending numbers, ignoring duplicates."""
        numbers, added = self._whole(), list(more)
        if not added:
            return
        if not numbers or added[0] > numbers[-1]:
            numbers.extend(added)
        elif added[-1] < numbers[0]:
            self.prepend_all(added)
        else:
            low, high = bisect_left(numbers, added[0]), bisect_right(numbers, added[-1])
            numbers[low:high] = array("q", sorted({*numbers[low:high], *added}))

    def remove_id(self, number: int) -> bool:
        numbers = self._items if self._is_late(number) else self._whole()
        at = bisect_left(numbers, number)
        if at < len(numbers) and numbers[at] == number:
            del numbers[at]
            return True
        return False

    def remove_ids(self, numbers: Sequence[int]) -> None:
        """Remove ascending numbers; missing ones are ignored."""
        if not numbers:
            return
        items, gone = self._whole(), set(numbers)
        low, high = bisect_left(items, numbers[0]), bisect_right(items, numbers[-1])
        items[low:high] = array("q", [number for number in items[low:high] if number not in gone])

    def drop_before(self, low: int) -> None:
        numbers = self._whole()
        del numbers[: bisect_left(numbers, low)]
