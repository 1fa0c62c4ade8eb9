"""Describe what stopping a run now would lose, and wait until its next checkpoint is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import Checkpoint, TrainingJob
from tui.analysis.checkpoints.facts import sync_state
from tui.analysis.checkpoints.unsaved import unsaved_words
from tui.analysis.run.checkpoints import SavedKey, saved_key
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.watcher import RunWatcher, gather_or_cancel

UNSAVED_TIMEOUT_S = 1.5
"""How long the question whether to stop a run waits for the description of what would be lost."""


async def read_unsaved_words(client: TrainingClient, job: TrainingJob, run: RunSnapshot | None = None) -> str:
    """Describe what stopping the run would lose; empty if that cannot be read in time.

    ``run`` is an earlier snapshot of the run, if any.
    """
    if run is None or run.checkpoints is None:
        watcher = RunWatcher(client, job)
        with suppress(RequestError, TimeoutError):
            async with asyncio.timeout(UNSAVED_TIMEOUT_S):
                await gather_or_cancel(
                    watcher.read_checkpoints(), watcher.read_history(), _read_price(watcher)
                )
        snapshot = watcher.snapshot
        run = snapshot if run is None else replace(run, checkpoints=snapshot.checkpoints)
    return unsaved_words(run)


async def _read_price(watcher: RunWatcher) -> None:
    with suppress(RequestError):
        await watcher.read_price()


async def next_checkpoint(
    client: TrainingClient,
    job: TrainingJob,
    *,
    on_error: Callable[[RequestError, float], object] = lambda _error, _delay_s: None,
) -> tuple[Checkpoint | None, TrainingJob]:
    """Wait until the job stores another checkpoint; return it and the job's state at that time.

    This may be a checkpoint that is being uploaded now; it is None if the job ends first. Waits without a
    limit and retries while the server does not respond, calling ``on_error`` with each error and the delay.
    Raises RequestError if the server refuses.
    """

    async def read_job_and_checkpoints() -> tuple[TrainingJob, dict[SavedKey, Checkpoint]]:
        current_job = await client.jobs.find(job.id)
        checkpoints = await client.checkpoints.list(job.project_id, job.id)
        stored_checkpoints = [
            checkpoint for checkpoint in checkpoints if sync_state(checkpoint) != "uploading"
        ]
        return current_job, {saved_key(checkpoint): checkpoint for checkpoint in stored_checkpoints}

    read_with_retries = partial(
        retrying,
        read_job_and_checkpoints,
        LASTING,
        sleep=client.clock.sleep,
        may_repeat=lambda error: error.retryable,
        on_wait=on_error,
    )
    _, stored_before = await read_with_retries()
    while True:
        await client.clock.sleep(10.0)
        current_job, stored_now = await read_with_retries()
        if current_job.is_finished:
            return None, current_job
        if new_keys := stored_now.keys() - stored_before.keys():
            return stored_now[new_keys.pop()], current_job
