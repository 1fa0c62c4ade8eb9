"""Served models and their deployments."""

from __future__ import annotations

from api_client.models.base import ApiModel, UtcDatetime


class Model(ApiModel):
    """A served model."""

    id: str
    name: str = ""
    created_at: UtcDatetime | None = None
    deployments_count: int | None = None
    production_deployment_id: str | None = None
    development_deployment_id: str | None = None
    instance_type_name: str | None = None
    team_name: str | None = None


class Deployment(ApiModel):
    """Deployment; ``status`` is one of the documented states or a newer one."""

    id: str
    name: str = ""
    model_id: str = ""
    status: str = ""
    created_at: UtcDatetime | None = None
    is_production: bool = False
    is_development: bool = False
    active_replica_count: int = 0
    instance_type_name: str | None = None
    environment: str | None = None
