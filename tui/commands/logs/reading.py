"""The ways to read a log for printing: all of it, the last lines, or following it until the job ends."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from api_client.client import TrainingClient
from api_client.models import TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import NS_PER_S, LogBatch, LogEnd, LogEntry, LogGap, LogLine, stamp_ns
from tui.commands.logs.printing import LogLineFilter, NodeChooser, OutputLine

Finished = Callable[["TrainingJob"], object]
Progress = Callable[[float | None, int], object]


@dataclass(frozen=True, slots=True)
class LogRange:
    """The requested part of the log: a bound of None is open, and ``last`` keeps only the last matches."""

    start: datetime | None = None
    end: datetime | None = None
    last: int | None = None


@dataclass(slots=True)
class LogRead:
    """A single pass over a job's log; ``gap_count`` is the number of time ranges that could not be read.

    At the end of the pass, a name in ``nodes`` that no node of the job has raises CommandFailed.
    """

    client: TrainingClient
    job: TrainingJob
    log_range: LogRange
    new_filter: Callable[[NodeChooser], LogLineFilter]
    progress: Progress
    nodes: NodeChooser = field(default_factory=NodeChooser)
    gap_count: int = 0
    line_count: int = 0

    async def history(self) -> AsyncGenerator[list[OutputLine], None]:
        """Yield the lines available now, oldest first."""
        if self.log_range.last is not None:
            yield await self._last(self.log_range.last)
            self.nodes.check(self.job)
            return
        chosen = self.new_filter(self.nodes)
        stream = self.client.logs.history(
            self.job.project_id, self.job.id, start=self._start(), end=self.log_range.end
        )
        async with aclosing(stream) as batches:
            async for batch in batches:
                yield self._through(chosen, batch)
        self.nodes.check(self.job)

    async def follow(
        self, finished: Finished, *, drain_s: float | None
    ) -> AsyncGenerator[list[OutputLine] | LogEnd, None]:
        """Yield existing and new lines until the job has ended; the last item is its LogEnd."""
        start = self.log_range.start
        newest_lines: deque[OutputLine] | None = None
        if self.log_range.last is not None:
            newest = await self._last(self.log_range.last)
            newest_lines = deque(maxlen=len(newest) or 1)
            if newest:
                start = datetime.fromtimestamp(stamp_ns(newest[0].entry) // NS_PER_S, UTC)
            elif start is None:
                start = self.client.clock.now() - CLOCK_SKEW
            self.gap_count = 0
        chosen = self.new_filter(self.nodes)
        stream = self.client.logs.follow(self.job.project_id, self.job.id, start=start, drain_s=drain_s)
        async with aclosing(stream) as items:
            async for item in items:
                if isinstance(item, LogEnd):
                    yield item
                    continue
                if item.finished_job is not None:
                    finished(item.finished_job)
                shown = self._through(chosen, item)
                if item.caught_up:
                    self.nodes.check(self.job)
                if newest_lines is None:
                    yield shown
                elif item.caught_up:
                    yield [*newest_lines, *shown]
                    newest_lines = None
                else:
                    newest_lines.extend(shown)

    def _start(self) -> datetime:
        if self.log_range.start is not None:
            return self.log_range.start
        return self.job.earliest_time(self.client.clock.now())

    async def _last(self, count: int) -> list[OutputLine]:
        """Return the last `count` matches with their context, reading backwards no further than needed."""
        if count == 0:
            return []
        chosen = self.new_filter(self.nodes)
        backwards: list[OutputLine] = []
        stream = self.client.logs.history(
            self.job.project_id, self.job.id, start=self._start(), end=self.log_range.end, newest_first=True
        )
        async with aclosing(stream) as batches:
            async for entry in _newest_first(batches):
                shown = chosen.take(entry) if count else chosen.take_around(entry)
                backwards += shown
                count -= sum(map(_is_match, shown))
                if count == 0 and not chosen.is_open:
                    break
        self._count(backwards)
        # A backward pass marks the line after which lines were skipped; shift the mark to the line that
        # follows.
        is_after_skipped = [False, *(line.after_skipped for line in reversed(backwards))]
        return [
            replace(line, after_skipped=is_after)
            for line, is_after in zip(reversed(backwards), is_after_skipped, strict=False)
        ]

    def _through(self, chosen: LogLineFilter, batch: LogBatch) -> list[OutputLine]:
        shown = [line for entry in batch.entries for line in chosen.take(entry)]
        self._count(shown)
        if batch.read_part is not None:
            self.progress(batch.read_part, self.line_count)
        return shown

    def _count(self, shown: list[OutputLine]) -> None:
        gaps = sum(isinstance(line.entry, LogGap) for line in shown)
        self.gap_count += gaps
        self.line_count += len(shown) - gaps


async def _newest_first(batches: AsyncIterator[LogBatch]) -> AsyncIterator[LogEntry]:
    async for batch in batches:
        for entry in reversed(batch.entries):
            yield entry


def _is_match(shown: OutputLine) -> bool:
    return isinstance(shown.entry, LogLine) and not shown.is_context
