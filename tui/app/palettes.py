"""The lists of commands that lie over a screen: one choice of each, however often enter is pressed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from textual import on, work
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import Command, CommandListItem, CommandPalette, SimpleProvider
from textual.css.query import NoMatches
from textual.widget import AwaitMount
from textual.widgets import Button, Input, OptionList

from tui.configuration.loading import Loaded
from tui.configuration.memory import Memory
from tui.screens.welcome.screen import WelcomeChoice

THEME_MEMORY = "theme"
MARK = "● "
"""Stands before the theme in use."""


class Palette(CommandPalette):
    """A command palette that chooses once and closes itself alone.

    Enter typed twice chooses a second time in Textual's before the first has closed it: that runs the
    command again, and closes the screen below, or the app with its last one.
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
        with suppress(NoMatches):  # its list is gone: it was closed while somebody typed
            await gather(self, search_value)

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close; nothing, if this is not the screen on top (any more)."""
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class ThemePalette(Palette):
    """The themes, the current one first and marked; each is tried on while the cursor is on it."""

    _current = ""

    def on_mount(self) -> None:
        """Remember what to go back to."""
        self._current = self.app.theme

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        if isinstance(event.option, Command):
            self.app.theme = (event.option.hit.text or "").removeprefix(MARK)

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close, and go back to the current theme unless another was chosen."""
        if self._selected_command is None:
            self.app.theme = self._current
        return super().dismiss(result)


class PaletteKeeper(App[WelcomeChoice]):
    """The part of the app that opens palettes."""

    _settings: Loaded
    _memory: Memory

    def action_command_palette(self) -> None:
        """Every command that works here."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))

    def search_commands(
        self, commands: Sequence[CommandListItem], placeholder: str = "Search for commands…"
    ) -> AwaitMount:
        """Choose among these commands."""
        return self._search(commands, placeholder, Palette)

    def search_themes(self) -> None:
        """Choose among the themes."""
        others = sorted(name for name in self.available_themes if name != self.theme)
        themes = [(f"{MARK}{self.theme}", partial(self._choose_theme, self.theme))]
        themes += [(name, partial(self._choose_theme, name)) for name in others]
        self._search(themes, "Search themes…", ThemePalette)

    def _search(
        self, commands: Sequence[CommandListItem], placeholder: str, palette: type[Palette]
    ) -> AwaitMount:
        provider = SimpleProvider(self.screen, list(commands))
        # A provider that is ready does as well as a class of them; Textual's own call is the same.
        return self.push_screen(palette(providers=[cast(Any, provider)], placeholder=placeholder))

    def _choose_theme(self, name: str) -> None:
        """Use a theme from now on, in later starts, too, unless the settings name one."""
        self.theme = name
        self._memory.put(THEME_MEMORY, {"name": name})
        if self._settings.is_given("theme.name"):
            origin = self._settings.origin("theme.name")
            self.notify(f"{name} until you quit: {origin} names the theme to start with.")

    def theme_to_start_with(self) -> str:
        """The settings' theme if they name one, else the one that was chosen last."""
        wanted = self._settings.configuration.theme.name
        chosen = self._memory.table(THEME_MEMORY).get("name")
        known = isinstance(chosen, str) and chosen in self.available_themes
        return wanted if self._settings.is_given("theme.name") or not known else str(chosen)
