"""Back and forward through the visited screens, as in a browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from textual.app import App
from textual.screen import Screen

from tui.actions.keymap import key_for
from tui.screens.base import AppScreen

LONGEST = 100


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An entry in the history: the key of a screen, and a function that shows it again."""

    key: tuple[str, ...]
    show: Callable[[], object] = field(compare=False, repr=False)


class NavigationHistory:
    """The visits with a current position; a new visit removes the entries ahead of it."""

    def __init__(self) -> None:
        self._visits: list[HistoryEntry] = []
        self._at = -1

    @property
    def present(self) -> HistoryEntry | None:
        return self._visits[self._at] if self._visits else None

    def visit(self, place: HistoryEntry) -> None:
        if place == self.present:
            return
        self._visits[self._at + 1 :] = [place]
        del self._visits[:-LONGEST]
        self._at = len(self._visits) - 1

    def record_return(self, place: HistoryEntry) -> None:
        """Go back to a place after the screen above it was closed; add it if it was not visited before."""
        for at in range(self._at, -1, -1):
            if self._visits[at] == place:
                self._at = at
                return
        self.visit(place)

    def step(self, by: int) -> HistoryEntry | None:
        at = self._at + by
        if not 0 <= at < len(self._visits):
            return None
        self._at = at
        return self._visits[at]


HOME = "home"


class Navigation:
    """Shows full screens above each other, with a history; ``share`` gives a screen the state of all."""

    def __init__(self, app: App[Any], keys: Mapping[str, str], share: Callable[[AppScreen], object]) -> None:
        self._app = app
        self._keys = keys
        self._share = share
        self._history = NavigationHistory()
        self._places: dict[Screen[Any], HistoryEntry] = {}

    def begin(self, first: Screen[None]) -> None:
        """Start a new history with the first screen, which stays below all others."""
        self._history = NavigationHistory()
        self._places = {}
        if isinstance(first, AppScreen):
            first.change_keys(self._keys)
            self._places[first] = HistoryEntry((HOME,), lambda: None)
            self._history.visit(self._places[first])

    def push(self, screen: AppScreen, place: HistoryEntry | None = None) -> None:
        """Show a screen; without a place it is not added to the history."""
        self._share(screen)
        screen.change_keys(self._keys)
        if place is None or place != self._history.present:  # otherwise the history has just moved there
            self._sync()
        if place is not None:
            self._places[screen] = place
            self._history.visit(place)
        self._app.push_screen(screen)

    def _sync(self) -> None:
        """Update the current position, because screens may have been closed in other ways."""
        there = set(self._app.screen_stack)
        self._places = {screen: place for screen, place in self._places.items() if screen in there}
        for screen in reversed(self._app.screen_stack):
            if (place := self._places.get(screen)) is not None:
                self._history.record_return(place)
                return

    async def back(self) -> None:
        screen = self._app.screen
        if isinstance(screen, AppScreen) and screen not in self._places:
            await self._app.run_action("screen.back")  # the screen may ask first: it has answers to keep
        else:
            await self._travel(-1, "No earlier screen; ")

    async def forward(self) -> None:
        await self._travel(1, "No later screen; ")

    async def _travel(self, by: int, nowhere: str) -> None:
        self._sync()
        place = self._history.step(by)
        if place is None:
            self._app.notify(f"{nowhere}{key_for('screen.back', self._keys)} leaves a screen.")
            return
        if any(self._places.get(screen) == place for screen in self._app.screen_stack):
            while self._places.get(self._app.screen) != place:
                await self._app.pop_screen()
        else:
            place.show()
