"""What becomes of the numbers of lines, and who is told."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol


class StoreListener(Protocol):
    """Who remembers numbers of lines and learns what becomes of them."""

    def lines_appended(self, low: int, high: int) -> None:
        """Lines ``low <= seq < high`` came at the end."""

    def lines_prepended(self, low: int, high: int) -> None:
        """Lines ``low <= seq < high`` came before all others."""

    def lines_inserted(self, places: Sequence[int]) -> None:
        """Lines came before those that had these numbers (ascending; one more than the last: at the end)."""

    def line_removed(self, seq: int) -> None:
        """A line is gone; those after it move up."""

    def lines_dropped(self, low: int) -> None:
        """All lines before ``low`` are gone."""

    def store_cleared(self) -> None:
        """All lines are gone."""


def shifted(seq: int, places: Sequence[int]) -> int:
    """The number that a line has after lines were inserted at ``places``."""
    return seq + bisect_right(places, seq)


def holds(numbers: Sequence[int], number: int) -> bool:
    """Whether a number is among ascending ones."""
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number


class Numbers:
    """Ascending numbers without a double; quick to grow at either end.

    What is put before all others waits in pieces until somebody asks for it: a million lines are gone
    through backwards, a thousand at a time, and moving all that are there for each would take a second.
    """

    __slots__ = ("_before", "_count_before", "_items")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._items: array[int] = array("q", numbers)
        self._before: list[array[int]] = []  # the oldest numbers last
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
        """Whether a number's place is surely not among those that wait."""
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
        """How many are smaller."""
        if self._is_late(number):
            return self._count_before + bisect_left(self._items, number)
        return bisect_left(self._whole(), number)

    def between(self, low: int, high: int) -> array[int]:
        """Those that are ``low <= number < high``."""
        items = self._items if self._is_late(low) else self._whole()
        return items[bisect_left(items, low) : bisect_left(items, high)]

    def extend(self, more: Iterable[int]) -> None:
        """Put greater numbers after all others."""
        self._items.extend(more)

    def put_before(self, more: Iterable[int]) -> None:
        """Put smaller numbers before all others."""
        piece = array("q", more)
        if piece:
            self._before.append(piece)
            self._count_before += len(piece)

    def make_place(self, places: Sequence[int]) -> None:
        """Count on for lines that were inserted before those of the (ascending) numbers ``places``."""
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

    def close_place(self, removed: int) -> None:
        """Count back for a line that is gone."""
        self.take_out(removed)
        numbers = self._whole()
        begin = bisect_right(numbers, removed)
        numbers[begin:] = array("q", [number - 1 for number in numbers[begin:]])

    def merge(self, more: Iterable[int]) -> None:
        """Put ascending numbers between those that are there; equal ones count once."""
        numbers, added = self._whole(), list(more)
        if not added:
            return
        if not numbers or added[0] > numbers[-1]:
            numbers.extend(added)
        elif added[-1] < numbers[0]:
            self.put_before(added)
        else:
            low, high = bisect_left(numbers, added[0]), bisect_right(numbers, added[-1])
            numbers[low:high] = array("q", sorted({*numbers[low:high], *added}))

    def take_out(self, number: int) -> bool:
        """Take a number out; returns whether it was there."""
        numbers = self._items if self._is_late(number) else self._whole()
        at = bisect_left(numbers, number)
        if at < len(numbers) and numbers[at] == number:
            del numbers[at]
            return True
        return False

    def take_all_out(self, numbers: Sequence[int]) -> None:
        """Take ascending numbers out, as far as they are there."""
        if not numbers:
            return
        items, gone = self._whole(), set(numbers)
        low, high = bisect_left(items, numbers[0]), bisect_right(items, numbers[-1])
        items[low:high] = array("q", [number for number in items[low:high] if number not in gone])

    def drop_before(self, low: int) -> None:
        """Take all smaller numbers out."""
        numbers = self._whole()
        del numbers[: bisect_left(numbers, low)]
