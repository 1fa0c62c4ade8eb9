"""The classes that configs are written with: the official SDK's names, defaults and checks.

A ``config.py`` written for the official SDK defines one :class:`TrainingProject` (or one
:class:`DeployCheckpointsConfig`). Wrong fields and values raise ``pydantic.ValidationError``, which names the
field, the value and the allowed values.
"""

from api_client.definitions.compute import (
    Accelerator as Accelerator,
    AcceleratorSpec as AcceleratorSpec,
    AvailabilityModel as AvailabilityModel,
    Compute as Compute,
    offered_accelerators as offered_accelerators,
)
from api_client.definitions.deployment import (
    DEFAULT_LORA_RANK as DEFAULT_LORA_RANK,
    LORA_RANKS as LORA_RANKS,
    Checkpoint as Checkpoint,
    CheckpointList as CheckpointList,
    DeployCheckpointsConfig as DeployCheckpointsConfig,
    DeployCheckpointsRuntime as DeployCheckpointsRuntime,
    FullCheckpoint as FullCheckpoint,
    LoRACheckpoint as LoRACheckpoint,
    LoRADetails as LoRADetails,
    ModelWeightsFormat as ModelWeightsFormat,
    WhisperCheckpoint as WhisperCheckpoint,
)
from api_client.definitions.images import (
    AWSAssumeRoleDockerAuth as AWSAssumeRoleDockerAuth,
    AWSIAMDockerAuth as AWSIAMDockerAuth,
    AWSOIDCDockerAuth as AWSOIDCDockerAuth,
    DockerAuth as DockerAuth,
    DockerAuthType as DockerAuthType,
    EnvironmentValue as EnvironmentValue,
    GCPOIDCDockerAuth as GCPOIDCDockerAuth,
    GCPServiceAccountJSONDockerAuth as GCPServiceAccountJSONDockerAuth,
    Image as Image,
    RegistrySecretDockerAuth as RegistrySecretDockerAuth,
    SecretReference as SecretReference,
)
from api_client.definitions.jobs import (
    SESSION_TIMEOUT_MINUTES as SESSION_TIMEOUT_MINUTES,
    BasetenCheckpoint as BasetenCheckpoint,
    CacheConfig as CacheConfig,
    CheckpointingConfig as CheckpointingConfig,
    InteractiveSession as InteractiveSession,
    InteractiveSessionAuthProvider as InteractiveSessionAuthProvider,
    InteractiveSessionProvider as InteractiveSessionProvider,
    InteractiveSessionTrigger as InteractiveSessionTrigger,
    LatestCheckpoint as LatestCheckpoint,
    LoadableCheckpoint as LoadableCheckpoint,
    LoadCheckpointConfig as LoadCheckpointConfig,
    LoopsCheckpoint as LoopsCheckpoint,
    LoopsRunCheckpoint as LoopsRunCheckpoint,
    NamedCheckpoint as NamedCheckpoint,
    Runtime as Runtime,
    TrainingJob as TrainingJob,
    TrainingProject as TrainingProject,
    Workspace as Workspace,
)
from api_client.definitions.weights import (
    WeightsAuth as WeightsAuth,
    WeightsAuthMethod as WeightsAuthMethod,
    WeightsSource as WeightsSource,
)
