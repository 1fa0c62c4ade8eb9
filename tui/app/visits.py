"""What the app does about going back and forward: it keeps the trail of screens that were visited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import App
from textual.screen import Screen

from tui.app.trail import Place, Trail
from tui.keymap import key_for
from tui.screens.base import AppScreen
from tui.screens.welcome.screen import WelcomeChoice

HOME = "home"


class VisitKeeper(App[WelcomeChoice]):
    """The part of the app that goes back and forward through the screens that were visited."""

    _trail: Trail
    _keys: Mapping[str, str] = {}
    _places: dict[Screen[Any], Place]

    def begin_trail(self, first: Screen[None]) -> None:
        """Begin anew on that screen, which stays below all others."""
        self._trail = Trail()
        self._places = {}
        if isinstance(first, AppScreen):
            self._places[first] = Place((HOME,), lambda: None)
            self._trail.visit(self._places[first])

    def note_visit(self, screen: AppScreen, place: Place | None) -> None:
        """A screen is about to be shown; without a place it is none to come back to."""
        if place is None or place != self._trail.present:  # else one has stepped there just now
            self._catch_up()
        if place is not None:
            self._places[screen] = place
            self._trail.visit(place)

    def _catch_up(self) -> None:
        """Screens may have been left since by other ways: where one is now is the present visit."""
        there = set(self.screen_stack)
        self._places = {screen: place for screen, place in self._places.items() if screen in there}
        for screen in reversed(self.screen_stack):
            if (place := self._places.get(screen)) is not None:
                self._trail.fall_back(place)
                return

    # Actions

    async def action_go_back(self) -> None:
        """The screen that was visited before."""
        screen = self.screen
        if isinstance(screen, AppScreen) and screen not in self._places:
            await self.run_action("screen.back")  # it may have to ask, and has answers to keep
            return
        await self._travel(-1, "This is where you began; ")

    async def action_go_forward(self) -> None:
        """The screen that was gone back from."""
        await self._travel(1, "There is nothing further on; ")

    async def _travel(self, by: int, nowhere: str) -> None:
        self._catch_up()
        place = self._trail.step(by)
        if place is None:
            self.notify(f"{nowhere}{key_for('screen.back', self._keys)} leaves a screen.")
            return
        stack = self.screen_stack
        if any(self._places.get(screen) == place for screen in stack):
            while self._places.get(self.screen) != place:
                await self.pop_screen()
        else:
            place.show()
