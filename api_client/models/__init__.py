"""What the REST API answers. Client and emulator share these and nothing else."""

from api_client.models.account import AwsCredentials, BlobCredentials, Secret, Team, UserInfo
from api_client.models.base import ApiModel
from api_client.models.cache import CachedFile, CacheSummary
from api_client.models.capacity import GpuCapacity, TeamGpuCapacity, TrainingCapacity
from api_client.models.checkpoints import Checkpoint, CheckpointFile, CheckpointFilesPage
from api_client.models.deployments import Deployment, Model
from api_client.models.jobs import (
    ActiveJobAtSubmit,
    CapacityAtSubmit,
    InstanceType,
    InstanceTypePrice,
    JobTombstone,
    PendingJobAhead,
    ProjectSummary,
    QueueContext,
    QueueEvent,
    TrainingJob,
    User,
)
from api_client.models.logs import LogRecord, LogsPage
from api_client.models.metrics import JobMetrics, MetricSample, NodeMetrics, NodeSeries, StorageMetrics
from api_client.models.projects import ProjectTombstone, TrainingProject
from api_client.models.sessions import (
    AuthCode,
    InteractiveSession,
    InteractiveSessionUpdate,
    SignedSshCertificate,
)
from api_client.models.status import (
    RUNNABLE_STATUSES,
    WAITING_STATUSES,
    JobStatus,
    full_status,
    is_finished,
    short_status,
)

__all__ = [
    "RUNNABLE_STATUSES",
    "WAITING_STATUSES",
    "ActiveJobAtSubmit",
    "ApiModel",
    "AuthCode",
    "AwsCredentials",
    "BlobCredentials",
    "CacheSummary",
    "CachedFile",
    "CapacityAtSubmit",
    "Checkpoint",
    "CheckpointFile",
    "CheckpointFilesPage",
    "Deployment",
    "GpuCapacity",
    "InstanceType",
    "InstanceTypePrice",
    "InteractiveSession",
    "InteractiveSessionUpdate",
    "JobMetrics",
    "JobStatus",
    "JobTombstone",
    "LogRecord",
    "LogsPage",
    "MetricSample",
    "Model",
    "NodeMetrics",
    "NodeSeries",
    "PendingJobAhead",
    "ProjectSummary",
    "ProjectTombstone",
    "QueueContext",
    "QueueEvent",
    "Secret",
    "SignedSshCertificate",
    "StorageMetrics",
    "Team",
    "TeamGpuCapacity",
    "TrainingCapacity",
    "TrainingJob",
    "TrainingProject",
    "User",
    "UserInfo",
    "full_status",
    "is_finished",
    "short_status",
]
