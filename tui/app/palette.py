"""The command palette: actions, themes, and the projects, jobs and checkpoints on the screens.

The palette searches only data of the open screens: typing sends no requests to the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, cast

from textual import on, work
from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.command import (
    Command,
    CommandList,
    CommandListItem,
    CommandPalette,
    DiscoveryHit,
    Hit,
    Hits,
    Provider,
    SimpleProvider,
)
from textual.content import Content
from textual.css.query import NoMatches
from textual.system_commands import SystemCommandsProvider
from textual.widget import AwaitMount
from textual.widgets import Button, Input, OptionList

from tui.actions.keymap import key_labels, keys_of
from tui.actions.table import Scope, actions_of
from tui.app.service import Service
from tui.screens.base import AppScreen, PaletteItem
from tui.settings.remembered import ThemeState
from tui.text.sanitize import MAX_WRAPPED_LENGTH
from tui.widgets.tones import Recolored

KEYS_SEPARATOR = "  "
"""Separator between the name of an action and its keys."""


class ActionProvider(SystemCommandsProvider):
    """Finds actions by their names or by words of their help texts; lists the screen's actions first."""

    async def discover(self) -> Hits:
        for name, help_text, run, _ in self.app.get_system_commands(self.screen):
            label, _, keys = name.partition(KEYS_SEPARATOR)
            yield DiscoveryHit(_entry_line(Content(label), help_text, keys), run, text=name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        query_words = query.casefold().split()
        for name, help_text, run, _ in self.app.get_system_commands(self.screen):
            score = matcher.match(name)
            if query_words and all(word in help_text.casefold() for word in query_words):
                score = max(score, 0.5)  # below names that begin with the words
            label, _, keys = name.partition(KEYS_SEPARATOR)
            if score > 0:
                yield Hit(score, _entry_line(matcher.highlight(label), help_text, keys), run, text=name)


class PaletteProvider(Provider):
    """Finds jobs, projects and checkpoints on the open screens; without a query, lists Home's first jobs."""

    async def discover(self) -> Hits:
        job_items = (item for item in self._items() if item.kind == "job")
        for item in islice(job_items, 5):  # few enough that actions are visible, too
            title = f"{item.kind} {item.name}"[:MAX_WRAPPED_LENGTH]
            # Actions have a score of 0, so jobs come first.
            styled_title = Content(title).stylize("dim", 0, len(item.kind))
            yield Hit(1.0, _entry_line(styled_title, item.description), item.choose, text=title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for index, item in enumerate(self._items()):
            if index % 200 == 199:  # let keys through every few milliseconds
                await asyncio.sleep(0)
            title = f"{item.kind} {item.name}"[:MAX_WRAPPED_LENGTH]
            score, offsets = matcher.fuzzy_search.match(query, title)
            if len(query) >= 3 and query.lower() in item.id.lower():  # shorter queries match too many IDs
                score = max(score, matcher.fuzzy_search.match(query, item.id)[0])
            if not score:
                continue
            styled_title = Content(title).stylize("dim", 0, len(item.kind))
            for offset in offsets:
                styled_title = styled_title.stylize("underline", offset, offset + 1)
            # The factor ranks actions with the same score first.
            yield Hit(score * 0.999, _entry_line(styled_title, item.description), item.choose, text=title)

    def _items(self) -> Iterator[PaletteItem]:
        screens = [screen for screen in self.app.screen_stack if isinstance(screen, AppScreen)]
        for screen in reversed(screens):
            yield from screen.palette_items()


def _entry_line(name: Content, description: str, keys: str = "") -> Content:
    """Return an entry's line in the list: its name, its keys, and a description in an aligned column."""
    gap = " " * max(1, 32 - name.cell_length - len(keys))
    return Content.assemble(
        name, gap, (keys, "$primary"), "  ", (description[:MAX_WRAPPED_LENGTH], "dim not bold")
    )


CURRENT_THEME_SIGN = "● "


class Palette(CommandPalette):
    """A command palette that accepts one choice and closes only itself.

    In Textual's palette, a second Enter, typed before the first Enter has closed the palette, chooses again:
    it runs the command twice, and closes the screen below or, if that is the last screen, the app.
    """

    @on(Input.Submitted)
    @on(Button.Pressed)
    @on(OptionList.OptionSelected)
    def _choose_once(self, event: Input.Submitted | Button.Pressed | OptionList.OptionSelected) -> None:
        if self.app.screen is not self:
            event.stop()
            event.prevent_default()

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        gather = cast(Any, CommandPalette._gather_commands).__wrapped__
        with suppress(NoMatches):  # the list is gone if the palette was closed while the user typed
            await gather(self, search_value)

    def _action_command_list(self, action: str) -> None:
        """Run an action of the list, such as ``page_down``; do nothing if it is missing or has no size."""
        if any(option_list.scrollable_content_region for option_list in self.query(OptionList)):
            super()._action_command_list(action)

    def _action_cursor_down(self) -> None:
        """Open the list, or move down in it; do nothing if the palette is closing."""
        if self.query(CommandList):
            super()._action_cursor_down()

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the palette; do nothing if it is no longer the screen on top."""
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class ThemePalette(Recolored, Palette):
    """The list of themes, the current theme first and marked; highlighting a theme previews it."""

    _original_theme = ""

    def on_mount(self) -> None:
        self._original_theme = self.app.theme

    def recolor(self) -> None:
        """Apply the theme to the palette, too: Textual applies a new theme only to the screens below."""
        self.app.stylesheet.update(self)

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        if isinstance(event.option, Command):
            self.app.theme = (event.option.hit.text or "").removeprefix(CURRENT_THEME_SIGN)

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the list, and restore the previous theme unless the user has chosen a theme."""
        if self._selected_command is None:
            self.app.theme = self._original_theme
        return super().dismiss(result)


class Themes(Service):
    """The theme: from the settings if they name a theme, else the theme that the user chose last."""

    @property
    def initial_theme(self) -> str:
        settings, remembered = self._app.settings, self._app.memory.state.theme.name
        uses_remembered = remembered in self._app.available_themes and not settings.is_given("theme.name")
        return remembered if uses_remembered else settings.configuration.theme.name

    def choose(self) -> None:
        """Open the list of themes."""
        current_name = self._app.theme
        other_names = sorted(
            (name for name in self._app.available_themes if name != current_name),
            key=lambda name: (not name.startswith("bt-"), name),
        )
        themes = [(f"{CURRENT_THEME_SIGN}{current_name}", partial(self._apply_theme, current_name))]
        themes += [(name, partial(self._apply_theme, name)) for name in other_names]
        open_palette(self._app, themes, "Search themes…", ThemePalette)

    def _apply_theme(self, name: str) -> None:
        """Switch to a theme; later starts use it too, unless the settings name a theme."""
        self._app.theme = name
        self._app.memory.put(theme=ThemeState(name=name))
        if self._app.settings.is_given("theme.name"):
            origin = self._app.settings.origin("theme.name")
            self._app.notify(f"{name} until you quit; {origin} sets the theme at startup.")


def action_commands(
    scopes: Sequence[Scope],
    run: Callable[[str], Awaitable[object]],
    keys: Mapping[str, str],
    *,
    read_only: bool,
) -> Iterator[SystemCommand]:
    """Yield the palette's commands for the actions of these scopes; ``keys`` are the keys set by the user."""
    for action in (action for scope in scopes for action in actions_of(scope)):
        if action.id == "command_palette":
            continue
        name = f"{action.label[:1].upper()}{action.label[1:]}"
        title = f"{name}{KEYS_SEPARATOR}{key_labels(keys_of(action, keys))}"
        sentence = action.sentence(read_only=read_only)
        yield SystemCommand(title, sentence, partial(run, action.call))


def open_palette(
    app: App[Any], commands: Sequence[CommandListItem], placeholder: str, palette: type[Palette] = Palette
) -> AwaitMount:
    provider = SimpleProvider(app.screen, list(commands))
    # Textual declares provider classes, but accepts instances, and itself passes an instance.
    return app.push_screen(palette(providers=[cast(Any, provider)], placeholder=placeholder))
