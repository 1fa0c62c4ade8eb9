"""Models of the REST API's responses, shared by the client and the emulator."""

from api_client.models.account import (
    ActiveJobAtSubmit as ActiveJobAtSubmit,
    AuthCode as AuthCode,
    AwsCredentials as AwsCredentials,
    BillableResource as BillableResource,
    BilledItem as BilledItem,
    BlobCredentials as BlobCredentials,
    CapacityAtSubmit as CapacityAtSubmit,
    DailyUsage as DailyUsage,
    GpuCapacity as GpuCapacity,
    InteractiveSession as InteractiveSession,
    InteractiveSessionUpdate as InteractiveSessionUpdate,
    PendingJobAhead as PendingJobAhead,
    QueueContext as QueueContext,
    QueueEvent as QueueEvent,
    Secret as Secret,
    SignedSshCertificate as SignedSshCertificate,
    Team as Team,
    TeamGpuCapacity as TeamGpuCapacity,
    TrainingCapacity as TrainingCapacity,
    TrainingUsage as TrainingUsage,
    UsageSummary as UsageSummary,
    UserInfo as UserInfo,
)
from api_client.models.base import ApiModel as ApiModel
from api_client.models.cache import CachedFile as CachedFile, CacheSummary as CacheSummary
from api_client.models.checkpoints import (
    Checkpoint as Checkpoint,
    CheckpointFile as CheckpointFile,
    CheckpointFilesPage as CheckpointFilesPage,
)
from api_client.models.deployments import (
    Activation as Activation,
    Deployment as Deployment,
    DeploymentConfig as DeploymentConfig,
    Model as Model,
    Retry as Retry,
    Startup as Startup,
    StartupPhase as StartupPhase,
)
from api_client.models.jobs import (
    InstanceType as InstanceType,
    InstanceTypePrice as InstanceTypePrice,
    JobTombstone as JobTombstone,
    ProjectSummary as ProjectSummary,
    ProjectTombstone as ProjectTombstone,
    TrainingJob as TrainingJob,
    TrainingProject as TrainingProject,
    User as User,
)
from api_client.models.logs import LogRecord as LogRecord, LogsPage as LogsPage
from api_client.models.metrics import (
    JobMetrics as JobMetrics,
    MetricSample as MetricSample,
    NodeMetrics as NodeMetrics,
    NodeSeries as NodeSeries,
    StorageMetrics as StorageMetrics,
)
from api_client.vocabulary import (
    RUNNABLE_STATUSES as RUNNABLE_STATUSES,
    WAITING_STATUSES as WAITING_STATUSES,
    JobStatus as JobStatus,
    full_status as full_status,
    is_finished as is_finished,
    short_status as short_status,
)
