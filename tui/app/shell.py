"""The app itself, and its crash report.

Textual prints a traceback with the values of local variables, which may include API keys and, in text from a
server, escape sequences. This report has neither.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

import platformdirs
from rich.text import Text
from textual import constants, on, work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from api_client.files import why_not_written, write_private
from api_client.remotes import Remote
from tui.actions import Scope, actions_of
from tui.actions.keymap import bindings_of, rebound
from tui.analysis.connection import Connection
from tui.app.alerts import AlertsMixin
from tui.app.hints import HintsMixin
from tui.app.job_commands import READONLY_FLAG
from tui.app.palette import PaletteMixin, PaletteProvider
from tui.app.remotes import RemotesMixin
from tui.app.terminal import (
    PRELOAD_DELAY_S,
    Sanitizer,
    TerminalGone,
    drawn_on_stdout,
    preload_modules,
    watched_terminal,
)
from tui.app.theme import NO_COLOR_THEME, THEMES, legible
from tui.readers.session import Session
from tui.screens.base import AppScreen
from tui.screens.help import HelpScreen
from tui.screens.messages import (
    BrowserRequested,
    CopyRequested,
    FilesSaved,
)
from tui.screens.welcome import WelcomeChoice, WelcomeScreen
from tui.settings.loading import Loaded, load_or_defaults
from tui.settings.problems import Problem, changed_keys
from tui.settings.remembered import Memory, memory_path
from tui.system.external_programs import copy_through_tmux, open_in_browser
from tui.system.process import freeze_survivors
from tui.system.saved_files import Outbox, landing
from tui.text.sanitize import clip, crash_text, sanitize, sanitize_multiline


class CrashMixin(App[WelcomeChoice]):
    """App mixin that reports a crash."""

    _session: Session | None

    def _fatal_error(self) -> None:
        """Exit with a traceback without values of variables, API keys or control sequences."""
        error = self._exception
        if error is None:
            super()._fatal_error()
            return
        secrets = self._session.secrets() if self._session is not None else ()
        self.bell()
        self._exit_renderables.append(Text(crash_text(error, secrets)))
        self._close_messages_no_wait()


PROBLEMS_SHOWN = 3
PROBLEMS_SHOWN_S = 30.0
REMEMBER_EVERY_S = 2.0
COPIED_CELLS = 160
"""Maximum width of the copied text that the notice repeats."""


class BtTuiApp(CrashMixin, HintsMixin, AlertsMixin, PaletteMixin, RemotesMixin):
    """The dashboard for one remote; without a remote, it shows the welcome screen."""

    TITLE = "bt-tui"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(Scope.APP)

    COMMANDS = App.COMMANDS | {PaletteProvider}

    def __init__(
        self,
        remote: Remote | None,
        *,
        job_id: str | None = None,
        tab: str | None = None,
        demo: bool = False,
        readonly: bool = False,
        why_no_remote: str = "",
        settings: Loaded | None = None,
        memory: Memory | None = None,
        own_emulator: Callable[[], Remote] | None = None,
        hints: bool = False,
    ) -> None:
        self._settings = settings or Loaded()
        self._memory = memory if memory is not None else Memory()
        wanted = self._settings.configuration
        no_color = wanted.theme.no_color or bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if no_color else None)
        self._sanitizer = Sanitizer()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = NO_COLOR_THEME if no_color else self.initial_theme()
        self._keys = changed_keys(wanted.keys)
        self._bindings = rebound(self._bindings, self._keys)
        self.outbox = Outbox()
        self._leaving = {}
        self._job_id = job_id
        self._tab = tab
        self._demo = demo
        self._read_only_by = READONLY_FLAG if readonly else ""
        if wanted.readonly:
            self._read_only_by = self._settings.origin("readonly")
        self._why_no_remote = why_no_remote
        self._own_emulator = own_emulator
        self._hints = hints
        self._session = self._session_with(remote) if remote else None

    def get_css_variables(self) -> dict[str, str]:
        """Return the theme's variables, adjusted to be legible on every background."""
        self.theme_variables = legible(super().get_css_variables())
        return self.theme_variables

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add the sanitizer to the filters that every line passes on its way to the terminal."""
        return (*super().get_line_filters(), self._sanitizer)

    def get_driver_class(self) -> type[Driver]:
        """Return the driver named by the environment (for web pages), else one that accepts any input."""
        if constants.DRIVER is not None or sys.platform == "win32":
            return super().get_driver_class()
        from tui.system.keyboard import TerminalDriver  # needs modules that Windows lacks

        return TerminalDriver

    def first_screen(self) -> Screen[None]:
        """Return Home, or the welcome screen if there is no session."""
        if self._session is None:
            return WelcomeScreen(self._why_no_remote)
        return super().first_screen()

    def on_mount(self) -> None:
        """Show the first screen, then open the requested job, if any."""
        self.animation_level = "none"
        first = self.first_screen()
        if isinstance(first, AppScreen):
            first.change_keys(self._keys)
        self.begin_history(first)
        self.push_screen(first)
        self.set_interval(REMEMBER_EVERY_S, self._memory.save)
        self.set_timer(PRELOAD_DELAY_S, self._preload_modules)
        if self._settings.problems:
            self._report_problems(self._settings.problems)
        if self._job_id is not None:
            self._open_by_id(self._job_id)

    def _preload_modules(self) -> None:
        self.run_worker(
            preload_modules, name="load the rest", group="later", thread=True, exit_on_error=False
        )

    async def on_unmount(self) -> None:
        self._memory.save()
        if self._session is not None:
            await self._session.aclose()

    # Every screen shows the connection

    def watch_connection(self, connection: Connection) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, AppScreen):
                screen.connection = connection

    @on(TerminalGone)
    def _quit_unattended(self) -> None:
        """Exit without asking about downloads, because nobody is there to answer."""
        self.exit()

    def _report_problems(self, problems: Sequence[Problem]) -> None:
        """Report errors in the settings, and that the defaults apply."""
        shown = "\n".join(str(problem) for problem in problems[:PROBLEMS_SHOWN])
        rest = len(problems) - PROBLEMS_SHOWN
        more = f"\n… and {rest} more" if rest > 0 else ""
        self.notify(
            f"{shown}{more}\nUsing the default settings. bt-tui config edit opens the file.",
            title="Invalid configuration",
            severity="warning",
            timeout=PROBLEMS_SHOWN_S,
        )

    @on(CopyRequested)
    def _copy(self, message: CopyRequested) -> None:
        self.copy_to_clipboard(message.text)
        if not self.is_web:
            self.run_worker(partial(copy_through_tmux, message.text, os.environ), group="copy", thread=True)
        self.notify(f"Copied {message.what} {clip(sanitize(message.text), COPIED_CELLS)}.", markup=False)

    @on(BrowserRequested)
    def _browse(self, message: BrowserRequested) -> None:
        if self._session is None:
            return
        link = self._session.job_link(message.job)
        if self.is_web:
            self.open_url(link)
        elif not open_in_browser(link):
            self.copy_to_clipboard(link)
            self.notify(f"No browser found; link copied: {link}", markup=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Report a worker that failed; what it has shown stays on the screen."""
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            # A task group wraps the errors of its tasks.
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self.log.error(f"{event.worker.name}: {error!r}")
            what = f"{type(error).__name__}: {sanitize(str(error))}"
            self.notify(
                f"{what}\nThe {event.worker.name} stopped; leave this screen and come back.",
                title="Unexpected error",
                severity="error",
                timeout=30,
                markup=False,
            )

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a notice, always without markup, because it may contain names and text from servers."""
        super().notify(
            sanitize_multiline(message),
            title=sanitize_multiline(title),
            severity=severity,
            timeout=timeout,
            markup=False,
        )

    # Actions that work on all screens

    def action_help(self) -> None:
        self.push_screen(
            HelpScreen(self._scopes(self.screen), self._keys, read_only=bool(self._read_only_by))
        )

    @staticmethod
    def _scopes(screen: Screen[object]) -> tuple[Scope, ...]:
        own = screen.scopes if isinstance(screen, AppScreen) else ()
        return (*own, Scope.SCREEN, Scope.APP)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield every action that works on the screen, the themes, and the screenshot."""
        for scope in self._scopes(screen):
            for action in actions_of(scope):
                if action.id == "command_palette":
                    continue
                owner = "app" if scope is Scope.APP else "screen"
                title = action.label[:1].upper() + action.label[1:]
                yield SystemCommand(
                    title,
                    action.sentence(read_only=bool(self._read_only_by)),
                    partial(self.run_action, f"{owner}.{action.id}"),
                )
        yield SystemCommand("Theme", "Switch the color theme.", self.action_change_theme)
        yield SystemCommand("Screenshot", "Save a screenshot as SVG.", self.save_screen)

    @work(group="picture", exit_on_error=False)
    async def save_screen(self) -> None:
        """Save the screen as SVG in the user's downloads folder, else in the working directory."""
        # Servers often have no downloads folder.
        downloads = platformdirs.user_downloads_path()
        name = f"{self.title} {datetime.now(UTC).astimezone():%Y-%m-%d %H.%M.%S}.svg"
        path = landing(self, (downloads if downloads.is_dir() else Path.cwd()) / name)
        try:
            await asyncio.to_thread(write_private, path, self.export_screenshot().encode())
        except OSError as error:
            self.notify(f"Can't write {path}: {why_not_written(error)}", severity="error")
            return
        where = f"as {path.name}" if self.is_web else f"to {path}"
        self.notify(f"Screenshot saved {where}.")
        self.post_message(FilesSaved((path,)))


def run_dashboard(
    remote: Remote | None,
    *,
    job_id: str | None = None,
    tab: str | None = None,
    demo: bool = False,
    readonly: bool = False,
    why_no_remote: str = "",
    settings: Loaded | None = None,
    own_emulator: Callable[[], Remote] | None = None,
) -> WelcomeChoice | None:
    """Run the dashboard until the user quits; return the choice made on the welcome screen, if any.

    Without ``settings``, those of the environment and the file apply. ``own_emulator`` starts the local
    emulator, if the user switches to it. A demo does not remember its state.
    """
    freeze_survivors()
    app = BtTuiApp(
        remote,
        job_id=job_id,
        tab=tab,
        demo=demo,
        readonly=readonly,
        why_no_remote=why_no_remote,
        settings=settings or load_or_defaults(os.environ),
        memory=Memory(None if demo else memory_path()),
        own_emulator=own_emulator,
        hints=True,
    )
    try:
        with drawn_on_stdout(), watched_terminal(partial(app.post_message, TerminalGone())):
            return app.run()
    finally:
        # only after its threads have ended, because a running download would create its folder again
        app.outbox.close()
