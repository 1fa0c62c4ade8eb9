"""The lists of commands that lie over a screen: one choice of each, however often enter is pressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from textual import on
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandListItem, CommandPalette, SimpleProvider
from textual.theme import ThemeProvider
from textual.widget import AwaitMount
from textual.widgets import Button, Input, OptionList

from tui.screens.welcome.screen import WelcomeChoice


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

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close; nothing, if this is not the screen on top (any more)."""
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class PaletteKeeper(App[WelcomeChoice]):
    """The part of the app that opens palettes."""

    def action_command_palette(self) -> None:
        """Every command that works here."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))

    def search_commands(
        self, commands: Sequence[CommandListItem], placeholder: str = "Search for commands…"
    ) -> AwaitMount:
        """Choose among these commands."""
        provider = SimpleProvider(self.screen, list(commands))
        # A provider that is ready does as well as a class of them; Textual's own call is the same.
        return self.push_screen(Palette(providers=[cast(Any, provider)], placeholder=placeholder))

    def search_themes(self) -> None:
        """Choose among the themes."""
        self.push_screen(Palette(providers=[ThemeProvider], placeholder="Search for themes…"))
