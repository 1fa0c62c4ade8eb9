"""Switch to another remote."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.markup import escape
from textual.worker import Worker

from api_client.errors import ApiClientError
from api_client.remotes import ENVIRONMENT_REMOTE, Remote
from api_client.remotes.resolution import list_remotes
from api_client.words import READ_ONLY_OPTION, command_line
from tui.app.palette import open_palette
from tui.app.service import BaseApp, Service
from tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from tui.readers.session import Session

LOCAL = "local"
SLOW_SERVER_S = 1.0
"""If the server has not responded after this time, the user is told that the app is connecting."""


class Remotes(Service):
    """Lists the configured remotes, and switches to a remote if its server responds and accepts the key.

    ``own_emulator`` starts the local emulator unless it is running, and blocks until the emulator is ready.
    """

    def __init__(self, app: BaseApp, own_emulator: Callable[[], Remote] | None) -> None:
        super().__init__(app)
        self._own_emulator = own_emulator

    def choose(self) -> Worker[None]:
        return self._run(self._choose, "list remotes", exclusive=True)

    def switch_to(self, remote: Remote) -> None:
        self._run(partial(self._switch_to, remote), "switch remote", exclusive=True)

    async def _choose(self) -> None:
        listing = await asyncio.to_thread(list_remotes, environ=os.environ)
        commands: list[tuple[str, Callable[[], object], str]] = []
        for entry in listing.remotes:
            if entry.remote is None:
                continue
            description = f"{entry.remote.app_url} · from {entry.remote.key_origin}"
            switch = partial(self.switch_to, self._with_options(entry.remote))
            commands.append((escape(sanitize(entry.name)), switch, escape(sanitize(description))))
        if self._own_emulator is not None and LOCAL not in {entry.name for entry in listing.remotes}:
            start = partial(self._start_and_switch, self._own_emulator)
            description = "the emulator on this machine; started if needed, keeps its data"
            commands.append((LOCAL, partial(self._run, start, "start emulator", exclusive=True), description))
        if commands:
            open_palette(self._app, commands, "Switch to which remote?")
        else:
            self._app.notify(f"No remotes configured; {command_line('login')} adds one.", severity="warning")

    async def _start_and_switch(self, emulator: Callable[[], Remote]) -> None:
        self._app.notify("Connecting to the local emulator…")
        self.switch_to(self._with_options(await asyncio.to_thread(emulator)))

    def _with_options(self, remote: Remote) -> Remote:
        """Add the command-line options that select the remote, and this dashboard's read-only option."""
        session = self._app.session
        options = session.remote.options or () if session is not None else ()
        name = () if remote.name == ENVIRONMENT_REMOTE else ("--remote", remote.name)
        return replace(remote, options=(*name, *(READ_ONLY_OPTION,) * (READ_ONLY_OPTION in options)))

    async def _switch_to(self, remote: Remote) -> None:
        if not self._app.may_leave():
            return
        session = self._app.session_with(remote)
        session.on_connection = None
        try:
            await self._check(session)
        except ApiClientError as error:
            await session.aclose()
            self._report_not_switched(remote, error)
        except BaseException:
            await session.aclose()
            raise
        else:
            if self._app.may_leave():
                await self._app.continue_with(session)
            else:
                await session.aclose()

    async def _check(self, session: Session) -> None:
        """Return once the session's server responds; raises the client's errors."""
        notice = f"Connecting to {session.remote_name}…"
        notice_timer = asyncio.get_running_loop().call_later(SLOW_SERVER_S, self._app.notify, notice)
        try:
            await session.check()
        finally:
            notice_timer.cancel()

    def _report_not_switched(self, remote: Remote, error: ApiClientError) -> None:
        session = self._app.session
        still_on = f"\nStill on {session.remote_name}." if session is not None else ""
        self._app.notify(
            f"{sanitize(str(error)).rstrip('.')}.{still_on}",
            title=f"Can't switch to {sanitize(remote.name)}",
            severity="error",
            timeout=15.0,
        )
