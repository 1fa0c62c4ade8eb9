"""The queue of local jobs for a limited number of nodes and GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from api_client.emulator.catalog import GPU_LIMITS
from api_client.emulator.store.stores import Stores


@dataclass(frozen=True, slots=True)
class GpuPool:
    """GPUs with a common limit on how many may be in use at once.

    ``is_fixed`` means that the limit cannot be raised: a job that needs more can never start.
    """

    name: str
    limit: int
    is_fixed: bool = False


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job in the queue: a smaller ``sequence`` is older; ``nodes`` and ``gpus`` are its requirements.

    ``project_id`` and ``gpu_type`` select its GPU pools; a ``gpu_type`` of None means that it uses none.
    """

    job_id: str
    priority: int
    sequence: int
    nodes: int
    project_id: str = ""
    gpu_type: str | None = None
    gpus: int = 0


GpuPools = Callable[[str, str], Iterable[GpuPool]]
"""Returns the pools of a dedicated job by project id and GPU type."""


def gpu_pools(stores: Stores, project_id: str, gpu_type: str) -> list[GpuPool]:
    """Return the GPU pools that limit a project's dedicated jobs: the organization's and the team's.

    A GPU type without a published limit is unlimited. Job specs write A100_40GB where the API writes
    A100-40GB.
    """
    listed_type = gpu_type.replace("_", "-")
    pools = [
        GpuPool(listed_type, limit.limit, is_fixed=True)
        for limit in GPU_LIMITS
        if limit.gpu_type == listed_type
    ]
    project = stores.projects.get(project_id)
    own = stores.teams.gpu_limit(project.team_id, listed_type) if project else None
    if project is not None and own is not None:
        pools.append(GpuPool(f"{listed_type} of team {project.team_id}", own.max_gpus))
    return pools


class NodeQueue:
    """A queue for a limited number of nodes and GPUs, ordered by priority and then by age.

    Jobs never overtake: while a job does not fit, later jobs that need the same resource wait too, so
    that small jobs cannot starve a large one. A job that needs more than a pool's limit blocks nobody: it
    waits for the limit to be raised.
    """

    def __init__(self, max_nodes: int, gpu_pools: GpuPools) -> None:
        self._max_nodes = max_nodes
        self._gpu_pools = gpu_pools
        self._waiting: dict[str, WaitingJob] = {}
        self._running: dict[str, WaitingJob] = {}

    def add(self, job: WaitingJob) -> None:
        self._waiting[job.job_id] = job

    def is_waiting(self, job_id: str) -> bool:
        return job_id in self._waiting

    def remove(self, job_id: str) -> None:
        self._waiting.pop(job_id, None)
        self._running.pop(job_id, None)

    def admit(self) -> list[str]:
        """Return the jobs that may start now; they hold their nodes and GPUs until ``remove``."""
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
