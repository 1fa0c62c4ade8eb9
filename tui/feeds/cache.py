"""The cache screen's feed: the files in a project's cache, read once and on each refresh."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from api_client.errors import RequestError
from api_client.http.retry import LASTING, retrying
from tui.analysis.checkpoints.facts import cache_entries, epoch_s
from tui.analysis.file_tree.tree import FileEntry
from tui.feeds.throttle import sleep_or_event
from tui.readers.session import Session
from tui.text.sanitize import sanitize


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """A snapshot of a cache.

    ``entries`` is None until the first response; ``exists`` is False if the project has no cache.
    ``captured_s`` (epoch seconds) is when the server listed the cache, ``asked_at`` when it last
    responded. ``error`` is set while the last attempt failed; the previous entries are kept.
    """

    is_loading: bool = True
    exists: bool | None = None
    entries: Sequence[FileEntry] | None = None
    captured_s: float | None = None
    asked_at: datetime | None = None
    error: str = ""


class CacheFeed:
    """Publishes ``CacheSnapshot``s of a project until cancelled; retries after errors."""

    def __init__(
        self, session: Session, project_id: str, *, publish: Callable[[CacheSnapshot], object]
    ) -> None:
        self._session = session
        self._project_id = project_id
        self._publish = publish
        self._snapshot = CacheSnapshot()
        self._asked = asyncio.Event()

    async def run(self) -> None:
        while True:
            await retrying(self._read, LASTING, sleep=self._pause, on_wait=self._show_error)
            await self._pause(None)

    async def _pause(self, pause_s: float | None) -> None:
        await sleep_or_event(self._session.clock, self._asked, pause_s)

    def _show_error(self, error: RequestError, _delay_s: float) -> None:
        self._publish_snapshot(replace(self._snapshot, is_loading=False, error=sanitize(str(error))))

    def refresh(self) -> None:
        self._asked.set()

    async def _read(self) -> None:
        self._asked.clear()
        self._publish_snapshot(replace(self._snapshot, is_loading=True))
        summary = await self._session.client.cache.summary(self._project_id)
        now = self._session.clock.now()
        if summary is None:
            self._publish_snapshot(CacheSnapshot(is_loading=False, exists=False, asked_at=now))
            return
        # Converting a hundred thousand paths takes a while, so do it outside the event loop.
        entries = await asyncio.to_thread(cache_entries, summary.file_summaries)
        self._publish_snapshot(CacheSnapshot(False, True, entries, epoch_s(summary.timestamp), now))

    def _publish_snapshot(self, snapshot: CacheSnapshot) -> None:
        self._snapshot = snapshot
        self._publish(snapshot)
