"""Jobs, the folders they take along, and the projects they belong to."""

from __future__ import annotations

from pydantic import Field

from api_client.definitions.base import SentDefinition, StrictDefinition
from api_client.definitions.compute import Compute
from api_client.definitions.images import Image
from api_client.definitions.runtime import Runtime
from api_client.definitions.sessions import InteractiveSession
from api_client.definitions.weights import WeightsSource


class Workspace(StrictDefinition):
    """Which folders are archived; all paths start at the config's folder (API facts, 3.5)."""

    workspace_root: str | None = None
    external_dirs: list[str] = []
    exclude_dirs: list[str] = []


class TrainingJob(SentDefinition):
    """One run of a training script. Among PENDING jobs the higher ``priority`` goes first."""

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
    """The project that a job is submitted to; it is made when there is none of its name.

    ``job`` is left out of dumps: the project and its job are sent apart.
    """

    name: str
    job: TrainingJob = Field(exclude=True)
    team_name: str | None = None
