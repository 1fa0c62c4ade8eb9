"""What becomes of the numbers of lines, and who is told."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
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
