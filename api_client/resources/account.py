"""Resources of the organization: teams, users, instance types, prices, the bill, secrets, GPU capacity."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from pydantic import SecretStr

from api_client import routes
from api_client.clock import utc_text
from api_client.errors import InvalidAnswer
from api_client.http.retry import ONE_ATTEMPT
from api_client.models import (
    InstanceType,
    InstanceTypePrice,
    Secret,
    Team,
    TeamGpuCapacity,
    TrainingCapacity,
    UsageSummary,
    UserInfo,
)
from api_client.resources import Resource
from api_client.secret import SecretText


class Account(Resource):
    """Resources that belong to the organization, not to a job. Every method raises RequestError."""

    async def teams(self) -> list[Team]:
        """Return the teams that the key can see."""
        return await self._transport.request(routes.TEAMS)

    async def me(self) -> UserInfo:
        """Return the user that the key belongs to."""
        return await self._transport.request(routes.ME)

    async def log_out(self) -> None:
        """End the key's OAuth login. The route is the official client's; the API description lacks it."""
        # The response may be empty, which is not valid JSON.
        with suppress(InvalidAnswer):
            await self._transport.request(routes.LOG_OUT, retry=ONE_ATTEMPT)

    async def instance_types(self) -> list[InstanceType]:
        """Return the available machines."""
        return await self._transport.request(routes.INSTANCE_TYPES)

    async def instance_type_prices(self) -> list[InstanceTypePrice]:
        """Return the machines with their prices in USD per minute and node."""
        return await self._transport.request(routes.PRICES)

    async def usage_summary(self, start: datetime, end: datetime) -> UsageSummary:
        """Return the bill from ``start`` to ``end``: at most 31 days, none before 2026.

        Organization admins only; other users get Unauthorized.
        """
        query = {"start_date": utc_text(start), "end_date": utc_text(end)}
        return await self._transport.request(routes.BILL, query=query)

    async def secrets(self, team_id: str | None = None) -> list[Secret]:
        """Return the names of secrets, by default of the default team; the API never returns their values."""
        return await self._transport.request(routes.SECRETS, team_id=team_id)

    async def upsert_secret(
        self, name: str, value: str | SecretText | SecretStr, team_id: str | None = None
    ) -> Secret:
        """Set a secret, creating it if it does not exist."""
        text = value if isinstance(value, str) else value.get_secret_value()
        body = {"name": name, "value": text}
        return await self._transport.request(routes.SET_SECRET, team_id=team_id, body=body)

    async def delete_secret(self, name: str, team_id: str | None = None) -> None:
        """Delete a secret."""
        await self._transport.request(routes.DELETE_SECRET, name, team_id=team_id)


class Capacity(Resource):
    """GPU limits and usage. Every method raises RequestError."""

    async def get(self) -> TrainingCapacity:
        """Return the capacity of the organization and its teams, by GPU type."""
        return await self._transport.request(routes.CAPACITY)

    async def update(self, *, team_id: str, gpu_type: str, max_gpus: int) -> TeamGpuCapacity:
        """Set a team's limit for a GPU type. Admins of the organization only."""
        body = {"team_id": team_id, "gpu_type": gpu_type, "max_gpus": max_gpus}
        return await self._transport.request(routes.UPDATE_CAPACITY, body=body)
