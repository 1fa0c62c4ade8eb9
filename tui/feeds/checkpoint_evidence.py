"""The data for checking checkpoints: the losses in the log, and the trainer's record with the newest one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from tui.analysis.checkpoints.facts import checkpoint_facts
from tui.analysis.health.checkpoint_faults import checkpoint_faults
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.run.checkpoints import KeptLosses
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.run import OnPart, read_log
from tui.text.units import count

RECORD_NAME = "trainer_state.json"
MAX_FILES_LISTED = 5000
"""Files to scan for the record. A job may have many more, too many to list for a mark in a table."""
MOST_LINES = 100_000
"""Commands do not read the losses of longer logs, because that would take minutes."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run with its checkpoints checked; ``problem`` says why they could not be (not sanitized)."""

    run: RunSnapshot
    problem: str = ""


async def evidence_of(
    client: TrainingClient,
    job: TrainingJob,
    checkpoints: Sequence[Checkpoint],
    *,
    rules: HealthRules = DEFAULT_RULES,
    patterns: Sequence[ProgressPattern] = (),
    on_part: OnPart | None = None,
    most_lines: int = MOST_LINES,
) -> Evidence:
    """Read the log of a job to check its checkpoints. If it cannot be read, they stay unchecked."""
    now = client.clock.now()
    fold = ProgressFold(patterns=patterns)
    run = RunSnapshot(job, now, now, checkpoints=tuple(checkpoints), history_known=True)
    if not checkpoints:
        return Evidence(run)
    losses = asyncio.create_task(kept_losses_of(client, job, checkpoints))
    try:
        reading = await read_log(
            client, job, fold, job.earliest_time(now), on_part=on_part, most_lines=most_lines
        )
        run = replace(run, progress=fold.snapshot(), log_read=reading.is_complete, kept_losses=await losses)
    except RequestError as error:
        return Evidence(run, f"can't read the log: {error}")
    finally:
        losses.cancel()
        await asyncio.gather(losses, return_exceptions=True)
    if not reading.is_complete:
        return Evidence(run, f"the log has more than {count(most_lines)} lines")
    return Evidence(replace(run, faults=await asyncio.to_thread(checkpoint_faults, run, rules)))


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
