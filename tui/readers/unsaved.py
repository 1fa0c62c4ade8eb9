"""Read what stopping a run now would lose, for a confirmation."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.analysis.checkpoints.unsaved import unsaved_work
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.watcher import RunWatcher

PATIENCE_S = 1.5
"""The question waits no longer for the checkpoints; keys typed ahead of it wait somewhat longer."""


async def unsaved_words(client: TrainingClient, job: TrainingJob, run: RunSnapshot | None = None) -> str:
    """Return what stopping the run loses; empty if that is not known in time.

    ``run`` is what is known of it already.
    """
    if run is None or run.checkpoints is None:
        watcher = RunWatcher(client, job)
        with suppress(RequestError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await watcher.read_checkpoints()
                await watcher.read_history()
        run = watcher.snapshot if run is None else replace(run, checkpoints=watcher.snapshot.checkpoints)
    if run.checkpoints is None:
        return ""
    lost = unsaved_work(
        job,
        run.checkpoints,
        run.server_now,
        running_since=run.running_since,
        price_per_minute=run.price_per_minute,
    )
    return lost.words if lost is not None else ""
