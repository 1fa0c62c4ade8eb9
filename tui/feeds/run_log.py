"""Read the log of one run for display: from its newest line back, and new lines as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_MS, LogEnd, LogEntry, LogGap, stamp_ns
from tui.analysis.logs.not_kept import NotKept, millisecond_of
from tui.readers.log_reader import fold_in_slices
from tui.readers.watcher import RunWatcher, together
from tui.text.times import moment_at


@dataclass(frozen=True, slots=True)
class LogPart:
    """Log entries in time order: new ones for the end, or ``older`` ones for the beginning.

    ``restarted`` asks to discard all earlier parts, because the log is read again after an error.
    ``filled`` is a gap that was read again: the entries replace it. ``read_part`` (0 to 1) of an
    ``older`` part is the fraction of the older log read so far, by time; it is 1 in the last one.
    ``wanted_ns`` is the time whose lines were the reason to read a gap, by default its start.
    ``ended``: the job has ended, though a few more lines may arrive unless it is also ``settled``.
    """

    entries: tuple[LogEntry, ...]
    older: bool = False
    ended: bool = False
    settled: bool = False
    restarted: bool = False
    filled: LogGap | None = None
    read_part: float | None = None
    wanted_ns: int | None = None


class RunLog:
    """Reads a run's log once: calls ``fold`` with its entries, and ``publish`` with parts of it.

    If it is read again after an error, the earlier data stays until the first new entries. ``before_history``
    is awaited before lines older than the newest part are read.
    """

    def __init__(
        self,
        watcher: RunWatcher,
        *,
        fold: Callable[[Sequence[LogEntry]], object],
        publish: Callable[[LogPart], object],
        before_history: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0),
    ) -> None:
        self._watcher = watcher
        self._client = watcher.client
        self._fold = fold
        self._publish = publish
        self._before_history = before_history
        self._has_begun = False
        self.newest_is_read = self.is_read = False
        """Whether the newest part, and whether the whole log so far, has been read."""
        self.folding = asyncio.Lock()
        """Held while a page is being folded: until then, the progress lacks a part of the page."""

    async def read(self) -> None:
        """Read the log until the job has ended. Raises RequestError; call it again to start over."""
        job = self._watcher.job
        boundary, caught_up = self._history_end(job), asyncio.Event()
        self._has_begun = False
        await together(self._follow(job, boundary, caught_up), self._read_history(job, boundary, caught_up))

    async def retry(self, gap: LogGap, from_ns: int | None = None) -> None:
        """Retry a gap; the result is published as a part with the gap as ``filled``.

        Lines that still cannot be read are a gap among its entries. Of a ``NotKept``, only some lines are
        read: the last ones, or those from ``from_ns`` on. Raises RequestError.
        """
        job = self._watcher.job
        if isinstance(gap, NotKept):
            entries = await self._read_again(job, gap, from_ns)
            wanted_ns = gap.end_ns if from_ns is None else from_ns
            self._publish(LogPart(entries, filled=gap, wanted_ns=wanted_ns))
            return
        entries = await self._client.logs.fill(job.project_id, job.id, gap)
        self._watcher.progress.forget(gap)
        self._fold(entries)
        self._publish(LogPart(entries, filled=gap))

    async def _read_again(self, job: TrainingJob, gap: NotKept, from_ns: int | None) -> tuple[LogEntry, ...]:
        start_ns, end_ns = gap.start_ns if from_ns is None else millisecond_of(from_ns), gap.end_ns
        start, end = moment_at(start_ns, UTC), moment_at(end_ns, UTC)
        assert start is not None
        history = self._client.logs.history(
            job.project_id, job.id, start=start, end=end, newest_first=from_ns is None
        )
        entries: list[LogEntry] = []
        async with aclosing(history) as batches:
            async for batch in batches:  # a batch has all lines of its milliseconds
                entries += batch.entries
                if len(entries) >= gap.at_once:
                    if from_ns is None:
                        start_ns = millisecond_of(stamp_ns(batch.entries[0]))
                    else:
                        end_ns = millisecond_of(stamp_ns(batch.entries[-1])) + NS_PER_MS
                    break
        unread = (replace(gap, end_ns=start_ns), replace(gap, start_ns=end_ns))
        entries += (remaining for remaining in unread if remaining.start_ns < remaining.end_ns)
        return tuple(sorted(entries, key=stamp_ns))

    def _begin(self) -> None:
        """Discard the log that was read before, once the first response arrives."""
        if not self._has_begun:
            self._has_begun = True
            self.newest_is_read = self.is_read = False
            self._watcher.restart_log()
            self._publish(LogPart((), restarted=True))

    def _history_end(self, job: TrainingJob) -> datetime:
        """Return the time at which history ends and following begins, without overlap or gap."""
        now = self._client.clock.now()
        newest = min(job.updated_at, now) if job.is_finished and job.updated_at else now
        start = newest - timedelta(minutes=10)
        return max(start, job.earliest_time(now))

    async def _follow(self, job: TrainingJob, boundary: datetime, caught_up: asyncio.Event) -> None:
        logs = self._client.logs
        async for part in logs.follow(job.project_id, job.id, start=boundary, newest_first=True):
            if isinstance(part, LogEnd):
                self._report_end(part.job, settled=True)
            elif part.finished_job is not None:
                # Late lines may arrive for a minute, but there is no need to wait for them.
                self._report_end(part.finished_job)
            else:
                await self._fold_entries(part.entries)
                if part.caught_up and not part.entries:  # parts with entries may precede the newest page
                    self.newest_is_read = True
                    caught_up.set()
                read_part = None if part.caught_up else part.read_part or 0.0
                self._publish(LogPart(part.entries, older=not part.caught_up, read_part=read_part))

    def _report_end(self, job: TrainingJob, *, settled: bool = False) -> None:
        self._begin()
        self._publish(LogPart((), ended=True, settled=settled))
        self._watcher.change(job=job)

    async def _read_history(self, job: TrainingJob, boundary: datetime, caught_up: asyncio.Event) -> None:
        start = job.earliest_time(self._client.clock.now())
        await caught_up.wait()
        await self._before_history()
        if start < boundary:
            history = self._client.logs.history(
                job.project_id, job.id, start=start, end=boundary, newest_first=True
            )
            async with aclosing(history) as batches:
                async for batch in batches:
                    await self._fold_entries(batch.entries)
                    self._publish(LogPart(batch.entries, older=True, read_part=batch.read_part or 0.0))
                    # Let keys and repaints go first; the stream reads ahead in the meantime, up to a limit.
                    await self._client.clock.sleep(0.005)
        self.is_read = True
        self._fold(())
        self._publish(LogPart((), older=True, read_part=1.0))

    async def _fold_entries(self, entries: Sequence[LogEntry]) -> None:
        self._begin()
        async with self.folding:
            await fold_in_slices(self._fold, entries)
