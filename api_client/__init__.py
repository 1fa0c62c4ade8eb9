"""An async client for Baseten Training.

::

    from api_client import TrainingClient, resolve_remote

    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        projects = await client.projects.list()

Public names are imported on first use, so that ``import api_client`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.clock import Clock, SystemClock
    from api_client.errors import (
        AnswerTooLarge,
        ApiClientError,
        ArchiveError,
        BadRequest,
        ConfigFileError,
        ConfigurationError,
        ErrorAnswer,
        InvalidAnswer,
        NotFound,
        RateLimited,
        ReadOnlyError,
        RedirectRefused,
        RequestError,
        ServerFault,
        TimedOut,
        Unauthorized,
        Unreachable,
        UploadFailed,
        UrlExpired,
    )
    from api_client.events import RequestEvent, RequestListener
    from api_client.http.retry import RetryPolicy
    from api_client.models.logs import LogBatch, LogEnd, LogEntry, LogGap, LogLine
    from api_client.programmatic import push
    from api_client.remotes import Remote, RemoteNotConfigured, resolve_remote
    from api_client.submission.archive import ArchivePlan, plan_archive, write_archive
    from api_client.submission.config_file import load_deploy_checkpoints_config, load_training_project
    from api_client.submission.payload import Overrides
    from api_client.submission.submitting import Submission, SubmissionProgress, submit

_MODULES = (
    "errors", "clock", "events", "remotes", "http.retry", "client", "models.logs", "submission.payload",
    "submission.archive", "submission.config_file", "submission.submitting", "programmatic",
)  # fmt: skip
"""Modules that define the public names; modules that import fast come first."""

__all__ = [
    "AnswerTooLarge",
    "ApiClientError",
    "ArchiveError",
    "ArchivePlan",
    "BadRequest",
    "Clock",
    "ConfigFileError",
    "ConfigurationError",
    "ErrorAnswer",
    "InvalidAnswer",
    "LogBatch",
    "LogEnd",
    "LogEntry",
    "LogGap",
    "LogLine",
    "NotFound",
    "Overrides",
    "RateLimited",
    "ReadOnlyError",
    "RedirectRefused",
    "Remote",
    "RemoteNotConfigured",
    "RequestError",
    "RequestEvent",
    "RequestListener",
    "RetryPolicy",
    "ServerFault",
    "Submission",
    "SubmissionProgress",
    "SystemClock",
    "TimedOut",
    "TrainingClient",
    "Unauthorized",
    "Unreachable",
    "UploadFailed",
    "UrlExpired",
    "load_deploy_checkpoints_config",
    "load_training_project",
    "plan_archive",
    "push",
    "resolve_remote",
    "submit",
    "write_archive",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module_name in _MODULES:
            value = getattr(import_module(f"{__name__}.{module_name}"), name, None)
            if value is not None:
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
