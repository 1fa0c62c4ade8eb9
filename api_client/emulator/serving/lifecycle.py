"""Where a deployment stands: a function of when it was made, so that a restart changes nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from api_client.emulator.store.deployments import StoredDeployment

Status = Literal["BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE", "DEPLOY_FAILED"]

DEPLOYING_AFTER_S = 4.0
LOADING_AFTER_S = 8.0
FAILED_AFTER_S = 12.0
"""When a server that cannot start gives up."""
ACTIVE_AFTER_S = 15.0


def age_s(deployment: StoredDeployment, now: datetime) -> float:
    """How long ago it was made; never negative, even if the machine's clock was set back."""
    return max(0.0, (now - deployment.created_at).total_seconds())


def status_at(deployment: StoredDeployment, now: datetime) -> Status:
    """Its status at that moment, one of the documented ones (API facts, 2.3)."""
    age = age_s(deployment, now)
    if age < DEPLOYING_AFTER_S:
        return "BUILDING"
    if age < LOADING_AFTER_S:
        return "DEPLOYING"
    if deployment.plan.failure is not None:
        return "LOADING_MODEL" if age < FAILED_AFTER_S else "DEPLOY_FAILED"
    return "LOADING_MODEL" if age < ACTIVE_AFTER_S else "ACTIVE"
