"""Which waiting job starts next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job in the queue: a smaller ``sequence`` is older, ``nodes`` is what it needs."""

    job_id: str
    priority: int
    sequence: int
    nodes: int


class NodeQueue:
    """A limited number of nodes, given out by priority and then by age.

    Nobody overtakes: while the first in line does not fit, those behind it wait too, so that a large
    job is never starved by small ones.
    """

    def __init__(self, max_nodes: int) -> None:
        self._max_nodes = max_nodes
        self._waiting: dict[str, WaitingJob] = {}
        self._running: dict[str, int] = {}

    def add(self, job: WaitingJob) -> None:
        """Put a job in line, or change its place if it stands there already."""
        self._waiting[job.job_id] = job

    def is_waiting(self, job_id: str) -> bool:
        """Whether a job stands in line."""
        return job_id in self._waiting

    def remove(self, job_id: str) -> None:
        """The job has ended, or will never start."""
        self._waiting.pop(job_id, None)
        self._running.pop(job_id, None)

    def admit(self) -> list[str]:
        """The jobs that may start now; they hold their nodes until ``remove``."""
        admitted = []
        in_line = sorted(self._waiting.values(), key=lambda job: (-job.priority, job.sequence))
        for job in in_line:
            if sum(self._running.values()) + job.nodes > self._max_nodes:
                break
            self._running[job.job_id] = job.nodes
            del self._waiting[job.job_id]
            admitted.append(job.job_id)
        return admitted
