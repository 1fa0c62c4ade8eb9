"""The routes of the API that the client calls, each described in one place.

The client derives from a route what to send, how to word errors, and what read-only mode refuses; the
emulator serves the same routes. Unless a route says otherwise, every method but GET is a change.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cached_property
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NotRequired,
    Protocol,
    TypeVar,
    cast,
    get_origin,
)
from urllib.parse import quote

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from api_client.errors import RequestError
from api_client.models import (
    Activation,
    AuthCode,
    BlobCredentials,
    CacheSummary,
    Checkpoint,
    CheckpointFilesPage,
    Deployment,
    DeploymentConfig,
    InstanceType,
    InstanceTypePrice,
    InteractiveSessionUpdate,
    JobMetrics,
    JobTombstone,
    LogsPage,
    Model,
    ProjectTombstone,
    QueueContext,
    Retry,
    Secret,
    SignedSshCertificate,
    Startup,
    Team,
    TeamGpuCapacity,
    TrainingCapacity,
    TrainingJob,
    TrainingProject,
    UsageSummary,
    UserInfo,
)
from api_client.models.base import MAX_PAGE_ITEMS, NullAsEmpty, UnwrapField

ResponseT = TypeVar("ResponseT")
OtherT = TypeVar("OtherT")
Parsed_co = TypeVar("Parsed_co", covariant=True)
MAX_SHOWN_ID_CHARACTERS = 60  # longer ids are truncated in messages
Site = Literal["api", "app"]  # the host of the REST API, or that of the web app
_ID = re.compile(r"\{(\w+)\}")


class Adapter(Protocol[Parsed_co]):
    """Parses responses: a ``TypeAdapter``, or an object with the same two methods."""

    def validate_json(self, data: bytes, /) -> Parsed_co:
        """Raises ValidationError."""

    def validate_python(self, value: Any, /) -> Parsed_co:
        """Raises ValidationError."""


@dataclass(frozen=True, eq=False)
class Route(Generic[ResponseT]):
    """A method and a path, the purpose of a request, and the type of the response."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    """Path, with the names of ids in braces."""

    purpose: str
    """The purpose of a request, as in "can't read job {job_id}"."""

    kind: type[ResponseT]
    """Type of the response, or of its field ``inside``."""

    inside: str = ""
    """Field of the response that holds the value; empty if the whole response is the value."""

    changes: bool | None = None
    """True if a request changes something on the server; None if that follows from the method."""

    by_team: bool = False
    """True if the route also exists below ``/v1/teams/{team_id}``."""

    is_large: bool = False
    """True if a response may have hundreds of thousands of values."""

    is_published: bool = True
    """False if the published API does not describe the route."""

    site: Site = "api"
    reader: Adapter[ResponseT] | None = None
    """Parses the response instead of the adapter for ``kind`` and ``inside``."""

    @property
    def is_change(self) -> bool:
        """True if a request changes something on the server; refused in read-only mode."""
        return self.method != "GET" if self.changes is None else self.changes

    @property
    def is_idempotent(self) -> bool:
        """True if a request can be repeated without further effect, so it may be retried."""
        return self.method == "GET" or not self.is_change

    @property
    def paths(self) -> tuple[str, ...]:
        """The path, and the path below a team, if any."""
        return (self.path, _below_team(self.path)) if self.by_team else (self.path,)

    @cached_property
    def adapter(self) -> Adapter[ResponseT]:
        """Parses responses."""
        if self.reader is not None:
            return self.reader
        kind: Any = self.kind
        if get_origin(kind) is list:
            kind = Annotated[kind, MAX_PAGE_ITEMS, NullAsEmpty(list)]
        return TypeAdapter(Annotated[kind, UnwrapField(self.inside)] if self.inside else kind)

    def with_reader(self, reader: Adapter[OtherT]) -> Route[OtherT]:
        """Return the same route, with responses parsed by ``reader``."""
        return replace(cast("Route[Any]", self), reader=reader)

    def path_of(self, *ids: str, team_id: str | None = None) -> str:
        """Return the path for these ids, given in the order of the path; they may contain any character.

        Raises RequestError for ids that would lead to another route.
        """
        path = self.path
        if team_id is not None:
            path, ids = _below_team(path), (team_id, *ids)
        for id_ in ids:
            if id_ in ("", ".", ".."):
                raise RequestError(f"{id_!r} is not a valid id", method=self.method, path=path)
        escaped = [quote(id_, safe="", errors="replace") for id_ in ids]
        return path.format(**dict(zip(_ID.findall(path), escaped, strict=True)))

    def words(self, *ids: str) -> str:
        """Return the purpose of a request with these ids, to follow "can't"."""
        return self.purpose.format(**dict(zip(_ID.findall(self.path), map(_printable, ids), strict=True)))

    @property
    def pattern(self) -> str:
        """Regular expression of the paths."""
        return "|".join(_ID.sub("[^/]+", template) for template in self.paths)

    def matches(self, path: str) -> bool:
        """Return True if ``path`` is one of the route's paths."""
        return re.fullmatch(self.pattern, path) is not None


def _below_team(path: str) -> str:
    return path.replace("/v1/", "/v1/teams/{team_id}/", 1)


def _printable(text: str) -> str:
    printable = "".join("\ufffd" if unicodedata.category(letter)[0] == "C" else letter for letter in text)
    return (
        printable
        if len(printable) <= MAX_SHOWN_ID_CHARACTERS
        else printable[: MAX_SHOWN_ID_CHARACTERS - 1] + "…"
    )


_PROJECTS = "/v1/training_projects"
_PROJECT = _PROJECTS + "/{project_id}"
_JOBS = _PROJECT + "/jobs"
_JOB = _JOBS + "/{job_id}"
_MODEL = "/v1/models/{model_id}"
_DEPLOYMENTS = _MODEL + "/deployments"
_DEPLOYMENT = _DEPLOYMENTS + "/{deployment_id}"

PROJECTS = Route("GET", _PROJECTS, "list the projects", list[TrainingProject], "training_projects")
PROJECT = Route("GET", _PROJECT, "read project {project_id}", TrainingProject, "training_project")
UPSERT_PROJECT = Route(
    "POST", _PROJECTS, "create the project", TrainingProject, "training_project", by_team=True
)
DELETE_PROJECT = Route("DELETE", _PROJECT, "delete project {project_id}", ProjectTombstone)
PROJECT_CACHE = Route(
    "GET", _PROJECT + "/cache/summary", "read the cache of project {project_id}", CacheSummary, is_large=True
)

JOBS = Route("GET", _JOBS, "list the jobs of project {project_id}", list[TrainingJob], "training_jobs")
SEARCH_JOBS = Route(
    "POST", "/v1/training_jobs/search", "list the jobs", list[TrainingJob], "training_jobs", changes=False
)
CREATE_JOB = Route("POST", _JOBS, "create a job in project {project_id}", TrainingJob, "training_job")
JOB = Route("GET", _JOB, "read job {job_id}", TrainingJob, "training_job")
UPDATE_JOB = Route("PATCH", _JOB, "update job {job_id}", TrainingJob, "training_job")
DELETE_JOB = Route("DELETE", _JOB, "delete job {job_id}", JobTombstone)
STOP_JOB = Route("POST", _JOB + "/stop", "stop job {job_id}", TrainingJob, "training_job")
RECREATE_JOB = Route("POST", _JOB + "/recreate", "recreate job {job_id}", TrainingJob, "training_job")
JOB_CODE = Route(
    "GET", _JOB + "/download", "find the code of job {job_id}", list[str], "artifact_presigned_urls"
)
JOB_QUEUE = Route(
    "GET", "/v1/training/jobs/{job_id}/queue_context", "read the queue of job {job_id}", QueueContext
)
JOB_LOGS = Route("GET", _JOB + "/logs", "read the log of job {job_id}", LogsPage)
JOB_METRICS = Route("GET", _JOB + "/metrics", "read the metrics of job {job_id}", JobMetrics, is_large=True)
CHECKPOINTS = Route(
    "GET", _JOB + "/checkpoints", "list the checkpoints of job {job_id}", list[Checkpoint], "checkpoints"
)
CHECKPOINT_FILES = Route(
    "GET", _JOB + "/checkpoint_files", "list the checkpoint files of job {job_id}", CheckpointFilesPage
)

AUTH_CODES = Route(
    "GET", _JOB + "/auth_codes", "list the sessions of job {job_id}", list[AuthCode], "auth_codes"
)
UPDATE_SESSION = Route(
    "PATCH",
    _JOB + "/interactive_sessions/{session_id}",
    "update a session of job {job_id}",
    InteractiveSessionUpdate,
)
SIGN_SSH = Route("POST", _JOB + "/ssh/sign", "sign the SSH key for job {job_id}", SignedSshCertificate)

TEAMS = Route("GET", "/v1/teams", "list the teams", list[Team], "teams")
ME = Route("GET", "/v1/users/me", "read the account", UserInfo)
LOG_OUT = Route("POST", "/v1/users/auth/logout", "log out", dict[str, Any], is_published=False)
INSTANCE_TYPES = Route(
    "GET", "/v1/instance_types", "list the instance types", list[InstanceType], "instance_types"
)
PRICES = Route(
    "GET", "/v1/instance_type_prices", "list the prices", list[InstanceTypePrice], "instance_types"
)
BILL = Route("GET", "/v1/billing/usage_summary", "read the bill", UsageSummary)
SECRETS = Route("GET", "/v1/secrets", "list the secrets", list[Secret], "secrets", by_team=True)
SET_SECRET = Route("POST", "/v1/secrets", "set the secret", Secret, by_team=True)
DELETE_SECRET = Route("DELETE", "/v1/secrets/{name}", "delete secret {name}", dict[str, Any], by_team=True)
CAPACITY = Route("GET", "/v1/training/capacity", "read the GPU capacity", TrainingCapacity)
UPDATE_CAPACITY = Route(
    "PATCH", "/v1/training/capacity", "update the GPU capacity", TeamGpuCapacity, "team_gpu_capacity"
)
# A GET, but its credentials serve only for an upload, which is a change.
UPLOAD_CREDENTIALS = Route(
    "GET", "/v1/blobs/credentials/train", "get upload credentials", BlobCredentials, changes=True
)

MODELS = Route("GET", "/v1/models", "list the models", list[Model], "models")
MODEL = Route("GET", _MODEL, "read model {model_id}", Model)
DEPLOYMENTS = Route("GET", _DEPLOYMENTS, "read model {model_id}", list[Deployment], "deployments")
DEPLOYMENT = Route("GET", _DEPLOYMENT, "read deployment {deployment_id}", Deployment)
DEPLOYMENT_CONFIG = Route("GET", _DEPLOYMENT + "/config", "read deployment {deployment_id}", DeploymentConfig)
DEPLOYMENT_LOGS = Route("GET", _DEPLOYMENT + "/logs", "read deployment {deployment_id}", LogsPage)
STARTUPS = Route("GET", _DEPLOYMENT + "/startups", "read deployment {deployment_id}", list[Startup], "items")
PROMOTE = Route("POST", _DEPLOYMENT + "/promote", "promote deployment {deployment_id}", Deployment)
ACTIVATE = Route("POST", _DEPLOYMENT + "/activate", "activate deployment {deployment_id}", Activation)
DEACTIVATE = Route("POST", _DEPLOYMENT + "/deactivate", "deactivate deployment {deployment_id}", Activation)
RETRY = Route("POST", _DEPLOYMENT + "/retry", "retry deployment {deployment_id}", Retry)


@with_config(ConfigDict(extra="ignore", defer_build=True))
class GraphqlResponse(TypedDict):
    """Data or errors, or both; the status is 200 in any case."""

    data: NotRequired[dict[str, Any] | None]
    errors: NotRequired[list[dict[str, Any]] | None]


GRAPHQL_QUERY = Route(
    "POST",
    "/graphql/",
    "complete the request",
    GraphqlResponse,
    changes=False,
    is_published=False,
    site="app",
)
GRAPHQL_MUTATION = replace(GRAPHQL_QUERY, changes=True)

ROUTES: tuple[Route[Any], ...] = tuple(route for route in globals().values() if isinstance(route, Route))
"""All routes of this module."""
