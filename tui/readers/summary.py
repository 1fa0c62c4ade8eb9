"""Read a run to summarize it: once, or again and again as long as it lasts."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import RUNNABLE_STATUSES, WAITING_STATUSES, TrainingJob
from api_client.models.logs import LogGap, LogLine
from tui.analysis.fleet.capacity import queue_position
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.summary.rendering import fitted
from tui.analysis.summary.value import MAX_EXPLAINED, MAX_LINES, Summary, state_of, summarize
from tui.analysis.why.explain import explained_findings
from tui.readers.run import fold_in_slices, read_checkpoints_if_any, read_metrics_if_any, together
from tui.readers.watcher import RunWatcher
from tui.readers.why import read_explanation
from tui.settings.runs import DEFAULT, RunSettings

POLL_S = 30.0
"""Problems take minutes to show."""


class SummaryReader:
    """Summarizes one run; ``on_lines`` is called with the number of log lines read so far."""

    def __init__(
        self,
        client: TrainingClient,
        job: TrainingJob,
        settings: RunSettings = DEFAULT,
        *,
        on_lines: Callable[[int], object] = lambda count: None,
    ) -> None:
        self._client = client
        self._watcher = RunWatcher(client, job, settings)
        start = job.earliest_time(client.clock.now())
        self._log = client.logs.increments(job.project_id, job.id, start=start)
        self._on_lines = on_lines
        self._newest: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._line_count = self._gap_count = 0
        self._unread: dict[str, RequestError] = {}

    @property
    def job(self) -> TrainingJob:
        return self._watcher.job

    async def read(self) -> Summary:
        """Summarize the run as it is now. Raises RequestError."""
        return await self._summary(await self._read_new())

    async def follow(
        self, on_trouble: Callable[[RequestError, float], object]
    ) -> AsyncGenerator[Summary, None]:
        """Yield a summary, and another whenever something that matters has changed, until the job's end.

        Outages do not end it: they are reported to ``on_trouble``. Raises RequestError if the server refuses.
        """
        clock, state = self._client.clock, None

        async def read_if_changed() -> Summary | None:
            nonlocal state
            run = await self._read_new()
            if state == (newest := state_of(run)):
                return None
            summary = await self._summary(run)
            state = newest
            return summary

        while True:
            summary = await retrying(
                read_if_changed,
                LASTING,
                sleep=clock.sleep,
                may_repeat=lambda error: error.retryable,
                on_wait=on_trouble,
            )
            if summary is not None:
                yield summary
            if self.job.is_finished:
                return
            await clock.sleep(POLL_S)

    async def _read_new(self) -> RunSnapshot:
        """Read what is new of each part, and judge the run."""
        watcher, client = self._watcher, self._client
        job = await client.jobs.get(self.job.project_id, self.job.id)
        watcher.change(job=job, seen_at=client.clock.now())
        self._unread.clear()
        await together(
            self._read_log(),
            read_checkpoints_if_any(watcher),
            watcher.read_history(),
            watcher.read_price(),
            watcher.read_bill(),
            read_metrics_if_any(watcher, self._unread),
        )
        await watcher.read_kept_losses()
        watcher.update(log_read=True)
        await watcher.check()
        await watcher.check_checkpoints()
        return watcher.snapshot

    async def _read_log(self) -> None:
        async with aclosing(self._log.poll()) as polled:
            async for entries in polled:
                lines = [entry for entry in entries if isinstance(entry, LogLine)]
                self._newest.extend(lines)
                self._gap_count += sum(isinstance(entry, LogGap) for entry in entries)
                self._line_count += len(lines)
                await fold_in_slices(self._watcher.progress, entries)
                self._on_lines(self._line_count)

    async def _read_queue(self) -> str:
        """Return a waiting job's place in the current queue; the API's own context ends at its submission."""
        if self.job.current_status not in WAITING_STATUSES:
            return ""
        client = self._client
        try:
            jobs, capacity = await together(
                client.jobs.search(statuses=sorted(RUNNABLE_STATUSES)), client.capacity.get()
            )
        except RequestError:
            return ""
        return queue_position(self.job, jobs, capacity, client.clock.now())

    async def _summary(self, run: RunSnapshot) -> Summary:
        findings = explained_findings(run)[:MAX_EXPLAINED]
        explanations = [await read_explanation(self._client, run, finding) for finding in findings]
        return fitted(
            summarize(
                run,
                explanations,
                list(self._newest),
                gap_count=self._gap_count,
                unread=[f"the {part}" for part in self._unread],
                queue=await self._read_queue(),
                command=self._client.remote.command_line,
            )
        )
