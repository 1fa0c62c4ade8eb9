"""Ascending numbers of lines, and what becomes of them when lines come and go between them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence


def between(numbers: array[int], low: int, high: int) -> array[int]:
    """Those that are ``low <= number < high``."""
    return numbers[bisect_left(numbers, low) : bisect_left(numbers, high)]


def holds(numbers: Sequence[int], number: int) -> bool:
    """Whether a number is among them."""
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number


def make_place(numbers: array[int], places: Sequence[int]) -> None:
    """Count on for lines that were inserted before those of the (ascending) numbers ``places``."""
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


def merge(numbers: array[int], more: Iterable[int]) -> None:
    """Put ascending numbers between those that are there; equal ones count once."""
    added = list(more)
    if not added:
        return
    if not numbers or added[0] > numbers[-1]:
        numbers.extend(added)
    elif added[-1] < numbers[0]:
        numbers[0:0] = array("q", added)
    else:
        begin = bisect_left(numbers, added[0])
        numbers[begin:] = array("q", sorted({*numbers[begin:], *added}))


def take_out(numbers: array[int], number: int) -> bool:
    """Take a number out; returns whether it was there."""
    at = bisect_left(numbers, number)
    if at < len(numbers) and numbers[at] == number:
        del numbers[at]
        return True
    return False


def close_place(numbers: array[int], removed: int) -> None:
    """Count back for a line that is gone."""
    take_out(numbers, removed)
    begin = bisect_right(numbers, removed)
    numbers[begin:] = array("q", [number - 1 for number in numbers[begin:]])
