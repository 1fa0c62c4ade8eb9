"""The log of one run for a viewer: its newest part first, then on from there and back to the beginning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

from api_client.models import TrainingJob
from api_client.models.logs import LogBatch, LogEnd, LogEntry, LogGap, LogLine
from tui.readers.run import LINES_AT_ONCE
from tui.readers.session import Session

TAIL_SPAN = timedelta(minutes=10)
"""The newest part of the log, read first."""
CLOCK_SKEW = timedelta(minutes=5)
PAUSE_S = 0.005
"""Between two pages of the older log: keys and paints go first."""
UNKNOWN_AGE = timedelta(days=7)
"""How far back to read for a job whose creation time the server does not tell."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """Log entries in time order: new ones for the end, or ``older`` ones for the beginning.

    ``restarted`` asks to forget all parts before: the log is read anew after an error. ``filled`` is a gap
    that was read again: the entries take its place. ``read_part`` (0 to 1) tells of an ``older`` part how
    much of the older log has been read by now, by time; it is 1 in the last one. ``ended``: the job has
    ended; a few lines may come all the same.
    """

    entries: tuple[LogEntry, ...]
    older: bool = False
    ended: bool = False
    restarted: bool = False
    filled: LogGap | None = None
    read_part: float | None = None


class RunLog:
    """Reads a job's log once through; ``take`` gets the lines, ``tell`` the parts, ``end`` the ended job.

    ``restart`` is called before the first of them, and again when the log comes anew after an error: until
    it does, what was read before stays.
    """

    def __init__(
        self,
        session: Session,
        *,
        take: Callable[[Iterable[LogLine]], object],
        tell: Callable[[LogPart], object],
        end: Callable[[TrainingJob], object],
        restart: Callable[[], object] = lambda: None,
    ) -> None:
        self._session = session
        self._restart = restart
        self._take_lines = take
        self._tell_part = tell
        self._end = end
        self._begun = asyncio.Event()
        self._unread = {"history", "newest"}
        self._job: TrainingJob | None = None

    @property
    def is_read(self) -> bool:
        """Whether all that there was has been read."""
        return not self._unread

    async def read(self, job: TrainingJob) -> None:
        """Read it all until the job has ended. Raises RequestError; call again to begin anew."""
        self._job = job
        seam = self._seam(job)
        self._begun.clear()
        parts = [
            asyncio.create_task(self._follow(job, seam)),
            asyncio.create_task(self._read_history(job, seam)),
        ]
        try:
            await asyncio.gather(*parts)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def retry(self, gap: LogGap) -> None:
        """Try a gap again; what it brings comes as a part that has the gap as ``filled``.

        What still cannot be read is a gap among its entries. Raises RequestError.
        """
        if self._job is None:
            return
        entries = await self._session.client.logs.fill(self._job.project_id, self._job.id, gap)
        self._take_lines(entry for entry in entries if isinstance(entry, LogLine))
        self._tell_part(LogPart(entries, filled=gap))

    def _begin(self) -> None:
        """The first answer is here: from now on this reading counts, and no other before it."""
        if not self._begun.is_set():
            self._begun.set()
            self._unread = {"history", "newest"}
            self._restart()
            self._tell_part(LogPart((), restarted=True))

    def _tell(self, part: LogPart) -> None:
        self._begin()
        self._tell_part(part)

    def _seam(self, job: TrainingJob) -> datetime:
        """Where history ends and following begins; the two meet there exactly."""
        now = self._session.clock.now()
        newest = min(job.updated_at, now) if job.is_finished and job.updated_at else now
        start = newest - TAIL_SPAN
        return max(start, self._beginning(job))

    def _beginning(self, job: TrainingJob) -> datetime:
        """From when on the job may have lines."""
        if job.created_at is None:
            return self._session.clock.now() - UNKNOWN_AGE
        return job.created_at - CLOCK_SKEW

    async def _follow(self, job: TrainingJob, seam: datetime) -> None:
        async for part in self._session.client.logs.follow(job.project_id, job.id, start=seam):
            if isinstance(part, LogEnd):
                self._tell_end(part.job)
            elif part.finished_job is not None:
                self._tell_end(part.finished_job)  # stragglers may come for a minute, but why wait for them
            else:
                await self._take(part, older=False)
                if part.caught_up:
                    self._unread.discard("newest")

    def _tell_end(self, job: TrainingJob) -> None:
        self._tell(LogPart((), ended=True))
        self._end(job)

    async def _read_history(self, job: TrainingJob, seam: datetime) -> None:
        start = self._beginning(job)
        if start < seam:
            history = self._session.client.logs.history(
                job.project_id, job.id, start=start, end=seam, newest_first=True
            )
            async with aclosing(history) as batches:
                async for batch in batches:
                    await self._take(batch, older=True)
                    # Meanwhile the stream reads ahead, but only so far.
                    await self._session.clock.sleep(PAUSE_S)
        else:
            await self._begun.wait()  # nothing to read here: the stream's first answer decides
        self._begin()
        self._unread.discard("history")
        self._take_lines(())
        self._tell(LogPart((), older=True, read_part=1.0))

    async def _take(self, batch: LogBatch, *, older: bool) -> None:
        self._begin()
        lines = [entry for entry in batch.entries if isinstance(entry, LogLine)]
        for start in range(0, max(1, len(lines)), LINES_AT_ONCE):
            self._take_lines(lines[start : start + LINES_AT_ONCE])
            await asyncio.sleep(0)  # keys and pictures come between, a page at once would hold them up
        self._tell(LogPart(batch.entries, older=older, read_part=batch.read_part if older else None))
