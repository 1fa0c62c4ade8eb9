"""The classes that users write configs with: the official SDK's names, defaults and checks.

A ``config.py`` written for the official SDK holds one :class:`TrainingProject` (or one
:class:`DeployCheckpointsConfig`). Wrong fields and values raise ``pydantic.ValidationError``, which names
the field, the value and the allowed values (API facts, 3.1).
"""

from __future__ import annotations

from api_client.definitions.compute import (
    Accelerator,
    AcceleratorSpec,
    AvailabilityModel,
    Compute,
    offered_accelerators,
)
from api_client.definitions.deployment import (
    DEFAULT_LORA_RANK,
    LORA_RANKS,
    Checkpoint,
    CheckpointList,
    DeployCheckpointsConfig,
    DeployCheckpointsRuntime,
    FullCheckpoint,
    LoRACheckpoint,
    LoRADetails,
    ModelWeightsFormat,
    WhisperCheckpoint,
)
from api_client.definitions.images import (
    AWSAssumeRoleDockerAuth,
    AWSIAMDockerAuth,
    AWSOIDCDockerAuth,
    DockerAuth,
    DockerAuthType,
    EnvironmentValue,
    GCPOIDCDockerAuth,
    GCPServiceAccountJSONDockerAuth,
    Image,
    RegistrySecretDockerAuth,
    SecretReference,
)
from api_client.definitions.jobs import (
    SESSION_TIMEOUT_MINUTES,
    InteractiveSession,
    InteractiveSessionAuthProvider,
    InteractiveSessionProvider,
    InteractiveSessionTrigger,
    TrainingJob,
    TrainingProject,
    Workspace,
)
from api_client.definitions.runtime import (
    BasetenCheckpoint,
    CacheConfig,
    CheckpointingConfig,
    LatestCheckpoint,
    LoadableCheckpoint,
    LoadCheckpointConfig,
    LoopsCheckpoint,
    LoopsRunCheckpoint,
    NamedCheckpoint,
    Runtime,
)
from api_client.definitions.weights import WeightsAuth, WeightsAuthMethod, WeightsSource

__all__ = [
    "DEFAULT_LORA_RANK",
    "LORA_RANKS",
    "SESSION_TIMEOUT_MINUTES",
    "AWSAssumeRoleDockerAuth",
    "AWSIAMDockerAuth",
    "AWSOIDCDockerAuth",
    "Accelerator",
    "AcceleratorSpec",
    "AvailabilityModel",
    "BasetenCheckpoint",
    "CacheConfig",
    "Checkpoint",
    "CheckpointList",
    "CheckpointingConfig",
    "Compute",
    "DeployCheckpointsConfig",
    "DeployCheckpointsRuntime",
    "DockerAuth",
    "DockerAuthType",
    "EnvironmentValue",
    "FullCheckpoint",
    "GCPOIDCDockerAuth",
    "GCPServiceAccountJSONDockerAuth",
    "Image",
    "InteractiveSession",
    "InteractiveSessionAuthProvider",
    "InteractiveSessionProvider",
    "InteractiveSessionTrigger",
    "LatestCheckpoint",
    "LoRACheckpoint",
    "LoRADetails",
    "LoadCheckpointConfig",
    "LoadableCheckpoint",
    "LoopsCheckpoint",
    "LoopsRunCheckpoint",
    "ModelWeightsFormat",
    "NamedCheckpoint",
    "RegistrySecretDockerAuth",
    "Runtime",
    "SecretReference",
    "TrainingJob",
    "TrainingProject",
    "WeightsAuth",
    "WeightsAuthMethod",
    "WeightsSource",
    "WhisperCheckpoint",
    "Workspace",
    "offered_accelerators",
]
