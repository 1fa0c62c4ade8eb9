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
from tui.readers.watcher import RunWatcher, gather_or_cancel
from tui.text.times import moment_at


@dataclass(frozen=True, slots=True)
class LogPart:
    """Log entries in time order, to append to the log unless one of the fields says otherwise."""

    entries: tuple[LogEntry, ...]
    is_older: bool = False
    """True if the entries precede all entries published before."""
    has_ended: bool = False
    """True if the job has ended; a few late lines may still arrive."""
    is_settled: bool = False
    """True if the job has ended and no more lines will arrive."""
    is_restart: bool = False
    """True if all parts published before must be discarded, because the log is read again after an error."""
    filled_gap: LogGap | None = None
    """A gap that was read again; the entries replace it."""
    read_fraction: float | None = None
    """If ``is_older``, the fraction of the older log read so far, by time; 1 in the last such part."""
    wanted_ns: int | None = None
    """In a part that fills a gap, the time of the lines that the user wants to see; None for its start."""


class RunLog:
    """Reads a run's log once; calls ``fold`` with the log's entries, and ``publish`` with parts of the log.

    If the log is read again after an error, the previous data stays until the first response.
    ``before_history`` is awaited before the older log, which precedes the last ten minutes, is read.
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
        self._is_previous_discarded = False
        self.newest_is_read = self.is_read = False
        """Whether the last ten minutes, and whether the whole log up to now, have been read."""
        self.fold_lock = asyncio.Lock()
        """Held while entries are being folded in slices, when the progress includes only some of them."""

    async def read(self) -> None:
        """Read the log until the job has ended. Raises RequestError; call it again to start over."""
        job = self._watcher.job
        history_end, caught_up = self._history_end(job), asyncio.Event()
        self._is_previous_discarded = False
        follow = self._follow(job, history_end, caught_up)
        await gather_or_cancel(follow, self._read_history(job, history_end, caught_up))

    async def retry(self, gap: LogGap, from_ns: int | None = None) -> None:
        """Read the lines of a gap again, and publish them as a part with ``filled_gap=gap``.

        The part's entries include a smaller gap for lines that still cannot be read. If the gap is a
        ``NotKept``, about ``gap.at_once`` lines are read: the newest lines, or with ``from_ns``, the lines
        from that time on. Raises RequestError.
        """
        job = self._watcher.job
        if isinstance(gap, NotKept):
            entries = await self._read_not_kept(job, gap, from_ns)
            wanted_ns = gap.end_ns if from_ns is None else from_ns
            self._publish(LogPart(entries, filled_gap=gap, wanted_ns=wanted_ns))
            return
        entries = await self._client.logs.fill(job.project_id, job.id, gap)
        self._watcher.progress.forget(gap)
        self._fold(entries)
        self._publish(LogPart(entries, filled_gap=gap))

    async def _read_not_kept(
        self, job: TrainingJob, gap: NotKept, from_ns: int | None
    ) -> tuple[LogEntry, ...]:
        """Return some lines that were dropped from memory, and the unread rest of the gap."""
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
        unread_gaps = (replace(gap, end_ns=start_ns), replace(gap, start_ns=end_ns))
        entries += (remaining for remaining in unread_gaps if remaining.start_ns < remaining.end_ns)
        return tuple(sorted(entries, key=stamp_ns))

    def _discard_previous(self) -> None:
        """On the first response of a ``read``, discard the log of the previous ``read``."""
        if not self._is_previous_discarded:
            self._is_previous_discarded = True
            self.newest_is_read = self.is_read = False
            self._watcher.restart_log()
            self._publish(LogPart((), is_restart=True))

    def _history_end(self, job: TrainingJob) -> datetime:
        """Return the time at which history ends and following begins, without overlap or gap."""
        now = self._client.clock.now()
        log_end = min(job.updated_at, now) if job.is_finished and job.updated_at else now
        start = log_end - timedelta(minutes=10)
        return max(start, job.earliest_time(now))

    async def _follow(self, job: TrainingJob, history_end: datetime, caught_up: asyncio.Event) -> None:
        logs = self._client.logs
        async for batch in logs.follow(job.project_id, job.id, start=history_end, newest_first=True):
            if isinstance(batch, LogEnd):
                self._report_end(batch.job, is_settled=True)
            elif batch.finished_job is not None:
                # Late lines may arrive for a minute, but there is no need to wait for them.
                self._report_end(batch.finished_job)
            else:
                await self._fold_entries(batch.entries)
                if batch.caught_up and not batch.entries:  # batches with entries may precede the newest page
                    self.newest_is_read = True
                    caught_up.set()
                fraction = None if batch.caught_up else batch.read_part or 0.0
                self._publish(LogPart(batch.entries, is_older=not batch.caught_up, read_fraction=fraction))

    def _report_end(self, job: TrainingJob, *, is_settled: bool = False) -> None:
        self._discard_previous()
        self._publish(LogPart((), has_ended=True, is_settled=is_settled))
        self._watcher.change(job=job)

    async def _read_history(self, job: TrainingJob, history_end: datetime, caught_up: asyncio.Event) -> None:
        start = job.earliest_time(self._client.clock.now())
        await caught_up.wait()
        await self._before_history()
        if start < history_end:
            history = self._client.logs.history(
                job.project_id, job.id, start=start, end=history_end, newest_first=True
            )
            async with aclosing(history) as batches:
                async for batch in batches:
                    await self._fold_entries(batch.entries)
                    self._publish(LogPart(batch.entries, is_older=True, read_fraction=batch.read_part or 0.0))
                    # Let keys and repaints go first; the stream reads ahead in the meantime, up to a limit.
                    await self._client.clock.sleep(0.005)
        self.is_read = True
        self._fold(())
        self._publish(LogPart((), is_older=True, read_fraction=1.0))

    async def _fold_entries(self, entries: Sequence[LogEntry]) -> None:
        self._discard_previous()
        async with self.fold_lock:
            await fold_in_slices(self._fold, entries)
