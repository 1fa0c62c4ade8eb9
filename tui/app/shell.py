"""The shell: it owns the client's session, shows screens, and does what they ask for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from api_client.errors import NotFound, RequestError
from api_client.models import TrainingJob
from api_client.remotes import Remote
from tui.actions import Scope, actions_of
from tui.app.alerts import AlertKeeper
from tui.app.batches import READ_ONLY
from tui.app.remotes import RemoteKeeper
from tui.browser import open_in_browser
from tui.clipboard import copy_through_tmux
from tui.collector import keep_pauses_short
from tui.configuration.key_check import changed_keys
from tui.configuration.loading import Loaded, load_or_defaults
from tui.configuration.memory import Memory, memory_path
from tui.configuration.problems import Problem
from tui.feeds.cache import CacheFeed
from tui.feeds.checkpoint_files import CheckpointFilesFeed, list_files
from tui.feeds.deployment import DeployFeed
from tui.feeds.fleet import FleetFeed
from tui.feeds.run import RunFeed
from tui.feeds.session import Session
from tui.feeds.submission import SubmissionFeed
from tui.insight.connection import Connection
from tui.insight.status import status_view
from tui.insight.text import clip, inert, inert_lines
from tui.keymap import bindings_of, rebound
from tui.messages import (
    BrowserRequested,
    CompareCheckpointsRequested,
    CopyRequested,
    DeployRequested,
    JobSubmitted,
    NewJobRequested,
    OpenCacheRequested,
    OpenCheckpointRequested,
    OpenJobRequested,
    OpenProjectRequested,
    RecreateJobRequested,
    StopJobRequested,
)
from tui.outbox import Outbox
from tui.palette import LiveObjects
from tui.screens.base import AppScreen
from tui.screens.cache.screen import CacheScreen
from tui.screens.confirm.screen import ConfirmScreen
from tui.screens.deploy.screen import DeployScreen
from tui.screens.files.compare import CompareScreen
from tui.screens.files.screen import FilesScreen
from tui.screens.help.screen import HelpScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.layout import JobLayout
from tui.screens.job.log_ways import LogWays
from tui.screens.job.screen import JobScreen
from tui.screens.submit.screen import SubmitScreen
from tui.screens.welcome.screen import WelcomeChoice, WelcomeScreen
from tui.theme import NO_COLOR_THEME, THEMES
from tui.wizard.given import Given

PROBLEMS_SHOWN = 3
PROBLEMS_SHOWN_S = 30.0
REMEMBER_EVERY_S = 2.0
JOB_MEMORY = "job"
COPIED_CELLS = 160
"""No more of a copied text is repeated in the notice."""
FIND_AGAIN_S = 5.0
"""Between two tries to find the job that was asked for, while the server is unreachable."""


class BtTuiApp(AlertKeeper, RemoteKeeper):
    """The dashboard on one remote; without a remote, the welcome screen."""

    TITLE = "bt-tui"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(Scope.APP)

    COMMANDS = App.COMMANDS | {LiveObjects}

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
    ) -> None:
        self._settings = settings or Loaded()
        self._memory = memory if memory is not None else Memory()
        wanted = self._settings.configuration
        no_color = wanted.theme.no_color or bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if no_color else None)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = NO_COLOR_THEME if no_color else wanted.theme.name
        self._keys = changed_keys(wanted.keys)
        self._bindings = rebound(self._bindings, self._keys)
        self.outbox = Outbox()
        self._leaving = {}
        self._job_id = job_id
        self._tab = tab
        self._demo = demo
        self._readonly = readonly or wanted.readonly
        self._why_no_remote = why_no_remote
        self._session = Session(remote, on_connection=self._connection_changed) if remote else None

    def first_screen(self) -> Screen[None]:
        """Home; or the welcome screen, if there is nobody to talk to."""
        if self._session is None:
            return WelcomeScreen(self._why_no_remote)
        place, wanted = self._session.place, self._settings.configuration
        feed_with = partial(
            FleetFeed,
            self._session,
            rules=wanted.health,
            patterns=wanted.progress_patterns,
            list_interval_s=wanted.refresh.fleet_s,
        )
        return HomeScreen(feed_with, f"{place} · demo data" if self._demo else place, self._memory)

    def on_mount(self) -> None:
        """Show the first screen, and go on to the job that was asked for, if one was."""
        self.animation_level = "none"
        first = self.first_screen()
        if isinstance(first, AppScreen):
            first.change_keys(self._keys)
        self.push_screen(first)
        self.set_interval(REMEMBER_EVERY_S, self._memory.save)
        if self._settings.problems:
            self._tell_problems(self._settings.problems)
        if self._job_id is not None:
            self._open_by_id(self._job_id)

    async def on_unmount(self) -> None:
        """Close the client's connections, and keep what is to be remembered."""
        self._memory.save()
        await asyncio.to_thread(self.outbox.close)
        if self._session is not None:
            await self._session.aclose()

    # The connection is shown by every screen

    def watch_connection(self, connection: Connection) -> None:
        """Hand it on to the screens that show it."""
        for screen in self.screen_stack:
            if isinstance(screen, AppScreen):
                screen.connection = connection

    # What screens ask for

    def push_app_screen(self, screen: AppScreen) -> None:
        """Show a screen, with what every screen shows."""
        screen.connection, screen.downloads = self.connection, self.downloads
        screen.snoozed = self.snoozed
        screen.change_keys(self._keys)
        self.push_screen(screen)

    @on(OpenCacheRequested)
    def _open_cache(self, message: OpenCacheRequested) -> None:
        if self._session is not None:
            self.push_app_screen(
                CacheScreen(message.name, partial(CacheFeed, self._session, message.project_id))
            )

    @on(OpenProjectRequested)
    async def _open_project(self, message: OpenProjectRequested) -> None:
        """Go back to Home, wherever one is."""
        while len(self.screen_stack) > 1 and not isinstance(self.screen, HomeScreen):
            if not any(isinstance(screen, HomeScreen) for screen in self.screen_stack):
                return
            await self.pop_screen()
        if isinstance(self.screen, HomeScreen):
            self.screen.choose_project(message.project_id)

    @on(OpenCheckpointRequested)
    def _open_checkpoint(self, message: OpenCheckpointRequested) -> None:
        if self._session is not None:
            feed_with = partial(CheckpointFilesFeed, self._session, message.job, message.checkpoint)
            self.push_app_screen(FilesScreen(message.job, message.checkpoint, feed_with))

    @on(OpenJobRequested)
    def _open_job(self, message: OpenJobRequested) -> None:
        self._show_job(message.job)

    def _show_job(self, job: TrainingJob) -> None:
        if self._session is not None:
            wanted, ways = self._settings.configuration, self._settings.configuration.logs
            feed_with = partial(
                RunFeed,
                self._session,
                rules=wanted.health,
                patterns=wanted.progress_patterns,
                prices=wanted.prices,
                status_interval_s=wanted.refresh.status_s,
                metrics_interval_s=wanted.refresh.metrics_s,
                checkpoints_interval_s=wanted.refresh.checkpoints_s,
            )
            log = LogWays(
                time=ways.time,
                wrap=ways.wrap,
                min_level=ways.min_level,
                collapse_progress=ways.collapse_progress,
                fold_tracebacks=ways.fold_tracebacks,
                max_lines=ways.max_lines_in_memory,
            )
            settled = frozenset(name for name in asdict(log) if self._settings.is_given(f"logs.{name}"))
            layout = JobLayout(log=log).recalled(self._memory.table(JOB_MEMORY), settled)
            tab, self._tab = self._tab, None  # asked for once; afterwards as it was left
            self.push_app_screen(
                JobScreen(job, feed_with, tab=tab, layout=layout, remember=self._remember_layout)
            )

    def _remember_layout(self, layout: JobLayout) -> None:
        self._memory.put(JOB_MEMORY, layout.as_data())

    def _tell_problems(self, problems: Sequence[Problem]) -> None:
        """The settings are broken: say where, and that the defaults are in force."""
        shown = "\n".join(str(problem) for problem in problems[:PROBLEMS_SHOWN])
        rest = len(problems) - PROBLEMS_SHOWN
        more = f"\n… and {rest} more" if rest > 0 else ""
        self.notify(
            f"{shown}{more}\nAll settings have their defaults. bt-tui config edit opens the file.",
            title="The configuration is broken",
            severity="warning",
            timeout=PROBLEMS_SHOWN_S,
        )

    @work(group="find job", exclusive=True)
    async def _open_by_id(self, job_id: str) -> None:
        """Open a job by its id; an unreachable server is asked again."""
        assert self._session is not None
        while True:
            try:
                self._show_job(await self._session.find_job(job_id))
            except NotFound:
                self.notify(f"There is no job {inert(job_id)} on {self._session.place}.", severity="error")
            except RequestError:
                await self._session.clock.sleep(FIND_AGAIN_S)
                continue
            return

    @on(CompareCheckpointsRequested)
    def _compare_checkpoints(self, message: CompareCheckpointsRequested) -> None:
        if self._session is not None:
            listing = partial(list_files, self._session, message.job)
            self.push_app_screen(CompareScreen(message.left, message.right, listing))

    @on(NewJobRequested)
    def _new_job(self) -> None:
        if self._readonly:
            self.notify(READ_ONLY, severity="warning")
        elif self._session is not None:
            self.push_app_screen(SubmitScreen(partial(SubmissionFeed, self._session), self._session.place))

    @on(DeployRequested)
    def _deploy(self, message: DeployRequested) -> None:
        if self._readonly:
            self.notify(READ_ONLY, severity="warning")
        elif self._session is not None:
            given = Given(
                job_id=message.job.id if message.job is not None else None,
                checkpoint_names=(message.checkpoint,) if message.checkpoint is not None else (),
            )
            self.push_app_screen(DeployScreen(partial(DeployFeed, self._session, given), self._session.place))

    @on(JobSubmitted)
    def _follow_submitted(self, message: JobSubmitted) -> None:
        if isinstance(self.screen, SubmitScreen):
            self.pop_screen()
            self._show_job(message.job)

    @on(StopJobRequested)
    def _ask_to_stop(self, message: StopJobRequested) -> None:
        job = message.job
        name = inert(job.name or job.id)
        if job.is_finished:
            self.notify(f"{name} is {status_view(job.current_status).word} already.")
            return
        self._ask(
            f"Stop {name} ({job.id})?",
            "The job ends now. Its logs and the checkpoints that it has stored are kept.",
            "Stop it",
            lambda session: session.stop_job(job),
            lambda _stopped: f"{name} is being stopped.",
            no="Keep it",
        )

    @on(RecreateJobRequested)
    def _ask_to_recreate(self, message: RecreateJobRequested) -> None:
        job = message.job
        name = inert(job.name or job.id)
        self._ask(
            f"Run {name} ({job.id}) again?",
            "A new job with the same code and configuration starts, and uses the same hardware.",
            "Run it again",
            lambda session: session.recreate_job(job),
            lambda made: f"{inert(made.name or name)} runs again as {made.id}.",
        )

    def _ask(
        self,
        question: str,
        consequence: str,
        yes: str,
        act: Callable[[Session], Awaitable[TrainingJob]],
        done: Callable[[TrainingJob], str],
        no: str = "Cancel",
    ) -> None:
        """Confirm, then act; refused when the dashboard is read-only."""
        if self._readonly:
            self.notify(READ_ONLY, severity="warning")
            return

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                self._act(act, done)

        self.push_screen(ConfirmScreen(question, consequence, yes, no), answered)

    @work(group="act")
    async def _act(
        self, act: Callable[[Session], Awaitable[TrainingJob]], done: Callable[[TrainingJob], str]
    ) -> None:
        assert self._session is not None
        try:
            job = await act(self._session)
        except RequestError as error:
            self.notify(inert(str(error)), title="Not done", severity="error", timeout=10, markup=False)
            return
        self.notify(done(job))
        self._refresh_screens()

    def _refresh_screens(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen | JobScreen):
                screen.action_refresh()

    @on(CopyRequested)
    def _copy(self, message: CopyRequested) -> None:
        self.copy_to_clipboard(message.text)
        if not self.is_web:
            self.run_worker(partial(copy_through_tmux, message.text, os.environ), group="copy", thread=True)
        self.notify(f"Copied the {message.what} {clip(inert(message.text), COPIED_CELLS)}.", markup=False)

    @on(BrowserRequested)
    def _browse(self, message: BrowserRequested) -> None:
        if self._session is None:
            return
        link = self._session.job_link(message.job)
        if self.is_web:
            self.open_url(link)
        elif not open_in_browser(link):
            self.copy_to_clipboard(link)
            self.notify(f"No browser here; the link was copied: {link}", markup=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A feed or an action that broke says so; what it had shown stays."""
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            # A group of tasks wraps what one of them raised.
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self.log.error(f"{event.worker.name}: {error!r}")
            what = f"{type(error).__name__}: {inert(str(error))}"
            self.notify(
                f"{what}\nThe {event.worker.name} has stopped; leave and come back.",
                title="Something unexpected",
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
        """Show a notice; names and a server's words are in it, so it is never read as markup."""
        super().notify(
            inert_lines(message), title=inert_lines(title), severity=severity, timeout=timeout, markup=False
        )

    # Actions that work everywhere

    def action_help(self) -> None:
        """The keys that work here."""
        self.push_screen(HelpScreen(self._scopes(self.screen), self._keys))

    @staticmethod
    def _scopes(screen: Screen[object]) -> tuple[Scope, ...]:
        own = screen.scopes if isinstance(screen, AppScreen) else ()
        return (*own, Scope.SCREEN, Scope.APP)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every action that works here, and the themes."""
        for scope in self._scopes(screen):
            for action in actions_of(scope):
                if action.id == "command_palette":
                    continue
                owner = "app" if scope is Scope.APP else "screen"
                title = action.label[:1].upper() + action.label[1:]
                yield SystemCommand(title, action.help, partial(self.run_action, f"{owner}.{action.id}"))
        yield SystemCommand("Theme", "Choose another theme, dark or light.", self.action_change_theme)
        yield SystemCommand("Screenshot", "Save a picture of the screen as SVG.", self.save_screen)

    def save_screen(self) -> None:
        """Save the screen as SVG where the terminal's user keeps downloads."""
        self.deliver_screenshot()


def run_dashboard(
    remote: Remote | None,
    *,
    job_id: str | None = None,
    tab: str | None = None,
    demo: bool = False,
    readonly: bool = False,
    why_no_remote: str = "",
    settings: Loaded | None = None,
) -> WelcomeChoice | None:
    """Run the dashboard until it is left; returns what a newcomer chose on the welcome screen, if so.

    ``settings`` are the environment's and the file's if none are given. A demo forgets how it was left.
    """
    keep_pauses_short()
    return BtTuiApp(
        remote,
        job_id=job_id,
        tab=tab,
        demo=demo,
        readonly=readonly,
        why_no_remote=why_no_remote,
        settings=settings or load_or_defaults(os.environ),
        memory=Memory(None if demo else memory_path()),
    ).run()
