"""Answers of the REST API. Client and emulator share these and nothing else.

Names are imported on first use: most commands need only one kind of answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from api_client.lazy_names import lazy_names

if TYPE_CHECKING:
    from api_client.models.account import (
        AuthCode,
        AwsCredentials,
        BlobCredentials,
        InteractiveSession,
        InteractiveSessionUpdate,
        Secret,
        SignedSshCertificate,
        Team,
        UserInfo,
    )
    from api_client.models.base import ApiModel
    from api_client.models.cache import CachedFile, CacheSummary
    from api_client.models.capacity import (
        ActiveJobAtSubmit,
        CapacityAtSubmit,
        GpuCapacity,
        PendingJobAhead,
        QueueContext,
        QueueEvent,
        TeamGpuCapacity,
        TrainingCapacity,
    )
    from api_client.models.checkpoints import Checkpoint, CheckpointFile, CheckpointFilesPage
    from api_client.models.deployments import Deployment, Model
    from api_client.models.jobs import (
        RUNNABLE_STATUSES,
        WAITING_STATUSES,
        InstanceType,
        InstanceTypePrice,
        JobStatus,
        JobTombstone,
        ProjectSummary,
        ProjectTombstone,
        TrainingJob,
        TrainingProject,
        User,
        full_status,
        is_finished,
        short_status,
    )
    from api_client.models.logs import LogRecord, LogsPage
    from api_client.models.metrics import JobMetrics, MetricSample, NodeMetrics, NodeSeries, StorageMetrics

__getattr__ = lazy_names(
    __name__,
    {
        "account": (
            "AwsCredentials",
            "BlobCredentials",
            "Secret",
            "Team",
            "UserInfo",
            "AuthCode",
            "InteractiveSession",
            "InteractiveSessionUpdate",
            "SignedSshCertificate",
        ),
        "base": ("ApiModel",),
        "cache": (
            "CacheSummary",
            "CachedFile",
        ),
        "capacity": (
            "GpuCapacity",
            "TeamGpuCapacity",
            "TrainingCapacity",
            "ActiveJobAtSubmit",
            "CapacityAtSubmit",
            "PendingJobAhead",
            "QueueContext",
            "QueueEvent",
        ),
        "checkpoints": (
            "Checkpoint",
            "CheckpointFile",
            "CheckpointFilesPage",
        ),
        "deployments": (
            "Deployment",
            "Model",
        ),
        "jobs": (
            "InstanceType",
            "InstanceTypePrice",
            "JobTombstone",
            "ProjectSummary",
            "TrainingJob",
            "User",
            "ProjectTombstone",
            "TrainingProject",
            "JobStatus",
            "RUNNABLE_STATUSES",
            "WAITING_STATUSES",
            "full_status",
            "is_finished",
            "short_status",
        ),
        "logs": (
            "LogRecord",
            "LogsPage",
        ),
        "metrics": (
            "JobMetrics",
            "MetricSample",
            "NodeMetrics",
            "NodeSeries",
            "StorageMetrics",
        ),
    },
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
