"""Served models and their deployments."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from api_client.addresses import route
from api_client.http.transport import Transport
from api_client.models import LogRecord
from api_client.models.base import answer_with_list
from api_client.models.deployments import Activation, Deployment, DeploymentConfig, Model, Retry, Startup
from api_client.resources.logs import LOG_PAGE, log_query
from api_client.streams.pages import MAX_PAGE_LINES, Direction

_MODELS = answer_with_list("models", Model)
_DEPLOYMENTS = answer_with_list("deployments", Deployment)
_MODEL = TypeAdapter(Model)
_DEPLOYMENT = TypeAdapter(Deployment)
_CONFIG = TypeAdapter(DeploymentConfig)
_ACTIVATION = TypeAdapter(Activation)
_RETRY = TypeAdapter(Retry)
_STARTUPS = answer_with_list("items", Startup)

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
        return await self._transport.request("GET", _route(model_id, deployment_id), _DEPLOYMENT)

    async def config(self, model_id: str, deployment_id: str) -> DeploymentConfig:
        """Return a deployment's configuration."""
        return await self._transport.request("GET", _route(model_id, deployment_id, "config"), _CONFIG)

    async def promote(self, model_id: str, deployment_id: str) -> Deployment:
        """Make a deployment its model's production deployment; by default the previous one scales down."""
        return await self._transport.request(
            "POST", _route(model_id, deployment_id, "promote"), _DEPLOYMENT, body={}
        )

    async def activate(self, model_id: str, deployment_id: str) -> Activation:
        """Start an inactive deployment; it costs money again."""
        return await self._transport.request("POST", _route(model_id, deployment_id, "activate"), _ACTIVATION)

    async def deactivate(self, model_id: str, deployment_id: str) -> Activation:
        """Stop a deployment, which then answers no requests and costs nothing; it can be activated again."""
        return await self._transport.request(
            "POST", _route(model_id, deployment_id, "deactivate"), _ACTIVATION
        )

    async def retry(self, model_id: str, deployment_id: str) -> Retry:
        """Start a failed deployment again."""
        return await self._transport.request("POST", _route(model_id, deployment_id, "retry"), _RETRY)

    async def startups(
        self, model_id: str, deployment_id: str, *, start_ms: int, end_ms: int, limit: int = 50
    ) -> Sequence[Startup]:
        """Return up to ``limit`` (1–100) attempts to start a replica in a time range, newest first."""
        query = {"start_epoch_millis": start_ms, "end_epoch_millis": end_ms, "limit": limit}
        path = _route(model_id, deployment_id, "startups")
        return await self._transport.request("GET", path, _STARTUPS, query=query)

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
        path = _route(model_id, deployment_id, "logs")
        return (await self._transport.request("GET", path, LOG_PAGE, query=query))["logs"] or []


def _route(model_id: str, deployment_id: str, *more: str) -> str:
    return route("models", model_id, "deployments", deployment_id, *more)
