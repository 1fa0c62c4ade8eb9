"""``bt-tui demo``: an emulator in a child process and the dashboard on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tui.commands.emulator import default_data_dir, speed_option, world_option
from tui.commands.exit_codes import ExitCode
from tui.commands.options import examples
from tui.commands.terminal import need_terminal

if TYPE_CHECKING:
    from api_client.emulator.child import EmulatorChild

T = TypeVar("T")

DEMO_REMOTE = "demo"
LOCAL_REMOTE = "this-machine"
STOP_TIMEOUT_S = 10.0


@click.command(
    short_help="Look around in a demo world: no account, no GPU.",
    epilog=examples(
        "bt-tui demo",
        "bt-tui demo --speed 10",
    ),
)
@world_option
@speed_option
def demo(world: str, speed: float) -> ExitCode:
    """Look around in a demo world on this machine: no account, no GPU.

    It starts an emulator of Baseten Training in a child process, with a team's worth of scripted projects
    and jobs and one real two-node training run on this machine's CPU, and opens the dashboard on it. When
    the dashboard ends, however it ends, the emulator and its jobs end too and their data is deleted.
    """
    return run_demo(world=world, speed=speed)


def run_demo(*, world: str = "demo", speed: float = 1.0) -> ExitCode:
    """The demo from start to end. Raises CommandFailed without a terminal."""
    return _run_beside_emulator(DEMO_REMOTE, world=world, speed=speed, data_dir=None)


def run_local() -> ExitCode:
    """The dashboard on an emulator of one's own, whose data stays for the next time."""
    return _run_beside_emulator(LOCAL_REMOTE, world="empty", speed=1.0, data_dir=default_data_dir())


def _run_beside_emulator(remote_name: str, *, world: str, speed: float, data_dir: Path | None) -> ExitCode:
    need_terminal()
    with _emulator_child(world=world, speed=speed, data_dir=data_dir) as starting:
        # textual takes about as long to import as the child takes to start: do both at once.
        from tui.app import run_dashboard

        child = starting.result()

        from pydantic import SecretStr

        from api_client.remotes import Remote

        remote = Remote(
            name=remote_name,
            app_url=child.url,
            api_url=child.url,
            key=SecretStr(child.key),
            key_origin="the local emulator",
        )
        run_dashboard(remote, demo=remote_name == DEMO_REMOTE)
    return ExitCode.OK


@contextmanager
def _emulator_child(*, world: str, speed: float, data_dir: Path | None) -> Iterator[Future[EmulatorChild]]:
    """An emulator starting in a child process; it is stopped on the way out.

    Its pipes live on an event loop of their own in a thread, since the dashboard has its own loop. Should
    this process be killed, the pipe's end tells the child.
    """
    from api_client.emulator.child import EmulatorChild

    child = EmulatorChild(world=world, speed=speed, data_dir=data_dir)

    async def start() -> EmulatorChild:
        await child.start()
        return child

    with _loop_in_thread() as loop:
        starting = _submit(start(), loop)
        try:
            yield starting
        finally:
            starting.cancel()
            _submit(child.stop(), loop).result(STOP_TIMEOUT_S)


@contextmanager
def _loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop running in a thread of its own for as long as the block lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="emulator-child", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_TIMEOUT_S)
        if not thread.is_alive():
            loop.close()


def _submit(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> Future[T]:
    return asyncio.run_coroutine_threadsafe(work, loop)
