"""The training job and its project, the folders to archive, and interactive sessions.

``TrainingProject`` is what a config file defines; the other definitions are parts of it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api_client.definitions.base import SentDefinition, StrictDefinition, TextEnum, members_only
from api_client.definitions.compute import Compute
from api_client.definitions.images import Image
from api_client.definitions.runtime import Runtime
from api_client.definitions.weights import WeightsSource

SESSION_TIMEOUT_MINUTES = 8 * 60  # default length of a session (API facts, 3.1)


class InteractiveSessionTrigger(TextEnum):
    """Event that opens a session."""

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
    """Settings of a remote session. The SDK's default account is Microsoft's, the API's own is GitHub's."""

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
    """Folders to archive; all paths are relative to the config's folder (API facts, 3.5)."""

    workspace_root: str | None = None
    external_dirs: list[str] = []
    exclude_dirs: list[str] = []


class TrainingJob(SentDefinition):
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


class TrainingProject(SentDefinition):
    """Project that a job is submitted to; it is created if no project has its name.

    Dumps leave out ``job``: the project and its job are sent separately.
    """

    name: str
    job: TrainingJob = Field(exclude=True)
    team_name: str | None = None
