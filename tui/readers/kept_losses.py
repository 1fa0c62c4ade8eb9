"""The losses that the trainer itself stored with a checkpoint."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from tui.analysis.checkpoints.facts import checkpoint_facts
from tui.analysis.run.checkpoints import KeptLosses

RECORD_NAME = "trainer_state.json"
MAX_FILES_LISTED = 5000
"""Files to scan for the record. A job may have many more, too many to list for a mark in a table."""


async def kept_losses_of(client: TrainingClient, job: TrainingJob, found: Sequence[Checkpoint]) -> KeptLosses:
    """Return the losses stored with the newest complete checkpoint. Unreadable ones count as not stored."""
    finished = [fact.checkpoint for fact in checkpoint_facts(found) if fact.sync != "uploading"]
    if len(finished) < 2:
        return KeptLosses()  # It takes at least two checkpoints to have a best one.
    try:
        file = await _newest_record(client, job, finished)
        if file is None:
            return KeptLosses()
        state = await client.checkpoint_contents.trainer_state(job.project_id, job.id, file)
    except RequestError:
        return KeptLosses()
    return KeptLosses(state.curve("loss"), state.curve("eval_loss"))


async def _newest_record(
    client: TrainingClient, job: TrainingJob, finished: Sequence[Checkpoint]
) -> CheckpointFile | None:
    newest = next(fact.name for fact in checkpoint_facts(finished) if fact.is_newest)
    record_path = f"{newest}/{RECORD_NAME}" if newest != "." else RECORD_NAME
    places = itertools.count(1)
    async for file in client.checkpoints.files(job.project_id, job.id):
        if file.relative_file_name == record_path:
            return file
        if next(places) >= MAX_FILES_LISTED:
            break
    return None
