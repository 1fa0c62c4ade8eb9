"""The screens that were visited, in order, with a place among them: back and forward as in a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

LONGEST = 100
"""Older visits are forgotten."""


@dataclass(frozen=True, slots=True)
class Place:
    """A screen that can be come back to: what it shows, and how to show that again."""

    key: tuple[str, ...]
    show: Callable[[], object] = field(compare=False, repr=False)


class Trail:
    """Visits, the present one among them. Visiting anew forgets those that were ahead."""

    def __init__(self) -> None:
        self._visits: list[Place] = []
        self._at = -1

    @property
    def present(self) -> Place | None:
        """Where one is; None before the first visit."""
        return self._visits[self._at] if self._visits else None

    def visit(self, place: Place) -> None:
        """Go to a place; the present one again changes nothing."""
        if place == self.present:
            return
        self._visits[self._at + 1 :] = [place]
        del self._visits[:-LONGEST]
        self._at = len(self._visits) - 1

    def fall_back(self, place: Place) -> None:
        """A screen was left for the one below it: a step back if it was visited before, else a visit."""
        for at in range(self._at, -1, -1):
            if self._visits[at] == place:
                self._at = at
                return
        self.visit(place)

    def step(self, by: int) -> Place | None:
        """Move that many visits on, or back; the place there, None (and no move) where there is none."""
        at = self._at + by
        if not 0 <= at < len(self._visits):
            return None
        self._at = at
        return self._visits[at]
