"""How much room the GPU limits leave for a job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from api_client.models import GpuCapacity, Team, TrainingCapacity
from api_client.preflight.job_request import JobRequest, normal_gpu_type


@dataclass(frozen=True, slots=True)
class Room:
    """GPUs of the wanted type under one limit; ``owner`` is whose limit it is."""

    owner: str
    wanted: int
    used: int
    limit: int

    @property
    def free(self) -> int:
        """GPUs that nobody holds; spot use may push the use above the limit."""
        return max(0, self.limit - self.used)

    @property
    def is_short(self) -> bool:
        """Whether the job has to wait."""
        return self.wanted > self.free

    @property
    def can_never_hold(self) -> bool:
        """Whether the job would wait for ever."""
        return self.wanted > self.limit


def rooms(request: JobRequest, capacity: TrainingCapacity, team: Team | None) -> Iterator[Room]:
    """The organisation's limit, and the team's if there is one."""
    for entry in capacity.gpu_capacities:
        if normal_gpu_type(entry.gpu_type) == request.gpu_type:
            yield _room("the organisation", entry, request)
    for team_entry in capacity.team_gpu_capacities:
        is_ours = team is not None and team_entry.team_id == team.id
        if is_ours and normal_gpu_type(team_entry.gpu_type) == request.gpu_type:
            yield _room(f"team {team_entry.team_name or team_entry.team_id}", team_entry, request)


def _room(owner: str, entry: GpuCapacity, request: JobRequest) -> Room:
    return Room(owner=owner, wanted=request.total_gpus, used=entry.usage_count, limit=entry.limit)
