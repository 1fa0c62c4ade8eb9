"""A team's limit."""

from __future__ import annotations

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from api_client.addresses import route
from api_client.http.transport import Transport
from api_client.models import TrainingCapacity
from api_client.models.capacity import TeamGpuCapacity
from api_client.resources.envelope import TOLERANT


@with_config(TOLERANT)
class TeamCapacityAnswer(TypedDict):
    """A team's GPU limit after a change."""

    team_gpu_capacity: TeamGpuCapacity


TEAM_CAPACITY = TypeAdapter(TeamCapacityAnswer)


_CAPACITY = TypeAdapter(TrainingCapacity)


class Capacity:
    """How many GPUs there are, and how many are in use. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self) -> TrainingCapacity:
        """Capacity of the organisation and of its teams, by GPU type."""
        return await self._transport.request("GET", route("training", "capacity"), _CAPACITY)

    async def update(self, *, team_id: str, gpu_type: str, max_gpus: int) -> TeamGpuCapacity:
        """Set how many GPUs of a type a team may use. Admins of the organisation only."""
        body = {"team_id": team_id, "gpu_type": gpu_type, "max_gpus": max_gpus}
        path = route("training", "capacity")
        return (await self._transport.request("PATCH", path, TEAM_CAPACITY, body=body))["team_gpu_capacity"]
