"""The command palette: actions, themes, and the projects, jobs and checkpoints on the screens.

Only what the screens already show is searched: typing sends no requests to the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text
from textual import on, work
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import Command, CommandListItem, CommandPalette, Hit, Hits, Provider, SimpleProvider
from textual.css.query import NoMatches
from textual.markup import escape
from textual.message import Message
from textual.widget import AwaitMount
from textual.widgets import Button, Input, OptionList

from tui.screens.home.screen import HomeScreen
from tui.screens.kinds import is_job_screen
from tui.screens.messages import OpenCheckpointRequested, OpenJobRequested, OpenProjectRequested
from tui.screens.welcome import WelcomeChoice
from tui.settings.loading import Loaded
from tui.settings.remembered import Memory
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec

if TYPE_CHECKING:
    from tui.screens.job.screen import JobScreen

ITEMS_BETWEEN_YIELDS = 200
"""Number of names to match before yielding to other tasks: takes some milliseconds."""
MIN_ID_PREFIX = 3
"""Minimum length of a query to match in ids; shorter ones match too many."""
BELOW_ACTIONS = 0.999
"""Score factor that ranks an equally good action first."""


@dataclass(frozen=True, slots=True)
class _PaletteItem:
    kind: str
    name: str
    about: str
    wish: Message
    id: str = ""


class PaletteProvider(Provider):
    """Finds server objects known to the dashboard."""

    async def search(self, query: str) -> Hits:
        """Yield objects that match ``query`` in their name fuzzily, or in their id exactly."""
        matcher = self.matcher(query)
        for number, found in enumerate(self._objects()):
            if number % ITEMS_BETWEEN_YIELDS == ITEMS_BETWEEN_YIELDS - 1:
                await asyncio.sleep(0)
            title = f"{found.kind} {found.name}"
            score, offsets = matcher.fuzzy_search.match(query, title)
            if len(query) >= MIN_ID_PREFIX and query.lower() in found.id.lower():
                score = max(score, matcher.fuzzy_search.match(query, found.id)[0])
            if not score:
                continue
            shown = Text(title)
            shown.stylize("dim", 0, len(found.kind))
            for offset in offsets:
                shown.stylize("underline", offset, offset + 1)
            wish = partial(self._send, found.wish)
            yield Hit(score * BELOW_ACTIONS, shown, wish, text=title, help=escape(found.about))

    def _send(self, wish: Message) -> None:
        self.app.post_message(wish)

    def _objects(self) -> Iterator[_PaletteItem]:
        for screen in reversed(self.app.screen_stack):
            if is_job_screen(screen) and screen.snapshot is not None:
                yield from _checkpoints(screen)
        for screen in self.app.screen_stack:
            if isinstance(screen, HomeScreen) and screen.snapshot is not None:
                for project in screen.snapshot.projects:
                    about = f"{project.jobs} jobs, {project.running} running"
                    if project.team:
                        about = f"{project.team} · {about}"
                    yield _PaletteItem(
                        "project", project.name, about, OpenProjectRequested(project.id), project.id
                    )
                for row in screen.snapshot.jobs:
                    about = f"{row.status.word} · {row.gpu} · {row.project} · {row.age} · {sanitize(row.id)}"
                    yield _PaletteItem("job", row.name, about, OpenJobRequested(row.job), row.id)


def _checkpoints(screen: JobScreen) -> Iterator[_PaletteItem]:
    run = screen.snapshot
    if run is None:
        return
    for checkpoint in run.checkpoints or ():
        size = bytes_iec(checkpoint.size_bytes) if checkpoint.size_bytes else ""
        of = f"of {sanitize(run.job.name or run.job.id)}"
        about = " · ".join(part for part in (of, sanitize(checkpoint.checkpoint_type or ""), size) if part)
        wish = OpenCheckpointRequested(run.job, checkpoint)
        yield _PaletteItem("checkpoint", sanitize(checkpoint.checkpoint_id), about, wish)


THEME_MEMORY = "theme"
MARK = "● "
"""Prefix of the current theme."""


class Palette(CommandPalette):
    """A command palette that accepts one choice and closes only itself.

    In Textual's palette, a second Enter typed before the first one has closed it chooses again: it runs
    the command twice, and closes the screen below or, if it is the last one, the app.
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

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close; do nothing if this screen is no longer on top."""
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


class ThemePalette(Palette):
    """The themes, with the current one first and marked; highlighting a theme previews it."""

    _current = ""

    def on_mount(self) -> None:
        self._current = self.app.theme

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        if isinstance(event.option, Command):
            self.app.theme = (event.option.hit.text or "").removeprefix(MARK)

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close, and restore the previous theme unless one was chosen."""
        if self._selected_command is None:
            self.app.theme = self._current
        return super().dismiss(result)


class PaletteMixin(App[WelcomeChoice]):
    """App mixin that opens palettes."""

    _settings: Loaded
    _memory: Memory

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))

    def search_commands(
        self, commands: Sequence[CommandListItem], placeholder: str = "Search jobs and actions…"
    ) -> AwaitMount:
        """Open a palette with these commands."""
        return self._search(commands, placeholder, Palette)

    def search_themes(self) -> None:
        """Open a palette with the themes."""
        others = sorted(name for name in self.available_themes if name != self.theme)
        themes = [(f"{MARK}{self.theme}", partial(self._choose_theme, self.theme))]
        themes += [(name, partial(self._choose_theme, name)) for name in others]
        self._search(themes, "Search themes…", ThemePalette)

    def _search(
        self, commands: Sequence[CommandListItem], placeholder: str, palette: type[Palette]
    ) -> AwaitMount:
        provider = SimpleProvider(self.screen, list(commands))
        # A provider instance works as well as a class; Textual makes the same call.
        return self.push_screen(palette(providers=[cast(Any, provider)], placeholder=placeholder))

    def _choose_theme(self, name: str) -> None:
        """Switch to a theme; later starts use it too, unless the settings name one."""
        self.theme = name
        self._memory.put(THEME_MEMORY, {"name": name})
        if self._settings.is_given("theme.name"):
            origin = self._settings.origin("theme.name")
            self.notify(f"{name} until you quit; {origin} sets the theme at startup.")

    def initial_theme(self) -> str:
        """Return the theme from the settings if they name one, else the one chosen last."""
        wanted = self._settings.configuration.theme.name
        chosen = self._memory.table(THEME_MEMORY).get("name")
        known = isinstance(chosen, str) and chosen in self.available_themes
        return wanted if self._settings.is_given("theme.name") or not known else str(chosen)
