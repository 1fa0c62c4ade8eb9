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

from tui.commands.configured import remote_name
from tui.commands.exit_codes import ExitCode
from tui.commands.options import Settings
from tui.commands.output import Output

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.events import RequestEvent

HTTPX_COMMAND_LINE = "httpx._main"

ClientAction = Callable[["TrainingClient", Output], Awaitable[ExitCode]]


def run_on_remote(settings: Settings, action: ClientAction) -> ExitCode:
    """Resolve the remote, run ``action`` with a client on it, and return its exit code.

    Raises what the client raises; waits before retries are remarked on stderr as they happen.
    """
    with _without_httpx_command_line():
        from api_client.client import TrainingClient
    from api_client.remotes import resolve_remote

    remote = resolve_remote(remote_name(settings.remote_name, os.environ), environ=os.environ)
    output = settings.output

    async def session() -> ExitCode:
        async with TrainingClient(remote, on_event=lambda event: _remark_wait(event, output)) as client:
            return await action(client, output)

    return asyncio.run(session())


@contextmanager
def _without_httpx_command_line() -> Iterator[None]:
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
        output.remark(f"waiting {event.delay_s:.1f} s: {event.reason}")
