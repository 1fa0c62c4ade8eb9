"""The base class of services, and the interface of the app that they use.

A service does one kind of work for all screens, such as downloads. It depends on ``BaseApp`` only, because
the app class creates all services.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.reactive import var
from textual.worker import Worker

from api_client.remotes import Remote
from tui.actions.keymap import key_for
from tui.analysis.connection import Connection
from tui.analysis.run.finding import SnoozedFindings
from tui.analysis.transfers import Transfers
from tui.screens.base import AppScreen
from tui.settings.model import Loaded
from tui.settings.problems import changed_keys
from tui.settings.remembered import Memory
from tui.system.saved_files import Outbox
from tui.widgets.background import run_in_background

if TYPE_CHECKING:
    from tui.readers.session import Session


class BaseApp(App[Any]):
    """The app as services see it: settings, session, and the state that every screen shows."""

    connection: var[Connection] = var(Connection())
    transfers: var[Transfers] = var(Transfers())
    snoozed: var[SnoozedFindings] = var(SnoozedFindings())
    planned_stops: var[Mapping[str, str]] = var[Mapping[str, str]]({})
    """Planned stops: job id → text such as "stops after its next checkpoint"."""
    recorded_job_ids: var[frozenset[str]] = var(frozenset[str]())
    """IDs of the jobs being recorded."""
    session: Session | None = None
    """The session with the remote; None on the welcome screen, where services only show dialogs."""

    def __init__(self, settings: Loaded, memory: Memory, *, ansi_color: bool | None) -> None:
        super().__init__(ansi_color=ansi_color)
        self.settings = settings
        self.memory = memory
        self.keys = changed_keys(settings.configuration.keys)
        self.outbox = Outbox()

    @abstractmethod
    def session_with(self, remote: Remote) -> Session:
        """Return a session with a remote; raises ``ApiClientError`` if its key cannot be sent."""

    @abstractmethod
    def may_leave_remote(self) -> bool:
        """Return True if switching remotes would end no download or planned stop; else notify the user."""

    @abstractmethod
    async def switch_to_session(self, session: Session) -> None:
        """Show Home of this session; close the previous session with its screens and workers."""

    def key_for(self, action_id: str) -> str:
        """Return the current key of the action ``scope.id``, formatted for display."""
        return key_for(action_id, self.keys)

    def write_to_terminal(self, sequence: str) -> None:
        """Write an escape sequence to the terminal; do nothing if the app is headless."""
        if sequence and self._driver is not None and not self.is_headless:
            self._driver.write(sequence)
            self._driver.flush()

    def copy_state_to(self, screen: AppScreen) -> None:
        """Copy the state that the app shares with every screen, such as the connection, to a screen."""
        screen.connection, screen.downloads = self.connection, self.transfers
        screen.snoozed, screen.planned_stops = self.snoozed, self.planned_stops
        screen.recorded_job_ids = self.recorded_job_ids

    def _copy_state_to_all(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, AppScreen):
                self.copy_state_to(screen)

    watch_connection = watch_transfers = watch_snoozed = watch_planned_stops = watch_recorded_job_ids = (
        _copy_state_to_all
    )


class Service:
    """Base class of services, which do one kind of work for all screens, such as downloads."""

    def __init__(self, app: BaseApp) -> None:
        self._app = app

    def _run(
        self,
        work: Callable[[], Coroutine[Any, Any, None]],
        name: str,
        group: str = "",
        *,
        exclusive: bool = False,
    ) -> Worker[None]:
        return run_in_background(self._app, work, name, group=group, exclusive=exclusive)
