"""Words of the API, above all the lifecycle statuses of a job.

Separate from the models, which take long to import. The schema types ``current_status`` as a plain string, so
this module lists the known values, and has one rule for all others: a status that is not known to be runnable
counts as finished (the official Go CLI's rule).
"""

from __future__ import annotations

from enum import StrEnum

TRAINING_JOB = "TRAINING_JOB"
"""The ``kind`` of a billed training job."""

STATUS_PREFIX = "TRAINING_JOB_"


class JobStatus(StrEnum):
    """The lifecycle statuses of the documentation and of the official clients, in order."""

    PENDING = "TRAINING_JOB_PENDING"
    QUEUED = "TRAINING_JOB_QUEUED"
    CREATED = "TRAINING_JOB_CREATED"
    DEPLOYING = "TRAINING_JOB_DEPLOYING"
    RUNNING = "TRAINING_JOB_RUNNING"
    COMPLETED = "TRAINING_JOB_COMPLETED"
    FAILED = "TRAINING_JOB_FAILED"
    DEPLOY_FAILED = "TRAINING_JOB_DEPLOY_FAILED"
    STOPPED = "TRAINING_JOB_STOPPED"
    PREEMPTED = "TRAINING_JOB_PREEMPTED"
    EXPIRED = "TRAINING_JOB_EXPIRED"


RUNNABLE_STATUSES = frozenset(
    {JobStatus.PENDING, JobStatus.QUEUED, JobStatus.CREATED, JobStatus.DEPLOYING, JobStatus.RUNNING}
)
"""Statuses of a job that has not ended."""

WAITING_STATUSES = frozenset({JobStatus.PENDING, JobStatus.QUEUED})
"""Statuses of a job that waits for capacity."""


def is_finished(status: str) -> bool:
    """Return True if a job with this status has ended; unknown statuses count as ended."""
    return status not in RUNNABLE_STATUSES


def short_status(status: str) -> str:
    """Convert ``TRAINING_JOB_DEPLOY_FAILED`` to ``deploy-failed``, the official CLI's spelling."""
    return status.removeprefix(STATUS_PREFIX).lower().replace("_", "-")


def full_status(status: str) -> str:
    """Return the API's spelling of a status: ``running`` and ``TRAINING_JOB_RUNNING`` both work."""
    name = status.strip().upper().replace("-", "_")
    return name if name.startswith(STATUS_PREFIX) else STATUS_PREFIX + name


def normal_gpu_type(name: str) -> str:
    """Normalize a GPU type: both ``A100-40GB`` and ``a100_40gb`` become ``A100_40GB``."""
    return name.upper().replace("-", "_")


_KNOWN_STATUSES = frozenset(JobStatus)


def normal_status(status: str) -> str:
    """Convert a known status to the API's spelling; return any other text unchanged."""
    api_spelling = full_status(status)
    return api_spelling if api_spelling in _KNOWN_STATUSES else status
