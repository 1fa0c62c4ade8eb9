"""Served models and their deployments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from api_client import routes
from api_client.clock import epoch_ms
from api_client.models import (
    Activation,
    Deployment,
    DeploymentConfig,
    LogRecord,
    Model,
    Retry,
    Startup,
)
from api_client.models.logs import LogLine
from api_client.resources import Resource
from api_client.streams.logs import LogIncrements
from api_client.streams.pages import MAX_PAGE_LINES, Direction, log_query

ModelList = list[Model]


class Models(Resource):
    """Models and deployments. Every method raises RequestError."""

    async def list(self) -> ModelList:
        """Return all models that the key can see."""
        return await self._transport.request(routes.MODELS)

    async def get(self, model_id: str) -> Model:
        """Return a model."""
        return await self._transport.request(routes.MODEL, model_id)

    async def deployments(self, model_id: str) -> Sequence[Deployment]:
        """Return the deployments of a model."""
        return await self._transport.request(routes.DEPLOYMENTS, model_id)

    async def deployment(self, model_id: str, deployment_id: str) -> Deployment:
        """Return a deployment."""
        return await self._transport.request(routes.DEPLOYMENT, model_id, deployment_id)

    async def config(self, model_id: str, deployment_id: str) -> DeploymentConfig:
        """Return a deployment's configuration."""
        return await self._transport.request(routes.DEPLOYMENT_CONFIG, model_id, deployment_id)

    async def promote(self, model_id: str, deployment_id: str) -> Deployment:
        """Make a deployment the production deployment; by default, scale down the previous deployment."""
        return await self._transport.request(routes.PROMOTE, model_id, deployment_id, body={})

    async def activate(self, model_id: str, deployment_id: str) -> Activation:
        """Start an inactive deployment; it costs money again."""
        return await self._transport.request(routes.ACTIVATE, model_id, deployment_id)

    async def deactivate(self, model_id: str, deployment_id: str) -> Activation:
        """Stop a deployment: it serves no requests and costs nothing until it is activated again."""
        return await self._transport.request(routes.DEACTIVATE, model_id, deployment_id)

    async def retry(self, model_id: str, deployment_id: str) -> Retry:
        """Start a failed deployment again."""
        return await self._transport.request(routes.RETRY, model_id, deployment_id)

    async def startups(
        self, model_id: str, deployment_id: str, *, start_ms: int, end_ms: int, limit: int = 50
    ) -> Sequence[Startup]:
        """Return up to ``limit`` (1–100) attempts to start a replica in a time range, newest first."""
        query = {"start_epoch_millis": start_ms, "end_epoch_millis": end_ms, "limit": limit}
        return await self._transport.request(routes.STARTUPS, model_id, deployment_id, query=query)

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
        page = await self._transport.request(routes.DEPLOYMENT_LOGS, model_id, deployment_id, query=query)
        return page["logs"] or []

    def increments(
        self, model_id: str, deployment_id: str, *, start: datetime, known: Iterable[LogLine] = ()
    ) -> LogIncrements:
        """Return a reader whose ``poll`` yields a deployment's new lines, without the ``known`` lines."""
        fetch = partial(self._transport.request, routes.DEPLOYMENT_LOGS, model_id, deployment_id)
        return LogIncrements(fetch, clock=self._transport.clock, start_ms=epoch_ms(start), known=known)
