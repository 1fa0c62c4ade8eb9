"""The app itself: it owns the services, the session and the state that all screens show.

Other screens and dialogs are imported when they are opened, so that Home appears sooner.

After a crash, Textual closes everything and then prints a traceback with the values of local variables, which
may contain API keys, and escape sequences from a server. This app restores the terminal first and prints a
report (``tui.app.terminal``) without values.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import constants, events, on
from textual._context import active_message_pump
from textual.app import ScreenStackError, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.driver import Driver
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.theme import Theme
from textual.widget import MountError
from textual.worker import Worker, WorkerFailed, WorkerState

from api_client.remotes import Remote
from api_client.words import command_line
from tui.actions.keymap import bindings_of, with_user_keys
from tui.actions.table import ACTIONS, ActionFlag, Scope
from tui.analysis.transfers import Transfers
from tui.app.alerts import Alerts
from tui.app.files import DownloadStarter, Recorders, SavedFiles
from tui.app.history import Navigation
from tui.app.job_changes import JobChanges
from tui.app.palette import ActionProvider, Palette, PaletteProvider, Themes, action_commands
from tui.app.remotes import Remotes
from tui.app.service import BaseApp
from tui.app.teams import Teams
from tui.app.terminal import (
    EXIT_HUNG_UP,
    Sanitizer,
    Shutdown,
    crash_notice,
)
from tui.app.theme import NO_COLOR_THEME, THEMES, legible
from tui.app.tips import Tips
from tui.app.typed_keys import TypedKeys
from tui.readers.session import Session
from tui.screens import messages
from tui.screens.base import AppMessage, AppScreen, OpenPage, PageServices
from tui.screens.home.screen import HomePage, HomeScreen
from tui.screens.job.page import JobPage, job_by_id
from tui.settings import config_path
from tui.settings.model import Loaded
from tui.settings.problems import Problem
from tui.settings.remembered import Memory
from tui.system.garbage import (
    CHECK_INTERVAL_S,
    IdleCollector,
)
from tui.system.keyboard import TerminalDriver
from tui.text.sanitize import MAX_WRAPPED_LENGTH, clip, sanitize, sanitize_multiline
from tui.text.times import local_time
from tui.widgets.background import run_in_background
from tui.widgets.tones import Recolored

if TYPE_CHECKING:
    from tui.readers.recorded_runs import OpenRecordings

MAX_PROBLEMS_SHOWN = 3
"""Number of problems with the settings that a notice lists."""
NOTICE_SEEN_S = 1.0
"""A notice that has been visible for at least this long is dismissed by the next action."""
CRASH_EXIT_STATUS = 1
"""Exit status of a crash."""


class BtTuiApp(BaseApp):
    """The dashboard of one remote; without a remote, it shows the welcome screen."""

    TITLE = "bt-tui"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(Scope.APP)

    COMMANDS: ClassVar = {ActionProvider, PaletteProvider}

    def __init__(
        self,
        remote: Remote | None,
        *,
        job_id: str | None = None,
        tab: str | None = None,
        demo: bool = False,
        why_no_remote: str = "",
        settings: Loaded | None = None,
        memory: Memory | None = None,
        start_emulator: Callable[[], Remote] | None = None,
        tips: bool = False,
        recordings: OpenRecordings | None = None,
    ) -> None:
        settings = settings or Loaded()
        configuration = settings.configuration
        no_color = configuration.theme.no_color or bool(os.environ.get("NO_COLOR"))
        super().__init__(settings, memory or Memory(), ansi_color=True if no_color else None)
        self._sanitizer = Sanitizer()
        for theme in THEMES:
            self.register_theme(theme)
        self.themes = Themes(self)
        self.theme = NO_COLOR_THEME if no_color else self.themes.initial_theme
        self._bindings = with_user_keys(self._bindings, self.keys)
        self._recordings, self._recorded_remote = recordings, remote if recordings is not None else None
        self._initial_job_id = job_id
        self._initial_tab = tab
        self._read_only_origin = settings.origin("readonly") if configuration.readonly else ""
        changing_action_ids = (action.id for action in ACTIONS if ActionFlag.DANGEROUS in action.flags)
        self.refused_actions = frozenset(changing_action_ids if self._read_only_origin else ())
        self._why_no_remote = why_no_remote
        self._typed_keys = TypedKeys(self, super().on_event)
        self.files = SavedFiles(self)
        self.navigation = Navigation(self)
        self.tips = Tips(self, enabled=tips)
        self.alerts = Alerts(self)
        self.shutdown = Shutdown(self.restore_terminal)
        self.ended_without_request = False
        self._exit_requested = False
        self._main_task: asyncio.Task[Any] | None = None
        self.remotes = Remotes(self, start_emulator)
        self._session_lock = asyncio.Lock()
        self._replacement_task: asyncio.Task[None] | None = None
        """The task that replaces the session; without a reference, it could be garbage-collected."""
        self.use_session(self.session_with(remote) if remote else None, demo=demo)

    # Session

    def session_with(self, remote: Remote) -> Session:
        recordings = self._recordings if remote is self._recorded_remote else None
        return Session(
            remote,
            replay=None if recordings is None else recordings.replay,
            recordings_label=None if recordings is None else partial(_recordings_label, recordings),
            on_connection=partial(setattr, self, "connection"),
            read_only_by=self._read_only_origin,
        )

    def use_session(self, session: Session | None, *, demo: bool = False) -> None:
        """Create the services that depend on the session, and the table of message handlers."""
        self.session = session
        self.teams = Teams(self, demo=demo)
        self.downloads = DownloadStarter(self, self.files)
        self.jobs = JobChanges(self)
        self.recorders = Recorders(self)
        self.navigation.services = PageServices(
            app=self,
            session_or_none=session,
            settings=self.settings,
            memory=self.memory,
            fleet_feed=self.teams.create_feed,
            label=self.teams.label,
            team=lambda: self.teams.team,
            recent_findings=self.teams.recent_findings,
            recordings=None
            if self._recordings is None or session is None or session.remote is not self._recorded_remote
            else self._recordings,
        )
        self._handlers: dict[type[AppMessage], Callable[[Any], object]] = {
            messages.DownloadsChanged: self._update_transfers,
            messages.CopyRequested: self._copy,
            messages.OpenProjectRequested: self.teams.open_project,
        }
        for service in (self.jobs, self.downloads, self.files, self.alerts, self.recorders):
            self._handlers |= service.handlers
        if session is not None:
            self._handlers[OpenPage] = self.navigation.open_requested

    @on(AppMessage)
    def _dispatch(self, message: AppMessage) -> None:
        if message.changes_server and self._read_only_origin:
            self.notify(f"This dashboard is read-only ({self._read_only_origin}).", severity="warning")
        elif (handler := self._handlers.get(type(message))) is not None:
            result = handler(message)
            if isinstance(result, Worker):
                self._typed_keys.wait_for(result)
        if isinstance(message, OpenPage) and isinstance(message.page, JobPage):
            self.tips.mark_followed(f"{Scope.HOME}.open_job")

    def first_screen(self) -> Screen[None]:
        if self.session is not None:
            return HomePage().open(self.navigation.services)
        from tui.screens.welcome import WelcomeScreen

        return WelcomeScreen(self._why_no_remote)

    def may_leave_remote(self) -> bool:
        downloads = self.transfers.under_way
        if downloads:
            key = self.key_for("app.show_downloads")
            self.notify(f"Downloads are running and would be canceled. {key} shows them.", severity="warning")
        if stop_count := self.jobs.stopper.planned_count:
            from tui.screens.dialogs import planned_stops_text

            text = f"{planned_stops_text(stop_count)}: until then, the dashboard must stay on this remote."
            self.notify(text, severity="warning")
        return not downloads and not stop_count

    async def switch_to_session(self, session: Session) -> None:
        # Choosing another remote cancels the caller, and a change of screens that is canceled ends the app.
        self._replacement_task = asyncio.create_task(self._replace_session(session))
        await asyncio.shield(self._replacement_task)

    async def _replace_session(self, session: Session) -> None:
        async with self._session_lock:
            previous_session = self.session
            if previous_session is not None:
                previous_session.on_connection = None
            for worker_group in ("downloads", "open", "act", "batch", "record"):
                self.workers.cancel_group(self, worker_group)
            while len(self.screen_stack) > 2:
                await self.pop_screen()
            self.use_session(session)
            self.transfers, self.connection = Transfers(), session.connection
            session.on_connection = partial(setattr, self, "connection")
            first_screen = self.first_screen()
            self.navigation.begin(first_screen)
            await self.switch_screen(first_screen)
            if previous_session is not None:
                await previous_session.aclose()

    def pop_screen(self) -> AwaitComplete:
        """Close the screen on top, but never Home: a key may arrive after its screen was closed."""
        is_first = isinstance(self.screen, HomeScreen) and len(self.screen_stack) == 2
        return AwaitComplete() if is_first else super().pop_screen()

    # Start and end

    def on_mount(self) -> None:
        self.animation_level = "none"
        asyncio.get_running_loop().set_exception_handler(self._handle_loop_error)
        first_screen = self.first_screen()
        self.navigation.begin(first_screen)
        self.push_screen(first_screen)
        self.theme_changed_signal.subscribe(self, self._recolor)
        self.set_interval(2.0, self.memory.save)
        collector = IdleCollector()
        self.set_interval(CHECK_INTERVAL_S, lambda: collector.collect_if_idle(self.alerts.idle_s))
        self.alerts.start()
        self.tips.start()
        self._report_settings("Outdated configuration", self.settings.ignored, "")
        self._report_settings("Invalid configuration", self.settings.problems, "Using the default settings. ")
        if self._initial_job_id is not None and self.session is not None:
            self.navigation.open(partial(job_by_id, self._initial_job_id, self._initial_tab))

    def _report_settings(self, title: str, problems: Sequence[Problem], effect_text: str) -> None:
        if problems:
            lines = [str(problem) for problem in problems[:MAX_PROBLEMS_SHOWN]]
            if hidden_count := len(problems[MAX_PROBLEMS_SHOWN:]):
                lines.append(f"… and {hidden_count} more")
            lines.append(f"{effect_text}{command_line('config', 'edit')} opens the file.")
            self.notify("\n".join(lines), title=title, severity="warning", timeout=30.0)

    async def on_unmount(self) -> None:
        self.alerts.stop()
        self.memory.save(wait_s=1.0)
        if self.session is not None:
            await self.session.aclose()

    def leave_terminal(self) -> None:
        """Exit without asking, because the terminal is gone; called from another thread."""
        self.shutdown.begin(EXIT_HUNG_UP)
        self.call_later(self.exit, return_code=EXIT_HUNG_UP)

    def crash(self, error: Exception) -> None:
        """Report the error as a crash; called from another thread."""
        self.call_later(self._handle_exception, error)

    def _handle_exception(self, error: Exception) -> None:
        """Report a crash and exit; ignore a screen or widget that is missing because it is being closed."""
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            error = error.error
        is_pruned = getattr(active_message_pump.get(None), "_pruning", False)
        is_closing = self._is_ending or not self.screen_stack or is_pruned
        if is_closing and isinstance(error, MountError | NoMatches | ScreenStackError):
            return
        self._return_code = CRASH_EXIT_STATUS
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
            if not self.is_headless:
                self._report_crash(error)
        self._close_messages_no_wait()

    def _handle_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Treat an error in a task or callback that nobody awaits as a crash.

        By default, asyncio logs the error, but Textual hides the log. Other errors come from connections,
        which may break at any time; these errors go to the default handler.
        """
        error = context.get("exception")
        is_from_app_code = "handle" in context or isinstance(context.get("future"), asyncio.Task)
        if is_from_app_code and isinstance(error, Exception):
            self._handle_exception(error)
        else:
            loop.default_exception_handler(context)

    def _report_crash(self, error: Exception) -> None:
        """Restore the terminal and print the crash notice now, because closing everything may take long."""
        self.shutdown.begin(CRASH_EXIT_STATUS)
        notice = crash_notice(error)
        leave_terminal = getattr(self._driver, "leave", None)
        if leave_terminal is not None:
            leave_terminal(notice)
        else:  # a web page, or no driver yet
            self._exit_renderables.append(Text(notice, no_wrap=True, overflow="ignore"))

    async def run_async(self, *args: Any, **options: Any) -> Any:
        """Run the app, and record whether it ended without a request to exit."""
        self._main_task = asyncio.current_task()
        try:
            return await super().run_async(*args, **options)
        finally:
            self.ended_without_request = not self._is_ending

    def on_exit_app(self) -> None:
        """Record a request to exit, by the user or by a browser page that was closed."""
        self._exit_requested = True

    @property
    def _is_ending(self) -> bool:
        """True once an exit was requested, or ctrl-c or a signal has canceled the main task."""
        is_canceled = self._main_task is not None and self._main_task.cancelling() > 0
        return self._exit or self._exit_requested or is_canceled

    async def _shutdown(self) -> None:
        if not self.is_headless:
            self.shutdown.begin(self.return_code or 0)
        await super()._shutdown()

    def restore_terminal(self) -> None:
        """Restore the terminal, from any thread, even if the event loop is blocked."""
        restore = getattr(self._driver, "restore", None)
        if restore is not None:
            restore()

    def _update_transfers(self, message: messages.DownloadsChanged) -> None:
        self.transfers = message.downloads

    # The terminal

    def get_css_variables(self) -> dict[str, str]:
        """Return the theme's variables, with colors that are legible on every background."""
        self.theme_variables = legible(super().get_css_variables())
        return self.theme_variables

    def _recolor(self, _theme: Theme) -> None:
        for screen in self.screen_stack:
            for node in screen.walk_children(with_self=True):
                if isinstance(node, Recolored):
                    node.call_next(node.recolor)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add the sanitizer to Textual's filters of all lines that are written to the terminal."""
        return (*super().get_line_filters(), self._sanitizer)

    def get_driver_class(self) -> type[Driver]:
        """Return the driver named in the environment (for web pages), else ``TerminalDriver``."""
        return super().get_driver_class() if constants.DRIVER is not None else TerminalDriver

    async def on_event(self, event: events.Event) -> None:
        self.alerts.track_activity(event)
        if isinstance(event, events.Key | events.Paste):
            if not self.screen_stack:
                return  # The app is exiting; a key that a widget forwarded may still arrive.
            if not event.is_forwarded:
                await self._typed_keys.add(event)
                return
        await super().on_event(event)

    def _copy(self, message: messages.CopyRequested) -> None:
        self.copy_to_clipboard(message.text)
        if not self.is_web:
            from tui.system.external_programs import copy_through_tmux

            self.run_worker(partial(copy_through_tmux, message.text, os.environ), group="copy", thread=True)
        copied_text = "" if message.keeps_line_breaks else f" {clip(sanitize(message.text), 160)}"
        self.notify(f"Copied {message.noun}{copied_text}.")

    # Notices

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Notify the user of a failed worker; the screen keeps the last data."""
        if event.state is WorkerState.ERROR:
            self.log.error(f"{event.worker.name}: {event.worker.error!r}")
            self.notify(failure_text(event.worker), title="Unexpected error", severity="error", timeout=30)

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
            sanitize_multiline(message[:MAX_WRAPPED_LENGTH]),
            title=sanitize_multiline(title[:MAX_WRAPPED_LENGTH]),
            severity=severity,
            timeout=timeout or (3.0 if severity == "information" else None),  # a notice covers text
            markup=False,
        )

    def on_notify(self) -> None:
        """Keep at most two older notices, because they cover the screen; drop the oldest, errors last."""
        notices = sorted(self._notifications, key=lambda notice: notice.severity == "error")
        for dropped_notice in notices[: max(0, len(notices) - 2)]:
            del self._notifications[dropped_notice]

    # Keys, and actions that work on all screens

    async def push_screen_wait(self, screen: Any, *, mode: str | None = None) -> Any:
        self._typed_keys.register_dialog(screen)
        return await super().push_screen_wait(screen, mode=mode)

    async def run_action(
        self,
        action: Any,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run the action, mark its tip as followed, and dismiss notices that the user has seen.

        Do nothing if the action's screen is not on top, because the user would not see what changes. Wait
        while widgets of the screen are mounted or removed, because the action may need them.
        """
        target, _, _ = self._parse_action(action, default_namespace or self, namespaces)
        if target is not self and not await self._typed_keys.can_act_on(target):
            return False
        seen_notices = [
            notice
            for notice in self._notifications
            if notice.severity == "information" and time() - notice.raised_at >= NOTICE_SEEN_S
        ]
        for notice in seen_notices:
            self._unnotify(notice)
        scopes = self._scopes(self.screen) if self.screen_stack else (Scope.APP,)
        is_handled = await super().run_action(action, default_namespace, namespaces)
        if is_handled and isinstance(action, str):
            for scope in scopes:
                self.tips.mark_followed(f"{scope}.{action.rpartition('.')[2].partition('(')[0]}")
        return is_handled

    @staticmethod
    def _scopes(screen: Screen[object]) -> tuple[Scope, ...]:
        screen_scopes = screen.scopes if isinstance(screen, AppScreen) else ()
        return (*screen_scopes, Scope.SCREEN, Scope.APP)

    def _open_once(self, dialog: Screen[Any], on_answer: Callable[[Any], None] | None = None) -> None:
        """Open a dialog, unless a dialog of its class is open because the key was pressed repeatedly."""
        if not any(type(screen) is type(dialog) for screen in self.screen_stack):
            self.push_screen(dialog, on_answer)

    def action_help(self) -> None:
        from tui.screens.help import HelpScreen

        self._open_once(
            HelpScreen(self._scopes(self.screen), self.keys, read_only=bool(self._read_only_origin))
        )

    def action_command_palette(self) -> None:
        self._open_once(Palette(placeholder="Search jobs and actions…"))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        read_only = bool(self._read_only_origin)
        yield from action_commands(self._scopes(screen), self.run_action, self.keys, read_only=read_only)
        yield SystemCommand("Theme", "Choose a dark or a light color theme.", self.themes.choose)
        yield SystemCommand("Settings", "Show where the settings file is.", self.show_settings_path)
        yield SystemCommand("Screenshot", "Save a screenshot as SVG.", self.save_screen)

    def show_settings_path(self) -> None:
        self.notify(
            f"{config_path(os.environ)}: {command_line('config', 'edit')} opens it; restart to apply changes."
        )

    def save_screen(self) -> None:
        run_in_background(self, self.files.save_screenshot, "screenshot", group="picture")

    def action_show_downloads(self) -> None:
        from tui.screens.downloads import DownloadsPage, DownloadsScreen

        if isinstance(self.screen, DownloadsScreen):
            self.pop_screen()
        elif isinstance(self.screen, AppScreen):
            self.navigation.open(DownloadsPage())

    async def action_quit(self) -> None:
        download_count, stop_count = len(self.transfers.under_way), self.jobs.stopper.planned_count
        unsaved_sentences = [
            screen.unsaved for screen in self.screen_stack if isinstance(screen, AppScreen) and screen.unsaved
        ]
        if download_count or stop_count or unsaved_sentences:
            from tui.screens.dialogs import QuitScreen

            dialog = QuitScreen(download_count, stop_count, unsaved_sentences)
            self._open_once(dialog, lambda confirmed: self.exit() if confirmed else None)
        else:
            self.exit()

    async def action_go_back(self) -> None:
        await self.navigation.back()

    async def action_go_forward(self) -> None:
        await self.navigation.forward()

    def action_switch_project(self) -> None:
        self.teams.choose()

    def action_switch_remote(self) -> None:
        self._typed_keys.wait_for(self.remotes.choose())


def _recordings_label(recordings: OpenRecordings) -> str:
    """Return the name of the recordings and the current time of the replay, as one text."""
    return f"{sanitize(recordings.name)} {local_time(recordings.clock.now())}"


def failure_text(worker: Worker[Any]) -> str:
    error = worker.error
    while isinstance(error, BaseExceptionGroup):  # a task group wraps the errors of its tasks
        error = error.exceptions[0]
    reason = f"{type(error).__name__}: {sanitize(str(error))}"
    return f"{reason}\nThe {worker.name} stopped; leave this screen and come back."
