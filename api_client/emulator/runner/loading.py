"""Putting checkpoints of earlier local jobs where BT_LOAD_CHECKPOINT_DIR says.

Files of node N come below ``rank-N/<checkpoint>/``; weights that are sharded over several nodes cannot be
loaded (API facts, 5).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from api_client.emulator.runner.cannot_start import CannotStart
from api_client.emulator.runner.checkpoints import FoundCheckpoint
from api_client.emulator.runner.spec import CheckpointSource
from api_client.models import TrainingJob

BOOKKEEPING_PREFIXES = ("rng_state", "random_states", "trainer_state", "training_args")
"""transformers and accelerate write these on every node."""

CheckpointsOf = Callable[[TrainingJob], list[FoundCheckpoint]]


@dataclass(frozen=True, slots=True)
class LoadingProject:
    """Whose job loads: without a selector its own project is searched, else projects of its own team."""

    id: str
    team_of: Callable[[str], str]

    def may_load_from(self, job: TrainingJob, source: CheckpointSource) -> bool:
        """Whether the source means checkpoints of that job."""
        if source.job_id is not None and job.id != source.job_id:
            return False
        if source.project_name is not None:
            name = job.training_project.name if job.training_project else ""
            return name == source.project_name and self.team_of(job.project_id) == self.team_of(self.id)
        return source.job_id is not None or job.project_id == self.id


def choose_checkpoint(
    source: CheckpointSource,
    jobs: Sequence[TrainingJob],
    *,
    project: LoadingProject,
    checkpoints_of: CheckpointsOf,
) -> FoundCheckpoint:
    """The checkpoint that a source means; raises ``CannotStart`` if there is none that can be loaded.

    ``jobs`` are the candidates, newest first. The latest checkpoint is the newest of the newest job that
    has one.
    """
    for job in jobs:
        if not project.may_load_from(job, source):
            continue
        found = checkpoints_of(job)
        if source.name is not None:
            found = [checkpoint for checkpoint in found if checkpoint.name == source.name]
        if found:
            _refuse_shards(found[-1], job)
            return found[-1]
    named = [
        f"job {source.job_id}" if source.job_id else "",
        f"project {source.project_name!r}" if source.project_name else "",
    ]
    where = " and ".join(filter(None, named)) or "the job's own project"
    what = f"checkpoint {source.name!r}" if source.name else "checkpoint"
    raise CannotStart(f"there is no {what} of {where} on this machine to load")


def _refuse_shards(checkpoint: FoundCheckpoint, job: TrainingJob) -> None:
    ranks = {file.rank for file in checkpoint.files if not _is_bookkeeping(file.name)}
    if len(ranks) > 1:
        raise CannotStart(
            f"checkpoint {checkpoint.name!r} of job {job.id} is sharded over {len(ranks)} nodes:"
            " only what one node wrote can be loaded"
        )


def _is_bookkeeping(name: str) -> bool:
    """What trainers write on every node beside the weights, which one node alone writes."""
    return PurePosixPath(name).name.startswith(BOOKKEEPING_PREFIXES)


def copy_checkpoint(checkpoint: FoundCheckpoint, destination: Path) -> None:
    """Copy all files; raises ``CannotStart`` if the disk refuses."""
    try:
        for file in checkpoint.files:
            target = destination / f"rank-{file.rank}" / checkpoint.name / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file.path, target)
    except OSError as error:
        raise CannotStart(f"checkpoint {checkpoint.name!r} cannot be loaded: {error}") from error
