"""Served models, their deployments and startups, and responses to changes of them."""

from __future__ import annotations

from typing import Any

from api_client.models.base import ApiModel, EpochMs, Integer, OptionalDatetime, TolerantList

CHANGING_STATUSES = frozenset(
    {"", "BUILDING", "DEPLOYING", "LOADING_MODEL", "UPDATING", "WAKING_UP", "DEACTIVATING"}
)
"""Statuses that a deployment leaves by itself. Statuses of newer servers may be missing."""

SERVING_STATUSES = frozenset({"ACTIVE", "SCALED_TO_ZERO"})  # final statuses that mean success
FAILED_STATUSES = frozenset({"BUILD_FAILED", "BUILD_STOPPED", "DEPLOY_FAILED", "FAILED"})
FINAL_STATUSES = SERVING_STATUSES | FAILED_STATUSES | {"UNHEALTHY", "INACTIVE"}


class Model(ApiModel):
    """A served model."""

    id: str
    name: str = ""
    created_at: OptionalDatetime = None
    deployments_count: Integer | None = None
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
    created_at: OptionalDatetime = None
    is_production: bool = False
    is_development: bool = False
    active_replica_count: Integer = 0
    instance_type_name: str | None = None
    environment: str | None = None


class DeploymentConfig(ApiModel):
    """Configuration of a deployment: a truss config, parsed and as it was written."""

    config: dict[str, Any] | None = None
    raw_config: str | None = None


class Activation(ApiModel):
    """Response to activating or deactivating; ``no_op`` is True if nothing had to change."""

    success: bool = True
    no_op: bool = False


class Retry(ApiModel):
    """Response to a retry; ``reason`` explains why a deployment was not retried."""

    retried: bool = False
    reason: str | None = None
    deployment: Deployment | None = None


class StartupPhase(ApiModel):
    """Phase of a replica's start, such as ``WEIGHT_DOWNLOAD``; no duration if it did not finish."""

    phase: str
    status: str = ""
    offset_ms: Integer | None = None
    duration_ms: Integer | None = None


class Startup(ApiModel):
    """An attempt to start a replica; ``outcome`` is SUCCESS, FAILED, STALLED, or a newer value."""

    replica_id: str | None = None
    started_at_epoch_millis: EpochMs | None = None
    ready_at_epoch_millis: EpochMs | None = None
    duration_ms: Integer | None = None
    outcome: str = ""
    phase_summary: TolerantList[StartupPhase] = []
