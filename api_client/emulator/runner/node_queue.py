"""Which waiting job starts next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuPool:
    """GPUs that are shared out together, and how many of them may be in use at once.

    ``is_fixed`` says that nobody can raise the limit: a job that needs more can never start.
    """

    name: str
    limit: int
    is_fixed: bool = False


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job in the queue: a smaller ``sequence`` is older; ``nodes`` and ``gpus`` are what it needs.

    ``project_id`` and ``gpu_type`` say which GPU pools it draws on; None for a job that draws on none.
    """

    job_id: str
    priority: int
    sequence: int
    nodes: int
    project_id: str = ""
    gpu_type: str | None = None
    gpus: int = 0


GpuPools = Callable[[str, str], Iterable[GpuPool]]
"""Project id and GPU type → the pools that a dedicated job of that kind draws on."""


class NodeQueue:
    """A limited number of nodes and GPUs, given out by priority and then by age.

    Nobody overtakes: while the first in line does not fit, those behind it that need the same thing wait
    too, so that a large job is never starved by small ones. One that needs more than a pool ever gives
    holds up nobody: it waits for the limit to be raised.
    """

    def __init__(self, max_nodes: int, gpu_pools: GpuPools) -> None:
        self._max_nodes = max_nodes
        self._gpu_pools = gpu_pools
        self._waiting: dict[str, WaitingJob] = {}
        self._running: dict[str, WaitingJob] = {}

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
        """The jobs that may start now; they hold their nodes and GPUs until ``remove``."""
        admitted = []
        nodes_in_use = sum(job.nodes for job in self._running.values())
        gpus_in_use: Counter[str] = Counter()
        for job in self._running.values():
            gpus_in_use.update({pool.name: job.gpus for pool in self._pools(job)})
        held_up: set[str] = set()
        for job in sorted(self._waiting.values(), key=lambda job: (-job.priority, job.sequence)):
            pools = self._pools(job)
            if any(job.gpus > pool.limit for pool in pools):
                continue
            full = [pool.name for pool in pools if gpus_in_use[pool.name] + job.gpus > pool.limit]
            if full or not held_up.isdisjoint(pool.name for pool in pools):
                held_up.update(full)
                continue
            if nodes_in_use + job.nodes > self._max_nodes:
                break
            nodes_in_use += job.nodes
            gpus_in_use.update({pool.name: job.gpus for pool in pools})
            self._running[job.job_id] = self._waiting.pop(job.job_id)
            admitted.append(job.job_id)
        return admitted

    def _pools(self, job: WaitingJob) -> list[GpuPool]:
        return [] if job.gpu_type is None else list(self._gpu_pools(job.project_id, job.gpu_type))
