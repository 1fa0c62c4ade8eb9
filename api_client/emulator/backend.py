"""The interface between the REST routes and whatever runs the jobs.

There are two implementations: the local runner (real processes) and the simulated fleet (a demo world on a
clock). ``Platform`` puts both behind one interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from api_client.models import (
    CachedFile,
    Checkpoint,
    JobMetrics,
    LogRecord,
    NodeMetrics,
    NodeSeries,
    QueueEvent,
    StorageMetrics,
    TrainingJob,
)

Direction = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A request for up to ``limit`` lines with ``start_ns <= timestamp < end_ns``, in one direction.

    If ``levels`` is None, all lines match, including those without a level; otherwise only lines of those
    levels match.
    """

    start_ns: int
    end_ns: int
    direction: Direction
    limit: int
    levels: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A checkpoint file: bytes on disk (``path``), or generated on demand from a start to an end offset."""

    relative_name: str
    node_rank: int
    size_bytes: int
    modified: str
    path: Path | None = None
    generate: Callable[[int, int], bytes] | None = None


STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)


def default_step_s(span_s: float) -> int:
    """Return the smallest round step, in seconds, that gives at most 250 points per series."""
    return next((step_s for step_s in STEPS_S if span_s / step_s <= 250), STEPS_S[-1])


def job_metrics(
    job: TrainingJob, nodes: Mapping[int, NodeSeries], cache: StorageMetrics | None = None
) -> JobMetrics:
    """Build the answer from the series of each node; the top-level ones are the leader's."""
    leader = nodes.get(0) or NodeSeries(ephemeral_storage=StorageMetrics())
    return JobMetrics.model_construct(
        **{name: getattr(leader, name) for name in NodeSeries.model_fields},
        cache=cache,
        training_job=job,
        per_node_metrics=[
            NodeMetrics.model_construct(node_id=f"node-{rank}", metrics=series)
            for rank, series in nodes.items()
        ],
    )


class Backend(Protocol):
    """A source of jobs. Reads are plain calls, safe from any thread; actions run on the event loop.

    Every method that takes a ``job_id`` may assume that ``owns(job_id)`` is true: unknown ids never reach
    a backend.
    """

    def owns(self, job_id: str) -> bool: ...

    def jobs(self) -> Sequence[TrainingJob]:
        """Return all jobs except deleted ones, in no particular order."""

    def job(self, job_id: str) -> TrainingJob: ...

    def spec(self, job_id: str) -> Mapping[str, Any]:
        """Return the job spec as it was sent; a simulated job has none."""

    def logs(self, job_id: str, query: LogQuery) -> list[LogRecord]: ...

    def log_is_complete(self, job_id: str) -> bool:
        """Return True if the job has ended and its last log line can be read."""

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        """Return samples in a range of epoch seconds.

        For None the backend chooses a bound or step, relative to the job's end.
        """

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """Return the checkpoints, oldest first."""

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        """Return the files of all checkpoints; each name starts with the checkpoint's name."""

    def events(self, job_id: str) -> list[QueueEvent]:
        """Return the status changes so far, oldest first."""

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        """List the project's cache; return None if this backend has no cache for the project."""

    async def stop(self, job_id: str) -> TrainingJob:
        """Stop the job and all its processes; do nothing if it has finished."""

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob: ...

    async def delete(self, job_id: str) -> None:
        """Stop the job if necessary, then delete it and its data."""

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        """Change ``priority`` or ``availability_model`` of a waiting job."""
