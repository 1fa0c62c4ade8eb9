"""Run one command's requests against the chosen remote.

httpx and pydantic are imported here and no earlier, so that ``bt-tui --help`` costs nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tui.collector import collect_as_usual
from tui.commands.chosen_remote import chosen_remote
from tui.commands.configured import read_only_by
from tui.commands.exit_codes import ExitCode
from tui.commands.options import Settings
from tui.commands.output import Output

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.events import RequestEvent
    from api_client.remotes import Remote

HTTPX_COMMAND_LINE = "httpx._main"

LASTING_S = 5.0
"""A command that still runs then goes on for long, as ``logs --follow`` does."""

ClientAction = Callable[["TrainingClient", Output], Awaitable[ExitCode]]


def run_on_remote(settings: Settings, action: ClientAction) -> ExitCode:
    """Resolve the remote, run ``action`` with a client on it, and return its exit code.

    The client refuses to change anything where ``--readonly`` or the settings forbid it. Raises what the
    client raises; waits before retries are remarked on stderr as they happen.
    """
    return run_with(chosen_remote(settings), settings, action)


def run_with(remote: Remote, settings: Settings, action: ClientAction) -> ExitCode:
    """Run ``action`` with a client on that very remote, as ``run_on_remote`` does."""
    output, forbidden_by = settings.output, read_only_by(settings.readonly, os.environ)
    with without_httpx_command_line():
        from api_client.client import TrainingClient

    async def session() -> ExitCode:
        asyncio.get_running_loop().call_later(LASTING_S, collect_as_usual)
        async with TrainingClient(
            remote, on_event=lambda event: _remark_wait(event, output), read_only_by=forbidden_by
        ) as client:
            return await action(client, output)

    try:
        return asyncio.run(session())
    finally:
        if remote.login is not None and remote.login.not_kept:
            output.remark(f"the renewed login could not be kept: {remote.login.not_kept}")


@contextmanager
def without_httpx_command_line() -> Iterator[None]:
    """Keep ``import httpx`` from loading its own command line, and with it rich and pygments.

    Where click and rich are installed httpx imports them for its ``httpx`` command: 40 % of its import.
    """
    absent = HTTPX_COMMAND_LINE not in sys.modules
    if absent:
        sys.modules[HTTPX_COMMAND_LINE] = None  # type: ignore[assignment]  # "cannot be imported"
    try:
        yield
    finally:
        if absent:
            del sys.modules[HTTPX_COMMAND_LINE]


def _remark_wait(event: RequestEvent, output: Output) -> None:
    """Say on stderr that a request waits before it is tried again, and why."""
    if event.kind == "waiting":
        output.remark(f"{event.reason}; retrying in {event.delay_s:.1f} s")
