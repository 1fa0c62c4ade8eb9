"""The training job and its project: runtime, checkpoints, folders to archive, interactive sessions.

``TrainingProject`` is what a config file defines; the other definitions are parts of it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from api_client.definitions.base import StrictDefinition, TextEnum, members_only
from api_client.definitions.compute import Compute
from api_client.definitions.images import EnvironmentValue, Image
from api_client.definitions.weights import WeightsSource

LOADED_CHECKPOINTS_FOLDER = "/tmp/loaded_checkpoints"  # default folder for loaded checkpoints

LoopsTarget = Literal["trainer", "sampler"]  # full training state (trainer) or inference weights (sampler)


class LatestCheckpoint(StrictDefinition):
    """Newest checkpoint of a project, of a job, or of the job's own project."""

    job_id: str | None = None
    project_name: str | None = None
    typ: Literal["baseten_latest_checkpoint"] = "baseten_latest_checkpoint"


class NamedCheckpoint(StrictDefinition):
    """Checkpoint of a job, by name."""

    checkpoint_name: str
    job_id: str
    typ: Literal["baseten_named_checkpoint"] = "baseten_named_checkpoint"


class LoopsRunCheckpoint(StrictDefinition):
    """Checkpoint of a Loops run."""

    run_id: str
    checkpoint_name: str
    target: LoopsTarget = "trainer"
    typ: Literal["loops_checkpoint"] = "loops_checkpoint"


LoadableCheckpoint = LatestCheckpoint | NamedCheckpoint | LoopsRunCheckpoint  # checkpoints that can be loaded


class BasetenCheckpoint:
    """Factory for references to checkpoints of training jobs."""

    @staticmethod
    def from_latest_checkpoint(
        project_name: str | None = None, job_id: str | None = None
    ) -> LatestCheckpoint:
        """Refer to the newest checkpoint of a project, a job, or both.

        Raises ValidationError if neither is given.
        """
        if not project_name and not job_id:
            problem = PydanticCustomError("nothing_named", "Give a project_name, a job_id or both")
            details = InitErrorDetails(type=problem, input={"project_name": project_name, "job_id": job_id})
            raise ValidationError.from_exception_data("BasetenCheckpoint.from_latest_checkpoint", [details])
        return LatestCheckpoint(project_name=project_name, job_id=job_id)

    @staticmethod
    def from_named_checkpoint(checkpoint_name: str, job_id: str) -> NamedCheckpoint:
        """Refer to the checkpoint with this name."""
        return NamedCheckpoint(checkpoint_name=checkpoint_name, job_id=job_id)


class LoopsCheckpoint:
    """Factory for references to checkpoints of Loops runs."""

    @staticmethod
    def from_checkpoint(
        run_id: str, checkpoint_name: str, target: LoopsTarget = "trainer"
    ) -> LoopsRunCheckpoint:
        """Refer to the checkpoint with this name."""
        return LoopsRunCheckpoint(run_id=run_id, checkpoint_name=checkpoint_name, target=target)


class LoadCheckpointConfig(StrictDefinition):
    """Checkpoints to load into ``BT_LOAD_CHECKPOINT_DIR`` before a job starts."""

    enabled: bool = False
    checkpoints: list[LoadableCheckpoint] = [LatestCheckpoint()]  # of the job's own project
    download_folder: str = LOADED_CHECKPOINTS_FOLDER


CACHE_FOLDER = "/root/.cache"  # default mount point of the caches
WORKING_FOLDER = "/b10/workspace"  # working directory of jobs with enable_baseten_workdir


class CheckpointingConfig(StrictDefinition):
    """Settings for saving what a job writes to ``BT_CHECKPOINT_DIR``; the volume size is in GiB."""

    enabled: bool = False
    checkpoint_path: str | None = None
    volume_size_gib: int | None = None


class CacheConfig(StrictDefinition):
    """Folders that persist between jobs, for the project and for the team.

    With ``require_cache_affinity``, a job fails rather than start in a place without the project's cache.
    """

    enabled: bool = False
    enable_legacy_hf_mount: bool = False
    require_cache_affinity: bool = True
    mount_base_path: str = CACHE_FOLDER


class Runtime(StrictDefinition):
    """Commands, environment and folders. ``enable_cache`` is the deprecated spelling of ``cache_config``."""

    start_commands: list[str] = []
    environment_variables: dict[str, EnvironmentValue] = {}
    enable_cache: bool | None = None
    checkpointing_config: CheckpointingConfig = Field(default_factory=CheckpointingConfig)
    load_checkpoint_config: LoadCheckpointConfig | None = None
    cache_config: CacheConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _replace_enable_cache(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("enable_cache") is None:
            return values
        if values.get("cache_config") is not None:
            raise ValueError(
                "enable_cache and cache_config cannot both be given; enable_cache is deprecated, "
                "write cache_config=CacheConfig(enabled=True, enable_legacy_hf_mount=True)"
            )
        enabled = values["enable_cache"]
        # The server rejects the deprecated field, so it is never sent.
        other_values = {name: value for name, value in values.items() if name != "enable_cache"}
        return {**other_values, "cache_config": CacheConfig(enabled=enabled, enable_legacy_hf_mount=enabled)}

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign a field; an assignment to the deprecated ``enable_cache`` sets ``cache_config``."""
        if name == "enable_cache" and value is not None:
            converted = Runtime(enable_cache=value, cache_config=self.cache_config)
            super().__setattr__("cache_config", converted.cache_config)
        else:
            super().__setattr__(name, value)


SESSION_TIMEOUT_MINUTES = 8 * 60  # default length of a session


class InteractiveSessionTrigger(TextEnum):
    """Event after which a session is opened."""

    ON_STARTUP = "on_startup"
    ON_FAILURE = "on_failure"
    ON_DEMAND = "on_demand"


class InteractiveSessionProvider(TextEnum):
    """Tool that a session is opened with."""

    VS_CODE = "vs_code"
    CURSOR = "cursor"
    SSH = "ssh"


class InteractiveSessionAuthProvider(TextEnum):
    """Account provider that a session authenticates with."""

    GITHUB = "github"
    MICROSOFT = "microsoft"


class InteractiveSession(StrictDefinition):
    """Settings of a remote session. The SDK's default account provider is Microsoft, the API's is GitHub."""

    trigger: Annotated[InteractiveSessionTrigger, members_only(InteractiveSessionTrigger)] = (
        InteractiveSessionTrigger.ON_DEMAND
    )
    timeout_minutes: int = SESSION_TIMEOUT_MINUTES
    session_provider: Annotated[InteractiveSessionProvider, members_only(InteractiveSessionProvider)] = (
        InteractiveSessionProvider.VS_CODE
    )
    auth_provider: Annotated[InteractiveSessionAuthProvider, members_only(InteractiveSessionAuthProvider)] = (
        InteractiveSessionAuthProvider.MICROSOFT
    )


class Workspace(StrictDefinition):
    """Folders to archive; all paths are relative to the config's folder."""

    workspace_root: str | None = None
    external_dirs: list[str] = []
    exclude_dirs: list[str] = []


class TrainingJob(StrictDefinition):
    """Definition of a training job. PENDING jobs with a higher ``priority`` start first."""

    image: Image
    compute: Compute = Field(default_factory=Compute)
    runtime: Runtime = Field(default_factory=Runtime)
    interactive_session: InteractiveSession | None = None
    name: str | None = None
    priority: int | None = None
    workspace: Workspace | None = None
    weights: list[WeightsSource] = []
    enable_baseten_workdir: bool = True


class TrainingProject(StrictDefinition):
    """Project that a job is submitted to; it is created if no project has its name.

    Dumps leave out ``job``: the project and its job are sent separately.
    """

    name: str
    job: TrainingJob = Field(exclude=True)
    team_name: str | None = None
