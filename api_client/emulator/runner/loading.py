"""Putting checkpoints of earlier local jobs where BT_LOAD_CHECKPOINT_DIR says.

Files of node N come below ``rank-N/<checkpoint>/`` (API facts, 5).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from api_client.emulator.runner.checkpoints import FoundCheckpoint
from api_client.emulator.runner.spec import CannotStart, CheckpointSource
from api_client.models import TrainingJob

CheckpointsOf = Callable[[TrainingJob], list[FoundCheckpoint]]


def choose_checkpoint(
    source: CheckpointSource,
    jobs: Sequence[TrainingJob],
    *,
    project_name: str,
    checkpoints_of: CheckpointsOf,
) -> FoundCheckpoint:
    """The checkpoint that a source means; raises ``CannotStart`` if there is none.

    ``jobs`` are the candidates, newest first; ``project_name`` is searched when the source names
    neither a job nor a project.
    """
    wanted_project = source.project_name or (None if source.job_id else project_name)
    for job in jobs:
        job_project = job.training_project.name if job.training_project else ""
        if (source.job_id and job.id != source.job_id) or (wanted_project and job_project != wanted_project):
            continue
        found = checkpoints_of(job)
        if source.name is not None:
            found = [checkpoint for checkpoint in found if checkpoint.name == source.name]
        if found:
            return found[-1]
    where = f"job {source.job_id}" if source.job_id else f"project {wanted_project!r}"
    what = f"checkpoint {source.name!r}" if source.name else "checkpoint"
    raise CannotStart(f"there is no {what} of {where} on this machine to load")


def copy_checkpoint(checkpoint: FoundCheckpoint, destination: Path) -> None:
    """Copy all files; raises ``CannotStart`` if the disk refuses."""
    try:
        for file in checkpoint.files:
            target = destination / f"rank-{file.rank}" / checkpoint.name / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file.path, target)
    except OSError as error:
        raise CannotStart(f"checkpoint {checkpoint.name!r} cannot be loaded: {error}") from error
