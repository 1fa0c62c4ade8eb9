"""The dashboard with a fault: an error whose message, source and variables are the worst there can be."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import NoReturn

from hostile_answers import HARM

from api_client.remotes import resolve_remote
from tui.app import BtTuiApp, run_dashboard
from tui.app.terminal import Shutdown
from tui.readers.session import Session
from tui.settings.model import Configuration, Loaded
from tui.system.keyboard import TerminalDriver


def fail() -> NoReturn:
    key = os.environ["BASETEN_API_KEY"]
    words = f"{HARM} {key}"
    try:
        raise RuntimeError(words)
    except RuntimeError as error:
        raise ExceptionGroup(words, [ValueError(words), KeyError(words)]) from error


class Faulty(BtTuiApp):
    """Fails at a moment of its life: drawn, before that, in the background, reading keys, closing."""

    moment = "ready"

    def on_ready(self) -> None:
        if self.moment in ("ready", "never closed"):
            fail()
        if self.moment == "worker":
            self.run_worker(self.work)
        if self.moment == "worker thread":
            self.run_worker(fail, thread=True)
        if self.moment == "thread":
            threading.Thread(target=fail).start()
        if self.moment == "task":
            asyncio.create_task(self.work())  # noqa: RUF006 - nobody awaits it
        if self.moment == "callback":
            asyncio.get_running_loop().call_soon(fail)
        if self.moment == "closing":
            self.exit()

    async def work(self) -> None:
        await asyncio.sleep(0)
        fail()

    def on_mount(self) -> None:
        if self.moment == "before the first picture":
            fail()
        super().on_mount()


async def never(_session: Session) -> None:
    """Wait for what does not come, and keep a thread that does not end."""
    threading.Thread(target=threading.Event().wait).start()
    await asyncio.Event().wait()


async def failing(_session: Session) -> None:
    fail()


if __name__ == "__main__":
    Faulty.moment = sys.argv[1]
    if Faulty.moment == "never closed":
        Session.aclose = never  # type: ignore[method-assign]
        Shutdown.__init__.__kwdefaults__["limit_s"] = 2.0  # the notice is printed by then
    if Faulty.moment == "closing":
        Session.aclose = failing  # type: ignore[method-assign]
    if Faulty.moment == "keyboard":
        TerminalDriver.run_input_thread = lambda _driver: fail()  # type: ignore[method-assign]
    run_dashboard.__globals__["BtTuiApp"] = Faulty
    run_dashboard(resolve_remote(environ=os.environ), settings=Loaded(Configuration(), {}))
