"""The log of one run for a viewer: its newest part first, then on from there and back to the beginning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from api_client.models import TrainingJob
from api_client.streams.records import LogBatch, LogEnd, LogEntry, LogGap, LogLine, stamp_ns
from tui.feeds.session import Session

TAIL_SPAN = timedelta(minutes=10)
"""The newest part of the log, read first."""
CLOCK_SKEW = timedelta(minutes=5)
HISTORY_LINES = 150_000
"""Older log lines read beyond that wait until they are asked for."""
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LogPart:
    """Log entries in time order: new ones for the end, or ``older`` ones for the beginning.

    ``restarted`` asks to forget all parts before: the log is read anew after an error.
    """

    entries: tuple[LogEntry, ...]
    older: bool = False
    ended: bool = False
    restarted: bool = False


class RunLog:
    """Reads a job's log once through; ``take`` gets the lines, ``tell`` the parts, ``end`` the ended job."""

    def __init__(
        self,
        session: Session,
        *,
        take: Callable[[Iterable[LogLine]], object],
        tell: Callable[[LogPart], object],
        end: Callable[[TrainingJob], object],
    ) -> None:
        self._session = session
        self._take_lines = take
        self._tell = tell
        self._end = end
        self._unread = {"history", "newest"}

    @property
    def is_read(self) -> bool:
        """Whether all that there was has been read."""
        return not self._unread

    async def read(self, job: TrainingJob) -> None:
        """Read it all until the job has ended. Raises RequestError; call again to begin anew."""
        seam = self._seam(job)
        self._unread = {"history", "newest"}
        self._tell(LogPart((), restarted=True))
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

    def _seam(self, job: TrainingJob) -> datetime:
        """Where history ends and following begins; the two meet there exactly."""
        now = self._session.clock.now()
        newest = min(job.updated_at, now) if job.is_finished and job.updated_at else now
        start = newest - TAIL_SPAN
        return start if job.created_at is None else max(start, job.created_at - CLOCK_SKEW)

    async def _follow(self, job: TrainingJob, seam: datetime) -> None:
        async for part in self._session.client.logs.follow(job.project_id, job.id, start=seam):
            if isinstance(part, LogEnd):
                self._tell(LogPart((), ended=True))
                self._end(part.job)
            else:
                self._take(part, older=False)
                if part.caught_up:
                    self._unread.discard("newest")

    async def _read_history(self, job: TrainingJob, seam: datetime) -> None:
        read = 0
        if job.created_at is not None and job.created_at - CLOCK_SKEW < seam:
            history = self._session.client.logs.history(
                job.project_id, job.id, start=job.created_at - CLOCK_SKEW, end=seam, newest_first=True
            )
            async for batch in history:
                self._take(batch, older=True)
                read += len(batch.entries)
                if read >= HISTORY_LINES:
                    self._tell_unread(job, batch)
                    break
        self._unread.discard("history")
        self._take_lines(())

    def _tell_unread(self, job: TrainingJob, oldest: LogBatch) -> None:
        """Mark the part of the log that is not read; a viewer must not look complete when it is not."""
        if oldest.entries and job.created_at is not None:
            end_ns = stamp_ns(oldest.entries[0])
            reason = f"older lines are not shown here; all of them: bt-tui logs {job.id}"
            gap = LogGap(int(job.created_at.timestamp() * NANOSECONDS), end_ns, reason)
            self._tell(LogPart((gap,), older=True))

    def _take(self, batch: LogBatch, *, older: bool) -> None:
        self._take_lines(entry for entry in batch.entries if isinstance(entry, LogLine))
        self._tell(LogPart(batch.entries, older=older))
