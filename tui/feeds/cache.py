"""The cache screen's feed: the files in a project's cache, read once and on each refresh."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from api_client.errors import RequestError
from tui.analysis.checkpoints.facts import cache_entries, epoch_s
from tui.analysis.file_tree import FileEntry
from tui.feeds.throttle import sleep_or_event
from tui.readers.session import Session
from tui.text.sanitize import sanitize

RETRY_DELAY_S = 10.0
"""Delay before retrying after an error."""


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
            self._asked.clear()
            await self._read()
            # An error may be temporary, so retry without waiting for a refresh.
            await sleep_or_event(
                self._session.clock, self._asked, RETRY_DELAY_S if self._snapshot.error else None
            )

    def refresh(self) -> None:
        self._asked.set()

    async def _read(self) -> None:
        self._publish_snapshot(replace(self._snapshot, is_loading=True))
        try:
            summary = await self._session.client.cache.summary(self._project_id)
        except RequestError as error:
            self._publish_snapshot(replace(self._snapshot, is_loading=False, error=sanitize(str(error))))
            return
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
