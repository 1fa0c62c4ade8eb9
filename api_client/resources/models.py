"""Served models and their deployments."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from api_client.addresses import route
from api_client.http.transport import Transport
from api_client.models import LogRecord
from api_client.models.base import answer_with_list
from api_client.models.checkpoints import Deployment, Model
from api_client.resources.logs import LOG_PAGE, log_query
from api_client.streams.pages import MAX_PAGE_LINES, Direction

_MODELS = answer_with_list("models", Model)
_DEPLOYMENTS = answer_with_list("deployments", Deployment)
_MODEL = TypeAdapter(Model)
_DEPLOYMENT = TypeAdapter(Deployment)

ModelList = list[Model]


class Models:
    """Models and deployments. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> ModelList:
        """Return all models that the key can see."""
        return await self._transport.request("GET", route("models"), _MODELS)

    async def get(self, model_id: str) -> Model:
        """Return a model."""
        return await self._transport.request("GET", route("models", model_id), _MODEL)

    async def deployments(self, model_id: str) -> Sequence[Deployment]:
        """Return the deployments of a model."""
        path = route("models", model_id, "deployments")
        return await self._transport.request("GET", path, _DEPLOYMENTS)

    async def deployment(self, model_id: str, deployment_id: str) -> Deployment:
        """Return a deployment."""
        path = route("models", model_id, "deployments", deployment_id)
        return await self._transport.request("GET", path, _DEPLOYMENT)

    async def deployment_logs(
        self,
        model_id: str,
        deployment_id: str,
        *,
        start_ms: int,
        end_ms: int,
        direction: Direction = "asc",
        limit: int = MAX_PAGE_LINES,
        min_level: str | None = None,
        replica: str | None = None,
    ) -> Sequence[LogRecord]:
        """Return up to ``limit`` (1–1000) lines of a time range in epoch milliseconds, up to 7 days long."""
        query = log_query(start_ms, end_ms, direction, limit, min_level) | {"replica": replica}
        path = route("models", model_id, "deployments", deployment_id, "logs")
        return (await self._transport.request("GET", path, LOG_PAGE, query=query))["logs"] or []
