"""The process of one page's dashboard: told to end when its page is gone, and waited for until it has."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from contextlib import suppress

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

LAST_WORDS_S = 10.0
"""So long a dashboard has to close its session and delete files on their way, once asked to end."""
TERMINATED_S = 3.0
"""So long it has once it was sent SIGTERM."""


class PageDashboard(AppService):
    """textual-serve's process of a page, with an end.

    textual-serve takes a browser that is gone for the process's end: it reads the process no more, and waits
    for it no more. The process then loses its pipes while it still closes and deletes, or waits for ever for
    somebody to read what it draws.
    """

    def __init__(
        self,
        command: str,
        *,
        write_bytes: Callable[[bytes], Awaitable[None]],
        write_str: Callable[[str], Awaitable[None]],
        close: Callable[[], Awaitable[object]],
        download_manager: DownloadManager,
    ) -> None:
        async def hand_bytes(data: bytes) -> None:
            with suppress(ConnectionError):  # the browser is gone; what is drawn is read all the same
                await write_bytes(data)

        async def hand_str(data: str) -> None:
            with suppress(ConnectionError):
                await write_str(data)

        async def close_page() -> None:
            with suppress(ConnectionError):
                await close()

        super().__init__(
            command,
            write_bytes=hand_bytes,
            write_str=hand_str,
            close=close_page,
            download_manager=download_manager,
        )
        self._ending: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Have the process end, and wait until it has; however often, and whoever is cancelled meanwhile."""
        if self._process is None:
            return
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(self._process))
        await asyncio.shield(self._ending)

    async def _end(self, process: Process) -> None:
        await self._download_manager.cancel_app_downloads(self.app_service_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                with suppress(ConnectionError):  # it has ended of its own accord
                    await self.send_meta({"type": "quit"})
                await process.wait()
        for insist in (process.terminate, process.kill):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    insist()
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), TERMINATED_S)
        if self._task is not None:
            await asyncio.wait([self._task])  # however its reading ended
            self._task = None
