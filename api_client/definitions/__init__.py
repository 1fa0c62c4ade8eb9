"""The classes that users write configs with: the official SDK's names, defaults and checks.

A ``config.py`` written for the official SDK holds one :class:`TrainingProject` (or one
:class:`DeployCheckpointsConfig`). Wrong fields and values raise ``pydantic.ValidationError``, which names
the field, the value and the allowed values.
"""

from api_client.definitions.compute import Accelerator as Accelerator
from api_client.definitions.compute import AcceleratorSpec as AcceleratorSpec
from api_client.definitions.compute import AvailabilityModel as AvailabilityModel
from api_client.definitions.compute import Compute as Compute
from api_client.definitions.compute import offered_accelerators as offered_accelerators
from api_client.definitions.deployment import DEFAULT_LORA_RANK as DEFAULT_LORA_RANK
from api_client.definitions.deployment import LORA_RANKS as LORA_RANKS
from api_client.definitions.deployment import Checkpoint as Checkpoint
from api_client.definitions.deployment import CheckpointList as CheckpointList
from api_client.definitions.deployment import DeployCheckpointsConfig as DeployCheckpointsConfig
from api_client.definitions.deployment import DeployCheckpointsRuntime as DeployCheckpointsRuntime
from api_client.definitions.deployment import FullCheckpoint as FullCheckpoint
from api_client.definitions.deployment import LoRACheckpoint as LoRACheckpoint
from api_client.definitions.deployment import LoRADetails as LoRADetails
from api_client.definitions.deployment import ModelWeightsFormat as ModelWeightsFormat
from api_client.definitions.deployment import WhisperCheckpoint as WhisperCheckpoint
from api_client.definitions.images import AWSAssumeRoleDockerAuth as AWSAssumeRoleDockerAuth
from api_client.definitions.images import AWSIAMDockerAuth as AWSIAMDockerAuth
from api_client.definitions.images import AWSOIDCDockerAuth as AWSOIDCDockerAuth
from api_client.definitions.images import DockerAuth as DockerAuth
from api_client.definitions.images import DockerAuthType as DockerAuthType
from api_client.definitions.images import EnvironmentValue as EnvironmentValue
from api_client.definitions.images import GCPOIDCDockerAuth as GCPOIDCDockerAuth
from api_client.definitions.images import GCPServiceAccountJSONDockerAuth as GCPServiceAccountJSONDockerAuth
from api_client.definitions.images import Image as Image
from api_client.definitions.images import RegistrySecretDockerAuth as RegistrySecretDockerAuth
from api_client.definitions.images import SecretReference as SecretReference
from api_client.definitions.jobs import SESSION_TIMEOUT_MINUTES as SESSION_TIMEOUT_MINUTES
from api_client.definitions.jobs import BasetenCheckpoint as BasetenCheckpoint
from api_client.definitions.jobs import CacheConfig as CacheConfig
from api_client.definitions.jobs import CheckpointingConfig as CheckpointingConfig
from api_client.definitions.jobs import InteractiveSession as InteractiveSession
from api_client.definitions.jobs import InteractiveSessionAuthProvider as InteractiveSessionAuthProvider
from api_client.definitions.jobs import InteractiveSessionProvider as InteractiveSessionProvider
from api_client.definitions.jobs import InteractiveSessionTrigger as InteractiveSessionTrigger
from api_client.definitions.jobs import LatestCheckpoint as LatestCheckpoint
from api_client.definitions.jobs import LoadableCheckpoint as LoadableCheckpoint
from api_client.definitions.jobs import LoadCheckpointConfig as LoadCheckpointConfig
from api_client.definitions.jobs import LoopsCheckpoint as LoopsCheckpoint
from api_client.definitions.jobs import LoopsRunCheckpoint as LoopsRunCheckpoint
from api_client.definitions.jobs import NamedCheckpoint as NamedCheckpoint
from api_client.definitions.jobs import Runtime as Runtime
from api_client.definitions.jobs import TrainingJob as TrainingJob
from api_client.definitions.jobs import TrainingProject as TrainingProject
from api_client.definitions.jobs import Workspace as Workspace
from api_client.definitions.weights import WeightsAuth as WeightsAuth
from api_client.definitions.weights import WeightsAuthMethod as WeightsAuthMethod
from api_client.definitions.weights import WeightsSource as WeightsSource
