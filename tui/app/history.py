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
    """The visited pages and the position of the current page; a new visit drops the pages after it."""

    def __init__(self) -> None:
        self._visits: list[Page] = []
        self._position = -1

    @property
    def current(self) -> Page | None:
        return self._visits[self._position] if self._visits else None

    def visit(self, page: Page) -> None:
        if page == self.current:
            return
        self._visits[self._position + 1 :] = [page]
        del self._visits[:-100]
        self._position = len(self._visits) - 1

    def record_return(self, page: Page) -> None:
        """Make a page the current page after the screen above it was closed; add it if not visited before."""
        for position in range(self._position, -1, -1):
            if self._visits[position] == page:
                self._position = position
                return
        self.visit(page)

    def step(self, offset: int) -> Page | None:
        """Go to the page at ``offset`` from the current page, and return it; None if there is none."""
        position = self._position + offset
        if not 0 <= position < len(self._visits):
            return None
        self._position = position
        return self._visits[position]


class Navigation(Service):
    """Opens pages on top of each other, and goes back and forward through the visited pages."""

    services: PageServices

    def __init__(self, app: BaseApp) -> None:
        super().__init__(app)
        self._history = NavigationHistory()
        self._page_by_screen = WeakKeyDictionary[Screen[Any], Page]()
        """The page of each open screen that is in the history."""

    def begin(self, bottom_screen: Screen[None]) -> None:
        """Start a new history with the screen at the bottom of the stack."""
        self._history = NavigationHistory()
        self._page_by_screen.clear()
        if isinstance(bottom_screen, AppScreen):
            self._prepare(bottom_screen)
            self._page_by_screen[bottom_screen] = HomePage()
            self._history.visit(HomePage())

    def open_requested(self, message: OpenPage) -> Worker[None] | None:
        """Open the page of a message, unless the screen that it replaces is no longer on top."""
        if message.replaces is not None:
            if self._app.screen is not message.replaces:
                return None
            self._app.pop_screen()
        return self.open(message.page)

    def open(self, page: Page | FindPage) -> Worker[None] | None:
        """Open a page above the current screen; for a ``FindPage``, return the worker that opens the page."""
        if not isinstance(page, Page):
            return self._run(partial(self._find_and_open, page), "search for a job", "open", exclusive=True)
        screen = page.open(self.services)
        self._app.copy_state_to(screen)
        self._prepare(screen)
        if page != self._history.current:  # if equal, the user went back or forward
            self._sync_with_screens()
        if not page.changes_server:
            self._page_by_screen[screen] = page
            self._history.visit(page)
        self._app.push_screen(screen)
        return None

    def _prepare(self, screen: AppScreen) -> None:
        """Bind the user's keys, and parse only the screen's new CSS: Textual would parse all CSS again."""
        screen.bind_user_keys(self._app.keys)
        styles = self._app.stylesheet
        styles.read_all([path for path in screen.css_path if not styles.has_source(str(path))])

    async def _find_and_open(self, find_page: FindPage) -> None:
        if (page := await find_page(self.services)) is not None:
            self.open(page)

    def _sync_with_screens(self) -> None:
        """Update the history from the screen stack: screens may have been closed since the last visit."""
        for screen in reversed(self._app.screen_stack):
            if (page := self._page_by_screen.get(screen)) is not None:
                self._history.record_return(page)
                return

    async def back(self) -> None:
        screen = self._app.screen
        if isinstance(screen, AppScreen) and screen not in self._page_by_screen:
            # The screen may ask whether to discard the user's answers.
            await self._app.run_action("screen.back")
        else:
            await self._move_in_history(-1, "No earlier screen; ")

    async def forward(self) -> None:
        await self._move_in_history(1, "No later screen; ")

    async def _move_in_history(self, offset: int, no_page_text: str) -> None:
        self._sync_with_screens()
        page = self._history.step(offset)
        if page is None:
            self._app.notify(f"{no_page_text}{self._app.key_for('screen.back')} leaves a screen.")
        elif any(self._page_by_screen.get(screen) == page for screen in self._app.screen_stack):
            while len(self._app.screen_stack) > 2 and self._page_by_screen.get(self._app.screen) != page:
                await self._app.pop_screen()
        else:
            self.open(page)
