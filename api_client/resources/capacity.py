"""GPU capacity of the organization and of a team."""

from __future__ import annotations

from pydantic import TypeAdapter

from api_client.addresses import route
from api_client.http.transport import Transport
from api_client.models import TrainingCapacity
from api_client.models.base import answer_with
from api_client.models.capacity import TeamGpuCapacity

_CAPACITY = TypeAdapter(TrainingCapacity)
_TEAM_CAPACITY = answer_with("team_gpu_capacity", TeamGpuCapacity)


class Capacity:
    """GPU limits and usage. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def get(self) -> TrainingCapacity:
        """Return the capacity of the organization and its teams, by GPU type."""
        return await self._transport.request("GET", route("training", "capacity"), _CAPACITY)

    async def update(self, *, team_id: str, gpu_type: str, max_gpus: int) -> TeamGpuCapacity:
        """Set a team's limit for a GPU type. Admins of the organization only."""
        body = {"team_id": team_id, "gpu_type": gpu_type, "max_gpus": max_gpus}
        path = route("training", "capacity")
        return await self._transport.request("PATCH", path, _TEAM_CAPACITY, body=body)
