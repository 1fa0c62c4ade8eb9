"""Wait until a job has stored its next checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from api_client.client import TrainingClient
from api_client.clock import Clock
from api_client.errors import RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import Checkpoint, TrainingJob
from tui.analysis.checkpoints.facts import sync_state
from tui.analysis.run.checkpoints import SavedKey, saved_key

POLL_S = 10.0


async def next_checkpoint(
    client: TrainingClient,
    job: TrainingJob,
    clock: Clock,
    *,
    on_trouble: Callable[[RequestError, float], object] = lambda _error, _delay_s: None,
) -> tuple[Checkpoint | None, TrainingJob]:
    """Wait for a checkpoint that is not stored yet; return it and the job as it is then.

    A checkpoint that is being uploaded counts as the next one. Waits as long as it takes, also for a server
    that does not respond. The checkpoint is None if the job ended before. Raises RequestError if the server
    refuses to answer.
    """

    async def read() -> tuple[TrainingJob, dict[SavedKey, Checkpoint]]:
        now = await client.jobs.find(job.id)
        listed = await client.checkpoints.list(job.project_id, job.id)
        return now, {
            saved_key(checkpoint): checkpoint
            for checkpoint in listed
            if sync_state(checkpoint) != "uploading"
        }

    async def read_until_answered() -> tuple[TrainingJob, dict[SavedKey, Checkpoint]]:
        return await retrying(
            read, LASTING, sleep=clock.sleep, may_repeat=lambda error: error.retryable, on_wait=on_trouble
        )

    _, stored = await read_until_answered()
    while True:
        await clock.sleep(POLL_S)
        now, stored_now = await read_until_answered()
        if now.is_finished:
            return None, now
        if new := stored_now.keys() - stored.keys():
            return stored_now[new.pop()], now
