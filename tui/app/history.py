"""Open pages; go back and forward through them, as in a browser."""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from textual.screen import Screen
from textual.worker import Worker

from tui.app.service import BaseApp, Service
from tui.screens.base import AppScreen, FindPage, OpenPage, Page, PageServices
from tui.screens.home.screen import HomePage


class NavigationHistory:
    """The visited pages and the current position; a new visit drops the pages after that position."""

    def __init__(self) -> None:
        self._visits: list[Page] = []
        self._position = -1

    @property
    def present(self) -> Page | None:
        return self._visits[self._position] if self._visits else None

    def visit(self, page: Page) -> None:
        if page == self.present:
            return
        self._visits[self._position + 1 :] = [page]
        del self._visits[:-100]
        self._position = len(self._visits) - 1

    def record_return(self, page: Page) -> None:
        """Go back to a page after the screen above it was closed; add it if it was not visited before."""
        for position in range(self._position, -1, -1):
            if self._visits[position] == page:
                self._position = position
                return
        self.visit(page)

    def step(self, by: int) -> Page | None:
        position = self._position + by
        if not 0 <= position < len(self._visits):
            return None
        self._position = position
        return self._visits[position]


class Navigation(Service):
    """Opens pages above each other, with a history."""

    services: PageServices

    def __init__(self, app: BaseApp) -> None:
        super().__init__(app)
        self._history = NavigationHistory()
        self._pages = WeakKeyDictionary[Screen[Any], Page]()

    def begin(self, first: Screen[None]) -> None:
        """Start a new history with the bottom screen of the stack."""
        self._history = NavigationHistory()
        self._pages.clear()
        if isinstance(first, AppScreen):
            self._prepare(first)
            self._pages[first] = HomePage()
            self._history.visit(HomePage())

    def open_requested(self, message: OpenPage) -> Worker[None] | None:
        """Open the page of a message, unless the screen that it replaces is no longer on top."""
        if message.replaces is not None:
            if self._app.screen is not message.replaces:
                return None
            self._app.pop_screen()
        return self.open(message.page)

    def open(self, page: Page | FindPage) -> Worker[None] | None:
        """Open a page above the current screen; for a ``FindPage``, return the worker that does so."""
        if not isinstance(page, Page):
            return self._run(partial(self._find, page), "search for a job", "open", exclusive=True)
        screen = page.open(self.services)
        self._app.share_with(screen)
        self._prepare(screen)
        if page != self._history.present:  # else this is a step in the history
            self._sync()
        if not page.changes_server:
            self._pages[screen] = page
            self._history.visit(page)
        self._app.push_screen(screen)
        return None

    def _prepare(self, screen: AppScreen) -> None:
        """Set the user's keys and load the screen's CSS, for which Textual would parse all CSS again."""
        screen.change_keys(self._app.keys)
        styles = self._app.stylesheet
        styles.read_all([path for path in screen.css_path if not styles.has_source(str(path))])

    async def _find(self, find: FindPage) -> None:
        if (page := await find(self.services)) is not None:
            self.open(page)

    def _sync(self) -> None:
        """Update the current position from the screen stack: screens may have been closed meanwhile."""
        for screen in reversed(self._app.screen_stack):
            if (page := self._pages.get(screen)) is not None:
                self._history.record_return(page)
                return

    async def back(self) -> None:
        screen = self._app.screen
        if isinstance(screen, AppScreen) and screen not in self._pages:
            await self._app.run_action("screen.back")  # it may ask whether to discard the user's answers
        else:
            await self._travel(-1, "No earlier screen; ")

    async def forward(self) -> None:
        await self._travel(1, "No later screen; ")

    async def _travel(self, by: int, nowhere: str) -> None:
        self._sync()
        page = self._history.step(by)
        if page is None:
            self._app.notify(f"{nowhere}{self._app.key_for('screen.back')} leaves a screen.")
        elif any(self._pages.get(screen) == page for screen in self._app.screen_stack):
            while self._pages.get(self._app.screen) != page:
                await self._app.pop_screen()
        else:
            self.open(page)
