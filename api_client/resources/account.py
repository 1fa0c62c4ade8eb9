"""Resources of the organization: teams, users, instance types, prices, the bill, secrets, GPU capacity."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr, TypeAdapter

from api_client.addresses import route
from api_client.errors import InvalidAnswer
from api_client.http.retry import ONE_ATTEMPT
from api_client.http.transport import Transport
from api_client.models import TrainingCapacity, UsageSummary, UserInfo
from api_client.models.account import Secret, Team
from api_client.models.base import answer_with, answer_with_list
from api_client.models.capacity import TeamGpuCapacity
from api_client.models.jobs import InstanceType, InstanceTypePrice

_TEAMS = answer_with_list("teams", Team)
_INSTANCE_TYPES = answer_with_list("instance_types", InstanceType)
_PRICES = answer_with_list("instance_types", InstanceTypePrice)
_SECRETS = answer_with_list("secrets", Secret)
_USER = TypeAdapter(UserInfo)
_USAGE = TypeAdapter(UsageSummary)
_SECRET = TypeAdapter(Secret)
_ACKNOWLEDGED = TypeAdapter(dict[str, Any])


class Account:
    """Resources that belong to the organization, not to a job. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def teams(self) -> list[Team]:
        """Return the teams that the key can see."""
        return await self._transport.request("GET", route("teams"), _TEAMS)

    async def me(self) -> UserInfo:
        """Return the user that the key belongs to."""
        return await self._transport.request("GET", route("users", "me"), _USER)

    async def log_out(self) -> None:
        """End the OAuth login of the key (the official client's route, not in the API description)."""
        path = route("users", "auth", "logout")
        # An answer without content is valid too.
        with suppress(InvalidAnswer):
            await self._transport.request("POST", path, _ACKNOWLEDGED, retry=ONE_ATTEMPT)

    async def instance_types(self) -> list[InstanceType]:
        """Return the available machines."""
        return await self._transport.request("GET", route("instance_types"), _INSTANCE_TYPES)

    async def instance_type_prices(self) -> list[InstanceTypePrice]:
        """Return the machines with their prices in USD per minute and node."""
        return await self._transport.request("GET", route("instance_type_prices"), _PRICES)

    async def usage_summary(self, start: datetime, end: datetime) -> UsageSummary:
        """Return what was billed from ``start`` to ``end``: at most 31 days, none before 2026.

        Organization admins only; others get Unauthorized.
        """
        query = {"start_date": _utc_text(start), "end_date": _utc_text(end)}
        return await self._transport.request("GET", route("billing", "usage_summary"), _USAGE, query=query)

    async def secrets(self, team_id: str | None = None) -> list[Secret]:
        """Return the names of secrets, by default of the default team; the API never returns their values."""
        return await self._transport.request("GET", _secrets_route(team_id), _SECRETS)

    async def upsert_secret(self, name: str, value: str | SecretStr, team_id: str | None = None) -> Secret:
        """Set a secret, creating it if it does not exist."""
        plain = value.get_secret_value() if isinstance(value, SecretStr) else value
        body = {"name": name, "value": plain}
        return await self._transport.request("POST", _secrets_route(team_id), _SECRET, body=body)

    async def delete_secret(self, name: str, team_id: str | None = None) -> None:
        """Delete a secret."""
        await self._transport.request("DELETE", _secrets_route(team_id, name), _ACKNOWLEDGED)


def _utc_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _secrets_route(team_id: str | None, *rest: str) -> str:
    return route("secrets", *rest) if team_id is None else route("teams", team_id, "secrets", *rest)


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
