"""Deploying for real or dry, following what comes of it, keeping the truss config."""

from __future__ import annotations

from api_client.deployment.following import DeploymentUpdate, follow
from api_client.deployment.sending import (
    DeploymentClient,
    DeploymentResult,
    DeploymentUnclear,
    deploy,
    deployment_link,
)
from api_client.deployment.truss_config_file import (
    truss_config_path,
    truss_config_yaml,
    write_truss_config,
)

__all__ = [
    "DeploymentClient",
    "DeploymentResult",
    "DeploymentUnclear",
    "DeploymentUpdate",
    "deploy",
    "deployment_link",
    "follow",
    "truss_config_path",
    "truss_config_yaml",
    "write_truss_config",
]
