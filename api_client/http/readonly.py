"""Decide if a request only reads, refuse changes in read-only mode, and describe requests for messages.

Messages say what the user tried to do (``update job abc1234``); method and path stay in the exception.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from api_client.errors import ReadOnlyError

LONGEST_ID = 60

_OF_A_JOB = {
    ("GET", ""): "read job {}",
    ("PATCH", ""): "update job {}",
    ("DELETE", ""): "delete job {}",
    ("POST", "stop"): "stop job {}",
    ("POST", "recreate"): "recreate job {}",
    ("GET", "download"): "find the code of job {}",
    ("GET", "logs"): "read the log of job {}",
    ("GET", "metrics"): "read the metrics of job {}",
    ("GET", "checkpoints"): "list the checkpoints of job {}",
    ("GET", "checkpoint_files"): "list the checkpoint files of job {}",
    ("GET", "auth_codes"): "list the sessions of job {}",
    ("PATCH", "interactive_sessions"): "update a session of job {}",
    ("POST", "ssh"): "sign the SSH key for job {}",
}
_OF_A_PROJECT = {
    ("GET", ""): "read project {}",
    ("DELETE", ""): "delete project {}",
    ("GET", "jobs"): "list the jobs of project {}",
    ("POST", "jobs"): "create a job in project {}",
    ("GET", "cache"): "read the cache of project {}",
}
_OTHERS = {
    ("GET", "training_projects"): "list the projects",
    ("POST", "training_projects"): "create the project",
    ("POST", "training_jobs/search"): "list the jobs",
    ("GET", "training/capacity"): "read the GPU capacity",
    ("PATCH", "training/capacity"): "update the GPU capacity",
    ("GET", "blobs/credentials/train"): "get upload credentials",
    ("GET", "instance_types"): "list the instance types",
    ("GET", "instance_type_prices"): "list the prices",
    ("GET", "billing/usage_summary"): "read the bill",
    ("GET", "teams"): "list the teams",
    ("GET", "users/me"): "read the account",
    ("POST", "users/auth/logout"): "log out",
    ("GET", "secrets"): "list the secrets",
    ("POST", "secrets"): "set the secret",
    ("GET", "models"): "list the models",
}


def request_description(method: str, path: str) -> str:
    """Return a description of the request that can follow "can't"."""
    segments = [_shown(unquote(segment)) for segment in path.strip("/").split("/")][1:]
    match segments:
        case ["teams", _, *rest] if rest:
            segments = rest
    match segments:
        case ["training_projects", _, "jobs", job, *rest]:
            words = _OF_A_JOB.get((method, rest[0] if rest else ""))
            return words.format(job) if words else f"complete a request about job {job}"
        case ["training_projects", project, *rest]:
            words = _OF_A_PROJECT.get((method, rest[0] if rest else ""))
            return words.format(project) if words else f"complete a request about project {project}"
        case ["training", "jobs", job, *_]:
            return f"read the queue of job {job}"
        case ["secrets", name] if method == "DELETE":
            return f"delete secret {name}"
        case ["models", _, "deployments", deployment, change] if method == "POST" and change != "logs":
            return f"{change} deployment {deployment}"
        case ["models", _, "deployments", deployment, *_]:
            return f"read deployment {deployment}"
        case ["models", model, *_]:
            return f"read model {model}"
    return _OTHERS.get((method, "/".join(segments)), "complete the request")


def _shown(text: str) -> str:
    shown = "".join("\ufffd" if unicodedata.category(letter)[0] == "C" else letter for letter in text)
    return shown if len(shown) <= LONGEST_ID else shown[: LONGEST_ID - 1] + "…"


READING_METHODS = frozenset({"GET", "HEAD"})

READS_BY_POST = tuple(
    re.compile(pattern)
    for pattern in (
        "/v1/training_jobs/search",
        "/v1/training_projects/[^/]+/jobs/[^/]+/(logs|metrics)",  # deprecated equivalents of GETs
        "/v1/models/[^/]+/deployments/[^/]+/logs",
    )
)
"""Routes of the published API that use POST but change nothing."""

CHANGES_BY_GET = frozenset({"/v1/blobs/credentials/train"})  # only needed for an upload
GRAPHQL_PATH = "/graphql/"
_CHANGING_OPERATIONS = ("mutation", "subscription")


def is_query(graphql: str) -> bool:
    """Return True if a GraphQL document only reads; if it merely contains the word, it counts as a change."""
    return not any(word in graphql for word in _CHANGING_OPERATIONS)


def only_reads(method: str, path: str, body: Any = None) -> bool:
    if method in READING_METHODS:
        return path not in CHANGES_BY_GET
    if method != "POST":
        return False
    if path == GRAPHQL_PATH:
        query = body.get("query") if isinstance(body, Mapping) else None
        return isinstance(query, str) and is_query(query)
    return any(pattern.fullmatch(path) for pattern in READS_BY_POST)


def refusal(read_only_by: str, method: str = "", path: str = "", what: str = "") -> ReadOnlyError:
    """Build the error for a change that was not sent; ``read_only_by`` is the setting that forbids it."""
    named = what or request_description(method, path)
    return ReadOnlyError(
        f"refused (read-only by {read_only_by}): {named}", method=method, path=path, attempts=0
    )
