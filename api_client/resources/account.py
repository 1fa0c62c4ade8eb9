"""Resources of the organization: teams, users, instance types, prices and secrets."""

from __future__ import annotations

from contextlib import suppress

from pydantic import SecretStr, TypeAdapter, with_config
from typing_extensions import TypedDict

from api_client.addresses import route
from api_client.errors import InvalidAnswer
from api_client.http.retry import ONE_ATTEMPT
from api_client.http.transport import Transport
from api_client.models import UserInfo
from api_client.models.account import Secret, Team
from api_client.models.base import TOLERANT
from api_client.models.jobs import InstanceType, InstanceTypePrice


@with_config(TOLERANT)
class TeamsAnswer(TypedDict):
    """``GET /v1/teams``."""

    teams: list[Team] | None


@with_config(TOLERANT)
class InstanceTypesAnswer(TypedDict):
    """``GET /v1/instance_types``."""

    instance_types: list[InstanceType] | None


@with_config(TOLERANT)
class InstanceTypePricesAnswer(TypedDict):
    """``GET /v1/instance_type_prices``."""

    instance_types: list[InstanceTypePrice] | None


@with_config(TOLERANT)
class SecretsAnswer(TypedDict):
    """Secrets by name."""

    secrets: list[Secret] | None


@with_config(TOLERANT)
class Acknowledged(TypedDict):
    """Answer whose content is not needed."""


TEAMS = TypeAdapter(TeamsAnswer)
INSTANCE_TYPES = TypeAdapter(InstanceTypesAnswer)
INSTANCE_TYPE_PRICES = TypeAdapter(InstanceTypePricesAnswer)
SECRETS = TypeAdapter(SecretsAnswer)
ACKNOWLEDGED = TypeAdapter(Acknowledged)


_USER = TypeAdapter(UserInfo)
_SECRET = TypeAdapter(Secret)


class Account:
    """Resources that belong to the organization, not to a job. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def teams(self) -> list[Team]:
        """Return the teams that the key can see."""
        return (await self._transport.request("GET", route("teams"), TEAMS))["teams"] or []

    async def me(self) -> UserInfo:
        """Return the user that the key belongs to."""
        return await self._transport.request("GET", route("users", "me"), _USER)

    async def log_out(self) -> None:
        """End the OAuth login of the key (the official client's route, not in the API description)."""
        path = route("users", "auth", "logout")
        # An answer without content is valid too.
        with suppress(InvalidAnswer):
            await self._transport.request("POST", path, ACKNOWLEDGED, retry=ONE_ATTEMPT)

    async def instance_types(self) -> list[InstanceType]:
        """Return the available machines."""
        answer = await self._transport.request("GET", route("instance_types"), INSTANCE_TYPES)
        return answer["instance_types"] or []

    async def instance_type_prices(self) -> list[InstanceTypePrice]:
        """Return the machines with their prices in USD per minute and node."""
        path = route("instance_type_prices")
        answer = await self._transport.request("GET", path, INSTANCE_TYPE_PRICES)
        return answer["instance_types"] or []

    async def secrets(self, team_id: str | None = None) -> list[Secret]:
        """Return the names of secrets, by default of the default team; the API never returns their values."""
        answer = await self._transport.request("GET", _secrets_route(team_id), SECRETS)
        return answer["secrets"] or []

    async def upsert_secret(self, name: str, value: str | SecretStr, team_id: str | None = None) -> Secret:
        """Set a secret, creating it if it does not exist."""
        plain = value.get_secret_value() if isinstance(value, SecretStr) else value
        body = {"name": name, "value": plain}
        return await self._transport.request("POST", _secrets_route(team_id), _SECRET, body=body)

    async def delete_secret(self, name: str, team_id: str | None = None) -> None:
        """Delete a secret."""
        await self._transport.request("DELETE", _secrets_route(team_id, name), ACKNOWLEDGED)


def _secrets_route(team_id: str | None, *rest: str) -> str:
    return route("secrets", *rest) if team_id is None else route("teams", team_id, "secrets", *rest)
