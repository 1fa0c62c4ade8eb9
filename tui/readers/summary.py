"""Read a run to summarize it: once, or again and again as long as it lasts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import RUNNABLE_STATUSES, WAITING_STATUSES, TrainingJob
from tui.analysis.fleet.capacity import queue_position
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.summary.rendering import Document
from tui.analysis.summary.value import MAX_EXPLAINED, state_of, summarize
from tui.analysis.why.explain import explained_findings
from tui.readers.log_reader import OnPart
from tui.readers.watcher import RunWatcher, together
from tui.readers.why import read_explanation
from tui.settings.runs import DEFAULT, RunSettings


class SummaryReader:
    """Summarizes one run; ``on_part`` is called while its log is read."""

    def __init__(
        self,
        client: TrainingClient,
        job: TrainingJob,
        settings: RunSettings = DEFAULT,
        *,
        on_part: OnPart = lambda _part, _count: None,
    ) -> None:
        self._client = client
        self._watcher = RunWatcher(client, job, settings, on_part=on_part)

    @property
    def job(self) -> TrainingJob:
        return self._watcher.job

    async def read(self) -> Document:
        """Summarize the run as it is now. Raises RequestError."""
        return await self._summary(await self._read_new())

    async def follow(
        self, on_trouble: Callable[[RequestError, float], object]
    ) -> AsyncGenerator[Document, None]:
        """Yield a summary, and another whenever something that matters has changed, until the job's end.

        Outages do not end it: they are reported to ``on_trouble``. Raises RequestError if the server refuses.
        """
        clock, state = self._client.clock, None

        async def read_if_changed() -> Document | None:
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
            # problems take minutes to show
            await clock.sleep(30.0)

    async def _read_new(self) -> RunSnapshot:
        """Read what is new of each part, and judge the run."""
        watcher = self._watcher
        await watcher.read_status()
        await together(watcher.poll(watcher.log.read_new), watcher.read_price(), watcher.read_bill())
        await watcher.read_kept_losses()
        await watcher.check()
        await watcher.check_checkpoints()
        return watcher.snapshot

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

    async def _summary(self, run: RunSnapshot) -> Document:
        findings = explained_findings(run)[:MAX_EXPLAINED]
        explanations = [await read_explanation(self._client, run, finding) for finding in findings]
        return summarize(
            run,
            explanations,
            self._watcher.log.newest,
            gap_count=self._watcher.log.gap_count,
            unread=list(self._watcher.unread),
            queue=await self._read_queue(),
            command=self._client.remote.command_line,
        )
