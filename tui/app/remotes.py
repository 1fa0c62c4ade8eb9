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

EMULATOR_REMOTE_NAME = "local"
SLOW_SERVER_S = 1.0
"""A notice says that the app is connecting if the server has not responded after this time."""


class Remotes(Service):
    """Lists the configured remotes, and switches to a remote if its server responds and accepts the key.

    ``start_emulator`` starts the local emulator unless it is running, and blocks until the emulator is ready.
    """

    def __init__(self, app: BaseApp, start_emulator: Callable[[], Remote] | None) -> None:
        super().__init__(app)
        self._start_emulator = start_emulator

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
        if self._start_emulator is not None and EMULATOR_REMOTE_NAME not in {
            entry.name for entry in listing.remotes
        }:
            start_and_switch = partial(self._start_and_switch, self._start_emulator)
            description = "the emulator on this machine; started if needed, keeps its data"
            commands.append(
                (
                    EMULATOR_REMOTE_NAME,
                    partial(self._run, start_and_switch, "start emulator", exclusive=True),
                    description,
                )
            )
        if commands:
            open_palette(self._app, commands, "Switch to which remote?")
        else:
            self._app.notify(f"No remotes configured; {command_line('login')} adds one.", severity="warning")

    async def _start_and_switch(self, start_emulator: Callable[[], Remote]) -> None:
        self._app.notify("Connecting to the local emulator…")
        self.switch_to(self._with_options(await asyncio.to_thread(start_emulator)))

    def _with_options(self, remote: Remote) -> Remote:
        """Return the remote with command-line options: ``--remote``, and read-only if the dashboard is."""
        session = self._app.session
        options = session.remote.options or () if session is not None else ()
        name_options = () if remote.name == ENVIRONMENT_REMOTE else ("--remote", remote.name)
        return replace(remote, options=(*name_options, *(READ_ONLY_OPTION,) * (READ_ONLY_OPTION in options)))

    async def _switch_to(self, remote: Remote) -> None:
        if not self._app.may_leave_remote():
            return
        session = self._app.session_with(remote)
        session.on_connection = None
        try:
            await self._check_server(session)
        except ApiClientError as error:
            await session.aclose()
            self._report_not_switched(remote, error)
        except BaseException:
            await session.aclose()
            raise
        else:
            if self._app.may_leave_remote():
                await self._app.switch_to_session(session)
            else:
                await session.aclose()

    async def _check_server(self, session: Session) -> None:
        """Check that the session's server responds and accepts the key; raises the client's errors.

        If the response takes long, a notice says that the app is connecting.
        """
        notice = f"Connecting to {session.remote_name}…"
        notice_timer = asyncio.get_running_loop().call_later(SLOW_SERVER_S, self._app.notify, notice)
        try:
            await session.check()
        finally:
            notice_timer.cancel()

    def _report_not_switched(self, remote: Remote, error: ApiClientError) -> None:
        session = self._app.session
        current_remote_text = f"\nStill on {session.remote_name}." if session is not None else ""
        self._app.notify(
            f"{sanitize(str(error)).rstrip('.')}.{current_remote_text}",
            title=f"Can't switch to {sanitize(remote.name)}",
            severity="error",
            timeout=15.0,
        )
