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
from tui.readers.watcher import RunWatcher, together

PATIENCE_S = 1.5
"""Maximum time for which the question whether to stop a run waits for this data."""


async def read_unsaved_words(client: TrainingClient, job: TrainingJob, run: RunSnapshot | None = None) -> str:
    """Describe what stopping the run would lose; empty if that cannot be read in time.

    ``run`` is what was read of the run already.
    """
    if run is None or run.checkpoints is None:
        watcher = RunWatcher(client, job)
        with suppress(RequestError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await together(watcher.read_checkpoints(), watcher.read_history(), _read_price(watcher))
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
    on_trouble: Callable[[RequestError, float], object] = lambda _error, _delay_s: None,
) -> tuple[Checkpoint | None, TrainingJob]:
    """Wait until the job stores another checkpoint; return it and the job's state at that time.

    A checkpoint that is being uploaded now may be that one. Waits without a limit, even if the server does
    not respond. The checkpoint is None if the job ended before. Raises RequestError if the server refuses.
    """

    async def read() -> tuple[TrainingJob, dict[SavedKey, Checkpoint]]:
        now = await client.jobs.find(job.id)
        listed = await client.checkpoints.list(job.project_id, job.id)
        stored = [checkpoint for checkpoint in listed if sync_state(checkpoint) != "uploading"]
        return now, {saved_key(checkpoint): checkpoint for checkpoint in stored}

    read_until_answered = partial(
        retrying,
        read,
        LASTING,
        sleep=client.clock.sleep,
        may_repeat=lambda error: error.retryable,
        on_wait=on_trouble,
    )
    _, stored = await read_until_answered()
    while True:
        await client.clock.sleep(10.0)
        now, stored_now = await read_until_answered()
        if now.is_finished:
            return None, now
        if new := stored_now.keys() - stored.keys():
            return stored_now[new.pop()], now
